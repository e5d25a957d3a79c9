"""`paddock disk ...`: the disks of a machine. Each verb is a module of its own that is loaded when it is called."""

from collections.abc import Sequence

from paddock.cli import verbs
from paddock.cli.console import Console
from paddock.cli.verbs import VerbsParser

TEXT = "List, add, grow and remove disks of a machine, of any dialect."
COMMANDS = {
    "ls": ("paddock.cli.commands.disk_list", "List the disks of a machine"),
    "add": ("paddock.cli.commands.disk_add", "Add a disk to a machine"),
    "grow": ("paddock.cli.commands.disk_grow", "Make a disk of a machine larger"),
    "rm": ("paddock.cli.commands.disk_remove", "Take a disk out of a machine"),
}


def parser() -> VerbsParser:
    """Return the parser of the command."""
    return VerbsParser("disk", TEXT, COMMANDS)


def run(argv: Sequence[str], console: Console) -> int:
    """Run one of the verbs."""
    return verbs.run(parser(), COMMANDS, argv, console)
