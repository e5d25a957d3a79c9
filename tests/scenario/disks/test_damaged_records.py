"""A damaged record of a disk or a snapshot stops what uses it, which says so, and nothing else; a file that is put back mends it."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.hosts.snapshotting import (
    SNAPSHOT,
    VOLUME_SNAPSHOT,
    conditions,
    restore,
    restored,
    snapshot,
    taken,
    volume_snapshot_of,
    web,
)


async def _damage(host: FakeHost, *uids: str) -> None:
    await host.end()
    host.engine.volumes.damaged.update(uids)
    await host.begin()
    await asyncio.sleep(10)


@pytest.mark.spec("kubevirt", 141, 142)
@played
async def test_a_machine_on_a_damaged_disk_waits_and_others_run(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await host.make(machine("other"))
    await asyncio.sleep(300)
    disk = await host.get("PersistentVolumeClaim", "v1", "disk")
    uid = disk["metadata"]["uid"]
    await _damage(host, uid)
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await host.change("other", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(60)
    assert await host.status("other") == "Stopped"
    claim = await host.get("PersistentVolumeClaim", "v1", "disk")
    assert claim["status"]["phase"] == "Lost" and claim["status"]["conditions"][0]["reason"] == "VolumeDamaged"
    assert f"cannot read {uid}.json" in claim["status"]["conditions"][0]["message"]
    assert (await host.events("disk")).count("VolumeDamaged") == 1 and "ReconcileError" not in await host.events("disk")
    ready = {each["type"]: each for each in (await host.vmi())["status"]["conditions"]}["Ready"]
    assert ready["reason"] == "VolumeDamaged" and f"cannot read {uid}.json" in ready["message"]
    assert host.engine.volumes.ids() == {uid}

    host.engine.volumes.damaged.clear()
    await asyncio.sleep(60)
    claim = await host.get("PersistentVolumeClaim", "v1", "disk")
    assert await host.status() == "Running" and claim["status"]["phase"] == "Bound"


@pytest.mark.spec("kubevirt", 141)
@played
async def test_a_machine_that_runs_on_a_disk_whose_record_is_damaged_runs_on(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    before = await host.vmi()
    await _damage(host, (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"])
    await asyncio.sleep(60)
    after = await host.vmi()
    assert (after["metadata"]["uid"], after["status"]["phase"]) == (before["metadata"]["uid"], "Running")
    # It is still looked after.
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(300)
    assert await host.status() == "Stopped"


@pytest.mark.spec("kubevirt", 141, 142)
@played
async def test_a_damaged_snapshot_is_not_ready_until_it_is_mended(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    name = await volume_snapshot_of(host)
    uid = (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, name))["metadata"]["uid"]
    before = await taken(host)
    kept = dict(host.engine.volumes.snapshots)
    await _damage(host, uid)
    of_volume = (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, name))["status"]
    for status in (await taken(host), of_volume):
        assert status["readyToUse"] is False and f"cannot read {uid}.json" in status["error"]["message"]
    assert (await host.events(name)).count("VolumeDamaged") == 1 and (await host.events("one")).count("VolumeDamaged") == 1
    disk = await host.get("PersistentVolumeClaim", "v1", "disk")
    await host.make(restore())
    await asyncio.sleep(60)
    assert not (await restored(host)).get("complete")
    assert (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"] == disk["metadata"]["uid"]
    await host.delete("VirtualMachineRestore", SNAPSHOT, "back")

    host.engine.volumes.damaged.clear()
    await asyncio.sleep(60)
    after = await taken(host)
    assert after["readyToUse"] and "error" not in after and conditions(after) == conditions(before)
    assert (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, name))["status"]["readyToUse"] is True
    assert host.engine.volumes.snapshots == kept


@pytest.mark.spec("kubevirt", 141)
@played
async def test_a_snapshot_that_was_there_is_never_taken_again(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    name = await volume_snapshot_of(host)
    uid = (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, name))["metadata"]["uid"]
    await _damage(host, uid)
    # Somebody removes the damaged file.
    host.engine.volumes.damaged.clear()
    host.engine.volumes.snapshots.clear()
    await asyncio.sleep(120)
    status = (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, name))["status"]
    assert status["readyToUse"] is False and host.engine.volumes.snapshots == {}
