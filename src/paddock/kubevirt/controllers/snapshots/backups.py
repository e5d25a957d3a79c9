"""VirtualMachineBackups: the disks of a running machine, as they are at one moment, go into a claim.

    begin       the instance names the backup, then the backup says what it will be, then the engine begins
    run         the engine's jobs
    publish     the files get their name in the claim
    remember    the tracker has the checkpoint
    end         checkpoints that no tracker names are dropped; the backup is complete, and the instance names it no longer

Each step is found done when it is repeated. A backup that an instance does not name any more has lost its source.
"""

import contextlib

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.engine.backups import BackedUpDisk, BackupNote, Backups, WantedBackup
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.storage.errors import NotAllowed
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter, status_of
from paddock.kubevirt.controllers.snapshots.targets import BACKUPS, CLAIMS, DECLARED_INSTANCES, INSTANCES, TRACKERS
from paddock.kubevirt.kinds.backup import BackupStatus, VirtualMachineBackup
from paddock.kubevirt.plan.snapshots import backups as plan
from paddock.kubevirt.plan.snapshots import tracking

FINALIZER = "backup.kubevirt.io/vmbackup-protection"
_WAIT_SECONDS = 2.0
_LOOK_SECONDS = 0.5


class BackupCaches(msgspec.Struct, frozen=True):
    """The caches that the reconciler reads."""

    backups: Informer
    trackers: Informer
    machines: Informer
    instances: Informer
    claims: Informer


class _Source(msgspec.Struct):
    """The machine of a backup, as one pass finds it."""

    name: str
    tracker: CachedObject | None = None
    instance: CachedObject | None = None
    machine: QemuMachine | None = None

    @property
    def named(self) -> str:
        """The backup that the instance says is taken."""
        found = (status_of(self.instance).get("changedBlockTracking") or {}) if self.instance is not None else {}
        return str((found.get("backupStatus") or {}).get("backupName") or "")


class BackupReconciler(KindReconciler):
    """Brings one backup about, step by step."""

    def __init__(
        self, client: Client, caches: BackupCaches, engine: tuple[Machines, Backups], clock: Clock, recorder: EventRecorder
    ) -> None:
        super().__init__(caches.backups, ObjectFinalizer(client, FINALIZER))
        self._client = client
        self._caches = caches
        self._machines, self._engine = engine
        self._clock = clock
        self._recorder = recorder
        self._statuses = StatusWriter(client, BACKUPS, caches.backups.expectations)
        self._of_trackers = StatusWriter(client, TRACKERS, caches.trackers.expectations)
        self._of_instances = StatusWriter(client, INSTANCES, caches.instances.expectations)

    def unfinished(self, namespace: str) -> list[Key]:
        """Return the backups of a namespace that are not over. There are few."""
        found = self._caches.backups.cache.by("namespace", namespace)
        return [seen.key for seen in found if not plan.is_over(seen.read(BACKUPS).status)]

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether something is left to clear away if it goes."""
        return not plan.is_over(seen.read(BACKUPS).status)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one backup a step on."""
        backup = seen.read(BACKUPS)
        if plan.is_over(backup.status):
            return DONE
        source, why = await self._find(seen, backup)
        if source is None:
            return await self._wait(seen, why)
        try:
            if (backup.status or BackupStatus()).type:
                return await self._go_on(seen, backup, source)
            return await self._begin(seen, backup, source)
        except Conflict:
            raise
        except NotAllowed as error:
            # The claim cannot have it.
            return await self._fail(seen, backup, source, "Failed", str(error))
        except PaddockError as error:
            if backup.status is not None and backup.status.type:
                raise
            return await self._wait(seen, str(error))

    # --- the source -------------------------------------------------------------------------------------------------------

    async def _find(self, seen: CachedObject, backup: VirtualMachineBackup) -> tuple[_Source | None, str]:
        """Return the machine; or None, and what is missing."""
        name, tracker = backup.spec.source.name, None
        if backup.spec.source.kind == TRACKERS.kind:
            tracker = self._caches.trackers.cache.get(Key(seen.key.namespace, name))
            if tracker is None:
                return None, f"BackupTracker {name} does not exist"
            name = tracker.read(TRACKERS).spec.source.name
        source = _Source(name, tracker)
        with contextlib.suppress(NotFound):
            # The cache may not have yet what was written into it a moment ago.
            source.instance = CachedObject.of(await self._client.get_raw(INSTANCES, Key(seen.key.namespace, name)))
            source.machine = self._machines.get(source.instance.meta.uid)
        return source, ""

    def _obstacle(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source) -> str:
        """Return why the backup cannot begin; "": it can."""
        key = Key(seen.key.namespace, source.name)
        if self._caches.machines.cache.get(key) is None:
            return f"VM {key.namespace}/{key.name} doesnt exist"
        if source.instance is None or source.machine is None or source.machine.observed.phase != "running":
            return f"vm {key.name} is not running, cannot do backup"
        found = status_of(source.instance).get("changedBlockTracking") or {}
        if found.get("state") != tracking.ENABLED:
            return f"vm {key.name} has no ChangedBlockTracking, cannot start backup"
        if not self._volumes(source):
            return f"vm {key.name} has no volumes to backup"
        claim = self._claim(seen.key.namespace, backup)
        if claim is None:
            return f"PVC {key.namespace}/{backup.spec.pvcName} doesnt exist"
        spec = claim.read(CLAIMS).spec
        if spec is not None and spec.volumeMode == "Block":
            return f"backup target PVC must be a filesystem PVC, provided pvc {key.namespace}/{backup.spec.pvcName} is block"
        if source.named not in ("", seen.key.name) and self._is_under_way(Key(seen.key.namespace, source.named)):
            return f"another backup {source.named} is already in progress, cannot start backup {seen.key.name}"
        return ""

    def _is_under_way(self, key: Key) -> bool:
        found = self._caches.backups.cache.get(key)
        return found is not None and not plan.is_over(found.read(BACKUPS).status)

    def _claim(self, namespace: str, backup: VirtualMachineBackup) -> CachedObject | None:
        return self._caches.claims.cache.get(Key(namespace, backup.spec.pvcName or ""))

    def _volumes(self, source: _Source) -> list[str]:
        if source.instance is None or source.machine is None:
            return []
        disks = [disk.name for disk in source.machine.config.disks if disk.tracked and disk.layer is not None and not disk.readonly]
        return plan.volumes_of(source.instance.read(DECLARED_INSTANCES), disks)

    # --- beginning --------------------------------------------------------------------------------------------------------

    async def _begin(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source) -> Outcome:
        if why := self._obstacle(seen, backup, source):
            return await self._wait(seen, why)
        machine, instance = source.machine, source.instance
        if machine is None or instance is None:
            return again(_WAIT_SECONDS)
        if (claim := self._claim(seen.key.namespace, backup)) is not None:
            await self._engine.demand(claim.meta.uid)
        tracker = source.tracker.read(TRACKERS) if source.tracker is not None else None
        decision = plan.decide(backup, tracker, self._volumes(source), await machine.checkpoints())
        checkpoint = plan.checkpoint_name(backup) if tracker is not None else ""
        named = {"backupName": seen.key.name, "startTimestamp": backup.metadata.creationTimestamp}
        await self._of_instances.change(instance, {"changedBlockTracking": {"backupStatus": named}})
        status = plan.begun(
            backup.status or BackupStatus(), decision, checkpoint, plan.targets_of(instance.read(DECLARED_INSTANCES)), self._now
        )
        written = await self._statuses.write(seen, status)
        if decision.lost and source.tracker is not None:
            about = reference(TRACKERS, source.tracker.meta)
            self._recorder.tell(about, "Warning", plan.EVENT_LOST, f"{decision.lost}; backup {seen.key.name} is a full one")
        if written is not None:
            await self._start(written, backup, source, decision)
        return again(_LOOK_SECONDS)

    async def _start(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source, decision: plan.BackupDecision) -> None:
        if source.machine is not None:
            await self._engine.begin(source.machine, self._wanted(seen, backup, source, decision))

    def _wanted(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source, decision: plan.BackupDecision) -> WantedBackup:
        claim = self._claim(seen.key.namespace, backup)
        disks = tuple(BackedUpDisk(each, plan.file_name(backup, each), since) for each, since in decision.since.items())
        return WantedBackup(
            id=seen.meta.uid,
            claim=claim.meta.uid if claim is not None else "",
            machine=source.name,
            folder=plan.checkpoint_name(backup),
            disks=disks,
            checkpoint=plan.checkpoint_name(backup) if source.tracker is not None else "",
            quiesce=not backup.spec.skipQuiesce,
        )

    # --- going on ---------------------------------------------------------------------------------------------------------

    async def _go_on(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source) -> Outcome:
        machine, status = source.machine, backup.status or BackupStatus()
        wanted = self._wanted(seen, backup, source, self._decided(status, source))
        if (note := await self._engine.find(wanted)) is not None:
            return await self._complete(seen, backup, source, status, note)
        if source.instance is None:
            return await self._fail(seen, backup, source, "SourceLost", "VMI was deleted during backup")
        if source.named != seen.key.name or machine is None:
            return await self._fail(seen, backup, source, "SourceLost", "VMI backup status was lost")
        if machine.observed.phase != "running" and (machine.backup is None or machine.backup.name != seen.meta.uid):
            return await self._fail(seen, backup, source, "SourceUnhealthy", f"VMI is not in a running state: {machine.observed.phase}")
        state = machine.backup
        if state is None or state.name != seen.meta.uid or state.state == "preparing":
            return await self._start_again(seen, backup, source)
        status = plan.quiesced(status, state.quiesced, self._now)
        if state.state == "failed":
            return await self._fail(seen, backup, source, "Failed", state.error)
        if state.state == "done":
            return await self._publish(seen, backup, source, wanted, state.quiesced)
        await self._statuses.write(seen, status)
        return again(_LOOK_SECONDS)

    def _decided(self, status: BackupStatus, source: _Source) -> plan.BackupDecision:
        """What was decided when it began; a tracker names the checkpoint of then until the backup is done."""
        checkpoint = plan.checkpoint_of(source.tracker.read(TRACKERS)) if source.tracker is not None else None
        before = {each.volumeName for each in checkpoint.volumes or ()} if checkpoint is not None else set()
        name = (checkpoint.name or "") if checkpoint is not None and status.type == plan.INCREMENTAL else ""
        included = [each.volumeName for each in status.includedVolumes or ()]
        return plan.BackupDecision({each: name if each in before else "" for each in included})

    async def _start_again(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source) -> Outcome:
        """The engine has not begun yet, or Paddock died before it did."""
        status = backup.status or BackupStatus()
        try:
            await self._start(seen, backup, source, self._decided(status, source))
        except RequestRefused as refused:
            if refused.reason != "NoCheckpoint":
                return await self._fail(seen, backup, source, "Failed", str(refused))
            # It was lost since: what was decided holds no longer.
            await self._statuses.change(seen, {"type": None})
        return again(_LOOK_SECONDS)

    async def _publish(
        self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source, wanted: WantedBackup, quiesced: str
    ) -> Outcome:
        note = BackupNote(
            id=wanted.id,
            machine=source.name,
            taken=self._clock.seconds(),
            disks=wanted.disks,
            checkpoint=wanted.checkpoint,
            quiesced=quiesced == "succeeded",
        )
        await self._engine.publish(wanted, note)
        status = plan.quiesced(backup.status or BackupStatus(), quiesced, self._now)
        return await self._complete(seen, backup, source, status, note)

    async def _complete(
        self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source, status: BackupStatus, note: BackupNote
    ) -> Outcome:
        """The files are in the claim; the tracker goes on from there before anything older is dropped."""
        machine = source.machine
        if source.tracker is not None and note.checkpoint:
            await self._of_trackers.write_surely(source.tracker, plan.checkpoint(backup, status))
        problem = machine.backup.problem if machine is not None and machine.backup is not None else ""
        if machine is not None and machine.observed.phase == "running":
            with contextlib.suppress(PaddockError):
                await machine.retain_checkpoints(await self._needed(seen.key.namespace, source.name))
        said = list(plan.warnings(status, problem))
        written = await self._statuses.write(seen, plan.completed(status, said, self._now))
        await self._let_go(seen, source)
        if written is not None:
            about = reference(BACKUPS, seen.meta)
            if said:
                self._recorder.tell(about, "Warning", plan.EVENT_WARNING, f"Completed VirtualMachineBackup, warning: {'; '.join(said)}")
            else:
                self._recorder.tell(about, "Normal", plan.EVENT_COMPLETED, plan.DONE)
        return DONE

    async def _needed(self, namespace: str, machine: str) -> set[str]:
        """Return the checkpoints that trackers name, as the server has them now."""
        found = await self._client.list(TRACKERS, Selection(namespace=namespace))
        return plan.needed(found.items, machine)

    async def _let_go(self, seen: CachedObject, source: _Source) -> None:
        """The machine and its instance know nothing of the backup any more."""
        if source.machine is not None:
            with contextlib.suppress(PaddockError):
                await source.machine.cancel_backup(seen.meta.uid)
        if source.instance is not None and source.named == seen.key.name:
            with contextlib.suppress(NotFound, Conflict):
                fresh = CachedObject.of(await self._client.get_raw(INSTANCES, source.instance.key))
                if fresh.meta.uid == source.instance.meta.uid:
                    await self._of_instances.change(fresh, {"changedBlockTracking": {"backupStatus": None}})

    # --- not ------------------------------------------------------------------------------------------------------------

    async def _fail(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source, reason: str, why: str) -> Outcome:
        await self._discard(seen, backup, source)
        if await self._statuses.write(seen, plan.failed(backup.status or BackupStatus(), reason, why, self._now)) is not None:
            self._recorder.tell(reference(BACKUPS, seen.meta), "Warning", plan.EVENT_FAILED, why)
        return DONE

    async def _discard(self, seen: CachedObject, backup: VirtualMachineBackup, source: _Source) -> None:
        await self._let_go(seen, source)
        claim = self._claim(seen.key.namespace, backup)
        if claim is not None:
            await self._engine.discard(claim.meta.uid, seen.meta.uid)

    async def _wait(self, seen: CachedObject, why: str) -> Outcome:
        await self._statuses.write(seen, plan.waiting(seen.read(BACKUPS).status or BackupStatus(), why, self._now))
        return again(_WAIT_SECONDS)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """End what runs. What is complete stays in its claim."""
        backup = seen.read(BACKUPS)
        if FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        if not plan.is_over(backup.status):
            source, _ = await self._find(seen, backup)
            if backup.status is not None and backup.status.type:
                self._recorder.tell(reference(BACKUPS, seen.meta), "Warning", plan.EVENT_ABORTING, "Backup is aborting")
            await self._discard(seen, backup, source or _Source(""))
        await finalizers.take_off(self._client, BACKUPS, seen.meta, FINALIZER)
        return DONE

    @property
    def _now(self) -> str:
        return ages.timestamp(self._clock.seconds())
