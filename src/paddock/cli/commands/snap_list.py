"""`paddock snap ls`: lists snapshots of machines."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddock.cli import arguments
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD

if TYPE_CHECKING:
    from paddock.fleet.machines.snapshots import SnapshotRow

_TEXT = "List the snapshots of a machine, or of all machines of the namespace, the oldest first."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("snap ls", _TEXT, "[OPTIONS] [[KIND/]NAME]")
    arguments.add_machine(options, "Machine whose snapshots to list (default: all)", optional=True)
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Run the command."""
    parsed = parser().parse_args(argv)
    from paddock.cli.servers import serve  # noqa: PLC0415 - heavy imports wait until there is something to do

    return serve(_list(parsed, console))


async def _list(parsed: argparse.Namespace, console: Console) -> int:
    from paddock.cli.machineviews import shown  # noqa: PLC0415
    from paddock.cli.servers import connected  # noqa: PLC0415
    from paddock.fleet.machines import snapshots  # noqa: PLC0415 - as above
    from paddock.fleet.machines.finding import find  # noqa: PLC0415

    async with connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace) if parsed.name else None
        rows = await snapshots.listed(server, machine, server.namespace)
        now = server.clock.seconds()
    titles = ("NAME", "MACHINE", "STATE", "AGE", "CONSISTENT", "MEMORY")
    console.out(shown(parsed.output, titles, [_cells(each, now) for each in rows], [_data(each) for each in rows]))
    return GOOD


def _cells(row: "SnapshotRow", now: float) -> tuple[str, ...]:
    from paddock.kubernetes.meta.ages import age  # noqa: PLC0415 - as above

    return (row.name, row.machine, row.state, age(row.created, now) if row.created else "", row.consistency, row.memory)


def _data(row: "SnapshotRow") -> dict[str, Any]:
    found = {"name": row.name, "machine": row.machine, "state": row.state, "created": row.created, "consistent": row.consistency}
    found["memory"] = row.memory
    return {name: value for name, value in found.items() if value}
