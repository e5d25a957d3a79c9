"""The disks of a machine: whose they are, what becomes of them, when one is lost, and the right to copy an image to them (4.6).

A disk is a DataVolume with its claim. KubeVirt makes both from the machine's templates, and takes one that is there already for its own,
whoever made it: so names are checked first. It also makes a DataVolume again that was deleted, which for the root disk would be an empty
clone in place of the data: a root disk that goes is held until its template is out of the machine. The template has the finalizer, so that
KubeVirt makes the disk with it: CDI lets nobody write to a clone who may not copy its source, unless the clone is being deleted.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import yaml

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.dialects.stakater.plan.conditions import ApplyBlocker, creating, no
from paddock.dialects.stakater.rules import MACHINE_LABEL, MANAGED_BY
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.cdiconfig import FilesystemOverhead
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.machine import printable

# Keeps a root disk that is deleted until the machine knows.
ROOT_FINALIZER = "infrastructure.stakater.com/root-disk"
PRUNE = "infrastructure.stakater.com/prune-disks"
FILLED = "Succeeded"
RBAC_GROUP = "rbac.authorization.k8s.io"
CLONE_ROLE = "paddock-clone-source"
# What CDI and KubeVirt say, and Paddock's own server after them.
_DENIAL = "insufficient permissions in clone source namespace"


class PlannedDisk(msgspec.Struct, frozen=True):
    """A disk of the spec, and what there is of it."""

    name: str
    size: str
    volume: DataVolume | None = None
    claim: PersistentVolumeClaim | None = None

    @property
    def phase(self) -> str:
        """The phase of its content; empty before the first report."""
        status = self.volume.status if self.volume is not None else None
        return (status.phase if status is not None else None) or ""

    @property
    def seen(self) -> printable.ClaimedDisk:
        """As KubeVirt's own words are made from it."""
        status = self.volume.status if self.volume is not None else None
        claim = (self.claim.status.phase if self.claim.status is not None else None) or "Pending" if self.claim is not None else None
        conditions = tuple((status.conditions if status is not None else None) or ())
        return printable.ClaimedDisk(self.name, self.phase if self.volume is not None else None, conditions, claim, expected=True)

    @property
    def is_filled(self) -> bool:
        """True if a machine can have it."""
        return self.seen.is_filled


def wanted(machine: kubevirt.VirtualMachine) -> Iterator[tuple[str, str]]:
    """The disks that a machine is to bring along, the root disk first: names and sizes."""
    for template in _templates(machine):
        storage = template.spec.storage
        requests = (storage.resources.requests if storage is not None and storage.resources is not None else None) or {}
        if template.metadata is not None and template.metadata.name:
            yield template.metadata.name, str(requests.get("storage", "0"))


def without_root(machine: kubevirt.VirtualMachine, root: str) -> kubevirt.VirtualMachine:
    """The machine without the template of its root disk: nobody makes a new one."""
    templates = [each for each in _templates(machine) if each.metadata is None or each.metadata.name != root]
    spec = msgspec.structs.replace(machine.spec, dataVolumeTemplates=templates or None)
    return msgspec.structs.replace(machine, spec=spec)


def with_held_root(machine: kubevirt.VirtualMachine, root: str) -> kubevirt.VirtualMachine:
    """The machine whose root disk is made with the finalizer."""
    templates = [_held(each) if each.metadata is not None and each.metadata.name == root else each for each in _templates(machine)]
    spec = msgspec.structs.replace(machine.spec, dataVolumeTemplates=templates or None)
    return msgspec.structs.replace(machine, spec=spec)


def _held(template: kubevirt.DataVolumeTemplate) -> kubevirt.DataVolumeTemplate:
    metadata = msgspec.structs.replace(template.metadata or kubevirt.DataVolumeTemplateMeta(), finalizers=[ROOT_FINALIZER])
    return msgspec.structs.replace(template, metadata=metadata)


def _templates(machine: kubevirt.VirtualMachine) -> Sequence[kubevirt.DataVolumeTemplate]:
    return machine.spec.dataVolumeTemplates or ()


def is_copy(volume: DataVolume) -> bool:
    """Return whether a DataVolume copies another disk."""
    source = volume.spec.source
    return volume.spec.sourceRef is not None or (source is not None and (source.pvc is not None or source.snapshot is not None))


def has_given_up_root(machine: kubevirt.VirtualMachine | None, root: str) -> bool:
    """Return whether the existing machine lacks the template of the root disk."""
    return machine is not None and all(name != root for name, _ in wanted(machine))


def is_lost(disk: PlannedDisk) -> bool:
    """Return whether a root disk is deleted, with its data. If the claim stays, only the DataVolume was tidied up."""
    if disk.volume is not None:
        return disk.volume.metadata.deletionTimestamp is not None and _takes_claim_along(disk)
    return disk.claim is None or disk.claim.metadata.deletionTimestamp is not None


def _takes_claim_along(disk: PlannedDisk) -> bool:
    if disk.claim is None or disk.claim.metadata.deletionTimestamp is not None:
        return True
    owner = _controller(disk.claim.metadata)
    return owner is not None and disk.volume is not None and owner.uid == disk.volume.metadata.uid


def lost(root: str) -> ApplyBlocker:
    """Return the blocker of a machine whose root disk is gone."""
    text = (
        f"the DataVolume {root} was deleted, and the data of the root disk with it: a new one would be an empty copy of the image. "
        f"Restore a DataVolume or a claim of this name, or delete the generated virtual machine to begin anew"
    )
    return ApplyBlocker(no("RootDiskLost", text))


# --- whose they are ---------------------------------------------------------------------------------------------------------


def in_the_way(disks: Iterable[PlannedDisk], name: str, machine_uid: str | None) -> ApplyBlocker | None:
    """The first disk that belongs to somebody else, or to a machine of this name that is just going."""
    for disk in disks:
        metadata = disk.volume.metadata if disk.volume is not None else disk.claim.metadata if disk.claim is not None else None
        if metadata is None:
            continue
        owner = _controller(metadata)
        kind = "DataVolume" if disk.volume is not None else "PersistentVolumeClaim"
        is_labelled = (metadata.labels or {}).get(MACHINE_LABEL) == name
        if owner is None and is_labelled:
            continue
        if owner is not None and owner.kind == "VirtualMachine" and owner.apiVersion.startswith("kubevirt.io/") and owner.name == name:
            if owner.uid == machine_uid:
                continue
            if is_labelled:
                step = f"waiting until the {kind} {disk.name} of the virtual machine before is gone"
                return ApplyBlocker(creating(step), creating(step))
        if owner is not None and owner.kind == "DataVolume" and is_labelled:
            step = f"waiting until the {kind} {disk.name} of a disk before is gone"
            return ApplyBlocker(creating(step), creating(step))
        holder = f"{owner.kind} {owner.name}" if owner is not None else "nobody that says so"
        text = f"a {kind} {disk.name} exists and belongs to {holder}; rename the machine or the disk, or delete it if nobody needs it"
        return ApplyBlocker(no("NameConflict", text), creating(f"the name {disk.name} is taken"))
    return None


def _controller(metadata: ObjectMeta) -> OwnerReference | None:
    return next((each for each in metadata.ownerReferences or () if each.controller), None)


# --- growing ----------------------------------------------------------------------------------------------------------------


class Growth(msgspec.Struct, frozen=True):
    """A claim that should ask for more, so that its guest sees this size."""

    name: str
    size: str
    storage_class: str
    # in bytes, with the file system's part
    request: int

    @property
    def patch(self) -> Data:
        """The patch of the claim: the request, and the size that the guest sees."""
        guest = quantity.whole(self.size)
        request = self.size if self.request == guest else str(self.request)
        notes = claimsizes.guest_size_note(guest, self.request)
        return {**({"metadata": {"annotations": notes}} if notes else {}), "spec": {"resources": {"requests": {"storage": request}}}}


def growths(disks: Iterable[PlannedDisk], overhead: FilesystemOverhead | None) -> Iterator[Growth]:
    """The disks that are to be larger than they were made. One that is still being filled waits."""
    for disk in disks:
        claim, volume = disk.claim, disk.volume
        if claim is None or not _is_at_rest(disk) or claim.metadata.deletionTimestamp is not None:
            continue
        size = quantity.whole(disk.size)
        if volume is not None and size <= _made_with(volume):
            continue
        spec = claim.spec or PersistentVolumeClaimSpec()
        name = spec.storageClassName or ""
        asked = size
        if volume is not None and volume.spec.storage is not None and (spec.volumeMode or "Filesystem") == "Filesystem":
            asked = claimsizes.inflated(size, claimsizes.overhead_of(overhead, name))
        if asked > claimsizes.request_of(claim):
            yield Growth(disk.name, disk.size, name, asked)


def _is_at_rest(disk: PlannedDisk) -> bool:
    bound = disk.claim is not None and disk.claim.status is not None and disk.claim.status.phase == "Bound"
    return bound and (disk.volume is None or disk.phase == FILLED)


def _made_with(volume: DataVolume) -> int:
    spec = volume.spec.storage or volume.spec.pvc
    requests = (spec.resources.requests if spec is not None and spec.resources is not None else None) or {}
    return quantity.whole(requests["storage"]) if "storage" in requests else 0


# --- kept and pruned --------------------------------------------------------------------------------------------------------


def surplus(
    volumes: Iterable[DataVolume], wanted_names: Sequence[str], machine_uid: str, instance: VirtualMachineInstance | None
) -> list[str]:
    """DataVolumes that were made for disks the spec no longer has, as far as no running machine uses them."""
    used = {each.dataVolume.name for each in (instance.spec.volumes or () if instance is not None else ()) if each.dataVolume is not None}
    found = []
    for volume in volumes:
        owner = _controller(volume.metadata)
        ours = owner is not None and owner.uid == machine_uid
        name = volume.metadata.name
        if ours and volume.metadata.deletionTimestamp is None and name not in wanted_names and name not in used:
            found.append(name)
    return found


# --- the right to copy an image ---------------------------------------------------------------------------------------------


def clone_denial(texts: Iterable[str | None]) -> str:
    """The first that says that a copy is not allowed; empty when none does."""
    return next((text for text in texts if text and _DENIAL in text), "")


def clone_binding_name(namespace: str) -> str:
    """The binding for the machines of a namespace."""
    return f"{CLONE_ROLE}-{namespace}"


def clone_rights(source: str, namespace: str, product: str) -> tuple[Data, Data]:
    """A Role in the namespace of the image, and its binding to the default service account of the machine's."""
    labels = {MANAGED_BY: product}
    role: Data = {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": CLONE_ROLE, "namespace": source, "labels": labels},
        "rules": [{"apiGroups": ["cdi.kubevirt.io"], "resources": ["datavolumes/source"], "verbs": ["create"]}],
    }
    binding: Data = {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": clone_binding_name(namespace), "namespace": source, "labels": labels},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": CLONE_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    return role, binding


def clone_advice(said: str, source: str, namespace: str, product: str) -> str:
    """Return the text of the condition: the refusal, and the objects to apply."""
    documents = "---\n".join(yaml.safe_dump(each, sort_keys=False) for each in clone_rights(source, namespace, product))
    return f"{said}\nApply these two objects, or let the controller make them (paddock operator --manage-clone-rbac):\n{documents}"
