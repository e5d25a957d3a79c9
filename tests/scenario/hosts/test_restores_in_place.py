"""Restores in place: the claim stays with one whole disk, and no machine starts on a disk that changes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from paddock.engine.storage.errors import StoreFull, VolumeBusy
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.hosts.snapshotting import SNAPSHOT, conditions, content_of, restore, restored, snapshot, web


@pytest.mark.spec("kubevirt", 268)
@played
async def test_a_machine_does_not_start_while_it_is_restored_and_the_restore_survives_an_end(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    refusal = StoreFull("cannot restore", why="there is no space left")
    host.engine.volumes.failures.extend([refusal] * 100)
    before = await host.get("PersistentVolumeClaim", "v1", "disk")
    await host.make(restore(volumeRestorePolicy="InPlace"))
    await asyncio.sleep(10)
    # The machine keeps the disk that it has.
    assert await host.get("PersistentVolumeClaim", "v1", "disk") == before and await content_of(host, "disk") == "blank"
    assert (await host.vm())["status"]["restoreInProgress"] == "back"
    reply = await host.api.merge(host.place("VirtualMachine", "kubevirt.io/v1", name="web"), {"spec": {"runStrategy": "Always"}})
    assert reply.status == 422 and "restore back" in reply.data["message"]
    await host.api.client().request(
        "PATCH",
        host.place("VirtualMachine", "kubevirt.io/v1", name="web"),
        body=b'{"spec":{"runStrategy":"Always"}}',
        media="application/merge-patch+json",
    )
    await asyncio.sleep(30)
    assert await host.vmi() == {}
    await host.again()
    host.engine.volumes.failures.clear()
    await asyncio.sleep(120)
    assert (await restored(host))["complete"] is True
    await host.running()
    assert (await content_of(host, "disk")).startswith("snapshot ")
    assert (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.spec("kubevirt", 268)
@played
async def test_a_restore_in_place_that_is_deleted_half_way_leaves_the_claims(host: FakeHost, /) -> None:
    # Nobody's claim: neither a machine nor a DataVolume owns it.
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name in ("first", "second"):
        await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": claim})
    await asyncio.sleep(20)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("first", "second")]
    await host.make(machine(strategy="Halted", volumes=volumes))
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(10)
    second = (await host.get("PersistentVolumeClaim", "v1", "second"))["metadata"]["uid"]
    host.engine.volumes.open.add(second)
    await host.make(restore(volumeRestorePolicy="InPlace"))
    await asyncio.sleep(20)
    assert (await restored(host)).get("complete") is False and await host.vm() == {}
    await host.delete("VirtualMachineRestore", SNAPSHOT, "back")
    await asyncio.sleep(20)
    assert await host.get("VirtualMachineRestore", SNAPSHOT, "back") == {}
    assert (await content_of(host, "first")).startswith("snapshot ") and await content_of(host, "second") == "blank"


@pytest.mark.spec("kubevirt", 268)
@played
async def test_a_claim_that_became_smaller_than_its_snapshot_stays(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    (held,) = host.engine.volumes.snapshots.values()
    host.engine.volumes.snapshots[held.id] = msgspec.structs.replace(held, size=held.size * 2)
    await host.make(restore(volumeRestorePolicy="InPlace"))
    await asyncio.sleep(20)
    assert conditions(await restored(host))["Failure"] == "True"
    assert await content_of(host, "disk") == "blank"


@played
async def test_a_machine_does_not_start_on_layers_that_were_merged_meanwhile(host: FakeHost, /, monkeypatch: pytest.MonkeyPatch) -> None:
    merged = [VolumeBusy("cannot open the volume", why="its layers were merged meanwhile")]

    @contextlib.asynccontextmanager
    async def opening(layer: object) -> AsyncIterator[None]:
        if merged:
            raise merged.pop()
        yield

    monkeypatch.setattr(host.engine.volumes, "opening", opening)
    await web(host)
    await host.running()
    assert merged == []
