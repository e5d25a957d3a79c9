"""The wish of `paddock run`, and the manifests that it becomes in each dialect. `--dry-run -o yaml` prints what would be applied."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.dialects import translators as catalog
from paddock.fleet.creation import mounts
from paddock.fleet.creation.imagewords import ImageWord, base_name
from paddock.fleet.creation.mounts import HostMount
from paddock.kubernetes import admission
from paddock.kubernetes.catalog import dialect, every_dialect
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Severity, format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.extendedsources import BIND_NOW

DIALECTS = (catalog.HUB, *catalog.DIALECTS)
# Dialects whose disks are copies of a DataSource.
_OF_DATA_SOURCES = frozenset(each.name for each in every_dialect() if each.copies_data_sources)
# Dialects whose machines are KubeVirt's: they share directories.
_OF_FILESYSTEMS = tuple(each.name for each in every_dialect() if each.name == catalog.HUB or each.extends_kubevirt)
# Kinds that every later run of the same image or dialect uses, too. They stay when a machine goes.
_SHARED = ("DataVolume", "DataSource", "Provider", "VMNetworkAttachment", "Secret")
_MACHINES = ("VirtualMachine", "Machine")
_ROOT, _SEED = "root", "cloudinit"
_GRACE_SECONDS = 30


class BadWish(Terminal):
    """A value that no machine can have."""


class HostPort(msgspec.Struct, frozen=True):
    """A port of this host that leads to one of the guest."""

    host: int
    guest: int
    protocol: str = "TCP"


class NewMachine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine to make. `address` is the image's, with its scheme; amounts are Kubernetes' quantities."""

    name: str
    namespace: str
    dialect: str
    image: ImageWord
    address: str
    cpus: int = 1
    memory: str = "1Gi"
    disk: str = "10Gi"
    user_data: str = ""
    ports: tuple[HostPort, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    labels: Mapping[str, str] = {}
    # a NetworkAttachmentDefinition; empty: the pod network
    network: str = ""
    start: bool = True
    # CDI's DataSources lead to claims, so on a cluster a claim of this size takes the image first. Empty: they lead to addresses.
    image_claim: str = ""


class MachineManifests(msgspec.Struct, frozen=True):
    """The objects of new machines, and what their dialect cannot say."""

    objects: list[Data]
    losses: list[Loss]


def port(text: str) -> HostPort:
    """Return the port of `HOST:GUEST`, `HOST:GUEST/udp` or `PORT`, which is the same on both sides. Raises `BadWish`."""
    numbers, _, protocol = text.partition("/")
    host, colon, guest = numbers.partition(":")
    words = (host, guest if colon else host)
    if protocol.upper() not in ("", "TCP", "UDP") or not all(word.isdecimal() and 0 < int(word) < 65536 for word in words):
        raise BadWish(f'"{text}" is no port', fix="write HOST:GUEST such as 8080:80, or 5353:53/udp")
    return HostPort(int(words[0]), int(words[1]), protocol.upper() or "TCP")


def manifests(wishes: Sequence[NewMachine]) -> list[Data]:
    """Return the objects of all machines in the order in which they are applied, each once. Raises `BadWish`."""
    return composed(wishes).objects


def composed(wishes: Sequence[NewMachine]) -> MachineManifests:
    """Return the same with the losses. Raises `BadWish`."""
    made: dict[tuple[str, str, str], Data] = {}
    losses: list[Loss] = []
    for wish in wishes:
        for data in _of(wish, losses):
            made.setdefault((data["apiVersion"], data["kind"], data["metadata"]["name"]), data)
    return MachineManifests(sorted(made.values(), key=lambda data: data["kind"] not in _SHARED), losses)


def is_shared(data: Data) -> bool:
    """Return whether later runs use an object, too."""
    return data["kind"] in _SHARED


def _of(wish: NewMachine, losses: list[Loss]) -> list[Data]:
    if wish.mounts and wish.dialect not in _OF_FILESYSTEMS:
        fix = f"choose the dialect {' or '.join(_OF_FILESYSTEMS)}"
        raise BadWish(f"--mount is nothing that the dialect {wish.dialect} can express", why="its machines have disks only", fix=fix)
    if wish.cpus < 1:
        # A topology of zeros is none to KubeVirt, which then gives a machine one processor.
        raise BadWish(f"{wish.cpus} processors are too few", fix="give the machine at least one")
    sources = _data_sources(wish)
    machine = _machine(wish)
    objects = [*sources, machine] if wish.dialect in _OF_DATA_SOURCES else [machine]
    checked = {each.kind: each for each in map(_checked, objects)}
    # Machines of a dialect that extends KubeVirt are KubeVirt's; only their disks come from elsewhere.
    made = [machine]
    if wish.dialect not in _OF_FILESYSTEMS:
        found = _translated(checked["VirtualMachine"], list(checked.values()), wish)
        made = [to_data(each) for each in found.value]
        losses += [each for each in found.losses if not _is_own(each)]
    for data in made:
        if wish.labels and data["kind"] in _MACHINES:
            data["metadata"]["labels"] = {**(data["metadata"].get("labels") or {}), **wish.labels}
    if wish.dialect in _OF_DATA_SOURCES:
        made = [*sources, *made]
    made = [*mounts.objects(wish.name, wish.namespace, wish.mounts), *made]
    if wish.ports:
        made.append(_service(wish))
    for data in made:
        # The server alone knows this kind.
        if data["kind"] != "PersistentVolume":
            _checked(data)
    return made


def _is_own(loss: Loss) -> bool:
    """Return whether a loss is about a name that nobody chose: that of the disk in the machine which is translated."""
    return "dataVolumeTemplates" in loss.path or (loss.path[-1:] == ("name",) and "volumes" in loss.path)


def _checked(data: Data) -> Resource:
    """Return an object as the server would admit it. Raises `BadWish` with its findings."""
    result = admission.admit(data, AdmissionSettings())
    errors = [each for each in result.findings if each.severity is Severity.ERROR]
    if errors or not isinstance(result.value, Resource):
        why = "; ".join(dict.fromkeys(f"{format_path(each.path)}: {each.message}" for each in errors))
        raise BadWish(f"cannot make {data['kind']} {data['metadata']['name']}", why=why or "the kind is unknown")
    return result.value


def _translated(machine: Resource, resources: Sequence[Resource], wish: NewMachine) -> Translated[tuple[Resource, ...]]:
    return catalog.from_kubevirt(wish.dialect)(machine, ObjectSet(resources), Rendering())


def _meta(name: str, wish: NewMachine) -> Data:
    return {"name": name, "namespace": wish.namespace}


def _source(wish: NewMachine) -> Data:
    return {"registry" if wish.address.startswith("docker://") else "http": {"url": wish.address}}


def _data_sources(wish: NewMachine) -> list[Data]:
    """A DataSource that all machines of an image share, and what it leads to."""
    made = []
    source = _source(wish)
    if wish.image_claim:
        claim = _image_claim(wish)
        made.append(claim)
        source = {"pvc": {field: claim["metadata"][field] for field in ("name", "namespace")}}
    metadata = _meta(_data_source_name(wish), wish)
    return [*made, {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": metadata, "spec": {"source": source}}]


def _data_source_name(wish: NewMachine) -> str:
    return f"run-{base_name(wish.image)}"


def _image_claim(wish: NewMachine) -> Data:
    """The claim that CDI fills with the image. One that is there already has the content and the size that its name stands for."""
    of_content = hashlib.sha256(f"{wish.address} {wish.image_claim}".encode()).hexdigest()[:8]
    metadata = {**_meta(f"{_data_source_name(wish)}-{of_content}", wish), "annotations": {BIND_NOW: "true"}}
    spec = {"source": _source(wish), "storage": {"resources": {"requests": {"storage": wish.image_claim}}}}
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": metadata, "spec": spec}


def _template(wish: NewMachine) -> Data:
    """The root disk. It grows into what the image leaves free."""
    size = {"resources": {"requests": {"storage": wish.disk}}}
    if wish.dialect in _OF_DATA_SOURCES:
        reference = {"kind": "DataSource", "name": _data_source_name(wish), "namespace": wish.namespace}
        spec: Data = {"sourceRef": reference, "storage": size}
    else:
        spec = {"source": _source(wish), "storage": size}
    return {"metadata": {"name": f"{wish.name}-{_ROOT}"}, "spec": spec}


def _machine(wish: NewMachine) -> Data:
    """The machine of KubeVirt that the other dialects are translated from."""
    names = [_ROOT, *([_SEED] if wish.user_data else [])]
    volumes: list[Data] = [{"name": _ROOT, "dataVolume": {"name": f"{wish.name}-{_ROOT}"}}]
    if wish.user_data:
        volumes.append({"name": _SEED, "cloudInitNoCloud": {"userData": wish.user_data}})
    devices: Data = {
        "disks": [{"name": name, "disk": {"bus": "virtio"}} for name in names],
        "interfaces": [{"name": "default", **({"bridge": {}} if wish.network else {"masquerade": {}})}],
    }
    network: Data = {"multus": {"networkName": wish.network}} if wish.network else {"pod": {}}
    spec: Data = {
        "domain": {"cpu": {"cores": wish.cpus}, "memory": {"guest": wish.memory}, "devices": devices},
        "networks": [{"name": "default", **network}],
        "volumes": volumes,
    }
    # What a dialect cannot say is not said: a translation would report it as a loss.
    if wish.dialect in _OF_FILESYSTEMS:
        devices["rng"] = {}
    if dialect(wish.dialect).has_grace_period:
        spec["terminationGracePeriodSeconds"] = _GRACE_SECONDS
    made: Data = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": _meta(wish.name, wish),
        "spec": {
            "runStrategy": "Halted" if not wish.start else "RerunOnFailure" if wish.dialect in _OF_DATA_SOURCES else "Always",
            "dataVolumeTemplates": [_template(wish)],
            "template": {"spec": spec},
        },
    }
    mounts.add(made, wish.mounts)
    return made


def _service(wish: NewMachine) -> Data:
    """A load balancer of this host: its address is the host's."""
    ports = [
        {"name": f"{each.protocol.lower()}-{each.host}", "port": each.host, "targetPort": each.guest, "protocol": each.protocol}
        for each in wish.ports
    ]
    spec = {"type": "LoadBalancer", "selector": {"vm.kubevirt.io/name": wish.name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(wish.name, wish), "spec": spec}
