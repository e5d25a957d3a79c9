"""A snapshot loses what it consists of: users see it, and a restore of it leaves the machine as it is."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
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


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_snapshot_whose_volume_snapshot_is_deleted_is_no_longer_ready(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    name = await volume_snapshot_of(host)
    await host.delete("VolumeSnapshot", VOLUME_SNAPSHOT, name)
    await asyncio.sleep(10)
    content = await host.get("VirtualMachineSnapshotContent", SNAPSHOT, (await taken(host))["virtualMachineSnapshotContentName"])
    for status in (await taken(host), content["status"]):
        assert (status["readyToUse"], status["error"]["message"]) == (False, f"VolumeSnapshots ({name}) missing")
    status = await taken(host)
    assert status["phase"] == "Succeeded" and conditions(status) == {"Ready": "False", "Progressing": "False"}
    await host.again()
    await asyncio.sleep(30)
    assert await taken(host) == status


async def lose_volume_snapshot(host: FakeHost) -> None:
    await host.delete("VolumeSnapshot", VOLUME_SNAPSHOT, await volume_snapshot_of(host))


async def lose_content(host: FakeHost) -> None:
    await host.delete("VirtualMachineSnapshotContent", SNAPSHOT, (await taken(host))["virtualMachineSnapshotContentName"])


async def lose_data(host: FakeHost) -> None:
    host.engine.volumes.snapshots.clear()


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize("policy", ["InPlace", "RandomizeNames"])
@pytest.mark.parametrize(
    ("lose", "why"),
    [
        (lose_volume_snapshot, "VolumeSnapshot {name} does not exist"),
        (lose_data, "the data of VolumeSnapshot {name} is missing from the disk pool"),
        (lose_content, "VirtualMachineSnapshotContent vmsnapshot-content-{uid} does not exist"),
    ],
    ids=["volume snapshot", "data", "content"],
)
@played
async def test_a_snapshot_that_has_lost_something_leaves_the_machine_as_it_is(
    host: FakeHost, /, lose: Callable[[FakeHost], Awaitable[None]], why: str, policy: str
) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    name, uid = await volume_snapshot_of(host), (await host.get("VirtualMachineSnapshot", SNAPSHOT, "one"))["metadata"]["uid"]
    disk, before = await host.get("PersistentVolumeClaim", "v1", "disk"), await host.vm()
    await lose(host)
    await asyncio.sleep(10)
    await host.make(restore(volumeRestorePolicy=policy, targetReadinessPolicy="StopTarget"))
    await asyncio.sleep(60)
    status = await restored(host)
    assert status["complete"] is False and conditions(status)["Failure"] == "True"
    assert why.format(name=name, uid=uid) in status["conditions"][0]["reason"]
    # It has not even been stopped.
    after = await host.vm()
    assert after["spec"] == before["spec"] and "restoreInProgress" not in after["status"] and await host.status() == "Running"
    assert (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"] == disk["metadata"]["uid"]
    assert disk["metadata"]["uid"] in host.engine.volumes.ids()
