"""`paddock top`: shows what running machines use: processors, memory, disks and networks."""

import argparse
import asyncio
from collections.abc import Mapping, Sequence

from paddock.cli import arguments, servers, tables, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.live import LiveView
from paddock.cli.machineviews import shown
from paddock.cli.tables import TableColumn
from paddock.fleet.documents import report
from paddock.fleet.machines import facts, finding, usage
from paddock.fleet.machines.usage import MachineUsage
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import quotas
from paddock.kubernetes.client.target import Key

_TEXT = """Show what running machines use, measured over two seconds: processors in cores, memory of the process and of the guest, and the
rates of disks and networks. A cluster without Paddock's series shows processors and memory, by metrics.k8s.io. With --namespaces, show
what is used of the quotas of namespaces."""
_SECONDS = 2.0
_COLUMNS = (
    TableColumn(title="NAME", shrinks=True, least=12),
    TableColumn(title="CPU", right=True),
    TableColumn(title="MEMORY", right=True),
    TableColumn(title="GUEST", right=True),
    TableColumn(title="READ/s", right=True),
    TableColumn(title="WRITE/s", right=True),
    TableColumn(title="IN/s", right=True),
    TableColumn(title="OUT/s", right=True),
)


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("top", _TEXT)
    options.add_argument("--namespaces", action="store_true", help="Show the quotas of all namespaces, or of the one that -n names")
    arguments.add_all_namespaces(options)
    arguments.add_selector(options)
    arguments.add_watch(options)
    arguments.add_views(options, ("json", "yaml"))
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.namespaces and (parsed.selector or parsed.watch):
        options.error("--namespaces goes with neither --selector nor --watch")
    servers.serve((_show_quotas if parsed.namespaces else _show)(parsed, console))
    return GOOD


async def _show_quotas(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as session:
        rows = await quotas.read(session, parsed.namespace)
    if not rows and not parsed.output:
        console.say("paddock: no namespace has a quota; `paddock tenant NAME` makes one with a quota")
        return
    titles = ("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD", "USED%")
    cells = [(row.namespace, row.quota, row.resource, row.used, row.hard, "" if row.share is None else f"{row.share}%") for row in rows]
    console.out(shown(parsed.output, titles, cells, [row.as_data() for row in rows]))


async def _show(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as session:
        view = LiveView(console, terminal.current())
        before = await usage.read(session.client)
        while True:
            await asyncio.sleep(_SECONDS)
            after = await usage.read(session.client)
            rows = await _rows(session, parsed, usage.rates(before, after))
            if parsed.output:
                console.out(report.structured([{"name": name, **each.as_data()} for name, each in rows.items()], parsed.output))
            elif parsed.watch:
                view.show(_lines(rows))
            elif rows:
                console.out("".join(f"{line}\n" for line in _lines(rows)))
            else:
                console.say("paddock: no machine runs here; -A looks at all namespaces")
            if not parsed.watch:
                return
            before = after


async def _rows(session: ServerSession, parsed: argparse.Namespace, machine_usages: Mapping[Key, MachineUsage]) -> dict[str, MachineUsage]:
    """Return the use of each machine by the name that the user gave it."""
    machines = await finding.every(session.client, None if parsed.all_namespaces else session.namespace, parsed.selector)
    used = [(each, machine_usages[each.vmi_key]) for each in machines if each.vmi_key is not None and each.vmi_key in machine_usages]
    busiest = sorted(used, key=lambda pair: -pair[1].cpu)
    return {f"{each.namespace}/{each.name}" if parsed.all_namespaces else each.name: row for each, row in busiest}


def _lines(rows: Mapping[str, MachineUsage]) -> list[str]:
    cells = [
        (
            name,
            f"{each.cpu:.2f}",
            *(facts.size(int(value)) for value in (each.memory, each.guest, each.read, each.write, each.received, each.sent)),
        )
        for name, each in rows.items()
    ]
    return tables.lines(_COLUMNS, cells, terminal.current())
