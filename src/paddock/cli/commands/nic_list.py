"""`paddock nic ls`: lists the network interfaces of a machine."""

import argparse
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.machineviews import shown
from paddock.fleet.machines.finding import find
from paddock.fleet.machines.nics import NicRow, listed

_TEXT = "List the network interfaces of a machine: network, MAC address, and the addresses of a running guest."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("nic ls", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, "Machine to look at")
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_list(parsed, console))


async def _list(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        rows = listed(await find(server.client, parsed.name, server.namespace))
    wide = parsed.output == "wide"
    titles = ("NAME", "NETWORK", "MAC", "ADDRESS", "STATE", *(("BINDING", "MODEL") if wide else ()))
    console.out(shown(parsed.output, titles, [_cells(each, wide=wide) for each in rows], [_data(each) for each in rows]))
    return GOOD


def _cells(row: NicRow, *, wide: bool) -> tuple[str, ...]:
    addresses = ", ".join(row.addresses if wide else row.addresses[:1])
    return (row.name, row.network, row.mac, addresses, row.state, *((row.binding, row.model) if wide else ()))


def _data(row: NicRow) -> dict[str, Any]:
    found = {
        "name": row.name,
        "network": row.network,
        "mac": row.mac,
        "addresses": list(row.addresses),
        "state": row.state,
        "binding": row.binding,
        "model": row.model,
    }
    return {name: value for name, value in found.items() if value}
