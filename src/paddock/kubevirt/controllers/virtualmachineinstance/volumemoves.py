"""Disks of machines that move to other claims while their guests run, as `status.migratedVolumes` of their instances asks.

    status                                    machine
    migratedVolumes                           nothing yet: the migration of it is made
    migrationState of that migration          the new claims are emptied, and QEMU copies
    targetNodeDomainReadyTimestamp            QEMU has copied all; the disks change over
    completed, no migratedVolumes             the disks are on the new claims
    migratedVolumes are taken away            the copies are called off

The timestamp is written before the disks change over: from then on the machine controller does not call the move off. Nothing is kept
here that cannot be found again: QEMU and the machine's config tell where a disk is.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine import mirrors
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.observation import JobState
from paddock.engine.storage.errors import TooSmall
from paddock.engine.storage.volume import StoredVolume
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.core.persistentvolumeclaim import is_bound
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import MigratedVolume, MigrationState
from paddock.kubevirt.plan.instance import volumemoves
from paddock.kubevirt.plan.instance.volumemoves import VolumeMove


class VolumeMoves:
    """The moves of all machines."""

    def __init__(self, volumes: Volumes, objects: InstanceReferences) -> None:
        self._volumes = volumes
        self._objects = objects
        # the migration that a machine's copies belong to, and why it failed
        self._begun: dict[str, str] = {}
        self._failed: dict[str, str] = {}

    def forget(self, machine: str) -> None:
        """Drop what is known of a machine that is gone."""
        self._begun.pop(machine, None)
        self._failed.pop(machine, None)

    async def carry_out(self, instance: VirtualMachineInstance, machine: QemuMachine) -> None:
        """Bring the machine a step on."""
        moves, state = volumemoves.of(instance), volumemoves.state_of(instance)
        jobs = _jobs(machine)
        if not moves:
            if any(job.state != "failed" for job in jobs.values()):
                with contextlib.suppress(PaddockError):
                    await machine.keep_disks()
            self.forget(machine.id)
            return
        if state is None or self._is_there(instance, machine, moves):
            return
        uid = state.migrationUid or ""
        if any(job.state == "running" for job in jobs.values()):
            self._begun[machine.id] = uid
        elif jobs and all(job.state == "ready" for job in jobs.values()):
            self._begun[machine.id] = uid
            if state.targetNodeDomainReadyTimestamp:
                await self._try(machine, machine.change_over())
        elif self._begun.get(machine.id) != uid:
            await self._begin(instance, machine, moves, state)

    def observe(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> VolumeMove | None:
        """Return how far the move of an instance is; None: there is none."""
        moves, state = volumemoves.of(instance), volumemoves.state_of(instance)
        if not moves:
            return None
        jobs = _jobs(machine) if machine is not None else {}
        uid = machine.id if machine is not None else ""
        begun = state is not None and self._begun.get(uid) == state.migrationUid
        error = self._failed.get(uid, "") or next((job.error for job in jobs.values() if job.state == "failed"), "")
        return VolumeMove(
            done=machine is not None and self._is_there(instance, machine, moves),
            ready=bool(jobs) and all(job.state == "ready" for job in jobs.values()),
            copied=sum(job.done for job in jobs.values()),
            total=sum(job.total for job in jobs.values()),
            error=error if begun else "",
        )

    async def _begin(
        self, instance: VirtualMachineInstance, machine: QemuMachine, moves: list[MigratedVolume], state: MigrationState
    ) -> None:
        """Empty the new claims and have QEMU copy, once all claims are bound."""
        disks = {disk.name: disk for disk in machine.config.disks}
        claims: dict[str, tuple[DiskConfig, StoredVolume]] = {}
        for move in moves:
            held, disk = self._held(instance, move), disks.get(move.volumeName)
            if held is None or disk is None:
                return
            if not _is_on(disk, held):
                claims[move.volumeName] = (disk, held)
        self._begun[machine.id] = state.migrationUid or ""
        self._failed.pop(machine.id, None)
        await self._try(machine, self._copy(machine, claims, volumemoves.speed_of(state)))

    async def _copy(self, machine: QemuMachine, claims: Mapping[str, tuple[DiskConfig, StoredVolume]], speed: int) -> None:
        sizes = {name: disk.size for name, disk in machine.observed.disks.items()}
        for name, (_, held) in claims.items():
            if held.size < sizes.get(name, 0):
                why = f"its claim has {held.size} bytes, and the disk has {sizes.get(name, 0)}"
                raise TooSmall(f"volume {name} does not fit", why=why, fix="take a larger claim")
        targets: dict[str, DiskLayer] = {}
        for name, (disk, held) in claims.items():
            targets[name] = (await self._volumes.vacate(held.id, sizes.get(name, 0), content=disk.layer)).layer
        await machine.move_disks(targets, speed // max(len(targets), 1))

    async def _try(self, machine: QemuMachine, work: Any) -> None:
        try:
            await work
        except PaddockError as error:
            self._failed[machine.id] = str(error)

    def _held(self, instance: VirtualMachineInstance, move: MigratedVolume) -> StoredVolume | None:
        """Return the volume of the claim that a disk moves to, when the claim is bound and filled."""
        info = move.destinationPVCInfo
        name = (info.claimName if info is not None else None) or ""
        claim = self._objects.claim(key_of(instance), name)
        if claim is None or not is_bound(claim):
            return None
        filled = self._objects.data_volume(key_of(instance), name)
        if filled is not None and (filled.status is None or filled.status.phase != "Succeeded"):
            return None
        return self._volumes.get(claim.metadata.uid or "")

    def _is_there(self, instance: VirtualMachineInstance, machine: QemuMachine, moves: list[MigratedVolume]) -> bool:
        disks = {disk.name: disk for disk in machine.config.disks}
        for move in moves:
            held, disk = self._held(instance, move), disks.get(move.volumeName)
            if held is None or disk is None or not _is_on(disk, held):
                return False
        return True


def _is_on(disk: DiskConfig, volume: StoredVolume) -> bool:
    return disk.layer is not None and disk.layer.path.parent == volume.layer.path.parent


def _jobs(machine: QemuMachine) -> dict[str, JobState]:
    return {name: job for name, job in machine.observed.jobs.items() if job.kind == mirrors.KIND}
