"""`paddock image pull`: adds an image to the library from a known name, a URL, a container image or a file."""

import argparse
from pathlib import Path

from paddock.app.directory import imagelibrary
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.engine.images import catalogue
from paddock.engine.images.library import Progress
from paddock.engine.images.sources import File, Http, RegistryImage, Source

TEXT = "Fetch an image into the library of this host."


def run(given: list[str], console: Console) -> int:
    """Fetch the image and print a line for each ten per cent."""
    options = arguments.parser("image pull", TEXT, "[OPTIONS] SOURCE")
    imagelibrary.add_directory(options)
    imagelibrary.add_servers(options)
    words = "Name from `paddock image ls --known`, http(s)://..., docker://..., oci-archive:/..., or a file"
    options.add_argument("source", metavar="SOURCE", help=words)
    options.add_argument("--checksum", default="", metavar="ALGORITHM:HEX", help="Expected checksum: md5, sha1, sha256 or sha512")
    options.add_argument("--path", default="", metavar="PATH", help="File inside the container image (default: the only file in /disk)")
    options.add_argument("--arch", default="", metavar="ARCH", help="Architecture, such as amd64 or arm64 (default: this host's)")
    parsed = options.parse_args(given)
    images = imagelibrary.library(parsed, imagelibrary.settings(parsed))
    source = _source(options, parsed)
    image = imagelibrary.work(images, lambda: images.fetch(source, _Steps(console).tell))
    console.out(imagelibrary.line(image))
    return 0


def _source(options: arguments.Parser, parsed: argparse.Namespace) -> Source:
    name, architecture = parsed.source, parsed.arch or _host()
    if name in catalogue.KNOWN:
        name = catalogue.address(name, architecture)
    if name.startswith(("http://", "https://")):
        return Http(name, trust=imagelibrary.trust(parsed), checksum=parsed.checksum)
    if name.startswith(("docker://", "oci-archive:")):
        configs = imagelibrary.docker_configs(parsed)
        return RegistryImage(name, parsed.path, parsed.arch, "Always", docker_configs=configs, trust=imagelibrary.trust(parsed))
    if Path(name).exists():
        return File(Path(name).absolute(), parsed.checksum)
    return options.error(f'"{name}" is no known name, URL or file; `paddock image ls --known` lists the names')


def _host() -> str:
    from paddock.engine.images.registry import host_architecture  # noqa: PLC0415 - HTTP comes with it

    return host_architecture()


class _Steps:
    """Says something when a step begins and at each ten per cent, so that a log stays short."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: tuple[str, int] = ("", -1)

    def tell(self, progress: Progress) -> None:
        tenth = int((progress.fraction or 0) * 10)
        if (progress.step, tenth) == self._said or progress.step in ("waiting", "done"):
            return
        self._said = (progress.step, tenth)
        speed = f", {imagelibrary.size(int(progress.bytes_per_second))}/s" if progress.bytes_per_second else ""
        left = f", {progress.seconds_left:.0f} s left" if progress.seconds_left is not None else ""
        self._console.say(f"paddock: {progress.step} {progress.percent}{speed}{left}")
