"""VirtualMachineRestores: claims filled from a snapshot, and a machine on them.

    snapshot ready -> target at rest -> claims, each filled from a VolumeSnapshot -> the machine written anew -> complete

Restored in place, the machine is written before the volumes of its claims go back (`formerclaims`). Otherwise it stays as it is until the
new claims are filled.
While a machine is restored its status names the restore, and it is not started. What a failed attempt made is found by the next one.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.engine.engine import Engine
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, BadRequest, Invalid, NotFound
from paddock.kubernetes.client.options import DeletionOptions, Selection, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta import adoption, ages
from paddock.kubernetes.meta.conditions import Condition, holds, settled
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.adoption import Adopter, adopt
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import ObjectFinalizer, ReportingReconciler
from paddock.kubernetes.runtime.reference import InvolvedObject, owned, owner_reference, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.snapshots import revisions
from paddock.kubevirt.controllers.snapshots.formerclaims import FormerClaims, made_by, was_brought_back
from paddock.kubevirt.controllers.snapshots.locks import MachineLock
from paddock.kubevirt.controllers.snapshots.restoredmemories import RestoredMemories, go_on
from paddock.kubevirt.controllers.snapshots.targets import CLAIMS, CONTENTS, DATA_VOLUMES, MACHINES, RESTORES, SNAPSHOTS, VOLUME_SNAPSHOTS
from paddock.kubevirt.kinds.restore import RestoreStatus, VirtualMachineRestore, VolumeRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.pool import preservation
from paddock.kubevirt.plan.snapshots import restores as plan
from paddock.kubevirt.plan.snapshots.machines import SUCCEEDED, volumes_of
from paddock.kubevirt.plan.storage.contents import PREPOPULATED

# A restore that is deleted half way lets go of its machine.
_FINALIZER = "snapshot.kubevirt.io/vmrestore-protection"
_WAIT_SECONDS = 1.0


class RestoreCaches(msgspec.Struct, frozen=True):
    """The caches that the reconciler reads."""

    restores: Informer
    snapshots: Informer
    machines: Informer
    instances: Informer
    claims: Informer


class RestorePass(msgspec.Struct):
    """A restore that is under way, and what it waits for."""

    seen: CachedObject
    restore: VirtualMachineRestore
    waits: plan.RestoreWait | None = None


class RestoreReconciler(ReportingReconciler[RestorePass]):
    def __init__(self, client: Client, caches: RestoreCaches, engine: Engine, clock: Clock, recorder: EventRecorder) -> None:
        super().__init__(caches.restores, ObjectFinalizer(client, _FINALIZER))
        self._client = client
        self._caches = caches
        self._volumes = engine.volumes
        self._memories = RestoredMemories(engine)
        self._former_claims = FormerClaims(client, caches.claims, caches.instances, engine.volumes)
        self._clock = clock
        self._recorder = recorder
        self._machine_lock = MachineLock(client, caches.machines, "restoreInProgress")
        self._statuses = StatusWriter(client, RESTORES, caches.restores.expectations)

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether a restore is under way."""
        return not _is_settled(seen.read(RESTORES))

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Clear away what a restore half way has made, and let go of its machine."""
        restore = seen.read(RESTORES)
        await self._clear_away(restore)
        await self._unlock(restore)
        await finalizers.take_off(self._client, RESTORES, seen.meta, _FINALIZER)
        return DONE

    async def begin(self, seen: CachedObject) -> RestorePass | Outcome:
        """Return a restore that is under way, and belongs to its target if that is there."""
        restore = seen.read(RESTORES)
        if _is_settled(restore):
            await self._unlock(restore)
            return DONE
        target = self._target(restore)
        if target is not None and not seen.meta.ownerReferences:
            await self._belong(seen, target.key, target.meta.uid)
            return DONE
        return RestorePass(seen, restore)

    async def act(self, restore_pass: RestorePass) -> Outcome:
        """Bring one restore forward; one that is refused has failed, and is settled."""
        try:
            restore_pass.waits = await self._restore(restore_pass.seen, restore_pass.restore)
        except plan.RestoreRefused as refused:
            await self._fail(restore_pass.seen, restore_pass.restore, refused)
        return again(_WAIT_SECONDS) if restore_pass.waits is not None else DONE

    async def report(self, restore_pass: RestorePass, error: PaddockError | None) -> None:
        """Write what a restore waits for. One that has ended has said so."""
        waits = restore_pass.waits if error is None else plan.RestoreWait(str(error), plan.RESTORE_ERROR)
        if waits is not None:
            await self._wait(restore_pass.seen, restore_pass.restore, waits)

    async def _restore(self, seen: CachedObject, restore: VirtualMachineRestore) -> plan.RestoreWait | None:
        """Go as far as possible; what is waited for, or None when it is done."""
        content = await self._content(seen.key.namespace, restore.spec.virtualMachineSnapshotName)
        if content is None:
            return plan.RestoreWait(f"waiting for snapshot {restore.spec.virtualMachineSnapshotName} to be ready", plan.RESTORE_ERROR)
        found = plan.volumes(restore, content)
        target = Key(seen.key.namespace, restore.spec.target.name)
        machine = self._caches.machines.cache.get(target)
        # What cannot be done is refused before anything is touched.
        plan.check(restore, content, (machine.read(MACHINES).metadata.annotations or {}) if machine is not None else None)
        plan.machine(restore, content, found, fresh=True)
        self._memories.check(restore, content, machine)
        await self._check_data(restore, found)
        if machine is not None and (waits := await self._settle(restore, target, machine)):
            return waits
        if machine is not None and (waits := _noting(restore, machine, plan.machine(restore, content, found, fresh=False))):
            return waits
        backups = {each.volumeName: each for each in content.spec.volumeBackups or ()}
        in_place = restore.spec.volumeRestorePolicy == "InPlace"
        if machine is not None and in_place:
            # First: a template of a DataVolume that is cleared away below would make it anew.
            await self._machine(restore, content, found, machine)
        if waits := await self._former_claims.bring_back(restore, content, found):
            return waits
        for volume in found:
            backup = backups[volume.name]
            await self._claim(restore, plan.claim(restore, content, volume, backup), former=plan.is_former(volume, backup))
        if missing := [each.claim for each in found if not self._filled(restore, each.claim)]:
            return plan.RestoreWait(f"waiting for {', '.join(missing)} to be filled")
        if machine is None and await self._is_deleted(restore, target, found):
            raise plan.target_deleted(target.name)
        if machine is None or not in_place:
            # Last: one whose claims are refused stays on those that it has.
            await self._machine(restore, content, found, machine)
        made = await self._client.find(MACHINES, target)
        if made is None or not await self._hand_over(restore, content, made, found):
            raise plan.target_deleted(target.name)
        await self._drop_replaced(restore, made)
        await revisions.own(self._client, restore, made)
        await self._finish(await self._belong(seen, target, made.metadata.uid or ""), restore, found)
        return None

    async def _content(self, namespace: str, name: str) -> VirtualMachineSnapshotContent | None:
        snapshot = self._caches.snapshots.cache.get(Key(namespace, name))
        status = snapshot.read(SNAPSHOTS).status if snapshot is not None else None
        if status is not None and status.phase == "Failed":
            raise plan.RestoreRefused(f"snapshot {name} failed", fix="take another one")
        # One that has lost volumes since is no longer ready: each volume is checked below, and the refusal names it.
        taken = status is not None and (status.readyToUse or status.phase == SUCCEEDED)
        if status is None or not taken or not status.virtualMachineSnapshotContentName:
            return None
        try:
            return await self._client.get(CONTENTS, Key(namespace, status.virtualMachineSnapshotContentName))
        except NotFound as error:
            why = f"VirtualMachineSnapshotContent {status.virtualMachineSnapshotContentName} does not exist"
            raise plan.RestoreRefused(f"snapshot {name} cannot be restored", why=why, fix="restore another snapshot") from error

    async def _check_data(self, restore: VirtualMachineRestore, restored_volumes: Iterable[plan.RestoredVolume]) -> None:
        """Refuse to go on without the data of a volume that is still to be filled: what it replaces may be the last copy."""
        for volume in restored_volumes:
            if self._filled(restore, volume.claim):
                continue
            key = Key(restore.metadata.namespace or "", volume.snapshot)
            # Not from the cache: it may show one that is gone.
            there = await self._client.find(VOLUME_SNAPSHOTS, key) if volume.snapshot else None
            held = self._volumes.get_snapshot(there.metadata.uid or "") if there is not None else None
            plan.check_data(volume, there, held=held is not None)
            claim = self._caches.claims.cache.get(Key(key.namespace, volume.claim))
            if restore.spec.volumeRestorePolicy == "InPlace" and claim is not None and held is not None:
                plan.check_size(volume, claim.read(CLAIMS), held.size)

    # --- the target -------------------------------------------------------------------------------------------------------

    def _target(self, restore: VirtualMachineRestore) -> CachedObject | None:
        """The target, if it is there and the restore is for it: the machine that the snapshot is of, or one that the restore has made."""
        namespace = restore.metadata.namespace or ""
        machine = self._caches.machines.cache.get(Key(namespace, restore.spec.target.name))
        snapshot = self._caches.snapshots.cache.get(Key(namespace, restore.spec.virtualMachineSnapshotName))
        if machine is None or machine.meta.deleting:
            return None
        is_source = snapshot is not None and snapshot.read(SNAPSHOTS).spec.source.name == restore.spec.target.name
        return machine if is_source or plan.is_made_by(restore, machine.read(MACHINES).metadata.annotations) else None

    async def _belong(self, seen: CachedObject, key: Key, uid: str) -> CachedObject:
        """Have a restore that nobody owns go with its target; the restore as it is then."""
        if seen.meta.ownerReferences:
            return seen
        owner = owner_reference(InvolvedObject(MACHINES.api_version, MACHINES.kind, key.namespace, key.name, uid))
        metadata = {"ownerReferences": [owner], "uid": seen.meta.uid, "resourceVersion": seen.meta.resourceVersion}
        return CachedObject.of(await self._client.patch_raw(RESTORES, seen.key, merge_patch({"metadata": metadata})))

    async def _is_deleted(self, restore: VirtualMachineRestore, target: Key, volumes: Iterable[plan.RestoredVolume]) -> bool:
        """Return whether the target was made, began to adopt the claims, and is gone: the collector may not have seen that yet."""
        claims = [await self._client.find(CLAIMS, Key(target.namespace, each.claim)) for each in volumes]
        is_owned = any(each is not None and _is_made(restore, each) and each.metadata.ownerReferences for each in claims)
        machine = await self._client.find(MACHINES, target) if is_owned else None
        return is_owned and (machine is None or not plan.is_made_by(restore, machine.metadata.annotations))

    async def _settle(self, restore: VirtualMachineRestore, key: Key, seen: CachedObject) -> plan.RestoreWait | None:
        """The target has to be at rest and ours."""
        status = seen.read(MACHINES).status
        other = status.restoreInProgress if status is not None else None
        if other and other != restore.metadata.name:
            return plan.RestoreWait(f"waiting for restore {other} of the same machine")
        if status is not None and status.snapshotInProgress:
            return plan.RestoreWait(f"waiting for snapshot {status.snapshotInProgress} of the machine")
        if other is None:
            await self._machine_lock.lock(seen, restore.metadata.name)
            # A start that was decided on before this shows by the next look.
            return plan.RestoreWait(f"locking {key.name}")
        if status is not None and holds(status.conditions, "Suspended"):
            fix = f"discard its saved state with `paddock suspend {key.name} --discard`, or resume and stop it"
            raise plan.RestoreRefused(f"restore target {key.name} is suspended to disk", fix=fix)
        running = self._caches.instances.cache.get(key) is not None
        age = self._clock.seconds() - (ages.seconds_of(restore.metadata.creationTimestamp or "") or 0.0)
        match plan.waits(restore.spec.targetReadinessPolicy, running, age):
            case "fail":
                raise plan.RestoreRefused(f"restore target {key.name} is running", fix="stop it, or use targetReadinessPolicy StopTarget")
            case "stop":
                await self._client.patch(MACHINES, key, merge_patch({"spec": {"running": None, "runStrategy": "Halted"}}))
                return plan.RestoreWait(f"stopping {key.name}", plan.TARGET_NOT_READY)
            case "wait":
                return plan.RestoreWait(f"waiting for {key.name} to be stopped", plan.TARGET_NOT_READY)
        return None

    async def _gone(self, target: Target[Any], key: Key, deletion: DeletionOptions) -> None:
        try:
            await self._client.delete(target, key, deletion)
        except NotFound:
            return

    async def _clear_away(self, restore: VirtualMachineRestore) -> None:
        """A restore that goes before its end leaves no claims behind, but for those that the machine is on already, which it gets."""
        if restore.status is not None and restore.status.complete:
            return
        key = Key(restore.metadata.namespace or "", restore.spec.target.name)
        # Neither from the cache: what was made a moment ago, or put to use, may not be in there.
        machine = await self._client.find(MACHINES, key)
        used = set(volumes_of(machine).claims.values()) if machine is not None else set()
        on = [each.metadata.name for each in await self._made(restore) if each.metadata.name in used]
        kept = set(on) if on and await self._own(restore, key, on) else set()
        # Read anew: a machine that is going has let go of what it was adopting.
        machine = await self._client.find(MACHINES, key)
        for claim in await self._made(restore):
            meta = claim.metadata
            if meta.name not in kept and _is_nobodys(claim, machine):
                unchanged = DeletionOptions(uid=meta.uid or "", revision=meta.resourceVersion or "")
                await self._gone(CLAIMS, Key(key.namespace, meta.name), unchanged)

    async def _made(self, restore: VirtualMachineRestore) -> list[PersistentVolumeClaim]:
        """The claims that this restore made, as the server has them, without those that it found."""
        listed = await self._client.list(CLAIMS, Selection(namespace=restore.metadata.namespace or ""))
        return [each for each in listed.items if _is_made(restore, each)]

    def _is_ours(self, restore: VirtualMachineRestore, claim: CachedObject) -> bool:
        """Return whether this restore made a claim, or brought it back: another of its name may hold anything."""
        return made_by(restore, claim.read(CLAIMS))

    async def _claim(self, restore: VirtualMachineRestore, data: Data, *, former: bool) -> None:
        there = self._caches.claims.cache.get(Key(data["metadata"]["namespace"], data["metadata"]["name"]))
        if there is not None:
            if not self._is_ours(restore, there) and not (former and restore.spec.volumeRestorePolicy == "InPlace"):
                raise plan.RestoreRefused(f"there is a claim {there.key.name} already", fix="choose another name for the restored volume")
            return
        try:
            await self._client.request("POST", CLAIMS.path(data["metadata"]["namespace"]), body=msgspec.json.encode(data))
        except AlreadyExists:
            return

    def _filled(self, restore: VirtualMachineRestore, name: str) -> bool:
        claim = self._caches.claims.cache.get(Key(restore.metadata.namespace or "", name))
        return claim is not None and self._is_ours(restore, claim) and self._volumes.get(claim.meta.uid) is not None

    async def _machine(
        self,
        restore: VirtualMachineRestore,
        content: VirtualMachineSnapshotContent,
        restored_volumes: list[plan.RestoredVolume],
        before: CachedObject | None,
    ) -> None:
        data = plan.machine(restore, content, restored_volumes, fresh=before is None)
        path = MACHINES.path(restore.metadata.namespace or "")
        if before is None:
            go_on(restore, content, data)
            # One that is made anew does not start on its own, as its model may be running beside it.
            data["spec"] = {**data["spec"], "running": None, "runStrategy": "Halted"}
            data = await revisions.give(self._client, restore, content, data)
            try:
                await self._client.request("POST", path, body=msgspec.json.encode(data))
            except AlreadyExists:
                return
            except (Invalid, BadRequest) as error:
                raise plan.RestoreRefused("the machine cannot be made", why=str(error), fix="mend the patches") from error
            return
        if plan.is_made_by(restore, before.read(MACHINES).metadata.annotations):
            return
        fresh = await self._client.get(MACHINES, before.key)
        merged = msgspec.to_builtins(fresh)
        strategy = {name: merged["spec"].get(name) for name in ("running", "runStrategy") if merged["spec"].get(name) is not None}
        kept = {name: value for name, value in data["spec"].items() if name not in ("running", "runStrategy") and value is not None}
        merged["spec"] = kept | strategy
        merged["metadata"]["annotations"] = data["metadata"]["annotations"]
        go_on(restore, content, merged)
        try:
            await self._client.request("PUT", f"{path}/{before.key.name}", body=msgspec.json.encode(merged))
        except (Invalid, BadRequest) as error:
            raise plan.RestoreRefused("the machine cannot become what it was", why=str(error), fix="mend the patches") from error

    async def _drop_replaced(self, restore: VirtualMachineRestore, machine: VirtualMachine) -> None:
        """Delete the DataVolumes that the machine has no more, as far as they are its own."""
        for name in (restore.status.deletedDataVolumes if restore.status is not None else None) or ():
            key = Key(restore.metadata.namespace or "", name)
            data_volume = await self._client.find(DATA_VOLUMES, key)
            if data_volume is not None and _has(machine, data_volume):
                await self._gone(DATA_VOLUMES, key, DeletionOptions(uid=data_volume["metadata"]["uid"]))

    async def _hand_over(
        self,
        restore: VirtualMachineRestore,
        content: VirtualMachineSnapshotContent,
        machine: VirtualMachine,
        restored_volumes: Iterable[plan.RestoredVolume],
    ) -> bool:
        """Give each claim to its DataVolume, if it is to have one, or to the machine; False when the machine is gone, or going."""
        target = Key(restore.metadata.namespace or "", machine.metadata.name)
        others: list[str] = []
        for volume in restored_volumes:
            owner = await self._data_volume(restore, content, machine, volume)
            if owner is None:
                others.append(volume.claim)
            elif not await self._adopt(restore, owner, Key(target.namespace, volume.claim)):
                return False
        return await self._own(restore, target, others)

    async def _data_volume(
        self,
        restore: VirtualMachineRestore,
        content: VirtualMachineSnapshotContent,
        machine: VirtualMachine,
        volume: plan.RestoredVolume,
    ) -> Adopter | None:
        """The DataVolume that gets a claim, which is made for a template; None where the claim is to have none."""
        if not volume.data_volume or preservation.is_marked(machine.metadata.annotations):
            return None
        key = Key(restore.metadata.namespace or "", volume.claim)
        data_volume = await self._client.find(DATA_VOLUMES, key)
        if data_volume is None and volume.is_template:
            owner = InvolvedObject(MACHINES.api_version, MACHINES.kind, key.namespace, machine.metadata.name, machine.metadata.uid or "")
            try:
                data_volume = await self._client.create(DATA_VOLUMES, owned(plan.data_volume(restore, content, volume), owner))
            except AlreadyExists:
                # The controller of machines may have been faster.
                data_volume = await self._client.find(DATA_VOLUMES, key)
        if data_volume is None:
            return None
        waits = (data_volume["metadata"].get("annotations") or {}).get(PREPOPULATED) == volume.claim
        return Adopter(DATA_VOLUMES, key, data_volume["metadata"]["uid"], shares=True) if waits or _has(machine, data_volume) else None

    async def _own(self, restore: VirtualMachineRestore, target: Key, claims: Iterable[str]) -> bool:
        """Hand the claims over to the machine, unless they are to be nobody's; False when it is gone, or going, and takes none."""
        if restore.spec.volumeOwnershipPolicy == "None":
            return True
        machine = await self._client.find(MACHINES, target)
        if machine is None:
            return False
        owner = Adopter(MACHINES, target, machine.metadata.uid or "", preservation.may_own, controller=False)
        adopted = [await self._adopt(restore, owner, Key(target.namespace, name)) for name in claims]
        if not all(adopted):
            # The pool of one that is marked keeps its disks.
            machine = await self._client.find(MACHINES, target)
            return machine is not None and preservation.is_marked(machine.metadata.annotations)
        return True

    async def _adopt(self, restore: VirtualMachineRestore, owner: Adopter, key: Key) -> bool:
        # Not from the cache: a claim that is not in there yet would be nobody's for ever.
        try:
            claim = CachedObject.of(await self._client.get_raw(CLAIMS, key))
        except NotFound:
            return True
        if not self._is_ours(restore, claim):
            return True
        if owner.target is MACHINES and _is_made(restore, claim.read(CLAIMS)) and _machines_of(claim.read(CLAIMS)) - {owner.uid}:
            # An earlier machine of this name, whose end the collector has not seen: the claim goes with it, or becomes nobody's.
            return False
        return await adopt(self._client, owner, CLAIMS, claim)

    async def _unlock(self, restore: VirtualMachineRestore) -> None:
        await self._machine_lock.unlock(Key(restore.metadata.namespace or "", restore.spec.target.name), restore.metadata.name)

    # --- saying -----------------------------------------------------------------------------------------------------------

    async def _finish(self, seen: CachedObject, restore: VirtualMachineRestore, restored_volumes: list[plan.RestoredVolume]) -> None:
        now = ages.timestamp(self._clock.seconds())
        before = restore.status or RestoreStatus()
        done = (
            Condition(type="Ready", status="True", reason="Operation complete"),
            Condition(type="Progressing", status="False", reason="Operation complete"),
        )
        status = msgspec.structs.replace(
            before,
            complete=True,
            restoreTime=now,
            restores=[
                VolumeRestore(
                    volumeName=each.name,
                    persistentVolumeClaim=each.claim,
                    volumeSnapshotName=each.snapshot,
                    dataVolumeName=each.claim if each.is_template else None,
                )
                for each in restored_volumes
            ],
            conditions=settled(before.conditions, done, now),
        )
        await self._statuses.write(seen, status)
        self._recorder.tell(
            reference(RESTORES, seen.meta), "Normal", "VirtualMachineRestoreComplete", "Successfully completed VirtualMachineRestore"
        )
        await self._unlock(restore)

    async def _wait(self, seen: CachedObject, restore: VirtualMachineRestore, waits: plan.RestoreWait) -> None:
        written = await self._statuses.write(seen, plan.waiting(restore, waits, ages.timestamp(self._clock.seconds())))
        if waits.warning and written is not None:
            self._recorder.tell(reference(RESTORES, seen.meta), "Warning", waits.warning, waits.text)

    async def _fail(self, seen: CachedObject, restore: VirtualMachineRestore, refused: plan.RestoreRefused) -> None:
        await self._statuses.write(seen, plan.failed(restore, refused, ages.timestamp(self._clock.seconds())))
        self._recorder.tell(reference(RESTORES, seen.meta), "Warning", plan.RESTORE_ERROR, str(refused))
        await self._unlock(restore)


def _noting(restore: VirtualMachineRestore, before: CachedObject, data: Data) -> plan.RestoreWait | None:
    """Return the wait that writes down which DataVolumes the machine loses, if it does not stand in the status."""
    replaced = plan.replaced(msgspec.json.decode(before.raw), data)
    noted = tuple((restore.status.deletedDataVolumes if restore.status is not None else None) or ())
    if replaced == noted or plan.is_made_by(restore, before.read(MACHINES).metadata.annotations):
        return None
    return plan.RestoreWait(f"writing {before.key.name}", replaced=replaced)


def _has(machine: VirtualMachine, data_volume: Data) -> bool:
    """Return whether a DataVolume is a machine's own."""
    return any(each["uid"] == machine.metadata.uid for each in data_volume["metadata"].get("ownerReferences") or ())


def _is_made(restore: VirtualMachineRestore, claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim is there because of the restore."""
    return made_by(restore, claim) and not was_brought_back(restore, claim)


def _machines_of(claim: PersistentVolumeClaim) -> set[str]:
    """The UIDs of the machines that own a claim."""
    return {each.uid for each in claim.metadata.ownerReferences or () if each.kind == MACHINES.kind}


def _is_nobodys(claim: PersistentVolumeClaim, target: VirtualMachine | None) -> bool:
    """Return whether a claim has no owner but a target that goes while it adopts, which the collector takes off without the claim."""
    stays = target.metadata.uid if target is not None and not target.metadata.deletionTimestamp else ""
    return all(
        each.kind == MACHINES.kind and each.uid != stays and adoption.is_unconfirmed(claim.metadata.labels, each.uid)
        for each in claim.metadata.ownerReferences or ()
    )


def _is_settled(restore: VirtualMachineRestore) -> bool:
    return restore.status is not None and bool(restore.status.complete or holds(restore.status.conditions, "Failure"))
