"""Claims that DataVolumes take over and let go of, with all controllers of a host: what they hold stays, whoever comes between."""

import asyncio

from tests.fakehost import FakeHost
from tests.scenario.disks.world import DATA_VOLUMES, UNCONFIRMED
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
        play(lambda host, request=request: script(host, request))
        if over:
            assert request > 3
            break
    else:
        raise AssertionError("it never ends by itself")


def test_a_volume_whose_policy_was_changed_just_before_its_claim_went_is_kept(play: Play) -> None:
    async def script(host: FakeHost) -> None:
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

    play(script)
