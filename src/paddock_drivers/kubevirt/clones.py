"""Cloning machines: a VirtualMachineClone copies disks by a snapshot, and the copy is made a machine of its own."""

import asyncio
import json

import msgspec

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ImagePayload, PlacementPayload
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.meta.objects import ObjectMeta, Resource, owned_by
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubevirt.kinds.clone import CloneSpec, CloneTargetReference, TemplateFilters, VirtualMachineClone
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import refusals
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.kit.customization import read as read_customization
from paddock_drivers.kit.progress import failed
from paddock_drivers.kubevirt import customization, differences, documents, marks, progress, targets
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of, is_owned
from paddock_drivers.kubevirt.identifiers import ObjectId, TaskGoal, TaskId

CLONED_FROM = "virtrigaud.io/cloned-from-id"
# The VirtualMachine of the manager that a clone is made for: two of one name in two namespaces do not get the same machine.
CLONED_FOR = "virtrigaud.io/cloned-for"
_CLONE = "clone"
_LONGEST_NAME = 63
_NOT_COPIED = [f"!{name}" for name in marks.OF_MACHINES]


class MachineCloning:
    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine. A call that is repeated goes on with the clone that it began."""
        if request.linked:
            raise refusals.not_supported("a linked clone cannot be made", why="KubeVirt copies disks", fix="make a full clone")
        source = await self._source(request)
        if source is None:
            return await self._without_source(request)
        given = _customization(request)
        name = request.target_name
        if not names.is_label(name) or len(name) > _LONGEST_NAME:
            raise refusals.invalid(f'a machine cannot be called "{name}"', fix="use lower-case letters, digits and '-'")
        target = await self._cluster.find(targets.MACHINES, name)
        wish = await self._cluster.find(targets.CLONES, _clone_name(name))
        whose = _named(request.target_vm)
        if target is not None and not _is_clone_of(target, wish, str(id_of(source)), whose):
            raise refusals.conflict(f"machine {name} exists and is no clone of {source.metadata.name}", fix="choose another name")
        if target is None:
            wanted = _wish(source, name, self._cluster.namespace, whose)
            if given.snapshot:
                wanted = _of_snapshot(wanted, await self._snapshot(source, given.snapshot))
            wish = await self._cluster.ensure(targets.CLONES, wanted)
            if not _is_for(wish, whose):
                raise refusals.conflict(
                    f"a clone {name} of {source.metadata.name} is being made for another owner", fix="choose another name"
                )
            target = await self._appeared(wish, name)
        if CLONED_FROM not in (target.metadata.annotations or {}):
            await self._finish(source, target, msgspec.structs.replace(given, whose=whose))
        task = TaskId(TaskGoal.CLONED, id_of(target), wish.metadata.uid or "" if wish is not None else "")
        return m.CloneResponse(target_vm_id=str(id_of(target)), task=m.TaskRef(id=str(task)))

    async def _source(self, request: m.CloneRequest) -> VirtualMachine | None:
        try:
            return await self._cluster.machine(request.source_vm_id)
        except ProviderError as error:
            if error.kind != ErrorKind.NOT_FOUND:
                raise
            return None

    async def _without_source(self, request: m.CloneRequest) -> m.CloneResponse:
        """Answer with the clone that an earlier call made of a source that is gone, so that its caller can remove it."""
        target = await self._cluster.find(targets.MACHINES, request.target_name)
        wish = await self._cluster.find(targets.CLONES, _clone_name(request.target_name))
        whose = _named(request.target_vm)
        if target is not None and _is_clone_of(target, wish, request.source_vm_id, whose):
            return m.CloneResponse(target_vm_id=str(id_of(target)))
        begun = wish is not None and (wish.metadata.annotations or {}).get(CLONED_FROM) == request.source_vm_id and _is_for(wish, whose)
        if target is None and begun and wish is not None and not progress.cloned(wish).error:
            raise refusals.retry_later(f"the clone {request.target_name} is being made")
        raise refusals.not_found(f"there is no machine {request.source_vm_id} to clone")

    async def _snapshot(self, source: VirtualMachine, id: str) -> VirtualMachineSnapshot:
        found = await self._cluster.find_id(targets.SNAPSHOTS, ObjectId.parse(id))
        if found is None or found.spec.source.name != source.metadata.name:
            raise refusals.not_found(f"machine {source.metadata.name} has no snapshot {id}")
        return found

    async def _appeared(self, wish: VirtualMachineClone, name: str) -> VirtualMachine:
        """The clone, as soon as it is there. Its id is not known before."""
        settings = self._cluster.settings
        ends = asyncio.get_running_loop().time() + settings.clone_seconds
        while asyncio.get_running_loop().time() < ends:
            found = await self._cluster.find(targets.MACHINES, name)
            if found is not None:
                return found
            now = await self._cluster.find(targets.CLONES, wish.metadata.name)
            judged = progress.cloned(now) if now is not None else failed("the VirtualMachineClone is gone")
            if judged.error:
                if now is not None:
                    await self._cluster.delete(targets.CLONES, id_of(now))
                raise ProviderError(ErrorKind.INTERNAL, judged.error)
            await asyncio.sleep(settings.poll_seconds)
        what = f"machine {name} is not there after {settings.clone_seconds:g} s"
        raise ProviderError(ErrorKind.TIMEOUT, what, fix="call again: the clone goes on", retry_after=settings.poll_seconds)

    async def _finish(self, source: VirtualMachine, target: VirtualMachine, clone_customization: CloneCustomization) -> None:
        """Make the copy a machine of its own: off, with Secrets of its own, and as it is asked for. Each step may be repeated."""
        raw = await self._cluster.raw(targets.MACHINES, target.metadata.name)
        copies = await self._copies(source, target, raw)
        own = customization.user_data_secret(target.metadata.name, self._cluster.namespace, clone_customization.user_data)
        if own is not None:
            metadata = msgspec.structs.replace(own.metadata, ownerReferences=owned_by(target))
            await self._cluster.ensure(targets.SECRETS, msgspec.structs.replace(own, metadata=metadata))
        for _ in range(2):
            # Its other makers write it in these moments, too.
            try:
                await self._cluster.retried(lambda: self._write(source, target, clone_customization, copies))
            except Conflict:
                await asyncio.sleep(self._cluster.settings.poll_seconds)
            else:
                return
        raise refusals.retry_later(f"machine {target.metadata.name} is being written by others")

    async def _write(
        self, source: VirtualMachine, target: VirtualMachine, clone_customization: CloneCustomization, copies: dict[str, str]
    ) -> None:
        machine = await self._cluster.machine(str(id_of(target)))
        raw = await self._cluster.raw(targets.MACHINES, machine.metadata.name)
        spec = customization.customized(raw, clone_customization, copies, self._cluster.settings)
        limitations = clone_customization.limitations
        if clone_customization.hardware is not None:
            described = MachineDescription(name=machine.metadata.name, hardware=clone_customization.hardware, image=ImagePayload())
            boot = BootDisk(kind=BootKind.CLAIM, name="kept", kept=True)
            made = documents.build(described, boot, self._cluster.settings)
            limitations = (*limitations, *made.limitations)
            spec = _merged(spec, differences.spec_changes(raw, made.machine))
        notes = {CLONED_FROM: str(id_of(source)), **_for(clone_customization.whose), marks.LIMITATIONS: json.dumps(limitations)}
        await self._cluster.merge(targets.MACHINES, machine, {"metadata": {"annotations": notes}, "spec": spec})

    async def _copies(self, source: VirtualMachine, target: VirtualMachine, raw: Data) -> dict[str, str]:
        """Copy the Secrets that go with the source; the clone must not lose them with it."""
        copies = {}
        for name in customization.secret_names(raw):
            secret = await self._cluster.find(targets.SECRETS, name)
            if secret is None or not is_owned(secret, source):
                continue
            copies[name] = customization.copy_name(name, source.metadata.name, target.metadata.name)
            metadata = ObjectMeta(name=copies[name], namespace=self._cluster.namespace, ownerReferences=owned_by(target))
            wanted = msgspec.structs.replace(secret, metadata=metadata)
            there = await self._cluster.ensure(targets.SECRETS, wanted)
            if not is_owned(there, target):
                raise refusals.conflict(f"Secret {copies[name]} exists and does not belong to machine {target.metadata.name}")
        return copies


def _wish(source: VirtualMachine, name: str, namespace: str, whose: str) -> VirtualMachineClone:
    """The VirtualMachineClone. The copy is off, and has nobody's marks."""
    off = {"op": "add", "path": "/spec/running", "value": False} if source.spec.running is not None else None
    halted = off or {"op": "add", "path": "/spec/runStrategy", "value": "Halted"}
    return VirtualMachineClone(
        apiVersion=targets.CLONES.api_version,
        kind=targets.CLONES.kind,
        metadata=ObjectMeta(
            name=_clone_name(name),
            namespace=namespace,
            labels={marks.PURPOSE: _CLONE},
            annotations={CLONED_FROM: str(id_of(source)), **_for(whose)},
        ),
        spec=CloneSpec(
            source=_machine(source.metadata.name),
            target=CloneTargetReference(apiGroup="kubevirt.io", kind=targets.MACHINES.kind, name=name),
            labelFilters=["*", *_NOT_COPIED],
            annotationFilters=["*", *_NOT_COPIED, f"!{CLONED_FROM}", f"!{CLONED_FOR}"],
            template=TemplateFilters(labelFilters=["*"], annotationFilters=["*"]),
            patches=[json.dumps(halted)],
        ),
    )


def _of_snapshot(clone: VirtualMachineClone, snapshot: VirtualMachineSnapshot) -> VirtualMachineClone:
    source = TypedLocalReference(apiGroup=targets.SNAPSHOTS.group, kind=targets.SNAPSHOTS.kind, name=snapshot.metadata.name)
    return msgspec.structs.replace(clone, spec=msgspec.structs.replace(clone.spec, source=source))


def _machine(name: str) -> TypedLocalReference:
    return TypedLocalReference(apiGroup="kubevirt.io", kind=targets.MACHINES.kind, name=name)


def _clone_name(target: str) -> str:
    return f"{target}-clone"


def _is_clone_of(target: VirtualMachine, wish: VirtualMachineClone | None, mine: str, whose: str) -> bool:
    """Return whether a machine is what an earlier call of this clone made from a source."""
    if (target.metadata.annotations or {}).get(CLONED_FROM) == mine:
        return _is_for(target, whose)
    return wish is not None and (wish.metadata.annotations or {}).get(CLONED_FROM) == mine and _is_for(wish, whose)


def _named(owner: m.ObjectIdentity | None) -> str:
    return f"{owner.namespace}/{owner.name}" if owner is not None else ""


def _for(whose: str) -> dict[str, str]:
    return {CLONED_FOR: whose} if whose else {}


def _is_for(resource: Resource, whose: str) -> bool:
    return (resource.metadata.annotations or {}).get(CLONED_FOR, "") == whose


def _merged(left: Data, right: Data) -> Data:
    """Two merge patches as one; the right one counts where both say something."""
    found = dict(left)
    for name, value in right.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = _merged(found[name], value) if both else value
    return found


def _customization(request: m.CloneRequest) -> CloneCustomization:
    given = read_customization(request.class_json, request.customize_json)
    if payloads.decode(request.placement_json, PlacementPayload) == PlacementPayload():
        return given
    placed = "placement: KubeVirt puts a clone's disks where those of its source are"
    return msgspec.structs.replace(given, limitations=(*given.limitations, placed))
