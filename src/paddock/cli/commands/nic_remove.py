"""`paddock nic rm`: takes a network interface out of a machine."""

from collections.abc import Sequence

from paddock.cli import arguments, changing, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import nics

_TEXT = "Take a network interface out of a machine: on a bridge at once, any other when the guest restarts."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("nic rm", _TEXT, "[OPTIONS] [KIND/]NAME NIC", arguments.CHANGE_EXITS)
    arguments.add_machine(options, "Machine to change")
    options.add_argument("interface", metavar="NIC", help="Interface to take out; `paddock nic ls` lists them")
    options.add_argument("--restart", action="store_true", help="Restart the guest if it keeps the interface otherwise")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    done = f"no longer has the interface {parsed.interface}"
    return servers.serve(changing.change(parsed, console, lambda machine: nics.removed(machine, parsed.interface), done))
