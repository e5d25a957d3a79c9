"""Every command that looks at machines of VirtRigaud, at a server whose controllers and Provider work, in virtual time."""

import io
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from paddock.app.commands import provider_describe, provider_list
from paddock.app.provider import objects
from paddock.base.jsondata import Data
from paddock.cli import servers
from paddock.cli.commands import clone, events, get, info, ls, snap, snap_list
from paddock.cli.console import Console
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineNotFound
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.client import Client
from tests import virtualtime
from tests.coroutines import run_by
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, Rigaud, machine, rigaud

pytestmark = pytest.mark.spec("virtrigaud", 110)
# A machine without an image has a disk that was there.
DISK = {"diskID": "d1", "path": "/images/d1.qcow2", "format": "qcow2", "source": "manual"}
# KubeVirt's clones have the same short name.
CLONES = "vmclones.infra.virtrigaud.io"
COMMANDS: dict[str, tuple[Any, Callable[[Any, Console], Any]]] = {
    "ls": (ls, ls._list),
    "info": (info, info._show),
    "events": (events, events._show),
    "get": (get, get._get),
    "snap": (snap, snap._take),
    "snap ls": (snap_list, snap_list._list),
    "clone": (clone, clone._clone),
}


class Person:
    """Somebody who types commands."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def types(self, command: str, *words: str) -> str:
        """Return what a command prints."""
        module, work = COMMANDS[command]
        out = io.BytesIO()
        await work(module.parser().parse_args(words), Console(out, io.BytesIO()))
        return out.getvalue().decode()

    async def reads(self, command: str, *words: str) -> Any:
        """Return what a command says to programs, which is the same as JSON and as YAML."""
        told = json.loads(await self.types(command, *words, "-o", "json"))
        assert yaml.safe_load(await self.types(command, *words, "-o", "yaml")) == told
        return told


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Somebody at a server with a machine in each of two namespaces; one of them has no image."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Rigaud, Person]]:
        async with rigaud(world=False) as life:
            client = Client(life.wire)

            @asynccontextmanager
            async def connected(parsed: Any, *_: Any, **__: Any) -> AsyncIterator[ServerSession]:
                yield ServerSession(client, None, parsed.namespace or "default", life.clock)  # type: ignore[arg-type]

            monkeypatch.setattr(servers, "connected", connected)
            assert (await life.api.post("/api/v1/namespaces", {"metadata": {"name": "lab"}})).status == 201
            await life.make(*WORLD, machine())
            await life.make(*WORLD, machine("disk", imageRef=None, importedDisk=DISK), namespace="lab")
            await life.ready()
            yield life, Person(client)

    return opened


def names(found: list[Data]) -> list[str]:
    return [each["name"] for each in found]


@run_by(virtualtime.run)
async def test_lists_keep_to_their_namespace(at_work: Callable[[], Any]) -> None:
    async with at_work() as (_, person):
        assert names(await person.reads("ls")) == ["web"]
        assert names(await person.reads("ls", "-n", "lab")) == ["disk"]
        assert names(await person.reads("ls", "-A")) == ["web", "disk"]
        assert {each["involvedObject"]["namespace"] for each in await person.reads("events", "-n", "lab")} == {"lab"}
        assert (await person.reads("events", "web"))[0]["involvedObject"]["name"] == "web"


@run_by(virtualtime.run)
async def test_a_machine_without_an_image_is_described(at_work: Callable[[], Any]) -> None:
    async with at_work() as (_, person):
        assert (await person.reads("info", "disk", "-n", "lab"))["image"] is None
        assert "image:" not in await person.types("info", "disk", "-n", "lab")


@run_by(virtualtime.run)
async def test_the_address_of_a_console(at_work: Callable[[], Any]) -> None:
    async with at_work() as (life, person):
        address = f"https://fake.invalid/console/{(await life.status())['id']}"
        assert (await person.reads("info", "web"))["consoleURL"] == address
        assert f"console:    {address}\n" in await person.types("info", "web")
        with pytest.raises(MachineNotFound) as refused:
            finding.needs_vm(await finding.find(person.client, "web", "default"), "show the display")
        assert refused.value.fix == f"its console is at {address}"


@run_by(virtualtime.run)
async def test_snapshots_and_clones(at_work: Callable[[], Any]) -> None:
    async with at_work() as (_, person):
        await person.types("snap", "web", "before")
        (row,) = await person.reads("snap ls", "web")
        assert (row["name"], row["machine"], row["state"]) == ("before", "web", "ready")
        assert await person.reads("snap ls", "-n", "lab") == []
        await person.types("clone", "web", "copy", "--no-wait")
        (made,) = (await person.reads("get", CLONES))["items"]
        assert (made["spec"]["source"]["vmRef"]["name"], made["spec"]["target"]["name"]) == ("web", "copy")
        assert (await person.reads("get", CLONES, "-n", "lab"))["items"] == []


@pytest.mark.parametrize("form", ["json", "yaml"])
@run_by(virtualtime.run)
async def test_providers(at_work: Callable[[], Any], form: str) -> None:
    async with at_work() as (_, person):
        found = await objects.in_namespace(person.client, "lab")
        assert [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found] == [("lab", "lab")]
        assert len(await objects.in_namespace(person.client, "")) == 2
        assert "libvirt" in objects.table(found, 0.0, namespaced=True) and "lab" in objects.description(found[0], 0.0)
    for command in (provider_list, provider_describe):
        assert command.parser().parse_args(["-n", "lab", "-o", form, *(["lab"] if command is provider_describe else [])]).output == form
