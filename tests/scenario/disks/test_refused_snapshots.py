"""The server refuses what a snapshot, a restore or a clone makes: users see why, and the machine is as it was."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.client.errors import StatusDetails, Unavailable
from paddock.kubevirt.controllers.snapshots.machinesnapshots import MachineSnapshotReconciler
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost
from tests.scenario.hosts.snapshotting import (
    CLONE,
    MACHINE,
    SNAPSHOT,
    VOLUME_SNAPSHOT,
    claim_of,
    conditions,
    restore,
    restored,
    snapshot,
    taken,
    volume_snapshot_of,
    web,
)

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def quota(**hard: str) -> Data:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}


def clone(source: Data) -> Data:
    kind = {"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": {"name": "copy"}}
    return {**kind, "spec": {"source": source, "target": {**MACHINE, "name": "other"}}}


async def cloned(host: FakeHost) -> Data:
    return dict((await host.get("VirtualMachineClone", CLONE, "copy")).get("status", {}))


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_snapshot_that_a_quota_refuses_ends_at_its_deadline(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.api.post(QUOTAS, quota(**{"count/volumesnapshots.snapshot.storage.k8s.io": "0"}))
    await host.make(snapshot(failureDeadline="1m"))
    await asyncio.sleep(30)
    status = await taken(host)
    assert status["phase"] == "InProgress" and "exceeded quota: q" in status["conditions"][1]["message"]
    await asyncio.sleep(60)
    status = await taken(host)
    assert status["phase"] == "Failed" and "exceeded quota: q" in status["error"]["message"]
    assert conditions(status) == {"Ready": "False", "Progressing": "False", "Failure": "True"}
    assert "snapshotInProgress" not in (await host.vm())["status"]


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_snapshot_that_a_webhook_keeps_from_its_end_ends_at_its_deadline(
    host: FakeHost, /, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: Any) -> None:
        raise Unavailable(500, StatusDetails("failed calling webhook"))

    monkeypatch.setattr(MachineSnapshotReconciler, "_volume_snapshot", fail)
    await web(host, "Halted")
    await host.make(snapshot(failureDeadline="1m"))
    await asyncio.sleep(90)
    status = await taken(host)
    assert status["phase"] == "Failed" and "failed calling webhook" in status["error"]["message"]
    assert "snapshotInProgress" not in (await host.vm())["status"]


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize("policy", ["RandomizeNames", "PrefixTargetName"])
@played
async def test_a_restore_that_a_quota_refuses_says_so_and_leaves_the_machine_on_its_disk(host: FakeHost, /, policy: str) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "256Mi"}}}}}})
    before = (await host.vm())["spec"]
    await host.api.post(QUOTAS, quota(persistentvolumeclaims="1"))
    await host.make(restore(volumeRestorePolicy=policy))
    await asyncio.sleep(30)
    status = await restored(host)
    assert conditions(status) == {"Ready": "False", "Progressing": "False"}
    assert all("exceeded quota: q" in each["reason"] for each in status["conditions"])
    assert "VirtualMachineRestoreError" in await host.events("back")
    assert (await host.vm())["spec"] == before
    await host.api.delete(f"{QUOTAS}/q")
    # The longest pause after a refusal, and some.
    await asyncio.sleep(400)
    assert (await restored(host))["complete"] is True and await claim_of(host) != "disk"


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_clone_that_a_quota_refuses_says_so(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.api.post(QUOTAS, quota(**{"count/virtualmachinesnapshots.snapshot.kubevirt.io": "0"}))
    await host.make(clone(MACHINE))
    await asyncio.sleep(30)
    status = await cloned(host)
    assert status["phase"] == "SnapshotInProgress" and conditions(status) == {"Ready": "False", "Progressing": "True"}
    assert all("exceeded quota: q" in each["reason"] for each in status["conditions"])


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize("lost", ["VolumeSnapshot", "content"])
@played
async def test_a_clone_of_a_snapshot_that_has_lost_something_fails(host: FakeHost, /, lost: str) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    content, volume = (await taken(host))["virtualMachineSnapshotContentName"], await volume_snapshot_of(host)
    if lost == "content":
        await host.delete("VirtualMachineSnapshotContent", SNAPSHOT, content)
    else:
        await host.delete("VolumeSnapshot", VOLUME_SNAPSHOT, volume)
    await asyncio.sleep(10)
    await host.make(clone({"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": "one"}))
    await asyncio.sleep(30)
    status = await cloned(host)
    # The VolumeSnapshots of a content go with it.
    assert await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, volume) == {}
    assert status["phase"] == "Failed" and f"VolumeSnapshots ({volume}) missing" in status["conditions"][0]["reason"]
