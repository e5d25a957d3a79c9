"""The objects that a machine refers to, at both sides: those that the target has, lacks, or has with another content."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.kinds import named_target
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.trees import services_of
from paddock.fleet.moves.plan import objects, record
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection, WriteOptions
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.references import CLAIM, DATA_VOLUME, FieldReference, references

_TYPES = "instancetype.kubevirt.io"
# The kinds that a move makes at the target. A reference to any other kind has to be there.
CARRIED: Mapping[KindId, Target[Data]] = {
    ("", "Secret"): kind_target("", "Secret"),
    ("", "ConfigMap"): kind_target("", "ConfigMap"),
    ("", "Service"): kind_target("", "Service"),
    ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): kind_target("k8s.cni.cncf.io", "NetworkAttachmentDefinition"),
    (_TYPES, "VirtualMachineInstancetype"): kind_target(_TYPES, "VirtualMachineInstancetype"),
    (_TYPES, "VirtualMachineClusterInstancetype"): kind_target(_TYPES, "VirtualMachineClusterInstancetype"),
    (_TYPES, "VirtualMachinePreference"): kind_target(_TYPES, "VirtualMachinePreference"),
    (_TYPES, "VirtualMachineClusterPreference"): kind_target(_TYPES, "VirtualMachineClusterPreference"),
    **{(each.group, each.kind): named_target(each) for adapter in adapters.every() for each in adapter.carried},
}
# Only looked for: what they lead to is a disk already, but the machine's controller wants to see them.
_EXPECTED: Mapping[KindId, Target[Data]] = {
    ("cdi.kubevirt.io", "DataSource"): kind_target("cdi.kubevirt.io", "DataSource"),
}
_OF_TEMPLATES = "dataVolumeTemplates"


class ReferenceSurvey(msgspec.Struct, frozen=True):
    """The references of a machine. `missing` are objects of the source that the target lacks; `obstacles` are for people."""

    missing: tuple[Data, ...] = ()
    obstacles: tuple[str, ...] = ()


async def gather(source: MoveSide, machine: MachineView) -> tuple[list[Data], list[str]]:
    """Return the objects of the source that move with a machine, and the problems with others."""
    found: dict[tuple[str, str, str], Data] = {}
    problems: list[str] = []
    for reference in _references(machine):
        data = await _first(source.client, reference, machine.namespace)
        if reference.namespace not in (None, machine.namespace) and data is not None and texts(data, "metadata", "namespace"):
            problems.append(f"{name_of(data)} is in namespace {reference.namespace}; copy it to the target by hand")
        elif data is not None:
            found[texts(data, "apiVersion"), texts(data, "kind"), texts(data, "metadata", "name")] = data
    for service in await _services(source, machine):
        found["v1", "Service", texts(service, "metadata", "name")] = service
    return list(found.values()), problems


async def compare(target: MoveSide, machine: MachineView, carried: Sequence[Data], id: str) -> ReferenceSurvey:
    """Compare the references of a machine with what the target has. What the move of this id has made is as it should be."""
    missing, obstacles = [], list[str]()
    for data in carried:
        there = await target.client.find(target_of(data), _key(data, target.namespace))
        if there is None:
            missing.append(data)
        elif (not id or record.id_of(there) != id) and objects.content(there) != objects.content(data):
            obstacles.append(f"{name_of(data)} exists there with another content; rename one of them, or make them the same")
    for reference in _references(machine):
        wanted = [_EXPECTED[kind] for kind in reference.to if kind in _EXPECTED]
        place = target.namespace if reference.namespace in (None, machine.namespace) else reference.namespace
        if wanted and machine.kind.front and await target.client.find(wanted[0], Key(place or "", reference.name)) is None:
            obstacles.append(f"{wanted[0].kind} {place}/{reference.name} does not exist there; make it first")
    return ReferenceSurvey(tuple(missing), tuple(obstacles))


async def refusal(target: MoveSide, data: Data) -> str:
    """Return why the target would not take an object of the source; empty if it would. Nothing is written."""
    kind, made = (
        target_of(data),
        objects.reference(data, MoveRecord(id="preflight", target="", address="", namespace=target.namespace, power={})),
    )
    try:
        await target.client.create(kind, made, target.namespace if kind.namespaced else "", WriteOptions(dry_run=True))
    except NotFound:
        return f"the target does not serve {kind.qualified}, and the machine refers to {name_of(data)}"
    except PaddockError as error:
        return f"the target refuses {name_of(data)}: {error}"
    return ""


def target_of(data: Data) -> Target[Data]:
    """Return the kind of an object that moves with a machine."""
    return CARRIED[texts(data, "apiVersion").rpartition("/")[0], texts(data, "kind")]


def name_of(data: Data) -> str:
    """Return an object for people."""
    return f"{texts(data, 'kind')} {texts(data, 'metadata', 'name')}"


def used_names(machine: MachineView) -> set[tuple[str, str]]:
    """Return kind and name of everything that a machine refers to."""
    return {(kind[1], each.name) for each in _references(machine) for kind in each.to}


def _references(machine: MachineView) -> Iterator[FieldReference]:
    for each in references(machine.kind.group, machine.kind.kind, machine.data):
        # Disks move as disks, and templates name what their disks were made of once.
        if not set(each.to) & {CLAIM, DATA_VOLUME} and _OF_TEMPLATES not in each.path:
            yield each


def _key(data: Data, namespace: str) -> Key:
    return Key(namespace if target_of(data).namespaced else "", texts(data, "metadata", "name"))


async def _first(client: Client, reference: FieldReference, namespace: str) -> Data | None:
    for kind in reference.to:
        if (target := CARRIED.get(kind)) is not None:
            key = Key((reference.namespace or namespace) if target.namespaced else "", reference.name)
            if (found := await client.find(target, key)) is not None:
                return found
    return None


async def _services(source: MoveSide, machine: MachineView) -> list[Data]:
    """Return the Services that select this machine and nobody owns. A front's controller makes its own anew."""
    try:
        found = (await source.client.list(CARRIED["", "Service"], Selection(namespace=machine.namespace))).items
    except Forbidden:
        return []
    return [each for each in services_of(machine, found) if not each["metadata"].get("ownerReferences")]
