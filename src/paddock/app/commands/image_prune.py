"""`paddock image prune`: lists the images that nothing uses and what they take, and removes them after a yes."""

import argparse
import time

from paddock.app.commands.image_list import table
from paddock.app.directory import imagelibrary
from paddock.app.directory.paths import DataPaths
from paddock.base.directories import default_root
from paddock.base.images.library import ImageRecord
from paddock.cli import arguments, confirming
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

# A server may have fetched an image a moment ago, and not have made the disk yet that it is for.
_GRACE_SECONDS = 600.0
TEXT = """Remove every image that no volume, machine or snapshot uses. The list and the space that it frees come first; then the command
asks. Without a terminal it removes nothing unless --yes is given."""


def parser() -> Parser:
    options = arguments.parser("image prune", TEXT)
    imagelibrary.add_directory(options)
    imagelibrary.add_pools(options)
    options.add_argument("--dry-run", action="store_true", help="List what would be removed, and remove nothing")
    options.add_argument("-y", "--yes", action="store_true", help="Remove without asking")
    return options


def run(argv: list[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    unused = _unused(parsed)
    if not unused:
        console.say("paddock: every image is in use; there is nothing to remove")
        return GOOD
    console.out(table(unused, set(), time.time()))
    total = imagelibrary.size(sum(record.image.stored_size for record in unused))
    count = f"{len(unused)} image{'s' if len(unused) > 1 else ''}"
    if parsed.dry_run:
        console.say(f"paddock: {count} would go, which frees {total}; nothing was removed")
        return GOOD
    if not confirming.agreed(console, f"Remove {count} and free {total}?", yes=parsed.yes):
        console.say(f"paddock: nothing was removed; --yes removes {count} and frees {total}")
        return GOOD
    images = imagelibrary.library(parsed)
    # What a machine began to use while the question stood open stays.
    still = {record.image.digest for record in _unused(parsed)}
    removed = [record for record in unused if record.image.digest in still]
    for record in removed:
        images.remove(record.image.digest)
    freed = imagelibrary.size(sum(record.image.stored_size for record in removed))
    console.say(f"paddock: removed {len(removed)} image{'s' if len(removed) != 1 else ''}, freed {freed}")
    return GOOD


def _unused(parsed: argparse.Namespace) -> list[ImageRecord]:
    keep = _GRACE_SECONDS if DataPaths(parsed.dir or default_root()).pid.exists() else 0.0
    used, now = imagelibrary.used(parsed), time.time()
    return [each for each in imagelibrary.records(parsed) if each.image.digest not in used and now - each.used >= keep]
