"""`paddock nic ...`: the network interfaces of a machine. Each verb is a module of its own that is loaded when it is called."""

from collections.abc import Sequence

from paddock.cli import verbs
from paddock.cli.console import Console
from paddock.cli.verbs import VerbsParser

TEXT = "List, add and remove network interfaces of a machine, of any dialect."
COMMANDS = {
    "ls": ("paddock.cli.commands.nic_list", "List the network interfaces of a machine"),
    "add": ("paddock.cli.commands.nic_add", "Add a network interface to a machine"),
    "rm": ("paddock.cli.commands.nic_remove", "Take a network interface out of a machine"),
}


def parser() -> VerbsParser:
    """Return the parser of the command."""
    return VerbsParser("nic", TEXT, COMMANDS)


def run(argv: Sequence[str], console: Console) -> int:
    """Run one of the verbs."""
    return verbs.run(parser(), COMMANDS, argv, console)
