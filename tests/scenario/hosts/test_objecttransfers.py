"""Claims and DataVolumes that get another name or namespace."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine

PLACE = "/apis/cdi.kubevirt.io/v1beta1/objecttransfers"
VOLUME = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataVolume",
    "metadata": {"name": "old", "annotations": {"ready": "yes"}},
    "spec": {"source": {"blank": {}}, "pvc": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "old"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def transfer(host: FakeHost, kind: str, target: dict[str, str], **more: Any) -> None:
    """Ask for one, named `move`."""
    spec = {"source": {"kind": kind, "namespace": "default", "name": "old", **more}, "target": target}
    body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "ObjectTransfer", "metadata": {"name": "move"}, "spec": spec}
    reply = await host.api.post(PLACE, body)
    assert reply.status == 201, reply.data


async def phase(host: FakeHost) -> tuple[str, str]:
    """Its phase, and what its condition says."""
    status = (await host.api.get(f"{PLACE}/move")).data.get("status", {})
    return status.get("phase", ""), next((each["message"] for each in status.get("conditions", ())), "")


@pytest.mark.parametrize("kind", ["DataVolume", "PersistentVolumeClaim"])
@played
async def test_it_is_elsewhere_and_nothing_is_left(host: FakeHost, /, kind: str) -> None:
    await host.make(VOLUME if kind == "DataVolume" else CLAIM)
    await asyncio.sleep(30)
    size = (await host.get("PersistentVolumeClaim", "v1", "old"))["status"]["capacity"]
    await transfer(host, kind, {"name": "new"})
    await asyncio.sleep(120)
    assert await phase(host) == ("Complete", "")
    assert await host.get("PersistentVolumeClaim", "v1", "old") == {} == await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "old")
    moved = await host.get("PersistentVolumeClaim", "v1", "new")
    assert moved["status"]["phase"] == "Bound" and moved["status"]["capacity"] == size
    volume = await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "new")
    assert bool(volume) == (kind == "DataVolume") and bool(moved["metadata"].get("ownerReferences")) == bool(volume)


@played
async def test_it_waits_for_what_is_missing_or_in_use(host: FakeHost, /) -> None:
    await transfer(host, "DataVolume", {"name": "new"}, requiredAnnotations={"ready": "now"})
    await asyncio.sleep(20)
    assert await phase(host) == ("Pending", "waiting for DataVolume default/old")
    await host.make(VOLUME)
    await asyncio.sleep(20)
    assert await phase(host) == ("Pending", "waiting for the annotations ready of DataVolume default/old")
    await host.make(machine(volumes=[{"name": "disk", "persistentVolumeClaim": {"claimName": "old"}}]))
    await host.running()
    place = host.place("DataVolume", "cdi.kubevirt.io/v1beta1", name="old")
    await host.api.merge(place, {"metadata": {"annotations": {"ready": "now"}}})
    await asyncio.sleep(20)
    assert await phase(host) == ("Pending", "default/old is in use by machine web: stop it")
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(180)
    assert (await phase(host))[0] == "Complete"


@played
async def test_a_source_that_is_used_while_it_is_copied_stays(host: FakeHost, /) -> None:
    await host.make(CLAIM)
    await asyncio.sleep(30)
    await transfer(host, "PersistentVolumeClaim", {"name": "new"})
    # As soon as the copy is asked for, and before it is there.
    await asyncio.sleep(0.2)
    await host.make(machine(volumes=[{"name": "disk", "persistentVolumeClaim": {"claimName": "old"}}]))
    await asyncio.sleep(120)
    assert await host.get("PersistentVolumeClaim", "v1", "old") != {}
    assert (await host.get("PersistentVolumeClaim", "v1", "old"))["metadata"].get("deletionTimestamp") is None
    text = "machine web uses default/old since it was copied: stop it, delete the copy, and make a new transfer"
    assert await phase(host) == ("Error", text)


@played
async def test_it_does_not_take_the_place_of_another(host: FakeHost, /) -> None:
    await host.make(VOLUME, {**CLAIM, "metadata": {"name": "new"}})
    await asyncio.sleep(30)
    await transfer(host, "DataVolume", {"name": "new"})
    await asyncio.sleep(30)
    assert await phase(host) == (
        "Error",
        "default/new is there already: delete it, or choose another name, and make a new transfer",
    )
    assert await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "old") != {}


@played
async def test_a_restart_in_the_middle_changes_nothing(host: FakeHost, /) -> None:
    await host.make(CLAIM)
    await asyncio.sleep(30)
    await transfer(host, "PersistentVolumeClaim", {"name": "new"})
    for _ in range(6):
        await asyncio.sleep(0.7)
        await host.again()
    await asyncio.sleep(120)
    assert await phase(host) == ("Complete", "")
    assert (await host.get("PersistentVolumeClaim", "v1", "new"))["status"]["phase"] == "Bound"
