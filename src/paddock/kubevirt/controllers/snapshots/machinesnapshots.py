"""VirtualMachineSnapshots: a copy of the machine, and a VolumeSnapshot for each volume that lasts, all of one moment.

    content with the copy -> VolumeSnapshots -> the engine freezes all of them together -> ready

While one is taken the machine's status names it, and its spec does not change. After the deadline it is given up.
"""

import contextlib
from collections.abc import Mapping, Sequence

import msgspec

from paddock.base import reasons
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.memorystates import MemoryState
from paddock.engine.snapshots import SnapshotContext, Snapshots, WantedMemory
from paddock.engine.storage.errors import VolumeBroken
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.options import DELETE, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import holds
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import InvolvedObject, owner_reference, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.snapshots import revisions
from paddock.kubevirt.controllers.snapshots.locks import MachineLock
from paddock.kubevirt.controllers.snapshots.targets import CLAIMS, CLASS_NAME, CONTENTS, INSTANCES, MACHINES, SNAPSHOTS, VOLUME_SNAPSHOTS
from paddock.kubevirt.controllers.snapshots.volumesnapshots import TAKEN_WITH
from paddock.kubevirt.kinds.snapshot import SnapshotStatus, VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.snapshots import forks, memory
from paddock.kubevirt.plan.snapshots import machines as plan
from paddock.kubevirt.plan.storage import hostdirectories

_FINALIZER = "snapshot.kubevirt.io/vmsnapshot-protection"
_WAIT_SECONDS = 2.0
# A file is put back; nobody tells.
_DAMAGED_SECONDS = 30.0
_MISSING = "VolumeSnapshots ({}) missing"


class SnapshotCaches(msgspec.Struct, frozen=True):
    """The caches that the reconciler reads."""

    snapshots: Informer
    machines: Informer
    claims: Informer
    volume_snapshots: Informer


class MachineSnapshotReconciler(KindReconciler):
    def __init__(
        self, client: Client, caches: SnapshotCaches, engine: Snapshots, volumes: Volumes, clock: Clock, recorder: EventRecorder
    ) -> None:
        super().__init__(caches.snapshots, ObjectFinalizer(client, _FINALIZER))
        self._client = client
        self._caches = caches
        self._engine = engine
        self._volumes = volumes
        self._clock = clock
        self._recorder = recorder
        self._machine_lock = MachineLock(client, caches.machines, "snapshotInProgress")
        self._statuses = StatusWriter(client, SNAPSHOTS, caches.snapshots.expectations)
        self._content_statuses = StatusWriter(client, CONTENTS)

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether a snapshot is still to be taken."""
        return not _is_settled(seen.read(SNAPSHOTS).status)

    async def work(self, seen: CachedObject) -> Outcome:
        """Take one snapshot, or check the data of one that was taken."""
        snapshot = seen.read(SNAPSHOTS)
        if snapshot.status is not None and _is_settled(snapshot.status):
            await self._unlock(snapshot)
            is_damaged = snapshot.status.phase == plan.SUCCEEDED and await self._check_data(seen, snapshot, snapshot.status)
            return again(_DAMAGED_SECONDS) if is_damaged else DONE
        try:
            why = await self._take(seen, snapshot)
        except Conflict:
            raise
        except RequestRefused as error:
            if error.reason in (reasons.MEMORY_REFUSED, reasons.MEMORY_LOST):
                await self._refuse(seen, snapshot, error)
                return DONE
            why = str(error)
        except PaddockError as error:
            # Also what the server refuses, or cannot do now: the machine is locked, and the deadline holds whatever is in the way.
            why = str(error)
        return await self._wait(seen, snapshot, why) if why else DONE

    # --- taking -----------------------------------------------------------------------------------------------------------

    async def _take(self, seen: CachedObject, snapshot: VirtualMachineSnapshot) -> str:
        """Go as far as possible; why it did not end, or nothing when it did."""
        key = Key(seen.key.namespace, snapshot.spec.source.name)
        found = self._caches.machines.cache.get(key)
        if found is None:
            return f"Source does not exist: VirtualMachine {key.name}"
        machine = found.read(MACHINES)
        busy = self._busy(machine, seen.key.name)
        if busy:
            return busy
        volumes = plan.volumes_of(machine, lambda name: self._is_static(key.namespace, name))
        there = {name: self._claim(key.namespace, name) for name in volumes.claims.values()}
        if missing := sorted(name for name, claim in there.items() if claim is None or self._volumes.get(claim.meta.uid) is None):
            return f"volume not bound: {', '.join(missing)}"
        memory_wish = await self._memory_wish(snapshot, machine)
        if memory_wish is not None:
            await self._engine.demand_memory([each.meta.uid for each in there.values() if each is not None], memory_wish)
        if not await self._machine_lock.lock(found, seen.key.name):
            return f"Source does not exist: VirtualMachine {key.name}"
        content = await self._content(seen, snapshot, machine, {volume: there[name] for volume, name in volumes.claims.items()})
        await revisions.keep(self._client, content, machine)
        names = {volume: plan.volume_snapshot_name(snapshot, volume) for volume in volumes.claims}
        for volume, name in names.items():
            await self._volume_snapshot(content, machine, name, volumes.claims[volume])
        claims = {names[volume]: claim for volume, claim in volumes.claims.items()}
        if memory_wish is not None:
            memory_wish = msgspec.structs.replace(memory_wish, id=content.metadata.uid or "")
        taken = await self._freeze(key.namespace, claims, memory_wish) if claims else await self._context(key)
        if taken is None:
            return "VolumeSnapshots are being made"
        return await self._finish(seen, snapshot, taken, volumes)

    async def _memory_wish(self, snapshot: VirtualMachineSnapshot, machine: VirtualMachine) -> WantedMemory | None:
        """Return the memory that the snapshot is to have, with the UID of its content if that is there already.

        Raises `RequestRefused` if the machine is written otherwise than it runs.
        """
        if not memory.is_wished(snapshot):
            return None
        if why := memory.obstacle(machine):
            raise RequestRefused("cannot take a snapshot with memory", reason=reasons.MEMORY_REFUSED, why=why)
        content = await self._client.find(CONTENTS, Key(snapshot.metadata.namespace or "", plan.content_name(snapshot)))
        uid = (content.metadata.uid if content is not None else None) or ""
        return WantedMemory(uid, memory.unchanging(machine.spec.template.spec.volumes or ()), fork=forks.is_wished(snapshot))

    async def _freeze(self, namespace: str, claims: dict[str, str], wanted_memory: WantedMemory | None) -> SnapshotContext | None:
        """All volumes together; None while the VolumeSnapshots, whose UIDs name what is kept, have not been seen."""
        wanted: dict[str, str] = {}
        for name, claim in claims.items():
            made, source = self._caches.volume_snapshots.cache.get(Key(namespace, name)), self._claim(namespace, claim)
            if made is None or source is None:
                return None
            wanted[source.meta.uid] = made.meta.uid
        return await (self._engine.take(wanted) if wanted_memory is None else self._engine.take_with_memory(wanted, wanted_memory))

    async def _context(self, key: Key) -> SnapshotContext:
        """The circumstances of a snapshot without volumes: no guest has anything to quiesce."""
        status = ((await self._client.find(INSTANCES, key)) or {}).get("status") or {}
        true = {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}
        agent = "AgentConnected" in true
        return SnapshotContext(online=status.get("phase") == "Running", paused="Paused" in true, agent=agent, quiesced=agent)

    async def _finish(
        self, seen: CachedObject, snapshot: VirtualMachineSnapshot, taken: SnapshotContext, volumes: plan.MachineVolumes
    ) -> str:
        now = ages.timestamp(self._clock.seconds())
        has_memory = taken.memory is not None
        said = plan.indications(online=taken.online, paused=taken.paused, agent=taken.agent, quiesced=taken.quiesced, memory=has_memory)
        if taken.memory is not None:
            seen = await self._note_memory(seen, taken.memory)
        if taken.problem:
            self._recorder.tell(reference(SNAPSHOTS, seen.meta), "Warning", "QuiesceFailed", taken.problem)
        for volume in volumes.claims:
            await self._touch(seen.key.namespace, plan.volume_snapshot_name(snapshot, volume))
        content = CachedObject.of(await self._client.get_raw(CONTENTS, Key(seen.key.namespace, plan.content_name(snapshot))))
        kept = content.read(CONTENTS)
        # A status that somebody removed comes back as it was.
        made = (kept.status.creationTime if kept.status is not None else None) or now
        await self._content_statuses.change(content, {"readyToUse": True, "creationTime": made})
        before = snapshot.status or SnapshotStatus()
        named = plan.under_way(before, now, plan.source_uid(kept), content.key.name)
        await self._statuses.write(seen, msgspec.structs.replace(plan.ready(named, now, said, volumes), creationTime=made))
        self._recorder.tell(
            reference(SNAPSHOTS, seen.meta), "Normal", "SuccessfulVirtualMachineSnapshotCreate", "Successfully created the snapshot"
        )
        await self._unlock(snapshot)
        return ""

    async def _note_memory(self, seen: CachedObject, memory_state: MemoryState) -> CachedObject:
        """Tell of the memory by an annotation and an event; the snapshot as it is then."""
        note = memory.MemoryNote(memory_state.size, round(memory_state.record.pause * 1000), memory_state.record.qemu)
        notes = {memory.STATE: msgspec.json.encode(note).decode()}
        written = CachedObject.of(await self._client.patch_raw(SNAPSHOTS, seen.key, merge_patch({"metadata": {"annotations": notes}})))
        self._caches.snapshots.expectations.wrote(written)
        self._recorder.tell(reference(SNAPSHOTS, seen.meta), "Normal", "MemoryKept", note.text)
        return written

    async def _content(
        self, seen: CachedObject, snapshot: VirtualMachineSnapshot, machine: VirtualMachine, claims: Mapping[str, CachedObject | None]
    ) -> VirtualMachineSnapshotContent:
        """Make the content from the claims as they were when the snapshot began; one may have gone since."""
        backups = []
        for volume, claim in claims.items():
            if claim is None:
                continue
            copied = plan.copy_of_claim(claim.read(CLAIMS))
            backups.append(
                {"volumeName": volume, "persistentVolumeClaim": copied, "volumeSnapshotName": plan.volume_snapshot_name(snapshot, volume)}
            )
        data: Data = {
            "apiVersion": CONTENTS.api_version,
            "kind": CONTENTS.kind,
            "metadata": {
                "name": plan.content_name(snapshot),
                "namespace": snapshot.metadata.namespace,
                "finalizers": [memory.FINALIZER] if memory.is_wished(snapshot) else None,
            },
            "spec": {
                "virtualMachineSnapshotName": snapshot.metadata.name,
                "source": {"virtualMachine": plan.copy_of(machine)},
                "volumeBackups": backups,
            },
        }
        if await self._create(CONTENTS.path(snapshot.metadata.namespace or ""), data):
            said = f"Successfully created VirtualMachineSnapshotContent {plan.content_name(snapshot)}"
            self._recorder.tell(reference(SNAPSHOTS, seen.meta), "Normal", "SuccessfulVirtualMachineSnapshotContentCreate", said)
        return await self._client.get(CONTENTS, Key(snapshot.metadata.namespace or "", plan.content_name(snapshot)))

    async def _volume_snapshot(self, content: VirtualMachineSnapshotContent, machine: VirtualMachine, name: str, claim: str) -> None:
        namespace = content.metadata.namespace or ""
        if self._caches.volume_snapshots.cache.get(Key(namespace, name)) is not None:
            return
        owner = InvolvedObject(CONTENTS.api_version, CONTENTS.kind, namespace, content.metadata.name, content.metadata.uid or "")
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": plan.source_labels(SNAPSHOTS.group, machine.metadata.name, machine.metadata.namespace or ""),
            "annotations": {TAKEN_WITH: content.spec.virtualMachineSnapshotName},
            "ownerReferences": [owner_reference(owner)],
        }
        spec = {"volumeSnapshotClassName": CLASS_NAME, "source": {"persistentVolumeClaimName": claim}}
        data: Data = {"apiVersion": VOLUME_SNAPSHOTS.api_version, "kind": VOLUME_SNAPSHOTS.kind, "metadata": metadata, "spec": spec}
        await self._create(VOLUME_SNAPSHOTS.path(namespace), data)

    async def _create(self, path: str, data: Data) -> bool:
        """Make an object; return whether it was not there yet."""
        try:
            await self._client.request("POST", path, body=msgspec.json.encode(data))
        except AlreadyExists:
            return False
        return True

    async def _touch(self, namespace: str, name: str) -> None:
        """Have its controller look at a VolumeSnapshot: what it waited for is there."""
        notes = {"annotations": {TAKEN_WITH: None}}
        await self._client.patch(VOLUME_SNAPSHOTS, Key(namespace, name), merge_patch({"metadata": notes}))

    def _claim(self, namespace: str, name: str) -> CachedObject | None:
        return self._caches.claims.cache.get(Key(namespace, name))

    def _is_static(self, namespace: str, name: str) -> bool:
        found = self._claim(namespace, name)
        return found is not None and hostdirectories.is_static(msgspec.json.decode(found.raw))

    # --- keeping ----------------------------------------------------------------------------------------------------------

    async def _check_data(self, seen: CachedObject, snapshot: VirtualMachineSnapshot, status: SnapshotStatus) -> bool:
        """Report VolumeSnapshots of a snapshot that were deleted, and their data with them; return whether one is damaged."""
        included = status.snapshotVolumes.includedVolumes if status.snapshotVolumes is not None else None
        keys = [Key(seen.key.namespace, plan.volume_snapshot_name(snapshot, volume)) for volume in included or ()]
        await self._list_volumes(seen, snapshot, keys)
        gone = [key.name for key in keys if await self._is_gone(key)]
        damage = "" if gone else "; ".join(filter(None, map(self._damage, keys)))
        why = _MISSING.format(",".join(gone)) if gone else damage
        before = (status.error.message if status.error is not None else None) or ""
        # What was deleted stays so, whatever has its name by now.
        if why == before or (not why and before.startswith(_MISSING.partition("{")[0])):
            return bool(damage)
        now = ages.timestamp(self._clock.seconds())
        error = {"time": now, "message": why} if why else None
        with contextlib.suppress(NotFound):
            content = CachedObject.of(await self._client.get_raw(CONTENTS, Key(seen.key.namespace, plan.content_name(snapshot))))
            await self._content_statuses.change(content, {"readyToUse": not why, "error": error})
        await self._statuses.write(seen, plan.lost(status, now, why) if why else plan.found(status, now))
        if why:
            about = reference(SNAPSHOTS, seen.meta)
            self._recorder.tell(about, "Warning", "VolumeSnapshotMissing" if gone else reasons.VOLUME_DAMAGED, why)
        return bool(damage)

    async def _list_volumes(self, seen: CachedObject, snapshot: VirtualMachineSnapshot, keys: Sequence[Key]) -> None:
        """Have the content say of each VolumeSnapshot what that says of itself."""
        found = [(key.name, self._caches.volume_snapshots.cache.get(key)) for key in keys]
        states = [plan.volume_state(name, each.read(VOLUME_SNAPSHOTS)) for name, each in found if each is not None]
        with contextlib.suppress(NotFound):
            content = CachedObject.of(await self._client.get_raw(CONTENTS, Key(seen.key.namespace, plan.content_name(snapshot))))
            await self._content_statuses.change(content, {"volumeSnapshotStatus": states or None})

    def _damage(self, key: Key) -> str:
        """Return the reason why the data of a VolumeSnapshot cannot be read; empty when it can."""
        found = self._caches.volume_snapshots.cache.get(key)
        try:
            self._volumes.get_snapshot(found.meta.uid if found is not None else "none")
        except VolumeBroken as error:
            return str(error)
        return ""

    async def _is_gone(self, key: Key) -> bool:
        if (cached := self._caches.volume_snapshots.cache.get(key)) is not None and not cached.meta.deleting:
            return False
        # The cache may be behind, and what is written stays.
        found = await self._client.find(VOLUME_SNAPSHOTS, key)
        return found is None or bool(found.metadata.deletionTimestamp)

    # --- the machine ------------------------------------------------------------------------------------------------------

    def _busy(self, machine: VirtualMachine, name: str) -> str:
        """Return the other operation that holds the machine; empty when there is none."""
        status = machine.status
        if status is None:
            return ""
        if status.snapshotInProgress and status.snapshotInProgress != name:
            return f"Source not locked: snapshot {status.snapshotInProgress} is being taken"
        if holds(status.conditions, "Suspended"):
            return "Source not locked: the machine is suspended to disk; resume it, or discard its saved state"
        return f"Source not locked: restore {status.restoreInProgress} is under way" if status.restoreInProgress else ""

    async def _unlock(self, snapshot: VirtualMachineSnapshot) -> None:
        await self._machine_lock.unlock(Key(snapshot.metadata.namespace or "", snapshot.spec.source.name), snapshot.metadata.name)

    # --- saying -----------------------------------------------------------------------------------------------------------

    async def _wait(self, seen: CachedObject, snapshot: VirtualMachineSnapshot, why: str) -> Outcome:
        """It is not done; after its deadline it is given up."""
        now = self._clock.seconds()
        stamp, before = ages.timestamp(now), snapshot.status or SnapshotStatus()
        made = ages.seconds_of(snapshot.metadata.creationTimestamp or "") or now
        if plan.overdue(snapshot, now - made):
            await self._discard(snapshot)
            await self._statuses.write(seen, plan.failed(before, stamp, why))
            await self._unlock(snapshot)
            return DONE
        machine = self._caches.machines.cache.get(Key(seen.key.namespace, snapshot.spec.source.name))
        uid, status = (machine.meta.uid, machine.read(MACHINES).status) if machine is not None else ("", None)
        if status is not None and status.snapshotInProgress == seen.key.name:
            wanted = plan.under_way(before, stamp, uid, "", why)
        else:
            wanted = plan.waiting(before, stamp, uid, f"{seen.key.namespace}/{snapshot.spec.source.name}", why)
        await self._statuses.write(seen, wanted)
        return again(_WAIT_SECONDS)

    async def _refuse(self, seen: CachedObject, snapshot: VirtualMachineSnapshot, refused: RequestRefused) -> None:
        """It cannot be taken with memory, and is not taken without."""
        await self._discard(snapshot)
        stamp, before = ages.timestamp(self._clock.seconds()), snapshot.status or SnapshotStatus()
        await self._statuses.write(seen, plan.refused(before, stamp, refused.reason, str(refused)))
        self._recorder.tell(reference(SNAPSHOTS, seen.meta), "Warning", refused.reason, str(refused))
        await self._unlock(snapshot)

    # --- going ------------------------------------------------------------------------------------------------------------

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete the content with its snapshot, unless it is to be kept."""
        if _FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        snapshot = seen.read(SNAPSHOTS)
        await self._unlock(snapshot)
        if snapshot.spec.deletionPolicy != "Retain":
            await self._discard(snapshot)
        await finalizers.take_off(self._client, SNAPSHOTS, seen.meta, _FINALIZER)
        return DONE

    async def _discard(self, snapshot: VirtualMachineSnapshot) -> None:
        """Delete the content of a snapshot, if there is one, and its VolumeSnapshots."""
        content = Key(snapshot.metadata.namespace or "", plan.content_name(snapshot))
        found = await self._client.find(CONTENTS, content)
        if found is None:
            return
        for backup in found.spec.volumeBackups or ():
            await self._delete(VOLUME_SNAPSHOTS.path(content.namespace, backup.volumeSnapshotName or ""))
        await self._delete(CONTENTS.path(*content))

    async def _delete(self, path: str) -> None:
        try:
            await self._client.request("DELETE", path, body=msgspec.json.encode(DELETE.body()))
        except NotFound:
            return


def _is_settled(status: SnapshotStatus | None) -> bool:
    return status is not None and status.phase in (plan.SUCCEEDED, plan.FAILED)
