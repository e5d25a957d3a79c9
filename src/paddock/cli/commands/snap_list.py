"""`paddock snap ls`: lists snapshots of machines."""

import argparse
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.machineviews import shown
from paddock.fleet.machines import snapshots
from paddock.fleet.machines.finding import find
from paddock.fleet.machines.snapshots import SnapshotRow
from paddock.kubernetes.meta.ages import age

_TEXT = "List the snapshots of a machine, or of all machines of the namespace, the oldest first."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("snap ls", _TEXT, "[OPTIONS] [[KIND/]NAME]")
    arguments.add_machine(options, "Machine whose snapshots to list (default: all)", optional=True)
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_list(parsed, console))


async def _list(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace) if parsed.name else None
        rows = await snapshots.listed(server, machine, server.namespace)
        now = server.clock.seconds()
    titles = ("NAME", "MACHINE", "STATE", "AGE", "CONSISTENT", "MEMORY")
    console.out(shown(parsed.output, titles, [_cells(each, now) for each in rows], [_data(each) for each in rows]))
    return GOOD


def _cells(row: SnapshotRow, now: float) -> tuple[str, ...]:
    return (row.name, row.machine, row.state, age(row.created, now) if row.created else "", row.consistency, row.memory)


def _data(row: SnapshotRow) -> dict[str, Any]:
    found = {"name": row.name, "machine": row.machine, "state": row.state, "created": row.created, "consistent": row.consistency}
    found["memory"] = row.memory
    return {name: value for name, value in found.items() if value}
