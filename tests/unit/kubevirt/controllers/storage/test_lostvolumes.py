"""Claims that were filled, and whose volume is gone: they are Lost, and nothing is put in the place of their data."""

from typing import Any

import pytest

from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.storage.uploads import NotATarget
from tests.coroutines import played
from tests.unit.kubevirt.controllers.storage.conftest import CORE, Host, pvc

CLAIMS = f"{CORE}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
ADDRESS = "http://server/a.img"


async def lost(host: Host, name: str = "a") -> dict[str, Any]:
    """End the server, take the volumes away, and start it again; return them."""
    await host.end()
    kept = dict(host.volumes.volumes)
    host.volumes.volumes.clear()
    await host.begin()
    await host.settle()
    assert (await host.claim(name))["status"]["phase"] == "Lost"
    assert host.volumes.volumes == {}
    return kept


async def found_again(host: Host, kept: dict[str, Any], name: str = "a") -> None:
    host.volumes.volumes.update(kept)
    await host.settle(40)
    status = (await host.claim(name))["status"]
    assert status["phase"] == "Bound" and "conditions" not in status
    assert host.volumes.volumes == kept


@played
async def test_a_plain_claim(host: Host, /) -> None:
    await host.post(CLAIMS, {"metadata": {"name": "a"}, "spec": pvc()})
    await host.settle()
    uid = (await host.claim("a"))["metadata"]["uid"]
    kept = await lost(host)
    assert await host.reasons("a") == ["ProvisioningSucceeded", "ClaimLost"]
    volume = (await host.get(f"{VOLUMES}/pvc-{uid}"))["status"]
    assert (volume["phase"], volume["reason"]) == ("Bound", "VolumeLost")
    for words in (f"pvc-{uid}", f"/volumes/{uid}", "Mount", "backup", "delete the claim"):
        assert words in volume["message"]
    await host.settle(300)
    assert host.volumes.volumes == {} and (await host.reasons("a")).count("ClaimLost") == 1
    await found_again(host, kept)
    assert "reason" not in (await host.get(f"{VOLUMES}/pvc-{uid}"))["status"]
    assert (await host.reasons("a"))[-1] == "VolumeFound"


@played
async def test_an_import(host: Host, /) -> None:
    host.images.offer(ADDRESS)
    await host.data_volume("a", {"source": {"http": {"url": ADDRESS}}, "pvc": pvc()})
    await host.settle()
    kept = await lost(host)
    assert await host.phase("a") == "Succeeded"
    assert (await host.condition("a", "Ready"))["reason"] == "ClaimLost"
    assert host.images.fetched[ADDRESS] == 1
    await found_again(host, kept)
    assert (await host.condition("a", "Ready"))["status"] == "True"


@played
async def test_a_claim_of_a_class_that_waits_for_its_first_consumer(host: Host, /) -> None:
    wait = {"metadata": {"name": "later"}, "provisioner": "paddock.dev/directory", "volumeBindingMode": "WaitForFirstConsumer"}
    await host.post(CLASSES, {**wait, "parameters": {"pool": "fast"}})
    annotations = {"cdi.kubevirt.io/storage.bind.immediate.requested": "true"}
    await host.post(CLAIMS, {"metadata": {"name": "a", "annotations": annotations}, "spec": {**pvc(), "storageClassName": "later"}})
    await host.settle()
    kept = await lost(host)
    assert "in pool fast" in (await host.claim("a"))["status"]["conditions"][0]["message"]
    await found_again(host, kept)


@played
async def test_a_transfer_that_was_interrupted_is_begun_again(host: Host, /) -> None:
    host.images.offer(ADDRESS)
    host.images.hold(ADDRESS)
    await host.data_volume("a", {"source": {"http": {"url": ADDRESS}}, "pvc": pvc()})
    await host.settle()
    assert (await host.claim("a"))["status"]["phase"] == "Bound" and host.volumes.volumes == {}
    await host.again()
    host.images.release(ADDRESS)
    await host.settle()
    assert await host.phase("a") == "Succeeded" and len(host.volumes.volumes) == 1


async def _sent() -> Any:
    yield b"x" * 100


@played
async def test_an_upload_waits_for_its_volume_once_it_was_there(host: Host, /) -> None:
    await host.data_volume("a", {"source": {"upload": {}}, "pvc": pvc()})
    await host.settle()
    await host.again()
    # Bound, and never filled.
    uid = (await host.claim("a"))["metadata"]["uid"]
    await host.storage.receiving.receive(Key("default", "a"), uid, _sent(), None)
    await host.settle()
    assert await host.phase("a") == "Succeeded"
    kept = await lost(host)
    with pytest.raises(NotATarget, match="its volume is lost"):
        await host.storage.receiving.receive(Key("default", "a"), uid, _sent(), None)
    await found_again(host, kept)


@played
async def test_nothing_is_copied_from_a_lost_volume(host: Host, /) -> None:
    await host.post(CLAIMS, {"metadata": {"name": "a"}, "spec": pvc()})
    await host.settle()
    kept = await lost(host)
    await host.data_volume("b", {"source": {"pvc": {"namespace": "default", "name": "a"}}, "pvc": pvc()})
    await host.settle()
    assert "has lost its volume" in (await host.condition("b", "Running"))["message"]
    host.volumes.volumes.update(kept)
    await host.settle(60)
    assert await host.phase("b") == "Succeeded"


@played
async def test_a_claim_that_is_made_anew_is_filled_anew(host: Host, /) -> None:
    await host.post(CLAIMS, {"metadata": {"name": "a"}, "spec": pvc()})
    await host.settle()
    await lost(host)
    assert (await host.api.delete(f"{CLAIMS}/a")).status == 200
    await host.settle()
    await host.post(CLAIMS, {"metadata": {"name": "a"}, "spec": pvc()})
    await host.settle()
    uid = (await host.claim("a"))["metadata"]["uid"]
    assert set(host.volumes.volumes) == {uid} and (await host.claim("a"))["status"]["phase"] == "Bound"
    assert [each["metadata"]["name"] for each in (await host.get(VOLUMES))["items"]] == [f"pvc-{uid}"]
