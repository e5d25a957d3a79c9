"""Documents of Kubermatic's dialect, and looks at what becomes of them."""

import asyncio
from typing import Any

from tests.kit.engine.fakehost import FakeHost
from tests.kit.engine.fakehost import machine as plain_machine

Data = dict[str, Any]
CDI = "cdi.kubevirt.io/v1beta1"
POOL = "pool.kubevirt.io/v1beta1"
URL = "http://images/disk.qcow2"
LABELS = {"app": "web"}
POD = {"kubevirt.io/allow-pod-bridge-network-live-migration": "true"}


def source(name: str = "image", url: str = URL, cached: bool = False, namespace: str = "default", **http: Any) -> Data:
    """A DataSource with an address."""
    metadata: Data = {"name": name, "namespace": namespace}
    if cached:
        metadata["annotations"] = {"virtualization.k8c.io/cache": "true"}
    return {"apiVersion": CDI, "kind": "DataSource", "metadata": metadata, "spec": {"source": {"http": {"url": url, **http}}}}


def template(name: str = "disk", of: str = "image", size: str = "10Gi", namespace: str = "") -> Data:
    """A DataVolume of a machine, made from a DataSource."""
    reference = {"apiGroup": "cdi.kubevirt.io", "kind": "DataSource", "name": of, **({"namespace": namespace} if namespace else {})}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": {"sourceRef": reference, "pvc": claim}}


def machine(name: str = "web", strategy: str = "RerunOnFailure", disk: str = "disk", **of: Any) -> Data:
    """A machine with a disk from a DataSource."""
    volumes = [{"name": "root", "dataVolume": {"name": disk}}]
    return plain_machine(name, strategy, volumes, templates=[template(disk, **of)])


def pool(replicas: int = 3, cores: int = 1, strategy: str = "Always", disks: bool = True, **spec: Any) -> Data:
    """A pool in the flat form of the documents."""
    domain = {"cpu": {"cores": cores}, "memory": {"guest": "128Mi"}, "devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}}
    hardware: Data = {"runStrategy": strategy, "domain": domain}
    if disks:
        hardware["dataVolumeTemplates"] = [template("disk")]
        hardware["volumes"] = [{"name": "root", "dataVolume": {"name": "disk"}}]
    else:
        hardware["volumes"] = [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}]
    around = {"metadata": {"labels": LABELS, "annotations": POD}, "spec": hardware}
    return {
        "apiVersion": "kubevirt.io/v1alpha1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": around, **spec},
    }


async def condition(host: FakeHost, kind: str, version: str, name: str, type: str) -> Data:
    """A condition of an object; empty when it is not there."""
    status = (await host.get(kind, version, name)).get("status") or {}
    return next((dict(each) for each in status.get("conditions") or () if each["type"] == type), {})


async def resolved(host: FakeHost, name: str = "web") -> tuple[str, str]:
    """Return the status and the reason of a machine's condition about its sources."""
    found = await condition(host, "VirtualMachine", "kubevirt.io/v1", name, "DataSourceResolved")
    return found.get("status", ""), found.get("reason", "")


async def ready(host: FakeHost, name: str = "image") -> tuple[str, str]:
    """Return the status and the reason of a DataSource's condition."""
    found = await condition(host, "DataSource", CDI, name, "Ready")
    return found.get("status", ""), found.get("reason", "")


async def readdress(host: FakeHost, name: str, url: str) -> None:
    """Another address for a DataSource."""
    reply = await host.api.merge(host.place("DataSource", CDI, name=name), {"spec": {"source": {"http": {"url": url}}}})
    assert reply.status == 200, reply.data


async def volume(host: FakeHost, name: str = "disk") -> Data:
    """A DataVolume; empty when it is not there."""
    return await host.get("DataVolume", CDI, name)


async def names(host: FakeHost, plural: str = "virtualmachines", version: str = "kubevirt.io/v1") -> list[str]:
    """The names of all objects of a kind."""
    found = (await host.api.get(f"/apis/{version}/namespaces/default/{plural}")).data["items"]
    return sorted(each["metadata"]["name"] for each in found)


async def identities(host: FakeHost, plural: str = "virtualmachines", version: str = "kubevirt.io/v1") -> dict[str, str]:
    """The UIDs of all objects of a kind by name."""
    found = (await host.api.get(f"/apis/{version}/namespaces/default/{plural}")).data["items"]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


async def settle(seconds: float = 10.0) -> None:
    """Let everything happen that happens in this time."""
    await asyncio.sleep(seconds)
