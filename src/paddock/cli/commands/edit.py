"""`paddock edit`: opens an object in an editor, shows what the change does, and sends it."""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.base.names import check_name
from paddock.cli import arguments, servers, terminal, warned
from paddock.cli.commands import plan
from paddock.cli.console import Console
from paddock.cli.exits import GOOD, UNUSABLE
from paddock.fleet import kinds
from paddock.fleet.documents.objects import InputReader
from paddock.fleet.machines import finding
from paddock.fleet.servers.discovery import KindDiscovery, ServedKind
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.manifests import write
from paddock.kubernetes.schema.kind import AdmissionSettings

_TEXT = """Open an object in $VISUAL, $EDITOR or vi, show what the change does to the machine, and send it. A name without a kind is a
machine's: the object that you wrote opens. Nothing is sent if the file stays as it was."""
# What nobody edits, and what the server writes anew with every change.
_SERVERS = ("managedFields", "uid", "creationTimestamp", "generation", "selfLink")


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("edit", _TEXT, "[OPTIONS] [KIND/]NAME")
    name = options.add_argument("name", metavar="[KIND/]NAME", help="Machine, or an object of any kind")
    arguments.complete_with(name, arguments.KnownNames.OBJECTS)
    arguments.add_yes(options)
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_edit(parsed, console))


async def _edit(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console, warnings=True) as session:
        kind, data = await _object(session, parsed.name)
        shown = {**data, "metadata": {name: value for name, value in data["metadata"].items() if name not in _SERVERS}}
        shown.pop("status", None)
        with tempfile.TemporaryDirectory(prefix="paddock-edit-") as folder:
            old, new = Path(folder, "before.yaml"), Path(folder, f"{data['metadata']['name']}.yaml")
            for path in (old, new):
                path.write_text(write.to_yaml([shown]), encoding="utf-8")
            _open(new)
            if new.read_bytes() == old.read_bytes():
                console.say("paddock: nothing was changed")
                return GOOD
            edited = _read(new, console)
            if edited is None or not _agreed(old, new, parsed, console):
                return UNUSABLE
        warned.show(console)
        if "status" in data:
            edited["status"] = data["status"]
        # The revision that was read goes along: whoever was faster is not overwritten.
        edited["metadata"].setdefault("resourceVersion", data["metadata"]["resourceVersion"])
        await session.client.update(kind.target, edited, WriteOptions(dry_run=parsed.dry_run))
        console.out(f"{kind.qualified}/{data['metadata']['name']} edited{' (dry run)' if parsed.dry_run else ''}\n")
    return GOOD


async def _object(session: ServerSession, text: str) -> tuple[ServedKind, Data]:
    """Return the object of a name: of a machine, unless the kind says something else."""
    discovery = KindDiscovery(session.client)
    word, slash, name = text.partition("/")
    if not slash or any(each.is_called(word) for each in kinds.MACHINES):
        machine = await finding.find(session.client, text, session.namespace)
        return await discovery.of(machine.kind.target.api_version, machine.kind.kind), machine.data
    check_name(name)
    kind = await discovery.called(word)
    return kind, await session.client.get(kind.target, Key(session.namespace if kind.namespaced else "", name))


def _open(path: Path) -> None:
    words = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        ended = subprocess.run([*words, str(path)], check=False)
    except OSError as error:
        raise Terminal(f"cannot start the editor {words[0]}", why=str(error.strerror), fix="name one with EDITOR=nano") from error
    if ended.returncode:
        raise Terminal("nothing was sent", why=f"the editor ended with {ended.returncode}")


def _read(path: Path, console: Console) -> Data | None:
    """Return the object in the file; None if there is not exactly one that can be read."""
    reader = InputReader(console, AdmissionSettings())
    found = [each.data for each in reader.subjects([str(path)])]
    if reader.unusable or len(found) != 1 or not isinstance(found[0].get("metadata"), dict):
        console.say("paddock: nothing was sent; the file has to hold one object")
        return None
    return found[0]


def _agreed(old: Path, new: Path, parsed: argparse.Namespace, console: Console) -> bool:
    """Show the plan of the change, and ask a person at a terminal."""
    plan.run(["-f", str(new), "--against", str(old)], console)
    console.flush()
    if parsed.yes or parsed.dry_run or not terminal.has_input():
        return True
    console.ask("Send the change? [Y/n] ")
    if sys.stdin.readline().strip().lower() in ("", "y", "yes"):
        return True
    console.say("paddock: nothing was sent")
    return False
