"""Faults of disks, and of objects that are named and not there."""

import asyncio
from typing import Any

from paddock.kubernetes.core.storageclass import PROVISIONER
from tests.kit.engine.fakehost import GIB, FakeHost, machine
from tests.scenario.why.faults import Fault, Inject
from tests.scenario.why.host_faults import made
from tests.scenario.why.image_faults import DISK, URL, template

_GUEST, _MACHINE = "VirtualMachineInstance web", "VirtualMachine web"
_SECRET = {"http": {"url": URL, "secretRef": "login"}}
_REGISTRY = {"registry": {"url": "docker://registry.example/debian:12", "certConfigMap": "authorities"}}


def _from_source(name: str) -> dict[str, Any]:
    spec = {"sourceRef": {"kind": "DataSource", "name": name}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    return {"metadata": {"name": "web-root"}, "spec": spec}


def volume(name: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A DataVolume."""
    spec = {"source": source, "storage": {"resources": {"requests": {"storage": "1Gi"}}, **more}}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str, **spec: Any) -> dict[str, Any]:
    """A claim."""
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": given}


def on_claim(name: str, **more: Any) -> dict[str, Any]:
    """A machine on a claim."""
    return machine(volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": name}}], **more)


async def _vast(host: FakeHost) -> None:
    await host.make(claim("vast", storageClassName="late", resources={"requests": {"storage": "8Ei"}}))
    # The server takes the claim because its class comes after it.
    reply = await host.api.post("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "late"}, "provisioner": PROVISIONER})
    assert reply.status == 201, reply.data
    await host.make(on_claim("vast"))


async def _in_use(host: FakeHost) -> None:
    await host.make(volume("shared", {"blank": {}}))
    await asyncio.sleep(10)
    other = on_claim("shared")
    other["metadata"]["name"] = "first"
    await host.make(other)
    await host.running("first")
    await host.make(on_claim("shared"))


async def _copied_in_use(host: FakeHost) -> None:
    await host.make(volume("shared", {"blank": {}}))
    await asyncio.sleep(10)
    other = on_claim("shared")
    other["metadata"]["name"] = "first"
    await host.make(other)
    await host.running("first")
    await host.make(volume("copy", {"pvc": {"name": "shared", "namespace": "default"}}))


async def _incomplete(host: FakeHost) -> None:
    await host.make({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"user": "a"}})
    await host.make(machine(volumes=DISK, templates=[template(_SECRET)]))


async def _taken(host: FakeHost) -> None:
    await host.end()
    await host.make(volume("disk", {"blank": {}}), claim("disk"))
    await host.begin()


async def _slow(host: FakeHost) -> None:
    host.engine.images.offer(URL, virtual_size=GIB)
    host.engine.images.hold(URL, 0.1, 0.42)
    await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))


async def _queued(host: FakeHost) -> None:
    for number in range(4):
        host.engine.images.offer(f"{URL}{number}", virtual_size=GIB)
        host.engine.images.hold(f"{URL}{number}", 0.1)
        await host.make(volume(f"other-{number}", {"http": {"url": f"{URL}{number}"}}))
    await asyncio.sleep(5)
    host.engine.images.offer(URL, virtual_size=GIB)
    await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))


async def _broken_source(host: FakeHost) -> None:
    source = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian"}}
    await host.make({**source, "spec": {"source": {"pvc": {"name": "golden", "namespace": "default"}}}})
    await asyncio.sleep(3)
    await host.make(machine(volumes=DISK, templates=[_from_source("debian")]))


async def _no_permission(host: FakeHost) -> None:
    await host.api.namespace("golden")
    source = volume("base", {"blank": {}})
    source["metadata"]["namespace"] = "golden"
    await host.make(source)
    await asyncio.sleep(10)
    await host.make(machine(volumes=DISK, templates=[template({"pvc": {"name": "base", "namespace": "golden"}})]))


async def _elsewhere(host: FakeHost) -> None:
    """A claim that is to be filled from another namespace."""
    await host.api.namespace("golden")
    base = volume("base", {"blank": {}})
    base["metadata"]["namespace"] = "golden"
    await host.make(base)
    await asyncio.sleep(10)
    await host.make(claim("data", dataSourceRef={"kind": "PersistentVolumeClaim", "name": "base", "namespace": "golden"}))
    await host.make(on_claim("data"))
    await asyncio.sleep(10)


async def _source_elsewhere(host: FakeHost) -> None:
    """A DataVolume whose DataSource leads to another namespace."""
    about = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": "debian"}}
    await host.make({**about, "spec": {"source": {"dataSource": {"name": "debian", "namespace": "golden"}}}})
    copy = volume("copy", {})
    del copy["spec"]["source"]
    copy["spec"]["sourceRef"] = {"kind": "DataSource", "name": "debian"}
    await host.make(copy)


async def _damaged(host: FakeHost) -> None:
    """Paddock ends, the record of a claim's disk is damaged, and Paddock begins again."""
    await host.make(volume("data", {"blank": {}}))
    await asyncio.sleep(10)
    found = await host.get("PersistentVolumeClaim", "v1", "data")
    await host.end()
    host.engine.volumes.damaged.add(found["metadata"]["uid"])
    await host.begin()
    await host.make(on_claim("data"))
    await asyncio.sleep(10)


_TYPES = "/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/virtualmachine"


def sized(member: str, plural: str, kind: str, spec: dict[str, Any]) -> Inject:
    """A machine whose instancetype, or preference, goes before anybody has looked at it."""

    async def inject(host: FakeHost) -> None:
        await host.end()
        about = {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": kind}
        reply = await host.api.post(f"{_TYPES}{plural}", {**about, "metadata": {"name": "gone"}, "spec": spec})
        assert reply.status == 201, reply.data
        made = machine()
        if member == "instancetype":
            del made["spec"]["template"]["spec"]["domain"]["memory"]
        made["spec"][member] = {"name": "gone", "kind": kind}
        await host.make(made)
        reply = await host.api.delete(f"{_TYPES}{plural}/gone")
        assert reply.status == 200, reply.data
        await host.begin()

    return inject


DISK_FAULTS: tuple[Fault, ...] = (
    Fault("no such Secret for the image", made(machine(volumes=DISK, templates=[template(_SECRET)])), "secret-missing", "Secret login"),
    Fault("a Secret without a password", _incomplete, "secret-incomplete", "DataVolume web-root"),
    Fault(
        "no such ConfigMap for the registry",
        made(machine(volumes=DISK, templates=[template(_REGISTRY)])),
        "configmap-missing",
        "ConfigMap authorities",
    ),
    Fault(
        "no such Secret for cloud-init",
        made(machine(volumes=[{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}}])),
        "secret-missing",
        "Secret seed",
    ),
    Fault(
        "no such ConfigMap",
        made(machine(volumes=[{"name": "files", "configMap": {"name": "files"}}])),
        "configmap-missing",
        "ConfigMap files",
    ),
    Fault(
        "no such ServiceAccount",
        made(machine(volumes=[{"name": "token", "serviceAccount": {"serviceAccountName": "robot"}}])),
        "serviceaccount-missing",
        "ServiceAccount robot",
    ),
    Fault(
        "no such pull secret",
        made(machine(volumes=[{"name": "root", "containerDisk": {"image": "registry.example/a:1", "imagePullSecret": "login"}}])),
        "secret-missing",
        "Secret login",
    ),
    Fault("a claim from another namespace", _elsewhere, "source-elsewhere", "PersistentVolumeClaim data", ask="pvc/data"),
    Fault("a machine on a claim from another namespace", _elsewhere, "source-elsewhere", "PersistentVolumeClaim data"),
    Fault("a DataSource of another namespace", _source_elsewhere, "datasource-broken", "DataSource debian", ask="dv/copy"),
    Fault("a damaged record of a disk", _damaged, "volume-damaged", "DataVolume data", ask="pvc/data"),
    Fault("a machine on a disk with a damaged record", _damaged, "volume-damaged", "DataVolume data"),
    Fault("no such claim", made(on_claim("data")), "disk-missing", "PersistentVolumeClaim data"),
    Fault("no such DataVolume", made(machine(volumes=DISK)), "disk-missing", "DataVolume web-root"),
    Fault("no such DataSource", made(machine(volumes=DISK, templates=[_from_source("debian")])), "datasource-missing", "DataSource debian"),
    Fault("a DataSource that leads nowhere", _broken_source, "disk-missing", "PersistentVolumeClaim golden"),
    Fault(
        "no such storage class",
        made(machine(volumes=DISK, templates=[template({"blank": {}}, storageClassName="gold")])),
        "storageclass-missing",
        "StorageClass gold",
    ),
    Fault(
        "no storage class for a claim",
        made(claim("data", storageClassName="gold")),
        "storageclass-missing",
        "StorageClass gold",
        ask="pvc/data",
    ),
    Fault(
        "a claim of more than any disk has",
        _vast,
        "claim-too-large",
        "PersistentVolumeClaim vast",
    ),
    Fault(
        "the disk to copy is missing",
        made(volume("copy", {"pvc": {"name": "base", "namespace": "default"}})),
        "disk-missing",
        "PersistentVolumeClaim base",
        ask="dv/copy",
    ),
    Fault("the disk to copy may not be copied", _no_permission, "clone-not-permitted", "VirtualMachine web"),
    Fault("the disk to copy is in use", _copied_in_use, "clone-source-in-use", "DataVolume copy", ask="dv/copy", state="fails"),
    Fault("the disk is in use by another machine", _in_use, "claim-in-use", _GUEST),
    Fault("the disk's name is taken", _taken, "claim-name-taken", "DataVolume disk", ask="dv/disk"),
    Fault("an upload that nobody began", made(volume("disk", {"upload": {}})), "upload-not-begun", "DataVolume disk", ask="dv/disk"),
    Fault(
        "an upload that a machine waits for",
        made(machine(volumes=DISK, templates=[template({"upload": {}})])),
        "upload-not-begun",
        "DataVolume web-root",
    ),
    Fault("a disk that is being filled", _slow, "disk-being-filled", "DataVolume web-root", state="waits"),
    Fault("a disk whose turn has not come", _queued, "waits-for-slot", "DataVolume web-root", state="waits"),
    Fault(
        "a source that cannot be had here",
        made(volume("disk", {"gcs": {"url": "gs://a/b", "secretRef": "login"}})),
        "secret-missing",
        "Secret login",
        ask="dv/disk",
    ),
    Fault(
        "no such instancetype",
        sized("instancetype", "instancetypes", "VirtualMachineInstancetype", {"cpu": {"guest": 1}, "memory": {"guest": "128Mi"}}),
        "instancetype-missing",
        "VirtualMachineInstancetype gone",
    ),
    Fault(
        "no such preference",
        sized("preference", "preferences", "VirtualMachinePreference", {}),
        "preference-missing",
        "VirtualMachinePreference gone",
    ),
)
