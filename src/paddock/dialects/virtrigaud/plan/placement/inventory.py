"""The hosts and datastores of a Provider, and the machines on them, as placement sees them.

A provider describes its hosts by labels. Kubernetes' own say zone and region; the others are VirtRigaud's:

    virtrigaud.io/cluster            the cluster of the host
    virtrigaud.io/taint/KEY          a taint: VALUE:EFFECT, several separated by commas
    virtrigaud.io/security-group     virtrigaud.io/isolation-level    virtrigaud.io/trust-level
    feature.virtrigaud.io/NAME       "true": the host has a feature, beside those of its CPU (secure-boot, tpm, encrypted-storage, numa ...)
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from paddock.contract import messages as m
from paddock.contract.extensionmessages import DatastoreInfo
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan.placement import decision
from paddock.kubernetes.meta.world import namespace_of

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
CLUSTER, TAINT, FEATURE = "virtrigaud.io/cluster", "virtrigaud.io/taint/", "feature.virtrigaud.io/"
SECURITY_GROUP, ISOLATION, TRUST = "virtrigaud.io/security-group", "virtrigaud.io/isolation-level", "virtrigaud.io/trust-level"
# Members of a machine's details that name its host and its datastore.
_HOST_DETAILS, _DATASTORE_DETAILS = ("host", "node", "hostname"), ("datastore", "storage")


class HostTaint(msgspec.Struct, frozen=True):
    """A taint of a host."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class CandidateHost(msgspec.Struct, frozen=True):
    """A host; one that is not `listed` is only named, and nothing else of it is known."""

    id: str = ""
    address: str = ""
    listed: bool = True
    ready: bool = True
    cluster: str = ""
    labels: Mapping[str, str] = {}
    features: frozenset[str] = frozenset()
    taints: tuple[HostTaint, ...] = ()
    # what is free, and what there is
    cpu: int = 0
    memory_mib: int = 0
    storage: int = 0
    cpu_total: int = 0
    memory_total: int = 0
    storage_total: int = 0

    @property
    def zone(self) -> str:
        return self.labels.get(ZONE, "")

    @property
    def region(self) -> str:
        return self.labels.get(REGION, "")


class CandidateDatastore(msgspec.Struct, frozen=True):
    """A datastore; one that is not `listed` is only named."""

    name: str = ""
    listed: bool = True
    pod: str = ""
    free: int = 0
    total: int = 0
    accessible: bool = True
    maintenance: bool = False


class PlacedMachine(msgspec.Struct, frozen=True):
    """A machine that is or will be somewhere. One of nobody's has neither namespace nor labels."""

    name: str
    namespace: str = ""
    labels: Mapping[str, str] = {}
    host: str = ""
    datastore: str = ""
    # the policy that it names, in its namespace
    policy: str = ""
    cpu: int = 0
    memory_mib: int = 0
    disk: int = 0
    # not yet at the provider: what it takes is still free there
    expected: bool = False


class PlacementInventory(msgspec.Struct, frozen=True):
    """Everything that a placement chooses from; None: the Provider has no such list."""

    hosts: tuple[CandidateHost, ...] | None = None
    datastores: tuple[CandidateDatastore, ...] | None = None
    machines: tuple[PlacedMachine, ...] = ()
    # labels of namespaces
    namespaces: Mapping[str, Mapping[str, str]] = {}


def taints(labels: Mapping[str, str]) -> tuple[HostTaint, ...]:
    """The taints in the labels of a host."""
    found = []
    for label, text in labels.items():
        if label.startswith(TAINT):
            for each in text.split(","):
                value, _, effect = each.rpartition(":")
                found.append(HostTaint(label.removeprefix(TAINT), value, effect or "NoSchedule"))
    return tuple(found)


def host(info: m.HostInfo, machines: Sequence[PlacedMachine] = ()) -> CandidateHost:
    """A host as its provider describes it, without what expected machines will take."""
    here = [each for each in machines if each.host and each.host in (info.id, info.address)]
    later = [each for each in here if each.expected]
    found = [each for each in here if not each.expected]
    features = {name.removeprefix(FEATURE) for name, value in info.labels.items() if name.startswith(FEATURE) and value == "true"}
    return CandidateHost(
        id=info.id,
        address=info.address,
        ready=info.health is not m.HostHealth.NOT_READY,
        cluster=info.labels.get(CLUSTER, ""),
        labels=info.labels,
        features=frozenset((*info.cpu_features, *features)),
        taints=taints(info.labels),
        cpu=info.allocatable_cpu - sum(each.cpu for each in later),
        memory_mib=info.allocatable_mem_mib - sum(each.memory_mib for each in later),
        storage=info.allocatable_storage - sum(each.disk for each in later),
        cpu_total=info.allocatable_cpu + sum(each.cpu for each in found),
        memory_total=info.allocatable_mem_mib + sum(each.memory_mib for each in found),
        storage_total=info.allocatable_storage + sum(each.disk for each in found),
    )


def datastore(info: DatastoreInfo, machines: Sequence[PlacedMachine] = ()) -> CandidateDatastore:
    """A datastore as its provider describes it, without what expected machines will take."""
    later = sum(each.disk for each in machines if each.expected and each.datastore == info.name)
    return CandidateDatastore(
        name=info.name,
        pod=info.pod,
        free=info.free_bytes - later,
        total=info.total_bytes,
        accessible=info.accessible,
        maintenance=info.maintenance,
    )


def machines(
    own: Sequence[tuple[VirtrigaudVirtualMachine, int, int, int]], listed: Iterable[m.VMInfo], apart: VirtrigaudVirtualMachine
) -> tuple[PlacedMachine, ...]:
    """The machines of a Provider: those with an object (with processors, MiB and bytes), and those that only the provider has.

    A machine whose create was not answered yet is known by its name.
    """
    infos = {each.id: each for each in listed}
    made = {_id_of(vm) for vm, *_ in own}
    unanswered = {each.name: each for each in infos.values() if each.id not in made}
    found, matched = [], {_id_of(apart), unanswered[apart.metadata.name].id if apart.metadata.name in unanswered else ""}
    for vm, cpu, memory, disk in own:
        info = infos.get(_id_of(vm)) if _id_of(vm) else unanswered.get(vm.metadata.name)
        matched.add(info.id if info is not None else "")
        if vm.metadata.uid != apart.metadata.uid:
            found.append(_own(vm, info, cpu, memory, disk))
    return (*found, *(_foreign(each) for each in infos.values() if each.id not in matched))


def _id_of(vm: VirtrigaudVirtualMachine) -> str:
    return (vm.status.id if vm.status is not None else None) or ""


def _own(vm: VirtrigaudVirtualMachine, info: m.VMInfo | None, cpu: int, memory: int, disk: int) -> PlacedMachine:
    placed = decision.of(vm)
    details = (vm.status.provider if vm.status is not None else None) or {}
    raw = info.provider_raw if info is not None else {}
    return PlacedMachine(
        name=vm.metadata.name,
        namespace=namespace_of(vm),
        labels=vm.metadata.labels or {},
        host=_first(raw, _HOST_DETAILS) or _first(details, _HOST_DETAILS) or placed.host,
        datastore=_first(raw, _DATASTORE_DETAILS) or _first(details, _DATASTORE_DETAILS) or placed.datastore,
        policy=vm.spec.placementRef.name if vm.spec.placementRef is not None else "",
        cpu=cpu,
        memory_mib=memory,
        disk=disk,
        expected=info is None and not _id_of(vm) and bool(placed.host or placed.datastore),
    )


def _foreign(info: m.VMInfo) -> PlacedMachine:
    return PlacedMachine(
        name=info.name,
        host=_first(info.provider_raw, _HOST_DETAILS),
        datastore=_first(info.provider_raw, _DATASTORE_DETAILS),
        cpu=info.cpu,
        memory_mib=info.memory_mib,
        disk=sum(each.size_gib for each in info.disks) << 30,
    )


def _first(details: Mapping[str, str], names: Sequence[str]) -> str:
    return next((details[each] for each in names if details.get(each)), "")
