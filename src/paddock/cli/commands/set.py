"""`paddock set`: changes processors, memory and other sizes of a machine, after it has shown what that does."""

from collections.abc import Sequence

from paddock.cli import arguments, changing, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import sizes
from paddock.fleet.machines.sizekeys import KEYS, parse

_TEXT = """Change sizes of a machine, of any dialect, in the object that you wrote. The plan comes first: what the running guest takes at
once, what waits for a restart, and what would lose data. On a terminal the command then asks."""


def parser() -> Parser:
    """Return the parser of the command."""
    keys = "\n".join(f"  {key:<14}{text}" for key, text in KEYS.items())
    options = arguments.parser("set", _TEXT, "[OPTIONS] [KIND/]NAME KEY=VALUE...", arguments.CHANGE_EXITS)
    options.epilog = f"keys:\n{keys}\n\n{options.epilog}"
    arguments.add_machine(options, "Machine to change")
    named = options.add_argument("wishes", metavar="KEY=VALUE", nargs="+", help="What to set, such as cpu=4 mem=8Gi")
    arguments.complete_with(named, [f"{key}=" for key in KEYS])
    options.add_argument("--restart", action="store_true", help="Restart the guest if it needs that to see the change")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    wishes = parse(parsed.wishes)
    return servers.serve(changing.change(parsed, console, lambda machine: sizes.resized(machine, wishes), "set", ask=True))
