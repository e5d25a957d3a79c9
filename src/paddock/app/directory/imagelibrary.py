"""The library of images as the commands use it: opened without a server, while one may run."""

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from paddock.app.directory import diskformat
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.base.images.cleanup import named
from paddock.base.images.library import Image, ImageLibrary, ImageRecord, ImageSettings, Progress
from paddock.base.images.sources import ServerTrust
from paddock.cli import arguments, progress
from paddock.cli.arguments import Parser

T = TypeVar("T")

# Who calls a command speaks for himself, and may name servers of this host.
_ALLOWED = ("127.0.0.0/8", "::1")


def add_directory(options: Parser) -> None:
    arguments.add_directory(options)


def add_servers(options: Parser) -> None:
    """Add the options about registries and web servers."""
    option = options.add_argument
    option("--insecure-registry", action="append", default=[], metavar="HOST", help="Registry to contact without TLS; repeatable")
    option("--authfile", type=Path, metavar="FILE", help="Registry credentials (default: those of docker login or podman login)")
    option("--ca-file", type=Path, metavar="FILE", help="Additional CA certificates to trust, in PEM")


def engine_root(parsed: argparse.Namespace) -> Path:
    """The engine's directory. Raises `NewerDirectory` for one of a newer Paddock."""
    places = DataPaths(parsed.dir or default_root())
    diskformat.check(places.root)
    return places.engine


def library(parsed: argparse.Namespace, settings: ImageSettings | None = None) -> ImageLibrary:
    """The library below it, made when it is not there."""
    root = engine_root(parsed)
    try:
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        return ImageLibrary(root / "images", settings or ImageSettings())
    except OSError as error:
        raise Terminal(f"cannot use {root}", why=error.strerror or "", fix="name the server's directory: --dir") from error


def existing(parsed: argparse.Namespace, settings: ImageSettings | None = None) -> ImageLibrary:
    """The library, if there is one; a command that only takes from it makes none."""
    root = engine_root(parsed)
    if not (root / "images").is_dir():
        raise Terminal(f"there are no images in {root}", fix="`paddock image pull` fetches one; --dir names another server's directory")
    return library(parsed, settings)


def records(parsed: argparse.Namespace) -> list[ImageRecord]:
    """The images that there are. Where there is no library, none is made."""
    return library(parsed).records() if (engine_root(parsed) / "images").is_dir() else []


def settings(parsed: argparse.Namespace) -> ImageSettings:
    """Return the settings of the options."""
    return ImageSettings(allow=_ALLOWED, insecure_registries=frozenset(parsed.insecure_registry), archives=(Path("/"),))


def trust(parsed: argparse.Namespace) -> ServerTrust:
    """Return the trust for servers."""
    return ServerTrust(ca=_text(parsed.ca_file)) if parsed.ca_file else ServerTrust()


def docker_configs(parsed: argparse.Namespace) -> tuple[str, ...]:
    """Credentials of registries, as `docker login` and `podman login` leave them."""
    if parsed.authfile:
        return (_text(parsed.authfile),)
    places = [
        Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json",
        Path(os.environ.get("XDG_RUNTIME_DIR") or "/run/containers/0") / "containers" / "auth.json",
    ]
    return tuple(_text(place) for place in places if place.is_file())


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Terminal(f"cannot read {path}", why=str(error)) from error


def find(images: ImageLibrary, name: str) -> ImageRecord:
    """An image by its digest, the beginning of it, or a source that it came from."""
    plain = name.removeprefix("sha256:")
    records = images.records()
    found = [record for record in records if len(plain) >= 6 and record.image.digest.startswith(plain)]
    found = found or [record for record in records if name in record.sources]
    if len(found) == 1:
        return found[0]
    if found:
        raise Terminal(f"{name} names {len(found)} images", fix="give more of the digest")
    raise Terminal(f"there is no image {name} in the library", fix="`paddock image ls` lists them")


def add_pools(options: Parser) -> None:
    """Add `--pool`: volumes in other directories use images, too."""
    options.add_argument(
        "--pool", action="append", type=Path, default=[], metavar="DIR", help="Additional volume directory of the server; repeatable"
    )


def used(parsed: argparse.Namespace) -> set[str]:
    """Digests of images that volumes and machines use."""
    return named(engine_root(parsed), parsed.pool)


def work(images: ImageLibrary, ask: Callable[[], Awaitable[T]]) -> T:
    """Run one request of the library to its end."""

    async def one() -> T:
        try:
            return await ask()
        finally:
            await images.close()

    return asyncio.run(one())


def shown(bar: progress.ProgressBar) -> Callable[[Progress], None]:
    """Return a listener of imports and uploads that shows them in a bar."""

    def show(state: Progress) -> None:
        if state.step not in ("waiting", "done"):
            bar.show(state.step, state.bytes_done, state.bytes_total)

    return show


def size(count: int) -> str:
    """Bytes for people."""
    return progress.size(count)


def line(image: Image) -> str:
    """An image on one line."""
    return f"sha256:{image.digest}  {image.format}, {size(image.virtual_size)} ({size(image.stored_size)} on disk)  {image.path}\n"
