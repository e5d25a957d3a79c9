"""Both sides of a move as they are now."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.machines import finding, waiting, writing
from paddock.fleet.machines.claims import CLAIMS, DATA_VOLUMES
from paddock.fleet.machines.finding import MachineNotFound, MachineView
from paddock.fleet.moves import references
from paddock.fleet.moves.plan import disks, record
from paddock.fleet.moves.plan.disks import VolumeSurvey
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.plan.steps import CarryState, SourceState, TargetState
from paddock.fleet.moves.references import ReferenceSurvey
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target

EXPORTS = kind_target("export.kubevirt.io", "VirtualMachineExport", "v1beta1")
_STARTS = ("Always", "Once", "RerunOnFailure")
Named = Mapping[str, Data]


class ObservedMove(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a move."""

    machine: MachineView
    moved: MoveRecord | None
    survey: VolumeSurvey
    carried: tuple[Data, ...]
    problems: tuple[str, ...]
    references: ReferenceSurvey
    # the machine at the target that this move made
    there: MachineView | None
    volumes: Named
    claims: Named
    leftovers: tuple[tuple[Target[Data], Data], ...]

    @property
    def source(self) -> SourceState:
        """The state of the source, for the table."""
        moved, machine = self.moved, self.machine
        return SourceState(
            has_record=moved is not None,
            fenced=record.fence_of(machine.data) is not None,
            wants_to_run=not is_at_rest(machine),
            live=machine.vmi is not None,
            ran=moved is not None and moved.ran,
            undo=moved is not None and moved.undo,
            confirmed=moved is not None and bool(moved.confirmed),
        )

    @property
    def target(self) -> TargetState:
        """The state of the target, for the table."""
        there = self.there
        return TargetState(
            exists=there is not None,
            fenced=there is not None and record.fence_of(there.data) is not None,
            live=there is not None and there.vmi is not None,
            running=waiting.is_running(there),
            missing_references=bool(self.references.missing),
            disks={each.name: self._disk(each.name) for each in self.survey.disks},
            leftovers=bool(self.leftovers),
        )

    def _disk(self, name: str) -> CarryState:
        volume = self.volumes.get(name)
        if volume is None:
            return CarryState.PARTIAL if self._is_ours(self.claims.get(name)) else CarryState.MISSING
        complete = texts(volume, "status", "phase") == "Succeeded" and at(volume, "metadata", "annotations", record.CHECKSUM)
        return CarryState.COMPLETE if complete and self._is_ours(volume) else CarryState.PARTIAL

    def _is_ours(self, data: Data | None) -> bool:
        return data is not None and self.moved is not None and record.id_of(data) == self.moved.id

    def foreign_disks(self) -> list[str]:
        """Return the names of disks that the target has from somebody else."""
        wanted = {each.name for each in self.survey.disks}
        return sorted(name for name in wanted for found in (self.volumes, self.claims) if name in found and not self._is_ours(found[name]))


def is_at_rest(machine: MachineView) -> bool:
    """Return True if neither the object of the user nor what was made of it wants to run. A fence on one alone is not enough."""
    kind = machine.kind.adapter.power_words
    halted = kind.halted(machine.data)
    if _differs(halted, machine.data) or (machine.vm is not None and _vm_wants(machine.vm)):
        return False
    fenced = record.fence_of(machine.data) is not None
    return not fenced or machine.vm is None or record.fence_of(machine.vm) is not None


def _vm_wants(vm: Data) -> bool:
    running = at(vm, "spec", "running")
    return bool(running) if running is not None else texts(vm, "spec", "runStrategy") in _STARTS


def _differs(patch: Any, data: Any) -> bool:
    """Return True if a merge patch would change the data."""
    if not isinstance(patch, dict):
        return bool(patch != data)
    return any(_differs(value, data.get(name) if isinstance(data, dict) else None) for name, value in patch.items())


def spec_of(machine: MachineView) -> Data:
    """Return the spec of the guest as it starts the next time."""
    found = at(machine.vm, "spec", "template", "spec")
    return found if isinstance(found, dict) else {}


def wants_start(machine: MachineView) -> bool:
    """Return True if the target should start the machine: it runs, or it is about to."""
    return waiting.is_live(machine) or (machine.vm is not None and _vm_wants(machine.vm) and _is_always(machine))


def _is_always(machine: MachineView) -> bool:
    return at(machine.vm, "spec", "running") is True or (
        texts(machine.vm, "spec", "runStrategy") == "Always" and writing.wants_to_run(machine)
    )


async def observe(source: MoveSide, target: MoveSide, machine: MachineView) -> ObservedMove:
    machine = await finding.find(source.client, str(machine), machine.namespace)
    moved = record.read(machine.data)
    claims, (carried, problems), volumes_there, claims_there = await asyncio.gather(
        named(source.client, CLAIMS, machine.namespace),
        references.gather(source, machine),
        named(target.client, DATA_VOLUMES, target.namespace),
        named(target.client, CLAIMS, target.namespace),
    )
    return ObservedMove(
        machine=machine,
        moved=moved,
        survey=disks.survey(spec_of(machine), claims),
        carried=tuple(carried),
        problems=tuple(problems),
        references=await references.compare(target, machine, carried, moved.id if moved is not None else ""),
        there=await _there(target, machine, moved),
        volumes=volumes_there,
        claims=claims_there,
        leftovers=tuple(await _leftovers(target, moved)) if moved is not None and moved.undo else (),
    )


async def surveyed(side: MoveSide, machine: MachineView) -> VolumeSurvey:
    """Return the sorted volumes of a machine."""
    return disks.survey(spec_of(machine), await named(side.client, CLAIMS, machine.namespace))


async def shared_claims(side: MoveSide, machine: MachineView) -> dict[str, str]:
    """Return the claims that other machines use as well, with one of those machines."""
    found: dict[str, str] = {}
    for each in await finding.every(side.client, machine.namespace):
        if texts(each.data, "metadata", "uid") != texts(machine.data, "metadata", "uid"):
            volumes = (*entries(each.vm, "spec", "template", "spec", "volumes"), *entries(each.vmi, "spec", "volumes"))
            found |= {disks.claim_name(volume): str(each) for volume in volumes}
    return {disk.name: found[disk.name] for disk in (await surveyed(side, machine)).disks if disk.name in found}


async def named(client: Client, target: Target[Data], namespace: str, labels: str = "") -> dict[str, Data]:
    """Return the objects of a namespace by name; none if the server does not have the kind."""
    try:
        found = (await client.list(target, Selection(namespace=namespace, labels=labels))).items
    except NotFound:
        return {}
    return {each["metadata"]["name"]: each for each in found}


async def _there(target: MoveSide, machine: MachineView, moved: MoveRecord | None) -> MachineView | None:
    """Return the machine at the target, if this move made it."""
    if moved is None:
        return None
    try:
        found = await target.client.get(machine.kind.target, Key(target.namespace, machine.name))
        if record.id_of(found) != moved.id:
            return None
        return await finding.find(target.client, str(machine), target.namespace)
    except (NotFound, MachineNotFound):
        return None


async def _visible(target: MoveSide, kind: Target[Data], labels: str) -> dict[str, Data]:
    """Return the objects of a kind; none if the user may not see them, because then this user made none."""
    try:
        return await named(target.client, kind, target.namespace if kind.namespaced else "", labels)
    except Forbidden:
        return {}


async def _leftovers(target: MoveSide, moved: MoveRecord) -> list[tuple[Target[Data], Data]]:
    """Return what a move has made at the target besides the machine; objects that another machine uses stay."""
    labels = f"{record.ID}={moved.id}"
    kinds = (DATA_VOLUMES, CLAIMS, *references.CARRIED.values())
    lists = await asyncio.gather(*(_visible(target, kind, labels) for kind in kinds))
    used = {name for each in await finding.every(target.client, target.namespace) for name in references.used_names(each)}
    return [
        (kind, each)
        for kind, found in zip(kinds, lists, strict=True)
        for each in found.values()
        if (kind.kind, each["metadata"]["name"]) not in used
    ]
