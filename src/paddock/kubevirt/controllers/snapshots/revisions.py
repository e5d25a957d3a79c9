"""The copies of instancetypes and preferences that a machine started from: kept with its snapshot, given to a machine that is made anew.

A snapshot's copy belongs to its content. The copy for a new machine belongs to the restore until the machine is there.
"""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.reference import InvolvedObject, owner_reference
from paddock.kubevirt.controllers.snapshots.targets import CONTENTS, MACHINES, RESTORES, REVISIONS
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import instancetypes
from paddock.kubevirt.plan.snapshots import machines as plan


async def keep(client: Client, content: VirtualMachineSnapshotContent, machine: VirtualMachine) -> None:
    """Copy what the machine of a snapshot was made from, so that it outlives the machine."""
    meta = content.metadata
    owner = InvolvedObject(CONTENTS.api_version, CONTENTS.kind, meta.namespace or "", meta.name, meta.uid or "")
    for member in instancetypes.KINDS:
        named = getattr(machine.status, f"{member}Ref", None)
        if named is None or named.controllerRevisionRef is None:
            continue
        kept = await client.find(REVISIONS, Key(meta.namespace or "", named.controllerRevisionRef.name))
        if kept is not None:
            await _create(client, kept, plan.revision_name(meta.name, member), owner)


async def give(client: Client, restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, machine: Data) -> Data:
    """A machine that is to be made, with copies of its own of what the snapshot has kept."""
    spec, meta = dict(machine["spec"]), restore.metadata
    owner = InvolvedObject(RESTORES.api_version, RESTORES.kind, meta.namespace or "", meta.name, meta.uid or "")
    for member in instancetypes.KINDS:
        matcher = spec.get(member) or {}
        kept = await client.find(REVISIONS, Key(meta.namespace or "", plan.revision_name(content.metadata.name, member)))
        data = (kept.get("data") or {}) if kept is not None else {}
        # The patches of a restore may name another one.
        if kept is None or data["metadata"]["name"] != matcher.get("name"):
            continue
        name = plan.restored_revision_name(machine["metadata"]["name"], owner.uid, data)
        await _create(client, kept, name, owner)
        spec[member] = {**matcher, "revisionName": name}
    return {**machine, "spec": spec}


async def own(client: Client, restore: VirtualMachineRestore, machine: VirtualMachine) -> None:
    """Hand the copies that a restore has made over to its machine."""
    owner = InvolvedObject(MACHINES.api_version, MACHINES.kind, "", machine.metadata.name, machine.metadata.uid or "")
    for matcher in (machine.spec.instancetype, machine.spec.preference):
        key = Key(machine.metadata.namespace or "", (matcher.revisionName if matcher is not None else None) or "")
        kept = await client.find(REVISIONS, key) if key.name else None
        if kept is None or all(each["uid"] != restore.metadata.uid for each in kept["metadata"].get("ownerReferences") or ()):
            continue
        metadata = {"ownerReferences": [owner_reference(owner)], "resourceVersion": kept["metadata"]["resourceVersion"]}
        await client.patch(REVISIONS, key, merge_patch({"metadata": metadata}))


async def _create(client: Client, kept: Data, name: str, owner: InvolvedObject) -> None:
    metadata = kept["metadata"]
    place = {"name": name, "namespace": metadata["namespace"], "labels": metadata.get("labels") or {}}
    copy = {**kept, "metadata": {**place, "ownerReferences": [owner_reference(owner)]}}
    try:
        await client.create(REVISIONS, copy)
    except AlreadyExists:
        return
