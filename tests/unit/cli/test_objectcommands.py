"""get, apply, delete, edit and events with a server in this process."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.base.errors import Terminal
from paddock.cli import servers
from paddock.cli.commands import apply, delete, edit, events, get
from paddock.cli.console import Console
from paddock.fleet.servers.discovery import KindDiscovery, UnservedKind
from paddock.fleet.servers.session import ServerSession
from tests.coroutines import played
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import paddock
from tests.virtualtime import Clock

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: "1"}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  running: false
  template: {spec: {domain: {memory: {guest: 256Mi}, devices: {}}}}
"""


class Shell:
    """Somebody who types commands at one server."""

    def __init__(self, api: Harness) -> None:
        self.api = api
        self.err = ""

    async def types(self, work: Callable[[Console], Awaitable[object]]) -> str:
        """Return what a command prints; keep its standard error."""
        out, err = io.BytesIO(), io.BytesIO()
        await work(Console(out, err))
        self.err = err.getvalue().decode()
        return out.getvalue().decode()

    async def apply(self, path: Path, *words: str) -> str:
        """`paddock apply`."""
        parsed = apply.parser().parse_args([*words, "-f", str(path)])
        return await self.types(lambda console: apply._apply(parsed, [str(path)], console))

    async def get(self, *words: str) -> str:
        """`paddock get`."""
        parsed = get.parser().parse_args([*words])
        return await self.types(lambda console: get._get(parsed, console))

    async def delete(self, *words: str) -> str:
        """`paddock delete`."""
        parsed = delete.parser().parse_args([*words])
        return await self.types(lambda console: delete._delete(parsed, console))


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Shell], Awaitable[None]]], None]:
    def run(script: Callable[[Shell], Awaitable[None]]) -> None:
        async def inner() -> None:
            async with Harness() as api:

                @asynccontextmanager
                async def connected(*_: Any, **__: Any) -> AsyncIterator[ServerSession]:
                    async with inside(api) as client:
                        yield ServerSession(client, None, "default", Clock())  # type: ignore[arg-type]

                monkeypatch.setattr(servers, "connected", connected)
                await script(Shell(api))

        asyncio.run(inner())

    return run


Play = Callable[[Callable[[Shell], Awaitable[None]]], None]


@played
async def test_apply_get_and_delete(shell: Shell, /, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFEST)
    assert await shell.apply(path) == "configmap/conf created\nvirtualmachine.kubevirt.io/web created\n"
    assert await shell.apply(path) == "configmap/conf unchanged\nvirtualmachine.kubevirt.io/web unchanged\n"
    path.write_text(MANIFEST.replace('"1"', '"2"'))
    assert (await shell.apply(path, "--dry-run")).startswith("configmap/conf configured (dry run)\n")
    assert (await shell.apply(path)).startswith("configmap/conf configured\n")
    assert json.loads(await shell.get("cm", "conf", "-o", "json"))["data"] == {"a": "2"}
    assert await shell.get("vm", "-o", "name") == "virtualmachine.kubevirt.io/web\n"
    assert (await shell.get("virtualmachines.kubevirt.io/web")).splitlines()[0].split()[:2] == ["NAME", "AGE"]
    assert (await shell.get("vm", "-A")).splitlines()[1].split()[:2] == ["default", "web"]
    assert await shell.get("vm", "-l", "app=none") == ""
    assert await shell.delete("-f", str(path), "--timeout", "1s") == "virtualmachine.kubevirt.io/web deleted\nconfigmap/conf deleted\n"
    assert await shell.delete("cm", "conf") == ""
    assert 'configmaps "conf" not found' in shell.err
    assert await shell.delete("cm/conf", "--ignore-not-found") == ""
    assert shell.err == ""


@played
async def test_a_field_of_another_manager_is_not_taken_by_the_way(shell: Shell, /, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFEST.split("---")[0])
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "0"}}
    await shell.api.post("/api/v1/namespaces/default/configmaps", document)
    assert await shell.apply(path) == ""
    assert "add --force-conflicts" in shell.err
    assert await shell.apply(path, "--force-conflicts") == "configmap/conf configured\n"


@played
async def test_kinds_of_the_server(shell: Shell, /, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("apiVersion: v1\nkind: Foo\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n")
    async with inside(shell.api) as client:
        discovery = KindDiscovery(client)
        assert (await discovery.called("vm")).group == "kubevirt.io"
        assert (await discovery.called("VirtualMachine.infra.virtrigaud.io")).plural == "virtualmachines"
        with pytest.raises(UnservedKind, match='did you mean "configmap"'):
            await discovery.called("configmpa")
    assert await shell.apply(path) == ""
    assert "the server has no kind Foo in v1" in shell.err
    assert "apply needs a name: the object has only generateName" in shell.err


@pytest.mark.parametrize("words", [["web"], ["cm/conf", "web"], [], ["cm/conf", "-f", "x.yaml"]])
def test_deletions_that_are_not_clear(words: list[str]) -> None:
    assert paddock("delete", *words).code == 2


@played
async def test_an_edit_shows_its_plan_first(shell: Shell, /, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, editor = tmp_path / "all.yaml", tmp_path / "editor"
    path.write_text(MANIFEST)
    editor.write_text("#!/bin/sh\nsed -i 's/guest: 256Mi/guest: 512Mi/' $1\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    await shell.apply(path)
    parsed = edit.parser().parse_args(["web", "--yes"])
    text = await shell.types(lambda console: edit._edit(parsed, console))
    plan, outcome = text.splitlines()
    assert ": restart: VirtualMachine/web: spec.template.spec.domain.memory.guest" in plan
    assert outcome == "virtualmachine.kubevirt.io/web edited"
    assert json.loads(await shell.get("vm/web", "-o", "json"))["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "512Mi"
    assert await shell.types(lambda console: edit._edit(parsed, console)) == ""
    assert shell.err == "paddock: nothing was changed\n"
    for command, why in (("no-such-editor", "cannot start the editor"), ("false", "the editor ended with 1")):
        monkeypatch.setenv("VISUAL", command)
        with pytest.raises(Terminal, match=why):
            await shell.types(lambda console: edit._edit(parsed, console))


@played
async def test_events_of_a_machine_and_its_disks(shell: Shell, /, tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(MANIFEST)
    await shell.apply(path)
    for number, (name, type_) in enumerate((("web", "Normal"), ("web", "Warning"), ("other", "Normal"))):
        event = {
            "metadata": {"name": f"e{number}"},
            "involvedObject": {"kind": "VirtualMachine", "name": name, "namespace": "default"},
            "type": type_,
            "reason": "Tested",
            "message": f"line\n{number}",
            "count": number + 1,
            "lastTimestamp": f"2026-11-23T12:00:0{number}Z",
        }
        assert (await shell.api.post("/api/v1/namespaces/default/events", event)).status == 201

    async def shown(*words: str) -> list[str]:
        parsed = events.parser().parse_args([*words])
        return (await shell.types(lambda console: events._show(parsed, console))).splitlines()

    assert [line.rpartition("   ")[2] for line in await shown("web")] == ["MESSAGE", "line\\n0", "line\\n1 (x2)"]
    assert len(await shown()) == 4
    assert len(await shown("web", "--warnings")) == 2
    assert len(json.loads("".join(await shown("-o", "json")))) == 3
