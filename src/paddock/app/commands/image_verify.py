"""`paddock image verify`: compares a file with the pinned build of a known image, without a network."""

from pathlib import Path

from paddock.base.images import catalogue, pins
from paddock.base.images.errors import ImageRefused
from paddock.base.images.registry import host_architecture
from paddock.cli import arguments
from paddock.cli.console import Console

TEXT = "Compare a file with the pinned build of a known image. No network is needed."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("image verify", TEXT, "[OPTIONS] NAME FILE")
    named = options.add_argument("name", metavar="NAME", type=arguments.one_of(tuple(catalogue.KNOWN)), help="A name of `image ls --known`")
    arguments.complete_with(named, tuple(catalogue.KNOWN))
    options.add_argument("file", metavar="FILE", type=Path, help="The file as it was downloaded")
    options.add_argument("--arch", default="", metavar="ARCH", help="Architecture, such as amd64 or arm64 (default: this host's)")
    return options


def run(argv: list[str], console: Console) -> int:
    """Compare, and say which build it is."""
    parsed = parser().parse_args(argv)
    pin = pins.of(parsed.name, parsed.arch or host_architecture())
    if pin is None:
        text = f"{parsed.name} has no pinned build for this architecture: only TLS protects its download"
        raise ImageRefused("NotFound", text, fix="compare the file with the list of checksums that its distribution publishes")
    pins.verify(parsed.file, pin)
    signed = f"signed by {pin.signed_by}" if pin.signed_by else "not signed"
    console.out(f"{parsed.file} is {parsed.name} {pin.release} ({pin.checksum}; list of checksums {signed})\n")
    return 0
