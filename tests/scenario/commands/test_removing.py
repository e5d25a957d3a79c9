"""Removals on a whole host in virtual time: what goes, what stays, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.cli import protection
from paddock.fleet.machines import finding
from paddock.fleet.machines.removal import CannotKeepDisks, ProtectedMachine
from paddock.fleet.machines.removing import MachineRemover
from paddock.fleet.machines.running import RunOptions
from paddock.fleet.servers.session import ServerSession
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.commands.test_running import VITISTACK, VITISTACK_PATH, play
from tests.scenario.fronts.stakater.stage import DISK, KEY, Stage, front

TEMPLATES = [
    {
        "metadata": {"name": "web-root"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
]
VOLUMES = [{"name": "root", "dataVolume": {"name": "web-root"}}, {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


class Removal:
    """Somebody who removes machines."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.lines: list[str] = []

    async def rm(self, name: str = "web", *, purge: bool = False, **options: Any) -> str:
        """Return the answer of a removal."""
        async with self.host.api.client() as client:
            wish = RunOptions(**{"seconds": 120.0, **options})
            remover = MachineRemover(client, virtualtime.Clock(), wish, self.lines.append)
            planned = await remover.plan(await finding.find(client, name, "default"), purge=purge)
            self.lines += planned.lines()
            return await remover.remove(planned)

    async def protect(self, name: str = "web", *, wanted: bool = True) -> str:
        """Return the answer of `paddock protect`."""
        async with self.host.api.client() as client:
            session = ServerSession(client, None, "default", virtualtime.Clock())  # type: ignore[arg-type]
            return await protection.protect(session, await finding.find(client, name, "default"), protected=wanted, dry_run=False)

    async def names(self, path: str) -> set[str]:
        """Return the names of objects."""
        return {each["metadata"]["name"] for each in (await self.host.api.get(path)).data["items"]}


def of_kubevirt() -> Data:
    return machine(volumes=VOLUMES, templates=TEMPLATES)


@played_by(play)
async def test_the_disks_of_a_machine_stay(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        person = Removal(host)
        await host.make(of_kubevirt())
        await host.running(seconds=60)
        assert await person.rm(dry_run=True) == "deleted (dry run)"
        assert await host.vmi() != {}
        assert await person.rm() == "deleted; its disks stay"
        await asyncio.sleep(300)
        assert (await host.vm(), await host.vmi()) == ({}, {})
        assert await person.names(CLAIMS) == {"web-root"}
        assert "vm/web: deletes the VirtualMachine web, its running guest, what is on scratch" in person.lines
        assert "  stays: disk root (PersistentVolumeClaim web-root, 1.1Gi)" in person.lines


@played_by(play)
async def test_the_disks_of_a_machine_go_with_purge(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        person = Removal(host)
        await host.make(of_kubevirt())
        await host.running(seconds=60)
        assert await person.rm(purge=True) == "deleted"
        assert "disk root with its data (web-root)" in person.lines[0]
        await asyncio.sleep(60)
        assert await person.names(CLAIMS) == set()


@played_by(play)
async def test_a_machine_of_stakater_leaves_its_disks_and_nothing_else(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        stage, person = await Stage(host).open(), Removal(host)
        key = {"data": KEY, "propagationMethod": "noCloud"}
        await stage.make(front(additionalDisks=[DISK], sshPublicKey=key, service={"enabled": True}))
        await host.running(seconds=600)
        before = await person.names(CLAIMS)
        secrets = await person.names("/api/v1/namespaces/default/secrets")
        assert len(before) == 2
        assert secrets
        assert await person.rm() == "deleted; its disks stay"
        await asyncio.sleep(600)
        assert (await stage.front(), await host.vm(), await host.vmi()) == ({}, {}, {})
        assert await person.names(CLAIMS) == before
        assert await person.names("/api/v1/namespaces/default/secrets") == set()
        assert "web-lb" not in await person.names("/api/v1/namespaces/default/services")


@played_by(play)
async def test_a_dialect_that_keeps_no_disks_needs_purge(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        person = Removal(host)
        assert (await host.api.post(VITISTACK_PATH, VITISTACK)).status == 201
        await host.running("node", seconds=60)
        with pytest.raises(CannotKeepDisks, match="Vitistack deletes the disks"):
            await person.rm("node")
        assert await person.rm("node", purge=True) == "deleted"
        assert await person.names(CLAIMS) == set()


@played_by(play)
async def test_a_protected_machine_is_not_deleted_by_anybody(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        stage, person = await Stage(host).open(), Removal(host)
        await host.make(machine(strategy="Halted"))
        await stage.make(front("shop", runStrategy="Halted"))
        await asyncio.sleep(60)
        for name, path in (("vm/web", host.place("VirtualMachine", "kubevirt.io/v1", name="web")), ("shop", stage.path("shop"))):
            assert await person.protect(name) == "protected: the server refuses to delete it"
            with pytest.raises(ProtectedMachine, match="paddock unprotect"):
                await person.rm(name)
            reply = await host.api.delete(path)
            assert (reply.status, "protected from deletion" in str(reply.data)) == (403, True)
            assert await person.protect(name, wanted=False) == "unprotected"
            assert await person.protect(name, wanted=False) == "is not protected"
            assert (await host.api.delete(path)).status == 200
