"""`paddock ls`: lists the machines of every dialect, one row each."""

import argparse
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, servers, tables, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.live import LiveView
from paddock.cli.tables import Cell, TableColumn
from paddock.cli.terminal import Screen
from paddock.fleet.documents import report
from paddock.fleet.machines import facts, finding
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.watching import MachineWatch
from paddock.kubernetes.meta import ages

_TEXT = """List the machines of every dialect. An object of a dialect and the VirtualMachine that was made of it are one row."""
_NARROW = ("name", "dialect", "status", "ip", "cpus", "memory", "age", "node")
_WIDE = (*_NARROW, "image", "disks", "guest", "uptime")
_SECONDS = 1.0
_COLUMNS = {
    "namespace": TableColumn(title="NAMESPACE", shrinks=True),
    "name": TableColumn(title="NAME", shrinks=True, least=16),
    "dialect": TableColumn(title="DIALECT"),
    "status": TableColumn(title="STATUS", shrinks=True, least=9),
    "ip": TableColumn(title="IP"),
    "cpus": TableColumn(title="CPUS", right=True),
    "memory": TableColumn(title="MEMORY", right=True),
    "age": TableColumn(title="AGE", right=True),
    "node": TableColumn(title="NODE", shrinks=True, least=6),
    "image": TableColumn(title="IMAGE", shrinks=True, least=12),
    "disks": TableColumn(title="DISKS", right=True),
    "guest": TableColumn(title="GUEST OS", shrinks=True),
    "uptime": TableColumn(title="UPTIME", right=True),
}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("ls", _TEXT)
    arguments.add_all_namespaces(options)
    arguments.add_selector(options)
    arguments.add_watch(options)
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.watch and parsed.output not in (None, "wide"):
        options.error("-w goes with tables")
    servers.serve(_list(parsed, console))
    return GOOD


async def _list(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as server:
        namespace = None if parsed.all_namespaces else server.namespace
        screen = terminal.current()
        if parsed.watch:
            view = LiveView(console, screen)
            async for machines in MachineWatch(server.client, namespace, parsed.selector).pictures(_SECONDS):
                # Without a terminal nothing is drawn again because a second has passed.
                view.show(_lines(machines, parsed, server.clock.seconds(), screen, ages=screen.interactive))
            return
        found = await finding.every(server.client, namespace, parsed.selector)
        if parsed.output == "name":
            console.out("".join(f"{each}\n" for each in found))
        elif parsed.output in ("json", "yaml"):
            console.out(report.structured([as_data(each) for each in found], parsed.output))
        elif not found:
            console.say(_nothing(namespace, parsed.selector))
        else:
            console.out("".join(f"{line}\n" for line in _lines(found, parsed, server.clock.seconds(), screen)))


def _nothing(namespace: str | None, selector: str) -> str:
    where = "on this server" if namespace is None else f'in namespace "{namespace}"'
    more = "" if namespace is None else "; -A lists all namespaces"
    return f"paddock: no machines {where}{' with these labels' if selector else ''}{more}"


def _lines(machines: Sequence[MachineView], parsed: argparse.Namespace, now: float, screen: Screen, *, ages: bool = True) -> list[str]:
    names: tuple[str, ...] = _WIDE if parsed.output == "wide" else _NARROW
    names = tuple(each for each in names if ages or each not in ("age", "uptime"))
    if parsed.all_namespaces:
        names = ("namespace", *names)
    cells = [_cells(each, now) for each in machines]
    rows = [[each[name] for name in names] for each in cells]
    # A wide table is as wide as it is.
    return tables.lines([_COLUMNS[name] for name in names], rows, _unbounded(screen) if parsed.output == "wide" else screen)


def _unbounded(screen: Screen) -> Screen:
    return Screen(interactive=screen.interactive, colours=screen.colours, rows=screen.rows)


def _cells(machine: MachineView, now: float) -> dict[str, Cell | str]:
    found = facts.of(machine)
    return {
        "namespace": machine.namespace,
        "name": machine.name,
        "dialect": machine.dialect,
        "status": Cell(found.status, found.colour),
        "ip": found.ip,
        "cpus": str(found.cpus or "-"),
        "memory": facts.size(found.memory),
        "age": ages.age(found.created, now) if found.created else "-",
        "node": found.node,
        "image": found.image,
        "disks": str(found.disks or "-"),
        "guest": found.guest,
        "uptime": ages.age(found.since, now) if found.since else "-",
    }


def as_data(machine: MachineView) -> dict[str, Any]:
    """Return a machine for programs."""
    found = facts.of(machine)
    return {
        "name": machine.name,
        "namespace": machine.namespace,
        "dialect": machine.dialect,
        "kind": machine.kind.kind,
        "apiVersion": machine.kind.target.api_version,
        "status": found.status,
        "ips": list(found.ips),
        "cpus": found.cpus or None,
        "memoryBytes": found.memory or None,
        "created": found.created or None,
        "runningSince": found.since or None,
        "node": found.node or None,
        "image": found.image or None,
        "disks": found.disks,
        "guestOS": found.guest or None,
        "consoleURL": found.console or None,
        "protected": found.protected,
        "virtualMachine": machine.vm_key.name if machine.vm_key else None,
    }
