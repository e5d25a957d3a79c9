"""`paddock snap rm`: deletes a snapshot of a machine."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, confirming, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.machines import snapshots
from paddock.fleet.machines.finding import find

_TEXT = "Delete a snapshot with its data. The machine and its disks stay as they are."
_EXITS = {
    0: "success",
    1: "nothing was deleted: the answer was no, or --yes is missing",
    2: "wrong usage, no such snapshot, or it is still there",
}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("snap rm", _TEXT, "[OPTIONS] [KIND/]NAME SNAPSHOT...", _EXITS)
    arguments.add_machine(options, "Machine of the snapshot")
    options.add_argument("snapshots", metavar="SNAPSHOT", nargs="+", help="Snapshot to delete; `paddock snap ls` lists them")
    arguments.add_wait(options)
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_remove(parsed, console))


async def _remove(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace)
        for name in parsed.snapshots:
            await snapshots.named(server, machine, name)
        question = f"Delete {', '.join(parsed.snapshots)} of {machine}? What only the snapshot has is lost."
        if not parsed.dry_run and not confirming.agreed(console, question, yes=parsed.yes):
            confirming.refused(console, "nothing was deleted", "--yes deletes without a question")
            return FINDINGS
        for name in parsed.snapshots:
            if parsed.dry_run:
                await snapshots.rehearse_deletion(server, machine, name)
                console.out(f"{name} would be deleted\n")
                continue
            await snapshots.delete(server, machine, name, parsed.timeout if parsed.wait else 0.0)
            console.out(f"{name} {'deleted' if parsed.wait else 'is being deleted'}\n")
    return GOOD
