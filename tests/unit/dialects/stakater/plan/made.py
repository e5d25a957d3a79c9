"""Objects for tests of what is planned for Stakater's machines."""

from typing import Any

from msgspec.structs import replace

from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.plan import objects
from paddock.dialects.stakater.translate import to_kubevirt
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.service import Service
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

Data = dict[str, Any]
LABELS = {"infrastructure.stakater.com/virtual-machine": "web"}


def front(status: Data | None = None, **parameters: Any) -> StakaterVirtualMachine:
    """A front object."""
    data: Data = {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "default", "uid": "front", "generation": 3},
        "spec": {"parameters": parameters},
    }
    return from_data({**data, "status": status} if status is not None else data, StakaterVirtualMachine)


def machine(vm: StakaterVirtualMachine | None = None, **status: Any) -> kubevirt.VirtualMachine:
    """The generated machine, and what it says."""
    made = objects.machine_of(to_kubevirt(vm or front(), ObjectSet(complete=True), Rendering()).value)
    data: Data = {"printableStatus": "Running", **status}
    meta = replace(made.metadata, uid="machine")
    return replace(made, metadata=meta, status=from_data(data, kubevirt.VirtualMachineStatus))


def owner(kind: str, name: str, uid: str) -> list[Data]:
    """An owner that controls."""
    group = "cdi.kubevirt.io/v1beta1" if kind == "DataVolume" else "kubevirt.io/v1"
    return [{"apiVersion": group, "kind": kind, "name": name, "uid": uid, "controller": True}]


def volume(name: str = "web-rootdisk", size: str = "10Gi", phase: str = "Succeeded", **meta: Any) -> DataVolume:
    """A DataVolume of the machine."""
    given = {"name": name, "uid": f"uid-{name}", "labels": LABELS, "ownerReferences": owner("VirtualMachine", "web", "machine"), **meta}
    spec = {"storage": {"resources": {"requests": {"storage": size}}}, "source": {"blank": {}}}
    return from_data({"metadata": given, "spec": spec, "status": {"phase": phase}}, DataVolume)


def claim(name: str = "web-rootdisk", size: str = "10Gi", mode: str = "Block", phase: str = "Bound", **meta: Any) -> PersistentVolumeClaim:
    """The claim of a DataVolume."""
    given = {"name": name, "labels": LABELS, "ownerReferences": owner("DataVolume", name, f"uid-{name}"), **meta}
    spec = {"accessModes": ["ReadWriteMany"], "volumeMode": mode, "resources": {"requests": {"storage": size}}}
    return from_data({"metadata": given, "spec": spec, "status": {"phase": phase}}, PersistentVolumeClaim)


def source(ready: str | None = "True", content: Data | None = None) -> DataSource:
    """The DataSource of the machine."""
    conditions = [{"type": "Ready", "status": ready, "reason": "R", "message": "as it is"}] if ready else []
    data: Data = {
        "metadata": {"name": "rhel9", "namespace": "openshift-virtualization-os-images"},
        "spec": {"source": content or {"http": {"url": "http://images/rhel9"}}},
        "status": {"conditions": conditions},
    }
    return from_data(data, DataSource)


def instance(*volumes: str, memory: str = "") -> VirtualMachineInstance:
    """A running instance with these DataVolumes."""
    data: Data = {"spec": {"volumes": [{"name": each, "dataVolume": {"name": each}} for each in volumes]}}
    if memory:
        data["status"] = {"memory": {"guestCurrent": memory}}
    return from_data(data, VirtualMachineInstance)


def service(**address: str) -> Service:
    """The Service, with an address if it has one."""
    balancer = {"ingress": [address]} if address else {}
    return from_data({"metadata": {"name": "web-lb"}, "status": {"loadBalancer": balancer}}, Service)
