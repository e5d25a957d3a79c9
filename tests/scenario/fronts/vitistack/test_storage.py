"""The disks of a Machine: claims that are made once, grow, outlive their place in the spec, and are missed when they are gone."""

import asyncio

import pytest

from paddock.base.images.errors import ImageUnavailable
from paddock.dialects.vitistack.kinds.marks import CLUSTER_NAME
from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Data, Vitistack, machine
from tests.scenario.hosts import snapshotting


async def size(host: Vitistack, name: str) -> str:
    """Return the request of a claim."""
    return str((await host.seen("PersistentVolumeClaim", name))["spec"]["resources"]["requests"]["storage"])


@pytest.mark.spec("vitistack", 27)
@played
async def test_claims_that_wait_for_their_machine_do_not_hold_it(host: Vitistack, /) -> None:
    await host.storage_class("lazy", volumeBindingMode="WaitForFirstConsumer")
    await host.make(machine(disks=[{"name": "root", "storageClass": "lazy"}]))
    await host.up()
    claim = await host.seen("PersistentVolumeClaim", "web-root")
    assert claim["status"]["phase"] == "Bound"
    # off from the beginning: the VirtualMachine is there all the same, and the claim waits
    off = {"annotations": {"vitistack.io/power-state": "stopped"}}
    await host.make(machine("off", metadata=off, disks=[{"name": "root", "storageClass": "lazy"}]))
    await asyncio.sleep(60)
    assert await host.vm("off") != {}
    assert (await host.seen("PersistentVolumeClaim", "off-root"))["status"].get("phase") == "Pending"
    assert (await host.condition("StorageReady", "off"))[:2] == ("False", "PVCPending")


@pytest.mark.spec("vitistack", 68)
@played
async def test_storage_is_pending_until_every_claim_is_bound(host: Vitistack, /) -> None:
    await host.storage_class("slow", provisioner="somebody.else/disk")
    await host.make(machine(disks=[{"name": "data", "size": "1Gi", "storageClass": "slow"}]))
    await asyncio.sleep(60)
    status, reason, message = await host.condition("StorageReady")
    assert (status, reason) == ("False", "PVCPending")
    assert "web-data" in message
    assert "web-root" not in message
    for subresource, body in (
        ("", {"spec": {"volumeName": "disk"}}),
        ("/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
    ):
        reply = await host.api.merge(f"/api/v1/namespaces/default/persistentvolumeclaims/web-data{subresource}", body)
        assert reply.status == 200
    await asyncio.sleep(30)
    assert (await host.condition("StorageReady"))[:2] == ("True", "PVCBound")


@pytest.mark.spec("vitistack", 95)
@played
async def test_an_import_that_fails_is_seen_while_its_claim_is_bound(host: Vitistack, /) -> None:
    address = "http://images/debian.qcow2"
    host.engine.images.offer(address)
    host.engine.images.script(address, [ImageUnavailable("Unreachable", "images:80 cannot be reached")])
    await host.make(machine(metadata={"annotations": {"vitistack.io/root-image": address}}))
    await asyncio.sleep(8)
    assert (await host.seen("PersistentVolumeClaim", "web-root"))["status"]["phase"] == "Bound"
    status, reason, message = await host.condition("StorageReady")
    assert (status, reason) == ("False", "ImportFailed")
    assert message == "DataVolume web-root is not filled: Error: images:80 cannot be reached"
    assert (await host.condition("Ready"))[0] == "False"


@pytest.mark.spec("vitistack", 71)
@played
async def test_disks_grow_and_claims_of_removed_disks_stay(host: Vitistack, /) -> None:
    data = {"name": "data", "size": "1Gi"}
    await host.make(machine(disks=[data]))
    await host.up()
    await host.merge("Machine", "web", {"spec": {"disks": [{**data, "size": "5Gi"}], "template": "medium"}})
    await asyncio.sleep(60)
    assert (await size(host, "web-data"), await size(host, "web-root")) == ("5Gi", "40Gi")
    place = host.place("Machine", "vitistack.io/v1alpha1", name="web")
    reply = await host.api.merge(place, {"spec": {"disks": [{**data, "size": "4Gi"}]}})
    assert reply.status == 422
    assert "disks cannot shrink" in str(reply.data)
    reply = await host.api.merge(place, {"spec": {"template": "small"}})
    assert reply.status == 422
    assert "root disk cannot shrink from 40Gi to 20Gi" in str(reply.data)
    kept = (await host.seen("PersistentVolumeClaim", "web-data"))["metadata"]["uid"]
    await host.merge("Machine", "web", {"spec": {"disks": []}})
    await asyncio.sleep(120)
    volumes = (await host.vm())["spec"]["template"]["spec"]["volumes"]
    assert [each["name"] for each in volumes] == ["root"]
    claim = (await host.seen("PersistentVolumeClaim", "web-data"))["metadata"]
    assert claim["uid"] == kept
    assert "deletionTimestamp" not in claim
    # it is the same disk when it comes back
    await host.merge("Machine", "web", {"spec": {"disks": [{**data, "size": "5Gi"}]}})
    await asyncio.sleep(60)
    assert (await host.seen("PersistentVolumeClaim", "web-data"))["metadata"]["uid"] == kept
    await host.merge("Machine", "web", {"spec": {"disks": []}})
    await asyncio.sleep(60)
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.machine() == {}
    assert await host.names("PersistentVolumeClaim") == []


@pytest.mark.spec("vitistack", 73)
@pytest.mark.parametrize("with_vm", [False, True])
@played
async def test_a_deleted_claim_is_missed_and_not_made_anew(host: Vitistack, /, with_vm: bool) -> None:
    await host.make(machine())
    await host.up()
    await host.merge("VirtualMachine", "web", {"spec": {"running": False}})
    await asyncio.sleep(60)
    await host.drop("PersistentVolumeClaim", "web-root")
    if with_vm:
        await host.drop("VirtualMachine", "web")
    await asyncio.sleep(120)
    assert await host.names("PersistentVolumeClaim") == []
    status, reason, message = await host.condition("StorageReady")
    assert (status, reason) == ("False", "PVCPending")
    assert "web-root is lost" in message
    assert (await host.events("web", "Machine")).count("DiskLost") == 1
    # put back by its user, it is a disk again
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "storageClassName": "paddock"}
    owner = (await host.machine())["metadata"]
    owners = [{"apiVersion": "vitistack.io/v1alpha1", "kind": "Machine", "name": "web", "uid": owner["uid"], "controller": True}]
    labels = {"vitistack.io/machine": "web"}
    metadata = {"name": "web-root", "labels": labels, "ownerReferences": owners}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    await asyncio.sleep(60)
    assert (await host.condition("StorageReady"))[:2] == ("True", "PVCBound")


@played
async def test_a_disk_that_comes_while_the_machine_is_gone_was_never_lost(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    await asyncio.sleep(30)
    assert (await host.machine())["status"]["claims"] == ["web-root"]
    await host.end()
    await host.drop("VirtualMachine", "web")
    await host.merge("Machine", "web", {"spec": {"disks": [{"name": "data", "size": "1Gi"}]}})
    await asyncio.sleep(30)
    await host.begin()
    await asyncio.sleep(120)
    assert await host.names("PersistentVolumeClaim") == ["web-data", "web-root"]
    assert (await host.condition("StorageReady"))[:2] == ("True", "PVCBound")
    assert (await host.machine())["status"]["claims"] == ["web-data", "web-root"]


@played
async def test_a_disk_that_comes_later_gets_the_default_class_of_then(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    await host.merge("Machine", "web", {"spec": {"disks": [{"name": "data", "size": "1Gi"}]}})
    await asyncio.sleep(30)
    assert (await host.seen("PersistentVolumeClaim", "web-data"))["spec"]["storageClassName"] == "paddock"
    assert (await host.condition("Ready"))[0] == "True"


@played
async def test_a_root_disk_with_an_image_is_imported_once(host: Vitistack, /) -> None:
    address = "http://images/debian.qcow2"
    host.engine.images.offer(address)
    await host.make(machine(metadata={"annotations": {"vitistack.io/root-image": address}}))
    await host.up()
    assert await host.names("DataVolume") == ["web-root"]
    assert await host.names("PersistentVolumeClaim", "vitistack.io/machine=web") == ["web-root"]
    run, claim = (await host.vmi())["metadata"]["uid"], (await host.seen("PersistentVolumeClaim", "web-root"))["metadata"]["uid"]
    # larger by the template, and without the annotation: the same disk
    await host.merge("Machine", "web", {"spec": {"template": "medium"}, "metadata": {"annotations": None}})
    await asyncio.sleep(60)
    assert await size(host, "web-root") == "40Gi"
    assert (await host.seen("PersistentVolumeClaim", "web-root"))["metadata"]["uid"] == claim
    assert (await host.vmi())["metadata"]["uid"] == run
    revision = await host.revision()
    await asyncio.sleep(120)
    assert await host.revision() == revision
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.names("DataVolume") + await host.names("PersistentVolumeClaim") == []
    assert host.engine.images.fetched[address] == 1


@played
async def test_a_datavolume_keeps_its_labels(host: Vitistack, /) -> None:
    host.engine.images.offer("http://images/debian.qcow2")
    metadata = {"labels": {CLUSTER_NAME: "one"}, "annotations": {"vitistack.io/root-image": "http://images/debian.qcow2"}}
    await host.make(machine(metadata=metadata))
    await host.up()

    async def labels() -> Data:
        found: Data = (await host.seen("DataVolume", "web-root"))["metadata"]["labels"]
        return {name: value for name, value in found.items() if "vitistack.io/" in name}

    before = await labels()
    assert before["vitistack.io/machine"] == "web" and before[CLUSTER_NAME] == "one"
    await host.merge("DataVolume", "web-root", {"metadata": {"labels": {"vitistack.io/machine": None, "mine": "yes"}}})
    await asyncio.sleep(60)
    assert await labels() == before
    await host.merge("Machine", "web", {"metadata": {"labels": {CLUSTER_NAME: None}}})
    await asyncio.sleep(60)
    assert await labels() == {name: value for name, value in before.items() if name != CLUSTER_NAME}
    assert (await host.seen("DataVolume", "web-root"))["metadata"]["labels"]["mine"] == "yes"


@played
async def test_an_image_that_is_named_too_late_is_not_put_on_the_disk(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/root-image": "http://images/debian.qcow2"}}})
    await asyncio.sleep(60)
    assert await host.names("DataVolume") == []
    assert (await host.vm())["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "web-root"}
    assert (await host.condition("Ready"))[0] == "True"


@played
async def test_an_installation_image_goes_when_it_is_ejected(host: Vitistack, /) -> None:
    address = "http://images/install.iso"
    host.engine.images.offer(address)
    annotations = {"kubevirt.io/boot-source": "datavolume", "kubevirt.io/boot-source-type": "http"}
    await host.make(machine(metadata={"annotations": annotations}, os={"imageID": address}))
    await host.up()
    assert await host.names("DataVolume") == ["web-iso"]
    assert "NoBootSource" not in await host.events("web", "Machine")
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/os-installed": "true"}}})
    await asyncio.sleep(60)
    spec = (await host.vm())["spec"]
    assert "dataVolumeTemplates" not in spec
    assert [each["name"] for each in spec["template"]["spec"]["volumes"]] == ["root"]
    assert await host.names("DataVolume") == []
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.names("PersistentVolumeClaim") == []


@played
async def test_a_machine_that_finds_nothing_to_boot_is_told_so_once(host: Vitistack, /) -> None:
    await host.make(machine(), machine("net", bootOrder=["network", "disk"]))
    await host.up()
    assert (await host.events("web", "Machine")).count("NoBootSource") == 1
    assert "nothing to boot from" in (await host.condition("VirtualMachineReady"))[2]
    assert "NoBootSource" not in await host.events("net", "Machine")


@pytest.mark.parametrize("image", [False, True], ids=["blank", "imported"])
@played
async def test_disks_that_went_back_in_place_are_still_those_of_the_machine(host: Vitistack, /, image: bool) -> None:
    address = "http://images/debian.qcow2"
    host.engine.images.offer(address)
    annotations = {"vitistack.io/root-image": address} if image else {}
    await host.make(machine(metadata={"annotations": annotations}, disks=[{"name": "data", "size": "1Gi"}]))
    await host.up(seconds=60)
    await host.make(snapshotting.snapshot())
    await asyncio.sleep(20)
    before = [(await host.seen("PersistentVolumeClaim", name))["metadata"]["uid"] for name in ("web-root", "web-data")]
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/power-state": "stopped"}}})
    await asyncio.sleep(60)
    await host.make(snapshotting.restore(volumeRestorePolicy="InPlace"))
    await asyncio.sleep(30)
    assert (await snapshotting.restored(host))["complete"]
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}})
    uid = (await host.up(seconds=60))["metadata"]["uid"]
    assert (await host.condition("StorageReady"))[:2] == ("True", "PVCBound")
    for name in ("web-root", "web-data"):
        claim = (await host.seen("PersistentVolumeClaim", name))["metadata"]
        assert claim["uid"] in before
        # Of one that was imported, by its DataVolume.
        volume = (await host.seen("DataVolume", name))["metadata"] if image and name == "web-root" else claim
        assert uid in [each["uid"] for each in volume["ownerReferences"]]
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.names("PersistentVolumeClaim") == []
