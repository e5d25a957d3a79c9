"""`paddock apply`: makes the objects of manifests, or changes them, by server-side apply."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE

if TYPE_CHECKING:
    from paddock.cli.discovery import KindDiscovery
    from paddock.cli.servers import ServerSession
    from paddock.client.target import Data

_TEXT = """Make the objects of manifests, or change them, by server-side apply with the field manager paddock. The server's warnings are
printed. `paddock plan` predicts what a change does to a machine."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("apply", _TEXT, "[OPTIONS] -f FILE...")
    arguments.add_files(options)
    options.add_argument("--force-conflicts", action="store_true", help="Take over fields that other managers have set")
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(given: Sequence[str], console: Console) -> int:
    """Run the command."""
    options = parser()
    parsed = options.parse_args(given)
    files = arguments.files(options, parsed)
    # Everything that talks to servers is heavy.
    from paddock.cli.servers import serve  # noqa: PLC0415

    return serve(_apply(parsed, files, console))


async def _apply(parsed: argparse.Namespace, files: Sequence[str], console: Console) -> int:
    from paddock.base.errors import PaddockError  # noqa: PLC0415 - as above
    from paddock.cli import warned  # noqa: PLC0415
    from paddock.cli.discovery import KindDiscovery  # noqa: PLC0415
    from paddock.cli.objects import InputReader  # noqa: PLC0415
    from paddock.cli.servers import connected  # noqa: PLC0415
    from paddock.schema.kind import AdmissionSettings  # noqa: PLC0415

    reader = InputReader(console, AdmissionSettings())
    objects = [each.data for each in reader.subjects(files)]
    if reader.unusable:
        return UNUSABLE
    if not objects:
        console.say("paddock: the input has no objects")
        return UNUSABLE
    code = GOOD
    warned.show(console)
    async with connected(parsed, console, warnings=True) as session:
        discovery = KindDiscovery(session.client)
        for data in objects:
            try:
                console.out(await _one(session, discovery, data, parsed) + "\n")
                console.flush()
            except PaddockError as error:
                console.say(f"paddock: {data.get('kind')}/{(data.get('metadata') or {}).get('name')}: {error}")
                code = UNUSABLE
    return code


async def _one(session: "ServerSession", discovery: "KindDiscovery", data: "Data", parsed: argparse.Namespace) -> str:
    """Apply one object. Return the line of its outcome."""
    from paddock.base.errors import Terminal  # noqa: PLC0415 - as above
    from paddock.client.errors import Conflict, NotFound  # noqa: PLC0415
    from paddock.client.options import WriteOptions  # noqa: PLC0415
    from paddock.client.target import Key  # noqa: PLC0415

    kind = await discovery.of(str(data.get("apiVersion", "")), str(data.get("kind", "")))
    metadata = data.get("metadata") or {}
    if not metadata.get("name"):
        raise Terminal(
            "apply needs a name", why="the object has only generateName" if metadata.get("generateName") else "metadata.name is missing"
        )
    if kind.namespaced and not metadata.get("namespace"):
        data = {**data, "metadata": {**metadata, "namespace": session.namespace}}
    key = Key(data["metadata"].get("namespace", ""), metadata["name"])
    try:
        before = (await session.client.get(kind.target, key))["metadata"].get("resourceVersion")
    except NotFound:
        before = None
    try:
        made = await session.client.apply(kind.target, data, WriteOptions(force=parsed.force_conflicts, dry_run=parsed.dry_run))
    except Conflict as error:
        raise Terminal(str(error), fix="add --force-conflicts to take the fields over") from error
    after = made["metadata"].get("resourceVersion")
    word = "created" if before is None else "unchanged" if before == after and not parsed.dry_run else "configured"
    return f"{kind.qualified}/{key.name} {word}{' (dry run)' if parsed.dry_run else ''}"
