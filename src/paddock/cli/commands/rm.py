"""`paddock rm`: deletes machines, and keeps their disks unless they are to go."""

import argparse
import sys
from collections.abc import Sequence

from paddock.base.errors import PaddockError
from paddock.base.lines import one_line
from paddock.cli import arguments, servers, several, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE
from paddock.fleet.machines import finding
from paddock.fleet.machines.removal import RemovalPlan
from paddock.fleet.machines.removing import MachineRemover
from paddock.fleet.machines.running import RunOptions

_TEXT = """Delete machines. What goes and what stays is listed first. Disks stay, and the machine is shut down for that; with --purge
those that belong to the machine go with their data. Protected machines are refused (`paddock unprotect`)."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("rm", _TEXT, "[OPTIONS] [KIND/]NAME...", several.EXITS)
    several.add_names(options)
    options.add_argument("--purge", action="store_true", help="Delete the machine's disks, too")
    options.add_argument("--force", "--now", action="store_true", help="Cut the power instead of shutting the guest down")
    arguments.add_yes(options)
    arguments.add_wait(options)
    arguments.add_dry_run(options)
    arguments.add_quiet(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_remove(parsed, console))


async def _remove(parsed: argparse.Namespace, console: Console) -> int:
    def tell(line: str) -> None:
        if not parsed.quiet:
            console.say(line)

    options = RunOptions(force=parsed.force, seconds=parsed.timeout if parsed.wait else 0.0, dry_run=parsed.dry_run)
    async with servers.connected(parsed, console) as session:
        remover = MachineRemover(session.client, session.clock, options, tell)
        plans: dict[str, RemovalPlan] = {}
        failed = GOOD
        for name in parsed.names:
            try:
                planned = await remover.plan(await finding.find(session.client, name, session.namespace), purge=parsed.purge)
                plans.setdefault(str(planned.machine), planned)
            except PaddockError as error:
                console.say(f"paddock: {error}")
                failed = UNUSABLE
        if not plans or not _agreed(list(plans.values()), parsed, console):
            return failed if not plans else UNUSABLE
        code = await several.each(session, list(plans), console, lambda machine: remover.remove(plans[str(machine)]))
        return max(code, failed)


def _agreed(plans: Sequence[RemovalPlan], parsed: argparse.Namespace, console: Console) -> bool:
    """Say what goes and what stays, and ask a person at a terminal."""
    if not parsed.quiet or not parsed.yes:
        for line in (line for each in plans for line in each.lines()):
            console.say(one_line(line))
    if parsed.yes or parsed.dry_run:
        return True
    if not terminal.has_input():
        if parsed.purge:
            console.say("paddock: --purge deletes data, and nobody is there to be asked; add --yes")
        return not parsed.purge
    console.ask("Delete? [y/N] ")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    console.say("paddock: nothing was deleted")
    return False
