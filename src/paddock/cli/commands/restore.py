"""`paddock restore`: brings the disks of a machine back to a snapshot. `paddock backup restore` is for the store of a server."""

import argparse
from collections.abc import Sequence

from paddock.base.errors import UsageError
from paddock.cli import arguments, confirming, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.machines import restores, snapshots, waiting
from paddock.fleet.machines.edits import ChangeRefused
from paddock.fleet.machines.finding import MachineView, find
from paddock.fleet.machines.snapshots import SnapshotRow

_TEXT = """Bring the disks of a machine back to a snapshot. A running machine stops for it and starts again. If the snapshot has the
memory of the guest, the guest continues where it was. What it wrote after that is lost, so take a snapshot before if you may want it.
`paddock backup restore` restores the store of a server."""
_EXITS = {0: "success", 1: "nothing was changed: the answer was no, or --yes is missing", 2: "wrong usage, or the restore failed"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("restore", _TEXT, "[OPTIONS] [KIND/]NAME SNAPSHOT", _EXITS)
    arguments.add_machine(options, "Machine to bring back")
    # Optional for argparse alone: the former spelling gets an answer of its own.
    options.add_argument("snapshot", metavar="SNAPSHOT", nargs="?", default="", help="Snapshot of it; `paddock snap ls NAME` lists them")
    options.add_argument("--disks-only", action="store_true", help="Leave the memory in the snapshot alone, and boot from its disks")
    options.add_argument("--no-start", action="store_true", help="Leave the machine stopped afterwards")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_timeout(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    if "--dir" in argv or any(word.startswith("--dir=") for word in argv):
        raise UsageError(
            "`paddock restore` is for snapshots of machines", fix="the store of a server: paddock backup restore FILE --dir DIR"
        )
    parsed = options.parse_args(argv)
    if not parsed.snapshot:
        raise UsageError(
            "name a machine and a snapshot: paddock restore NAME SNAPSHOT",
            why="a single word would be the backup of a server's store",
            fix=f"for that: paddock backup restore {parsed.name}",
        )
    return servers.serve(_restore(parsed, console))


async def _restore(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace)
        found = await restores.usable(server, machine, parsed.snapshot)
        running = waiting.runs(machine)
        row = snapshots.row(found)
        _check_start(parsed, machine, running=running)
        _check_memory(parsed, machine, has_memory=row.consistency == "with memory")
        for line in _plan(parsed, machine, row, running=running):
            console.say(line)
        if parsed.dry_run:
            console.say("paddock: nothing was changed (--dry-run)")
            return GOOD
        if not confirming.agreed(console, "Go on?", yes=parsed.yes):
            confirming.refused(console, "nothing was changed", "--yes restores without a question")
            return FINDINGS
        await restores.carry_out(server, machine, parsed.snapshot, parsed.timeout, start=not parsed.no_start, disks_only=parsed.disks_only)
        console.out(f"{machine} restored to {parsed.snapshot}\n")
    return GOOD


def _check_start(parsed: argparse.Namespace, machine: MachineView, *, running: bool) -> None:
    why = machine.kind.adapter.restore_starts
    if parsed.no_start and running and why:
        raise ChangeRefused(
            f"cannot leave {machine} stopped after a restore",
            why=why,
            fix=f"stop it first: `paddock stop {machine.name}`, then repeat the command",
        )


def _check_memory(parsed: argparse.Namespace, machine: MachineView, *, has_memory: bool) -> None:
    why = machine.kind.adapter.restore_needs_memory
    if parsed.disks_only and why:
        fix = f"restore its VirtualMachine: `paddock restore vm/{machine.name} SNAPSHOT --disks-only`"
        raise ChangeRefused(f"cannot restore the disks of {machine} alone", why=why, fix=fix)
    if parsed.no_start and has_memory and not parsed.disks_only:
        why = "its guest goes on where it was"
        raise ChangeRefused(f"cannot leave {machine} stopped after a restore with memory", why=why, fix="add --disks-only")


def _plan(parsed: argparse.Namespace, machine: MachineView, row: SnapshotRow, *, running: bool) -> list[str]:
    lines = [f"{machine}: the disks become as they were at {row.created}; what was written since is lost."]
    if row.consistency == "with memory" and not parsed.disks_only:
        lines.append("The guest goes on where it was then.")
        if running:
            lines.append("The present guest shuts down for it.")
    elif running:
        lines.append("The guest shuts down for it" + (" and stays off." if parsed.no_start else " and starts again."))
    return lines
