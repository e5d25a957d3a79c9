"""`paddock get`: shows objects of any kind of the server."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from paddock.base.names import check_name
from paddock.cli import arguments, servers, tables, terminal
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.live import LiveView
from paddock.cli.tables import TableColumn
from paddock.fleet.documents import report
from paddock.fleet.servers.discovery import KindDiscovery, ServedKind
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key

_TEXT = """Show objects of any kind that the server has, with the server's own columns. `paddock ls` lists machines of every dialect."""
_SECONDS = 2.0


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("get", _TEXT, "[OPTIONS] KIND [NAME...] | KIND/NAME...")
    kind = options.add_argument("kind", metavar="KIND", help="Kind, plural or short name, alone or with its group; or KIND/NAME")
    arguments.complete_with(kind, arguments.KnownNames.KINDS)
    options.add_argument("names", metavar="NAME", nargs="*", help="Object to show (default: all)")
    arguments.add_all_namespaces(options)
    arguments.add_selector(options)
    arguments.add_watch(options)
    arguments.add_views(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    servers.serve(_get(parsed, console))
    return GOOD


async def _get(parsed: argparse.Namespace, console: Console) -> None:
    word, slash, name = parsed.kind.partition("/")
    names = [name, *(each.rpartition("/")[2] for each in parsed.names)] if slash else parsed.names
    for each in names:
        check_name(each)
    async with servers.connected(parsed, console) as session:
        kind = await KindDiscovery(session.client).called(word)
        if parsed.output in ("json", "yaml", "name"):
            await _print(session, kind, names, parsed, console)
            return
        view = LiveView(console, terminal.current())
        while True:
            lines = await _lines(session, kind, names, parsed)
            if not parsed.watch:
                console.out("".join(f"{line}\n" for line in lines))
                if not lines:
                    console.say(f"paddock: no {kind.plural} found")
                return
            view.show(lines)
            await asyncio.sleep(_SECONDS)


def _selection(session: ServerSession, kind: ServedKind, parsed: argparse.Namespace) -> Selection:
    return Selection(namespace="" if parsed.all_namespaces or not kind.namespaced else session.namespace, labels=parsed.selector)


async def _print(session: ServerSession, kind: ServedKind, names: Sequence[str], parsed: argparse.Namespace, console: Console) -> None:
    selection = _selection(session, kind, parsed)
    if names:
        found = [await session.client.get(kind.target, Key(selection.namespace, name)) for name in names]
    else:
        found = (await session.client.list(kind.target, selection)).items
    if parsed.output == "name":
        console.out("".join(f"{kind.qualified}/{each['metadata']['name']}\n" for each in found))
        return
    for each in found:
        each["metadata"].pop("managedFields", None)
    shown: Any = found[0] if len(names) == 1 else {"apiVersion": "v1", "kind": "List", "items": found}
    console.out(report.structured(shown, parsed.output))


async def _lines(session: ServerSession, kind: ServedKind, names: Sequence[str], parsed: argparse.Namespace) -> list[str]:
    selection = _selection(session, kind, parsed)
    answers = [await session.client.table(kind.target, selection, name) for name in names or ("",)]
    wide = parsed.output == "wide"
    definitions = answers[0].get("columnDefinitions") or []
    shown = [index for index, each in enumerate(definitions) if wide or not each.get("priority")]
    rows = [each for answer in answers for each in answer.get("rows") or ()]
    columns = [TableColumn(title=definitions[index]["name"].upper(), shrinks=not wide) for index in shown]
    cells = [["" if each["cells"][index] is None else str(each["cells"][index]) for index in shown] for each in rows]
    if parsed.all_namespaces and kind.namespaced:
        columns = [TableColumn(title="NAMESPACE"), *columns]
        cells = [[each["object"]["metadata"].get("namespace", ""), *row] for each, row in zip(rows, cells, strict=True)]
    screen = terminal.current()
    return tables.lines(columns, cells, terminal.PIPE if wide else screen) if rows else []
