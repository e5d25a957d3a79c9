"""`paddock fork`: makes machines that continue from the memory of a running one."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console

_TEXT = """Make machines that continue where a running machine is, with its memory and layers over its disks. The machine runs on. A fork
has MAC addresses, addresses and a firmware UUID of its own, and its guest agent gives the guest a host name, machine id, SSH host keys and
entropy of its own before it has a network. Forks are called NAME-fork-1 and so on. `paddock clone` copies a machine that is off."""
_EXITS = {
    0: "success",
    2: "wrong usage, or a fork failed",
}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("fork", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    arguments.add_machine(options, "Machine to fork")
    text = "Number of forks, all of the same moment (default: 1)"
    options.add_argument("--count", metavar="N", type=int, default=1, help=text)
    text = "Keep the forks until ctrl+C, then delete them with their disks"
    options.add_argument("--rm", action="store_true", help=text)
    arguments.add_dry_run(options)
    arguments.add_wait(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Run the command."""
    options = parser()
    parsed = options.parse_args(argv)
    _check(options, parsed)
    from paddock.fleet.machines import forks  # noqa: PLC0415 - heavy imports wait until there is something to do

    return forks.run(parsed, console)


def _check(options: Parser, parsed: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if parsed.count < 1:
        options.error("--count must be at least 1")
    if parsed.rm and (parsed.dry_run or not parsed.wait):
        options.error("--rm waits for the forks: leave out --dry-run and --no-wait")
    if parsed.count > 1 and not parsed.wait:
        options.error("--count takes one snapshot for all forks and waits for them: leave out --no-wait")
