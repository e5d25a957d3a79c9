"""`paddock delete`: deletes objects of any kind, by manifest or by name."""

import argparse
import asyncio
from collections.abc import Sequence

from paddock.base.errors import PaddockError
from paddock.base.names import check_name
from paddock.cli import arguments, servers
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.servers.discovery import KindDiscovery, ServedKind
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = """Delete objects of any kind, with what they own. `paddock rm` deletes machines, and keeps their disks."""
_PAUSE = 0.3
_EXITS = {0: "done", 1: "an object was not gone in time", 2: "failure, or wrong usage"}
_Place = tuple["ServedKind", "Key"]


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("delete", _TEXT, "[OPTIONS] -f FILE... | KIND/NAME... | KIND NAME...", _EXITS)
    text = "File or directory with the objects, or - for standard input; repeatable"
    options.add_argument("-f", "--filename", dest="files", metavar="FILE", nargs="+", action="extend", default=[], help=text)
    options.add_argument("names", metavar="KIND/NAME", nargs="*", help="Object to delete; or a kind, followed by names")
    options.add_argument("--ignore-not-found", action="store_true", help="An object that is not there is no failure")
    arguments.add_wait(options)
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if bool(parsed.files) == bool(parsed.names):
        options.error("name objects as KIND/NAME, or give manifests with -f")
    slashes = ["/" in each for each in parsed.names]
    if parsed.names and not all(slashes) and (any(slashes) or len(slashes) == 1):
        options.error("name each object as KIND/NAME, or a kind and then its objects")
    return servers.serve(_delete(parsed, console))


async def _delete(parsed: argparse.Namespace, console: Console) -> int:
    code, gone = GOOD, []
    async with servers.connected(parsed, console) as session:
        places = await _places(session, KindDiscovery(session.client), parsed, console)
        for kind, key in places or ():
            try:
                await session.client.delete(kind.target, key, DeletionOptions(dry_run=parsed.dry_run))
            except NotFound as error:
                if not parsed.ignore_not_found:
                    console.say(f"paddock: {error}")
                    code = UNUSABLE
            except PaddockError as error:
                console.say(f"paddock: {error}")
                code = UNUSABLE
            else:
                gone.append((kind, key))
                console.out(f"{kind.qualified}/{key.name} deleted{' (dry run)' if parsed.dry_run else ''}\n")
                console.flush()
        if places is None:
            return UNUSABLE
        if parsed.wait and not parsed.dry_run and not await _all_gone(session, gone, parsed.timeout):
            console.say("paddock: some objects are still there; `paddock why KIND/NAME` says what they wait for")
            return FINDINGS
    return code


async def _places(session: ServerSession, discovery: KindDiscovery, parsed: argparse.Namespace, console: Console) -> list[_Place] | None:
    """Return the objects that are meant; None if an input cannot be read."""
    found: list[_Place] = []
    if parsed.files:
        reader = InputReader(console, AdmissionSettings())
        objects = [each.data for each in reader.subjects(parsed.files)]
        for data in objects:
            kind = await discovery.of(str(data.get("apiVersion", "")), str(data.get("kind", "")))
            metadata = data.get("metadata") or {}
            check_name(str(metadata.get("name") or ""))
            found.append((kind, Key(metadata.get("namespace") or session.namespace if kind.namespaced else "", metadata["name"])))
        # What was made last goes first.
        return None if reader.unusable else found[::-1]
    first = "" if "/" in parsed.names[0] else parsed.names[0]
    for each in parsed.names[1:] if first else parsed.names:
        word, slash, name = each.partition("/")
        kind = await discovery.called(word if slash else first)
        check_name(name if slash else word)
        found.append((kind, Key(session.namespace if kind.namespaced else "", name if slash else word)))
    return found


async def _all_gone(session: ServerSession, places: Sequence[_Place], seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            for kind, key in places:
                while True:
                    try:
                        await session.client.get(kind.target, key)
                    except NotFound:
                        break
                    await asyncio.sleep(_PAUSE)
    except TimeoutError:
        return False
    return True
