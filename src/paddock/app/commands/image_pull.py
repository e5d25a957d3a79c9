"""`paddock image pull`: adds an image to the library from a known name, a URL, a container image or a file."""

import argparse
from pathlib import Path

from paddock.app.directory import imagelibrary
from paddock.base.images import catalogue, pins
from paddock.base.images.registry import host_architecture
from paddock.base.images.sources import File, Http, RegistryImage, Source
from paddock.cli import arguments, progress
from paddock.cli.console import Console

TEXT = "Fetch an image into the library of this host."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("image pull", TEXT, "[OPTIONS] SOURCE")
    imagelibrary.add_directory(options)
    imagelibrary.add_servers(options)
    words = "Name from `paddock image ls --known`, http(s)://..., docker://..., oci-archive:/..., or a file"
    options.add_argument("source", metavar="SOURCE", help=words)
    options.add_argument("--checksum", default="", metavar="ALGORITHM:HEX", help="Expected checksum: md5, sha1, sha256 or sha512")
    options.add_argument("--path", default="", metavar="PATH", help="File inside the container image (default: the only file in /disk)")
    options.add_argument("--arch", default="", metavar="ARCH", help="Architecture, such as amd64 or arm64 (default: this host's)")
    options.add_argument("--latest", action="store_true", help="Fetch the newest build of a known name, not the pinned one")
    arguments.add_quiet(options)
    return options


def run(argv: list[str], console: Console) -> int:
    """Fetch the image and show the progress."""
    options = parser()
    parsed = options.parse_args(argv)
    images = imagelibrary.library(parsed, imagelibrary.settings(parsed))
    source = _source(options, parsed)
    with progress.ProgressBar(console, quiet=parsed.quiet) as bar:
        image = imagelibrary.work(images, lambda: images.fetch(source, imagelibrary.shown(bar)))
    if parsed.source in catalogue.KNOWN and not parsed.arch:
        # `paddock run NAME` then needs no network.
        images.name(parsed.source, image)
    console.out(imagelibrary.line(image))
    return 0


def _source(options: arguments.Parser, parsed: argparse.Namespace) -> Source:
    name, architecture = parsed.source, parsed.arch or _host()
    checksum = parsed.checksum
    if name in catalogue.KNOWN:
        pin = pins.of(name, architecture) if not parsed.latest else None
        # A build that somebody names by its own checksum is another one.
        name, checksum = (pin.url, pin.checksum) if pin and not checksum else (catalogue.address(name, architecture), checksum)
    if name.startswith(("http://", "https://")):
        return Http(name, trust=imagelibrary.trust(parsed), checksum=checksum)
    if name.startswith(("docker://", "oci-archive:")):
        configs = imagelibrary.docker_configs(parsed)
        return RegistryImage(name, parsed.path, parsed.arch, "Always", docker_configs=configs, trust=imagelibrary.trust(parsed))
    if Path(name).exists():
        return File(Path(name).absolute(), parsed.checksum)
    return options.error(f'"{name}" is no known name, URL or file; `paddock image ls --known` lists the names')


def _host() -> str:
    return host_architecture()
