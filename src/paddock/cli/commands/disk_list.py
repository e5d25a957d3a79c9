"""`paddock disk ls`: lists the disks of a machine."""

import argparse
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.machineviews import shown, size
from paddock.fleet.machines.claims import sized
from paddock.fleet.machines.disks import DiskRow, listed
from paddock.fleet.machines.finding import find

_TEXT = "List the disks of a machine: size, source, bus, and the name that the guest has for each."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("disk ls", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, "Machine to look at")
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_list(parsed, console))


async def _list(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace)
        rows = await sized(server.client, machine, listed(machine))
    titles = ("NAME", "SIZE", "SOURCE", "BUS", "GUEST", "STATE", *(("CLAIM",) if parsed.output == "wide" else ()))
    console.out(shown(parsed.output, titles, [_cells(each, wide=parsed.output == "wide") for each in rows], [_data(each) for each in rows]))
    return GOOD


def _cells(row: DiskRow, *, wide: bool) -> tuple[str, ...]:
    return (row.name, size(row.size), row.source, row.bus, row.device, row.state, *((row.claim,) if wide else ()))


def _data(row: DiskRow) -> dict[str, Any]:
    found = {
        "name": row.name,
        "size": row.size,
        "source": row.source,
        "claim": row.claim,
        "bus": row.bus,
        "guest": row.device,
        "state": row.state,
    }
    return {name: value for name, value in found.items() if value not in (None, "")}
