"""`paddock apply`: makes the objects of manifests, or changes them, by server-side apply."""

import argparse
from collections.abc import Sequence

from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.cli import arguments, serverplans, servers, warned
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE
from paddock.fleet.documents import planlines
from paddock.fleet.documents.objects import InputObject, InputReader
from paddock.fleet.servers import objectwrites
from paddock.fleet.servers.discovery import KindDiscovery
from paddock.fleet.servers.objectwrites import WrittenObject
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import serverforecasts
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = """Make the objects of manifests, or change them, by server-side apply with the field manager paddock. The server's warnings are
printed. `paddock plan` predicts what a change does to a machine."""
_WORDS = {"changed": "configured"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("apply", _TEXT, "[OPTIONS] -f FILE...")
    arguments.add_files(options)
    options.add_argument("--force-conflicts", action="store_true", help="Take over fields that other managers have set")
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    files = arguments.files(options, parsed)
    return servers.serve(_apply(parsed, files, console))


async def _apply(parsed: argparse.Namespace, files: Sequence[str], console: Console) -> int:
    reader = InputReader(console, AdmissionSettings())
    objects = list(reader.subjects(files))
    if reader.unusable:
        return UNUSABLE
    if not objects:
        console.say("paddock: the input has no objects")
        return UNUSABLE
    code = GOOD
    options = WriteOptions(force=parsed.force_conflicts, dry_run=parsed.dry_run)
    warned.show(console)
    async with servers.connected(parsed, console, warnings=True) as session:
        discovery = KindDiscovery(session.client)
        made: list[tuple[InputObject, Data]] = []
        for each in objects:
            try:
                outcome = await _one(session, discovery, each.data, options)
            except PaddockError as error:
                console.say(f"paddock: {each.title}: {error}")
                code = UNUSABLE
                continue
            made.append((each, outcome.data))
            console.out(f"{outcome.kind.qualified}/{outcome.key.name} {_WORDS.get(outcome.outcome, outcome.outcome)}")
            console.out(" (dry run)\n" if parsed.dry_run else "\n")
            console.flush()
        if parsed.dry_run:
            await _tell_quotas(session, made, console)
    return code


async def _tell_quotas(session: ServerSession, made: list[tuple[InputObject, Data]], console: Console) -> None:
    """Say what the objects add to quotas, and which find no room."""
    forecast = await serverforecasts.on_server(session, serverplans.merged(made, AdmissionSettings()))
    for line in planlines.outlook(forecast):
        console.say(f"paddock: {line}")


async def _one(session: ServerSession, discovery: KindDiscovery, data: Data, options: WriteOptions) -> WrittenObject:
    try:
        return await objectwrites.apply(session, discovery, data, options)
    except Conflict as error:
        raise Terminal(str(error), fix="add --force-conflicts to take the fields over") from error
