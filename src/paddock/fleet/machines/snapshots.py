"""Snapshots of machines: KubeVirt's for every machine that has a VirtualMachine here, or those of a dialect with a kind of its own.

A restore of a machine with a front changes its disks and nothing that the user wrote: the claims keep their names, so that the controller
of the front finds what it made.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.base.nearest import nearest
from paddock.fleet.diagnosis.scene import at, conditions, texts
from paddock.fleet.kinds import FRONTS, MachineKind, named_target
from paddock.fleet.machines import finding, waiting, writing
from paddock.fleet.machines.edits import ChangeRefused
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DeletionOptions, Selection, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.snapshots.memory import note_of

SNAPSHOTS = kind_target("snapshot.kubevirt.io", "VirtualMachineSnapshot")
RESTORES = kind_target("snapshot.kubevirt.io", "VirtualMachineRestore")


class SnapshotNotTaken(ChangeRefused):
    """A snapshot, a restore or a clone failed, or did not end in time."""


class SnapshotNotDeleted(ChangeRefused):
    """A snapshot is still there after its deletion."""


class SnapshotRow(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot as `snap ls` shows it."""

    name: str
    machine: str
    state: str
    created: str
    # the guest's file systems were frozen for it, or its memory is in it
    consistency: str
    # its size, and for how long the guest stood still
    memory: str = ""


# --- the kind of a machine's snapshots --------------------------------------------------------------------------------------


def kind_of(kind: MachineKind) -> Target[Data]:
    """Return the kind of the snapshots of machines of a kind."""
    own = kind.adapter.snapshot_kind
    return named_target(own) if own is not None else SNAPSHOTS


def place_of(machine: MachineView, name: str) -> Key:
    """Return the place of a snapshot. Raises `MachineNotFound` for a machine without a VirtualMachine."""
    if machine.kind.adapter.snapshot_kind is not None:
        return Key(machine.namespace, name)
    return Key(finding.needs_vm(machine, "take snapshots").namespace, name)


def _source(machine: MachineView) -> dict[str, str]:
    key = finding.needs_vm(machine, "take snapshots")
    return {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": key.name}


def default_name(machine: str, seconds: float) -> str:
    """Return a name that sorts by time: web-20261123-204500."""
    return f"{machine}-{datetime.fromtimestamp(seconds, UTC):%Y%m%d-%H%M%S}"


# --- taking and listing -----------------------------------------------------------------------------------------------------


def wish(machine: MachineView, name: str, *, memory: bool = False) -> Data:
    """Return the object that asks for a snapshot."""
    metadata: dict[str, Any] = {"name": name, "namespace": place_of(machine, name).namespace}
    adapter = machine.kind.adapter
    if adapter.snapshot_kind is not None:
        return {**adapter.snapshot_kind.head, "metadata": metadata, "spec": adapter.snapshot_spec(machine, memory=memory)}
    if memory:
        metadata["annotations"] = {ownnames.MEMORY.name: "true"}
    head = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot"}
    return {**head, "metadata": metadata, "spec": {"source": _source(machine)}}


async def take(server: ServerSession, machine: MachineView, name: str, seconds: float, *, memory: bool = False) -> Data:
    """Take a snapshot, and wait until it can be restored unless `seconds` is 0. Raises `SnapshotNotTaken`."""
    target, key = kind_of(machine.kind), place_of(machine, name)
    if why := machine.kind.adapter.no_snapshot(machine.data):
        raise SnapshotNotTaken(f"cannot take a snapshot of {machine}", why=why, fix=f"`paddock why {machine}` says what it waits for")
    try:
        await server.client.create(target, wish(machine, name, memory=memory), key.namespace)
    except AlreadyExists as error:
        raise SnapshotNotTaken(f"there is a snapshot {name} already", fix="choose another name, or leave it out") from error
    found: Data = {}

    async def over() -> bool:
        now: Data = await server.client.get(target, key)
        found.clear()
        found.update(now)
        return state_of(found) in ("ready", "failed")

    if seconds and not await waiting.until(over, seconds):
        raise SnapshotNotTaken(
            f"the snapshot {name} of {machine} is not ready after {seconds:g} s",
            fix=f"`paddock snap ls {machine.name}` shows how it goes on",
        )
    if state_of(found) == "failed":
        raise SnapshotNotTaken(f"the snapshot {name} of {machine} failed", why=reason_of(found), fix=f"`paddock why {machine}` says more")
    return found


def state_of(snapshot: Data) -> str:
    """Return `ready`, `failed`, or the phase that it is in."""
    phase = texts(snapshot, "status", "phase")
    if at(snapshot, "status", "readyToUse") or phase == "Ready":
        return "ready"
    return {"Failed": "failed", "Expired": "failed", "InProgress": "in progress"}.get(phase, phase.lower() or "pending")


def reason_of(found: Data) -> str:
    """Return the reason why a snapshot, a restore or a clone failed."""
    error = texts(found, "status", "error", "message") or texts(found, "status", "message")
    failure = conditions(found).get("Failure") or conditions(found).get("Ready") or {}
    return error or texts(failure, "message") or texts(failure, "reason")


async def listed(server: ServerSession, machine: MachineView | None, namespace: str) -> list[SnapshotRow]:
    """Return the snapshots of a machine, or of all machines of a namespace, the oldest first."""
    rows = []
    every = (SNAPSHOTS, *(named_target(own) for each in FRONTS if (own := each.adapter.snapshot_kind) is not None))
    for target in every if machine is None else (kind_of(machine.kind),):
        where = namespace if machine is None else place_of(machine, "-").namespace
        try:
            answer = await server.client.list(target, Selection(namespace=where))
        except NotFound:
            continue
        rows += [row(each) for each in answer.items if machine is None or _is_of(machine, each)]
    return sorted(rows, key=lambda each: (each.created, each.name))


def _is_of(machine: MachineView, snapshot: Data) -> bool:
    if path := machine.kind.adapter.snapshot_machine:
        return texts(snapshot, *path) == machine.name
    return machine.vm_key is not None and texts(snapshot, "spec", "source", "name") == machine.vm_key.name


def row(snapshot: Data) -> SnapshotRow:
    """Return a snapshot for a list."""
    indications = at(snapshot, "status", "indications") or ()
    consistency = "" if "Online" not in indications else "file systems" if "GuestAgent" in indications else "like a power cut"
    note = note_of(at(snapshot, "metadata", "annotations"))
    if "Memory" in indications or at(snapshot, "spec", "snapshotConfig", "includeMemory"):
        consistency = "with memory"
    return SnapshotRow(
        name=texts(snapshot, "metadata", "name"),
        machine=texts(snapshot, "spec", "source", "name") or texts(snapshot, "spec", "vmRef", "name"),
        state=state_of(snapshot),
        created=texts(snapshot, "status", "creationTime") or texts(snapshot, "metadata", "creationTimestamp"),
        consistency=consistency,
        memory=f"{-(-note.bytes >> 20)}Mi, paused {note.pause_milliseconds} ms" if note is not None else "",
    )


async def named(server: ServerSession, machine: MachineView, name: str) -> Data:
    """Return a snapshot of a machine. Raises `ChangeRefused` with the nearest name."""
    try:
        found: Data = await server.client.get(kind_of(machine.kind), place_of(machine, name))
        if _is_of(machine, found):
            return found
    except NotFound:
        pass
    known = [each.name for each in await listed(server, machine, machine.namespace)]
    meant = nearest(name, known)
    fix = f'did you mean "{meant}"?' if meant else f"`paddock snap ls {machine.name}` lists them" if known else "it has none"
    raise ChangeRefused(f'{machine} has no snapshot "{name}"', fix=fix)


async def delete(server: ServerSession, machine: MachineView, name: str, seconds: float) -> None:
    """Delete a snapshot, and wait until it is gone unless `seconds` is 0. Raises `SnapshotNotDeleted`."""
    target, key = kind_of(machine.kind), place_of(machine, name)
    await server.client.delete(target, key)

    async def gone() -> bool:
        return await server.client.find(target, key) is None

    if seconds and not await waiting.until(gone, seconds):
        raise SnapshotNotDeleted(
            f"the snapshot {name} of {machine} is not gone after {seconds:g} s",
            why="its controller has not let go of it",
            fix=f"`paddock why {target.kind}/{name}` says what it waits for",
        )


async def rehearse_deletion(server: ServerSession, machine: MachineView, name: str) -> None:
    """Ask the server whether it would delete a snapshot."""
    await server.client.delete(kind_of(machine.kind), place_of(machine, name), DeletionOptions(dry_run=True))


# --- restoring --------------------------------------------------------------------------------------------------------------


async def restore(
    server: ServerSession, machine: MachineView, snapshot: str, restore_name: str, seconds: float, *, disks_only: bool = False
) -> None:
    """Bring a stopped machine back to a snapshot, with the memory that is in it. Raises `SnapshotNotTaken`."""
    if machine.kind.adapter.snapshot_kind is not None:
        await _revert(server, machine, snapshot, seconds)
        return
    # The controller of a front leaves a machine alone that has it.
    pause = machine.kind.paused_by
    if pause:
        await _annotate(server, machine, pause, "true")
    try:
        notes = {ownnames.MEMORY.name: "false"} if disks_only else {}
        await _replace_disks(server, machine, snapshot, RestoreRequest(restore_name, notes, seconds))
    finally:
        if pause:
            await _annotate(server, machine, pause, at(machine.data, "metadata", "annotations", pause))


class RestoreRequest(msgspec.Struct, frozen=True):
    """A restore to make, and the seconds that it may take."""

    name: str
    annotations: Mapping[str, str]
    seconds: float


async def _replace_disks(server: ServerSession, machine: MachineView, snapshot: str, restore_request: RestoreRequest) -> None:
    key, seconds = Key(finding.needs_vm(machine, "restore the disks").namespace, restore_request.name), restore_request.seconds
    spec: dict[str, Any] = {
        "target": _source(machine),
        "virtualMachineSnapshotName": snapshot,
        "targetReadinessPolicy": "FailImmediate",
        "volumeRestorePolicy": "InPlace",
    }
    head = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore"}
    metadata = {"name": key.name, "namespace": key.namespace, "annotations": dict(restore_request.annotations)}
    await server.client.create(RESTORES, {**head, "metadata": metadata, "spec": spec}, key.namespace)
    found: Data = {}

    async def over() -> bool:
        now: Data = await server.client.get(RESTORES, key)
        found.clear()
        found.update(now)
        failed = texts(conditions(found).get("Failure") or {}, "status") == "True"
        return bool(at(found, "status", "complete")) or failed

    if not await waiting.until(over, seconds):
        raise SnapshotNotTaken(
            f"the restore of {machine} is not complete after {seconds:g} s",
            fix=f"`paddock why vmrestore/{key.name} -n {key.namespace}` says what it waits for",
        )
    if not at(found, "status", "complete"):
        raise SnapshotNotTaken(
            f"the restore of {machine} failed",
            why=reason_of(found),
            fix="correct that, and repeat the restore; the snapshot is still there",
        )


async def _annotate(server: ServerSession, machine: MachineView, name: str, value: object) -> None:
    document = {"metadata": {"annotations": {name: value}}}
    await server.client.patch(machine.kind.target, machine.key, merge_patch(document))


async def _revert(server: ServerSession, machine: MachineView, snapshot: str, seconds: float) -> None:
    """Have the Provider revert the machine. A reference that is the same as before would ask for nothing."""
    client, key = server.client, machine.key
    found: Data = {}

    async def want(wish: Mapping[str, Any] | None) -> None:
        now: Data = await client.patch(machine.kind.target, key, merge_patch({"spec": {"snapshot": wish}}))
        found.clear()
        found.update(now)

    def is_seen(now: Data) -> bool:
        return bool(at(now, "status", "observedGeneration") == at(found, "metadata", "generation"))

    async def seen() -> bool:
        return is_seen(await client.get(machine.kind.target, key))

    async def over() -> bool:
        now = await client.get(machine.kind.target, key)
        settled = is_seen(now) and texts(now, "status", "phase") != "Reconfiguring"
        return settled and texts(conditions(now).get("Ready") or {}, "status") == "True"

    if at(machine.data, "spec", "snapshot", "revertToRef"):
        await want(None)
        # A controller that saw only the end of both changes would find nothing to do.
        if not await waiting.until(seen, seconds):
            raise SnapshotNotTaken(f"no controller took up the change of {machine} within {seconds:g} s", fix="repeat the restore")
    await want({"revertToRef": {"name": snapshot}})
    if not await waiting.until(over, seconds):
        raise SnapshotNotTaken(
            f"{machine} is not back at {snapshot} after {seconds:g} s", fix=f"`paddock why {machine}` says what it waits for"
        )


async def stopped(server: ServerSession, machine: MachineView, seconds: float) -> None:
    """Stop a machine and wait until its guest is gone. Raises `SnapshotNotTaken`."""
    await writing.send(server.client, writing.power(machine, "stop"))

    async def gone() -> bool:
        return waiting.is_stopped(await finding.find(server.client, str(machine), machine.namespace))

    if not await waiting.until(gone, seconds):
        raise SnapshotNotTaken(
            f"{machine} did not stop within {seconds:g} s",
            fix=f"`paddock stop {machine.name} --force` ends its guest, then repeat the command",
        )


# --- clones -----------------------------------------------------------------------------------------------------------------

CLONES = kind_target("clone.kubevirt.io", "VirtualMachineClone")
_OVER: Mapping[str, bool] = {"Succeeded": True, "Ready": True, "Failed": False}


def clone_wish(machine: MachineView, new: str, name: str, *, as_kubevirt: bool, start: bool) -> tuple[Target[Data], Data]:
    """Return the object that asks for a clone, of its kind. Raises `ChangeRefused`."""
    adapter = machine.kind.adapter
    if adapter.clone_kind is not None:
        spec = adapter.clone_spec(machine, new, start=start)
        return named_target(adapter.clone_kind), {
            **adapter.clone_kind.head,
            "metadata": {"name": name, "namespace": machine.namespace},
            "spec": spec,
        }
    if machine.kind.front and not as_kubevirt:
        raise ChangeRefused(
            f"cannot clone {machine} as a machine of {machine.dialect}",
            why=f"{machine.dialect} has no kind for clones, and no field that takes the disks of another machine",
            fix=f"`paddock clone {machine.name} {new} --dialect kubevirt` makes a VirtualMachine of KubeVirt",
        )
    return CLONES, vm_clone(machine, new, name)


def vm_clone(machine: MachineView, new: str, name: str) -> Data:
    """Return the object that asks for a clone of a machine's VirtualMachine."""
    key = finding.needs_vm(machine, "make a clone")
    head = {"apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone"}
    target = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": new}
    spec: dict[str, Any] = {"source": _source(machine), "target": target}
    if machine.kind.front:
        # What the front marks its machines with would claim the clone, too.
        group = f"!{machine.kind.group}/*"
        spec |= {"labelFilters": ["*", group], "annotationFilters": ["*", group], "template": {"labelFilters": ["*", group]}}
    return {**head, "metadata": {"name": name, "namespace": key.namespace}, "spec": spec}


async def clone(server: ServerSession, target: Target[Data], wanted: Data, seconds: float) -> None:
    """Make a clone, and wait for it unless `seconds` is 0. Raises `SnapshotNotTaken`."""
    key = Key(wanted["metadata"]["namespace"], wanted["metadata"]["name"])
    await server.client.create(target, wanted, key.namespace)
    if not seconds:
        return
    found: Data = {}

    async def over() -> bool:
        now: Data = await server.client.get(target, key)
        found.clear()
        found.update(now)
        return texts(found, "status", "phase") in _OVER

    if not await waiting.until(over, seconds):
        raise SnapshotNotTaken(
            f"the clone is not complete after {seconds:g} s", fix=f"`paddock why {target.kind}/{key.name}` says what it waits for"
        )
    if not _OVER[texts(found, "status", "phase")]:
        raise SnapshotNotTaken("the clone failed", why=reason_of(found), fix=f"`paddock why {target.kind}/{key.name}` says more")
