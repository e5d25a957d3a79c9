"""The instance that a machine becomes when it starts, and the copies that are kept of what it was made from (docs/spec/kubevirt.md 2.1).

Pure, on plain data: everything a user wrote goes through untouched.
"""

from collections.abc import Sequence
from uuid import UUID, uuid5

from paddock.base import ownnames
from paddock.base.jsondata import Data, copied
from paddock.kubevirt.plan.machine import instancetypes, receivers, runstrategy
from paddock.kubevirt.plan.machine.instancetypes import INSTANCETYPE, PREFERENCE, ResolvedInstancetype

GROUP_VERSION = "kubevirt.io/v1"
# The snapshot whose memory the guest goes on from.
CONTINUES = ownnames.CONTINUES.name
VM_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
FOREGROUND = "kubevirt.io/foregroundDeleteVirtualMachine"
GENERATION = "kubevirt.io/vm-generation"
CREATED_BY = "kubevirt.io/created-by"
POOL_REVISION = "kubevirt.io/vm-pool-revision-name"
# Of machines from before identities were made at creation: a guest must not find itself on other hardware.
_OLD_UUIDS = UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")
_START = "revision-start-vm-"


def owner_of(machine: Data) -> Data:
    """The reference by which objects belong to a machine."""
    meta = machine["metadata"]
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "VirtualMachine",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def start_revision_name(machine: Data) -> str:
    """The ControllerRevision of a start."""
    return f"{_START}{machine['metadata']['uid']}-{machine['metadata'].get('generation', 1)}"


def start_revision(machine: Data) -> Data:
    """Return the revision of a machine at its start."""
    meta = machine["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": start_revision_name(machine), "namespace": meta["namespace"], "ownerReferences": [owner_of(machine)]},
        "data": {"spec": copied(machine["spec"])},
        "revision": meta.get("generation", 1),
    }


def instance_of(machine: Data, sizes: Sequence[ResolvedInstancetype], *, paused: bool = False) -> Data:
    """The instance to create. `sizes` are the instancetype and the preference, if the machine has them."""
    meta, template = machine["metadata"], machine["spec"]["template"]
    around = template.get("metadata") or {}
    specs = {each.member: each.spec for each in sizes}
    annotations: Data = {}
    for member in (PREFERENCE, INSTANCETYPE):
        annotations.update((specs.get(member) or {}).get("annotations") or {})
    annotations.update(around.get("annotations") or {})
    annotations.update(instancetypes.annotations_of(sizes))
    if content := (meta.get("annotations") or {}).get(CONTINUES):
        annotations[CONTINUES] = content
    if runstrategy.named(machine["spec"]) == receivers.STRATEGY:
        annotations[receivers.TARGET] = "true"
    annotations[GENERATION] = str(meta.get("generation", 1))
    spec = instancetypes.expanded(template["spec"], specs.get(INSTANCETYPE), specs.get(PREFERENCE))
    firmware = spec.setdefault("domain", {}).setdefault("firmware", {})
    if not firmware.get("uuid"):
        firmware["uuid"] = str(uuid5(_OLD_UUIDS, meta["name"]))
    if paused:
        spec["startStrategy"] = "Paused"
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {**(around.get("labels") or {}), CREATED_BY: meta["uid"]},
            "annotations": annotations,
            "ownerReferences": [owner_of(machine)],
            "finalizers": [VM_FINALIZER, FOREGROUND],
        },
        "spec": spec,
        "status": {"virtualMachineRevisionName": start_revision_name(machine)},
    }
