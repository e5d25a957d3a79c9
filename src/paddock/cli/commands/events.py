"""`paddock events`: shows what happened to a machine and to what was made of it, or in a namespace."""

import argparse
from collections.abc import Sequence

from paddock.base.jsondata import Data
from paddock.base.lines import one_line
from paddock.cli import arguments, servers, tables, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.tables import Cell, TableColumn
from paddock.fleet.documents import report
from paddock.fleet.machines import eventlists, finding
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.options import Selection, WatchOptions
from paddock.kubernetes.client.target import EVENTS
from paddock.kubernetes.meta import ages

_TEXT = """Show what happened, the oldest first: to a machine and what was made of it, or in the whole namespace. With -w, keep showing."""
_COLUMNS = (
    TableColumn(title="AGE", right=True),
    TableColumn(title="TYPE"),
    TableColumn(title="OBJECT", shrinks=True, least=16),
    TableColumn(title="REASON"),
)


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("events", _TEXT, "[OPTIONS] [[KIND/]NAME]")
    arguments.add_machine(options, "Machine (default: the whole namespace)", optional=True)
    options.add_argument("--warnings", action="store_true", help="Warnings only")
    arguments.add_all_namespaces(options)
    arguments.add_watch(options)
    arguments.add_views(options, ("json", "yaml"))
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.all_namespaces and parsed.name:
        options.error("-A goes without a machine")
    servers.serve(_show(parsed, console))
    return GOOD


async def _show(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as session:
        about = await _about(session, parsed.name)
        selection = Selection(namespace="" if parsed.all_namespaces else session.namespace)
        listed = await session.client.list(EVENTS, selection)
        found = sorted((each for each in listed.items if _is_wanted(each, about, parsed.warnings)), key=eventlists.time)
        if parsed.output:
            console.out(report.structured(found, parsed.output))
            return
        lines = _lines(found, session.clock.seconds(), header=True)
        console.out("".join(f"{line}\n" for line in lines if found))
        if not found:
            console.say("paddock: no events" + (f" about {parsed.name}" if parsed.name else ""))
        console.flush()
        revision = listed.revision
        while parsed.watch:
            async for event in session.client.watch(EVENTS, selection, WatchOptions(revision=revision)):
                revision = event.object["metadata"].get("resourceVersion") or revision
                if event.type in ("ADDED", "MODIFIED") and _is_wanted(event.object, about, parsed.warnings):
                    console.out("".join(f"{line}\n" for line in _lines([event.object], session.clock.seconds(), header=False)))
                    console.flush()


async def _about(session: ServerSession, name: str) -> set[str]:
    """Return the names of the objects that the events are to be about; empty for all."""
    if not name:
        return set()
    return eventlists.names(await finding.find(session.client, name, session.namespace))


def _is_wanted(event: Data, about: set[str], warnings: bool) -> bool:
    named = (event.get("involvedObject") or {}).get("name")
    return (not about or named in about) and (not warnings or event.get("type") == "Warning")


def _lines(events: Sequence[Data], now: float, *, header: bool) -> list[str]:
    rows: list[tables.Row] = []
    for event in events:
        about = event.get("involvedObject") or {}
        kind = Cell(str(event.get("type", "")), "red" if event.get("type") == "Warning" else "")
        rows.append((ages.age(eventlists.time(event), now), kind, f"{about.get('kind')}/{about.get('name')}", str(event.get("reason", ""))))
    screen = terminal.current()
    lines = tables.lines(_COLUMNS, rows, screen, header=header)
    texts = (["MESSAGE"] if header else []) + [one_line(_message(each)) for each in events]
    # A message is a sentence: the terminal breaks it, nobody cuts it.
    return [f"{line}   {text}" for line, text in zip(lines, texts, strict=True)]


def _message(event: Data) -> str:
    count = eventlists.count(event)
    return f"{event.get('message', '')}{f' (x{count})' if count > 1 else ''}"
