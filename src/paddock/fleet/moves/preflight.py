"""The plan of a move from both sides: nothing is written, except by the server's own dry run."""

from collections.abc import AsyncIterator, Iterator

import orjson

from paddock.base import quantity
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, entries, holds, texts
from paddock.fleet.kinds import FRONTS, MACHINES, VM, VMI
from paddock.fleet.machines import facts, finding, waiting
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.snapshots import SNAPSHOTS
from paddock.fleet.moves import objectcalls, observed, operators, references, rights, ways
from paddock.fleet.moves.mover import MoveOptions
from paddock.fleet.moves.observed import Named, ObservedMove
from paddock.fleet.moves.plan import disks, moveplan, objects, record
from paddock.fleet.moves.plan.moveplan import MovePlan
from paddock.fleet.moves.plan.record import MoveRecord
from paddock.fleet.moves.sides import NAMESPACES, MoveSide
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import EVERYTHING, Selection, WriteOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt import disklinks
from paddock.kubevirt.kinds import missinggates
from paddock.kubevirt.kinds.gates import of_installations
from paddock.kubevirt.kinds.missinggates import MissingGates
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

_CLASSES = kind_target("storage.k8s.io", "StorageClass")
_CAPACITIES = kind_target("storage.k8s.io", "CSIStorageCapacity")
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_INSTANCETYPES = ("instancetype.kubevirt.io",)


class MovePreflight:
    """Looks at both sides before anything happens."""

    def __init__(self, source: MoveSide, target: MoveSide, options: MoveOptions) -> None:
        self._source = source
        self._target = target
        self._options = options

    async def plan(self, machine: MachineView) -> MovePlan:
        """Return the plan of one machine."""
        place = f"namespace {self._target.namespace} of {self._target.address}"
        if problem := self._unmovable(machine):
            return MovePlan(title=str(machine), place=place, obstacles=[problem])
        now = await observed.observe(self._source, self._target, machine)
        if now.moved is not None:
            # What holds a move that has begun is decided at its steps.
            return MovePlan(title=str(machine), place=place, resumes=True)
        spec = observed.spec_of(machine)
        obstacles = [*now.survey.obstacles, *now.problems, *now.references.obstacles, *self._state(machine, spec)]
        shared = await observed.shared_claims(self._source, machine)
        obstacles += [f"disk {name} is shared with {other}, which would lose or change it" for name, other in shared.items()]
        obstacles += [each async for each in self._cannot_export(now)]
        obstacles += [each async for each in self._lacks(now)]
        notes = [*now.survey.notes, *[each async for each in self._differs(now, spec)]]
        hindrances = [await operators.missing(self._target, machine.kind)]
        if now.survey.disks:
            hindrances.append(await rights.shut_exports(self._source))
        for each in hindrances:
            (obstacles if each.is_certain else notes).extend([each.text] * bool(each.text))
        return MovePlan(
            title=str(machine),
            place=place,
            disks=now.survey.disks,
            references=[references.name_of(each) for each in now.references.missing],
            obstacles=obstacles,
            notes=notes,
            runs=observed.wants_start(machine),
        )

    def _unmovable(self, machine: MachineView) -> str:
        if self._source.uid == self._target.uid:
            return "both servers are the same one; `paddock clone` copies a machine on its server"
        if machine.kind.adapter.no_move:
            return machine.kind.adapter.no_move
        if owner := next((each for each in entries(machine.data, "metadata", "ownerReferences") if each.get("controller")), None):
            return f"it belongs to {texts(owner, 'kind')} {texts(owner, 'name')}, which would make it anew"
        if machine.kind is VM and (maker := objects.maker(machine.data)):
            return f"{maker}, and would start it again at the source"
        if machine.kind is VMI or machine.vm is None:
            return "it has no VirtualMachine here, so it has no disks to carry"
        return ""

    def _state(self, machine: MachineView, spec: Data) -> Iterator[str]:
        if waiting.is_suspended(machine):
            yield "it is suspended, and its memory does not move; `paddock resume` and try again"
        if facts.is_protected(machine.data) and self._options.replace:
            yield "it is protected from deletion; `paddock unprotect` first"
        if not self._options.drop_state:
            for each in disks.persistent_state(spec):
                yield f"{each} does not move; --drop-state lets the guest begin with a fresh one"
        if record.fence_of(machine.data) is not None:
            yield f"it has a fence but no record of a move; only the person or program that set {record.FENCE} may remove it"

    async def _cannot_export(self, now: ObservedMove) -> AsyncIterator[str]:
        """Yield what keeps the machine and its disks at the source."""
        for each in await rights.refused(self._source, rights.of_machine(now.machine)):
            yield f"{each} at the source"
        if not now.survey.disks:
            return
        try:
            await self._source.client.list(observed.EXPORTS, Selection(namespace=self._source.namespace))
        except NotFound:
            yield "the source has no exports of disks, which KubeVirt brings (VirtualMachineExport)"
            return
        except Forbidden:
            pass
        for each in await rights.refused(self._source, rights.EXPORTS):
            yield f"{each} at the source"

    # --- the target's lacks -----------------------------------------------------------------------------------------------

    async def _lacks(self, now: ObservedMove) -> AsyncIterator[str]:
        """Yield what keeps the target from taking the machine."""
        client, namespace = self._target.client, self._target.namespace
        if await client.find(NAMESPACES, Key("", namespace)) is None:
            yield f"the target has no namespace {namespace}; make it, or name another with --to-namespace"
            return
        for each in await self._taken(now):
            yield each
        replaced = await self._replaced(now.machine)
        for name in dict.fromkeys(each for each in now.foreign_disks() if each not in replaced):
            yield f"the target has a disk {name} already; delete or rename it"
        if now.survey.disks:
            try:
                await ways.try_uploads(self._target)
            except (disklinks.NoUploads, ways.NoWay, NotFound) as error:
                yield f"the target takes no uploads of disks: {error}"
            for each in await rights.refused(self._target, rights.UPLOADS):
                yield f"{each} at the target"
            for each in await self._room(now):
                yield each
        for each in await rights.refused(self._target, rights.of_machine(now.machine)):
            yield f"{each} at the target"
        for data in now.references.missing:
            if refusal := await references.refusal(self._target, data):
                yield refusal
        if problem := await self._missing_gates(now) or await self._dry_run(now):
            yield problem

    async def _taken(self, now: ObservedMove) -> list[str]:
        """Return the machines that have the name at the target."""
        found = []
        for kind in MACHINES if not now.machine.kind.front else (*FRONTS, VM):
            there = await self._target.client.find(kind.target, Key(self._target.namespace, now.machine.name))
            if there is None:
                continue
            earlier = record.read(there)
            if earlier is not None and earlier.id == record.id_of(now.machine.data):
                if not self._options.replace:
                    found.append("the target still has the source of an earlier move of this machine; --replace deletes it with its disks")
                elif await earlier_source(self._target, now.machine) is None:
                    found.append("the source of the earlier move that the target has is not fenced and at rest, so it is not replaced")
                return found
            found.append(f"the target has {kind.word}/{now.machine.name} already; rename or delete one of them")
        return found[:1]

    async def _replaced(self, machine: MachineView) -> set[str]:
        """Return the disks of the earlier source that goes first."""
        earlier = await earlier_source(self._target, machine) if self._options.replace else None
        if earlier is None:
            return set()
        shared = await observed.shared_claims(self._target, earlier)
        return {each.name for each in (await observed.surveyed(self._target, earlier)).disks} - set(shared)

    async def _room(self, now: ObservedMove) -> list[str]:
        """Return what is wrong with the storage of the target: no class, or no room in it as far as its driver tells."""
        classes = await observed.named(self._target.client, _CLASSES, "")
        wanted = self._options.storage_class
        if wanted and wanted not in classes:
            return [f"the target has no storage class {wanted}; it has {', '.join(sorted(classes)) or 'none'}"]
        usual = _usual(classes)
        if not wanted and not usual:
            return [
                f"the target has no default storage class; name one with --storage-class: {', '.join(sorted(classes)) or 'it has none'}"
            ]
        size = sum(each.size for each in now.survey.disks)
        try:
            capacities = (await self._target.client.list(_CAPACITIES, EVERYTHING)).items
        except (NotFound, Forbidden):
            return []
        found = [
            quantity.whole(each["capacity"])
            for each in capacities
            if texts(each, "storageClassName") == (wanted or usual) and each.get("capacity")
        ]
        if found and max(found) < size:
            free, needed = quantity.readable(max(found)), quantity.readable(size)
            return [f"the storage class {wanted or usual} of the target has {free} free, and the disks need {needed}"]
        return []

    async def _missing_gates(self, now: ObservedMove) -> str:
        """Return the feature gates that the machine needs and the target has off, as far as it shows them."""
        try:
            gates = of_installations(orjson.loads(each) for each in (await self._target.client.list_raw(rights.INSTALLATIONS)).items)
            if gates is not None and now.machine.vm is not None:
                missinggates.check(from_data(now.machine.vm, VirtualMachine), gates)
        except (NotFound, Forbidden):
            return ""
        except MissingGates as missing:
            return f"the target would refuse it: {missing}"
        return ""

    async def _dry_run(self, now: ObservedMove) -> str:
        """Return the words with which the target would refuse the machine. What it refers to may not be there yet."""
        lacking = {texts(each, "apiVersion").partition("/")[0] for each in now.references.missing}
        if lacking.intersection(_INSTANCETYPES) or (self._options.replace and await self._has_earlier(now)):
            return ""
        target = now.machine.kind.target
        if not await objectcalls.serves(self._target.client, target):
            dialect = now.machine.kind.dialect
            fix = f"paddock crds --dialect {dialect}, and paddock operator" if now.machine.kind.front else "install KubeVirt"
            return f"the target does not serve {target.qualified}: {fix}"
        moved = MoveRecord(id="preflight", target="", address="", namespace=self._target.namespace, power={})
        made = objects.machine(now.machine.data, (target.group, target.kind), moved)
        try:
            await self._target.client.create(target, made, self._target.namespace, WriteOptions(dry_run=True))
        except PaddockError as error:
            return "" if "already exists" in str(error) else f"the target refuses it: {error}"
        return ""

    async def _has_earlier(self, now: ObservedMove) -> bool:
        place = Key(self._target.namespace, now.machine.name)
        return await self._target.client.find(now.machine.kind.target, place) is not None

    # --- differences ------------------------------------------------------------------------------------------------------

    async def _differs(self, now: ObservedMove, spec: Data) -> AsyncIterator[str]:
        """Yield what will not be the same at the target."""
        machine = now.machine
        for each in moveplan.addresses((machine.kind.group, machine.kind.kind), machine.data, spec, machine.vmi):
            yield each
        for service in now.carried:
            if service.get("kind") == "Service" and (found := moveplan.service_addresses(service)):
                yield f"{references.name_of(service)}: {found} stays; the target gives others"
        if machine.kind.front:
            yield "the firmware's UUID is a new one, because the target's controller makes the VirtualMachine anew"
        if machine.vmi is not None and not holds(machine.vmi, "AgentConnected") and waiting.is_running(machine):
            yield "the guest has no agent, so nobody sees whether its services are up again"
        snapshots = await self._snapshots(machine)
        if snapshots:
            memories = sum(1 for each in snapshots if "Memory" in (at(each, "status", "indications") or ()))
            with_memory = f" ({memories} with the memory of the guest)" if memories else ""
            yield f"{len(snapshots)} snapshots stay at the source, and go with it{with_memory}"
        plugged = {texts(each, "name") for each in entries(machine.vmi, "spec", "volumes")} - {
            texts(each, "name") for each in entries(spec, "volumes")
        }
        for name in sorted(plugged):
            yield f"volume {name} is plugged into this run only, and stays"
        usual = self._options.storage_class or _usual(await observed.named(self._target.client, _CLASSES, ""))
        if others := [each for each in self._classes(now) if each != usual]:
            yield f"the disks lie in the storage class {usual or '(none)'}; at the source, in {', '.join(others)}"

    def _classes(self, now: ObservedMove) -> list[str]:
        return sorted({texts(each.claim, "spec", "storageClassName") for each in now.survey.disks} - {""})

    async def _snapshots(self, machine: MachineView) -> list[Data]:
        assert machine.vm_key is not None
        try:
            found = await observed.named(self._source.client, SNAPSHOTS, machine.vm_key.namespace)
        except Forbidden:
            return []
        return [each for each in found.values() if texts(each, "spec", "source", "name") == machine.vm_key.name]


def _usual(classes: Named) -> str:
    """Return the default storage class among some; empty if there is none."""
    return next((name for name, each in classes.items() if at(each, "metadata", "annotations", _DEFAULT) == "true"), "")


async def earlier_source(target: MoveSide, machine: MachineView) -> MachineView | None:
    """Return the fenced source of an earlier move of this machine that the target still has."""
    found = await target.client.find(machine.kind.target, Key(target.namespace, machine.name))
    earlier = record.read(found) if found is not None else None
    if found is None or earlier is None or earlier.id != record.id_of(machine.data):
        return None
    there = await finding.find(target.client, str(machine), target.namespace)
    if there.vmi is not None or not observed.is_at_rest(there) or record.fence_of(there.data) is None:
        return None
    return there
