"""`paddock image rm`: removes images that nothing uses."""

from paddock.app.directory import imagelibrary
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.cli import arguments
from paddock.cli.console import Console

_GRACE_SECONDS = 600.0
TEXT = "Remove images from this host. Images in use stay."


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("image rm", TEXT, "[OPTIONS] (IMAGE... | --unused)")
    imagelibrary.add_directory(options)
    imagelibrary.add_pools(options)
    images = options.add_argument("image", metavar="IMAGE", nargs="*", help="Digest, the beginning of one, or the source of an image")
    arguments.complete_with(images, arguments.KnownNames.IMAGES)
    options.add_argument(
        "--unused",
        action="store_true",
        help="Remove every image that no volume or machine uses; while a server runs, only those not requested for ten minutes",
    )
    return options


def run(argv: list[str], console: Console) -> int:
    """Remove the named images, or all unused ones."""
    options = parser()
    parsed = options.parse_args(argv)
    if bool(parsed.image) == parsed.unused:
        options.error("name images, or give --unused")
    images = imagelibrary.existing(parsed)
    used = imagelibrary.used(parsed)
    if parsed.unused:
        # A server may have fetched one a moment ago, and not have made the disk yet that it is for.
        keep = _GRACE_SECONDS if DataPaths(parsed.dir or default_root()).pid.exists() else 0.0
        removed = imagelibrary.work(images, lambda: images.collect(used, keep))
    else:
        removed = [imagelibrary.find(images, name).image.digest for name in parsed.image]
        for digest in removed:
            if digest in used:
                raise Terminal(
                    f"the image {digest[:12]} is used", why="a disk of a volume or machine is laid over it", fix="delete these first"
                )
        for digest in removed:
            images.remove(digest)
    console.out("".join(f"removed sha256:{digest}\n" for digest in removed))
    return 0
