"""Shared parts of the scripts of snapshots and exports: the objects that users write, and their results."""

import asyncio
from typing import Any

from tests.kit.engine.fakehost import Data, FakeHost, machine

SNAPSHOT, EXPORT, CLONE = "snapshot.kubevirt.io/v1beta1", "export.kubevirt.io/v1", "clone.kubevirt.io/v1beta1"
VOLUME_SNAPSHOT, DV = "snapshot.storage.k8s.io/v1", "cdi.kubevirt.io/v1beta1"
TEMPLATE = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
VOLUMES = [{"name": "root", "dataVolume": {"name": "disk"}}, {"name": "tmp", "emptyDisk": {"capacity": "1Gi"}}]
MACHINE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}


def snapshot(name: str = "one", **spec: Any) -> Data:
    return {
        "apiVersion": SNAPSHOT,
        "kind": "VirtualMachineSnapshot",
        "metadata": {"name": name},
        "spec": {"source": MACHINE, **spec},
    }


def restore(name: str = "back", target: str = "web", of: str = "one", **spec: Any) -> Data:
    return {
        "apiVersion": SNAPSHOT,
        "kind": "VirtualMachineRestore",
        "metadata": {"name": name},
        "spec": {"target": {**MACHINE, "name": target}, "virtualMachineSnapshotName": of, **spec},
    }


def export(kind: str, name: str, group: str = "", **spec: Any) -> Data:
    source = {"apiGroup": group, "kind": kind, "name": name}
    return {"apiVersion": EXPORT, "kind": "VirtualMachineExport", "metadata": {"name": "out"}, "spec": {"source": source, **spec}}


async def web(host: FakeHost, strategy: str = "Always") -> None:
    await host.make(machine(strategy=strategy, volumes=VOLUMES, templates=[TEMPLATE]))
    await asyncio.sleep(10)


async def web_on_standing_disk(host: FakeHost) -> None:
    """The same machine, halted, on a DataVolume that is not its own: what is restored or copied of it belongs to machines directly."""
    disk = {"apiVersion": DV, "kind": "DataVolume", **TEMPLATE}
    await host.make(disk, machine(strategy="Halted", volumes=VOLUMES))
    await asyncio.sleep(30)


async def taken(host: FakeHost, name: str = "one") -> Data:
    return dict((await host.get("VirtualMachineSnapshot", SNAPSHOT, name)).get("status", {}))


async def restored(host: FakeHost, name: str = "back") -> Data:
    return dict((await host.get("VirtualMachineRestore", SNAPSHOT, name)).get("status", {}))


async def succeeded(host: FakeHost, name: str = "one") -> Data:
    """The status of a snapshot that was taken, as KubeVirt's tests wait for it."""
    status = await taken(host, name)
    assert (status["phase"], status["readyToUse"]) == ("Succeeded", True), status
    found = [(each["type"], each["status"], each["reason"]) for each in status["conditions"]]
    assert found == [("Ready", "True", "Ready"), ("Progressing", "False", "Operation complete")]
    return status


async def completed(host: FakeHost, name: str = "back", target: str = "web") -> Data:
    """The status of a restore that is done, as KubeVirt's tests wait for it: the machine owns it."""
    found = await host.get("VirtualMachineRestore", SNAPSHOT, name)
    status: Data = found["status"]
    assert status["complete"] is True and status["restoreTime"], status
    assert conditions(status) == {"Ready": "True", "Progressing": "False"}
    (owner,) = found["metadata"]["ownerReferences"]
    uid = (await host.vm(target))["metadata"]["uid"]
    assert (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]) == ("kubevirt.io/v1", "VirtualMachine", target, uid)
    return status


async def exported(host: FakeHost) -> Data:
    return dict((await host.get("VirtualMachineExport", EXPORT, "out")).get("status", {}))


async def claim_of(host: FakeHost, name: str = "web") -> str:
    """The claim a machine's disk is on."""
    volume = (await host.vm(name))["spec"]["template"]["spec"]["volumes"][0]
    return str(volume["persistentVolumeClaim"]["claimName"] if "persistentVolumeClaim" in volume else volume["dataVolume"]["name"])


async def content_of(host: FakeHost, claim: str) -> str:
    """Return the initial content of a claim."""
    uid = (await host.get("PersistentVolumeClaim", "v1", claim))["metadata"]["uid"]
    return host.engine.volumes.content[uid]


async def check_data_volume_owns(host: FakeHost, claim: Data, of: Data) -> None:
    """Fail unless a restored claim belongs to a DataVolume of the machine, as the one did that it takes the place of."""
    name = claim["metadata"]["name"]
    data_volume = await host.get("DataVolume", DV, name)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("DataVolume", data_volume["metadata"]["uid"])
    (owner,) = data_volume["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("VirtualMachine", of["metadata"]["uid"])
    notes = {"restore.kubevirt.io/name": "back", "cdi.kubevirt.io/storage.prePopulated": name}
    assert notes.items() <= data_volume["metadata"]["annotations"].items()


async def volume_snapshot_of(host: FakeHost, name: str = "one") -> str:
    """The VolumeSnapshot of the disk in a snapshot."""
    content = await host.get("VirtualMachineSnapshotContent", SNAPSHOT, (await taken(host, name))["virtualMachineSnapshotContentName"])
    return str(content["spec"]["volumeBackups"][0]["volumeSnapshotName"])


def conditions(status: Data) -> dict[str, str]:
    return {each["type"]: each["status"] for each in status["conditions"]}
