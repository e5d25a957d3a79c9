"""`paddock set`: changes processors, memory and other sizes of a machine, after it has shown what that does."""

from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console

_TEXT = """Change sizes of a machine, of any dialect, in the object that you wrote. The plan comes first: what the running guest takes at
once, what waits for a restart, and what would lose data. On a terminal the command then asks."""


def parser() -> Parser:
    """Return the parser of the command."""
    from paddock.fleet.machines.sizekeys import KEYS  # noqa: PLC0415 - only this command needs the table

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
    """Run the command."""
    parsed = parser().parse_args(argv)
    from paddock.cli import changing  # noqa: PLC0415 - heavy imports wait until there is something to do
    from paddock.cli.servers import serve  # noqa: PLC0415
    from paddock.fleet.machines import sizes  # noqa: PLC0415 - heavy imports wait until there is something to do
    from paddock.fleet.machines.sizekeys import parse  # noqa: PLC0415

    wishes = parse(parsed.wishes)
    return serve(changing.change(parsed, console, lambda machine: sizes.resized(machine, wishes), "set", ask=True))
