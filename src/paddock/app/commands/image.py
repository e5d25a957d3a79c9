"""`paddock image ...`: the commands for images. Each is a module of its own that is loaded when it is called."""

from paddock.cli import verbs
from paddock.cli.console import Console
from paddock.cli.verbs import VerbsParser

TEXT = "List, pull, push, build, remove and prune disk images."
# command -> its module and what it does
COMMANDS = {
    "ls": ("paddock.app.commands.image_list", "List the images of this host, or the known names"),
    "pull": ("paddock.app.commands.image_pull", "Fetch an image into the library"),
    "verify": ("paddock.app.commands.image_verify", "Compare a file with the pinned build of a known image"),
    "push": ("paddock.app.commands.image_push", "Upload an image to a registry, as a container disk"),
    "rm": ("paddock.app.commands.image_remove", "Remove images that nothing uses"),
    "prune": ("paddock.app.commands.image_prune", "Remove every unused image, after showing the list"),
    "build": ("paddock.app.commands.image_build", "Build a bootable image from Debian packages"),
}


def parser() -> VerbsParser:
    """Return the parser of the command."""
    return VerbsParser("image", TEXT, COMMANDS)


def run(argv: list[str], console: Console) -> int:
    """Run one of the commands."""
    return verbs.run(parser(), COMMANDS, argv, console)
