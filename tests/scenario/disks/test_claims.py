"""Claims that DataVolumes take over and let go of, with all controllers of a host: what they hold stays, whoever comes between."""

import asyncio
from functools import partial
from typing import Any

import pytest

from paddock.kubernetes.client.errors import Unreachable
from paddock.kubevirt.controllers.snapshots.restores import RestoreReconciler
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.disks.world import DATA_VOLUMES, POOLS, UNCONFIRMED, pool
from tests.scenario.hosts import snapshotting
from tests.scenario.hosts.conftest import Play

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": SPEC}
ADOPTING = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataVolume",
    "metadata": {"name": "disk", "annotations": {"cdi.kubevirt.io/allowClaimAdoption": "true"}},
    "spec": {"source": {"blank": {}}, "pvc": SPEC},
}
ORPHAN = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
MOST_REQUESTS = 40


@pytest.mark.spec("kubevirt", 111)
def test_a_data_volume_that_goes_while_it_adopts_leaves_the_claim(play: Play) -> None:
    over: list[int] = []

    async def script(host: FakeHost, request: int) -> None:
        await host.end()
        wire = host.interrupted()
        wire.about = ("/datavolumes/", "/persistentvolumeclaims/")
        await host.begin()
        await host.make(CLAIM)
        await asyncio.sleep(30)
        before = (await host.api.get(f"{CLAIMS}/disk")).data["metadata"]["uid"]

        async def intrude() -> None:
            await host.api.delete(f"{DATA_VOLUMES}/disk", ORPHAN)
            await host.house.collector.chores.settled()

        wire.at, wire.act = wire.requests + request, intrude
        await host.make(ADOPTING)
        await asyncio.sleep(60)
        if wire.requests <= wire.at:
            over.append(request)
            await host.api.delete(f"{DATA_VOLUMES}/disk", ORPHAN)
        await asyncio.sleep(700)
        claim = (await host.api.get(f"{CLAIMS}/disk")).data
        assert claim.get("metadata", {}).get("uid") == before, f"it was deleted before request {request}: {claim}"
        assert host.engine.volumes.get(before) is not None
        assert "ownerReferences" not in claim["metadata"] and UNCONFIRMED not in claim["metadata"].get("labels", {})

    for request in range(MOST_REQUESTS):
        play(partial(script, request=request))
        if over:
            assert request > 3
            break
    else:
        raise AssertionError("it never ends by itself")


@pytest.mark.spec("kubevirt", 111)
@played
async def test_a_machine_of_a_pool_leaves_the_claims_that_were_restored_for_it(host: FakeHost, /) -> None:
    await host.make(pool(1, "Halted", {"proactive": {"statePreservation": "Offline"}}))
    await asyncio.sleep(60)
    source = {**snapshotting.MACHINE, "name": "web-0"}
    await host.make(snapshotting.snapshot(source=source))
    await asyncio.sleep(30)
    await host.make(snapshotting.restore(target="web-0", volumeRestorePolicy="InPlace"))
    await asyncio.sleep(60)
    assert (await snapshotting.restored(host))["complete"]
    claim = (await host.api.get(f"{CLAIMS}/disk-0")).data["metadata"]
    (owner,) = claim["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("DataVolume", "disk-0") and UNCONFIRMED not in claim.get("labels", {})
    (owner,) = (await host.api.get(f"{DATA_VOLUMES}/disk-0")).data["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("VirtualMachine", "web-0")
    await host.api.merge(f"{POOLS}/web", {"spec": {"replicas": 0}})
    await asyncio.sleep(60)
    assert await host.vm("web-0") == {}
    kept = (await host.api.get(f"{CLAIMS}/disk-0")).data["metadata"]
    assert kept["uid"] == claim["uid"] and "ownerReferences" not in (await host.api.get(f"{DATA_VOLUMES}/disk-0")).data["metadata"]
    assert host.engine.volumes.get(claim["uid"]) is not None
    # The next machine of this number is on it.
    await host.api.merge(f"{POOLS}/web", {"spec": {"replicas": 1}})
    await asyncio.sleep(60)
    await host.verb("web-0", "start")
    await host.running("web-0", 30)
    assert (await host.api.get(f"{CLAIMS}/disk-0")).data["metadata"]["uid"] == claim["uid"]


@pytest.mark.spec("kubevirt", 111)
@played
async def test_a_restore_that_is_given_up_leaves_the_claims_that_the_machine_is_on_already(
    host: FakeHost, /, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end(self: RestoreReconciler, *arguments: Any) -> bool:
        raise Unreachable("the process ended", sent=True)

    monkeypatch.setattr(RestoreReconciler, "_own", end)
    await host.end()
    wire = host.interrupted()
    wire.late = {"virtualmachines": 2.0}
    await host.begin()
    await snapshotting.web(host, "Halted")
    await asyncio.sleep(30)
    await host.make(snapshotting.snapshot())
    await asyncio.sleep(30)
    former = await snapshotting.claim_of(host)
    await host.make(snapshotting.restore())
    for _ in range(1000):
        claim = await snapshotting.claim_of(host)
        there = (await host.api.get(f"{CLAIMS}/{claim}")).data
        if claim != former and there["kind"] == "PersistentVolumeClaim":
            break
        await asyncio.sleep(0.01)
    assert claim != former
    monkeypatch.undo()
    await host.delete("VirtualMachineRestore", snapshotting.SNAPSHOT, "back")
    await asyncio.sleep(60)
    assert await snapshotting.restored(host) == {}
    assert await snapshotting.claim_of(host) == claim
    assert (await host.api.get(f"{CLAIMS}/{claim}")).data["metadata"]["uid"] == there["metadata"]["uid"]


@pytest.mark.spec("kubevirt", 111)
@played
async def test_a_volume_whose_policy_was_changed_just_before_its_claim_went_is_kept(host: FakeHost, /) -> None:
    await host.end()
    wire = host.interrupted()
    wire.late = {"persistentvolumes": 5.0}
    await host.begin()
    await host.make(CLAIM)
    await asyncio.sleep(60)
    claim = (await host.api.get(f"{CLAIMS}/disk")).data
    volume = f"{VOLUMES}/{claim['spec']['volumeName']}"
    await host.api.merge(volume, {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    await host.api.delete(f"{CLAIMS}/disk")
    await asyncio.sleep(700)
    assert (await host.api.get(f"{CLAIMS}/disk")).status == 404
    assert (await host.api.get(volume)).data["status"]["phase"] == "Released"
    assert host.engine.volumes.get(claim["metadata"]["uid"]) is not None
