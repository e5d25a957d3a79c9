"""Cloning machines: copies of all disks, under another name, with an identity of its own.

A clone that a driver did not finish is taken away when the next one starts: its source may have changed since. A repeated call makes it.
"""

import asyncio
import secrets
from pathlib import Path

import msgspec

from paddock.base import names
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.payloads import NetworkPayload, PlacementPayload
from paddock_drivers.firecracker import apifacts, files, machinespecs, power
from paddock_drivers.firecracker.configuration import INITRD, KERNEL
from paddock_drivers.firecracker.lifecycle import MicroVmLifecycle
from paddock_drivers.firecracker.records import (
    BUILDING,
    DELETING,
    GuestRecord,
    MicroVmDisk,
    MicroVmFolder,
    MicroVmRecord,
    MicroVmSpec,
)
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.snapshots import MicroVmSnapshots
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.firecracker.work import WorkBoard
from paddock_drivers.kit import customization, refusals
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.kit.progress import DONE, TaskProgress, failed

CLONE = "clone"
_LONGEST_NAME = 63


class MicroVmCloning:
    def __init__(
        self, store: MicroVmStore, runs: MicroVmRuns, lifecycle: MicroVmLifecycle, snapshots: MicroVmSnapshots, board: WorkBoard
    ) -> None:
        self._store = store
        self._runs = runs
        self._lifecycle = lifecycle
        self._snapshots = snapshots
        self._board = board

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine, or answer with the clone that an earlier call made, also when its source is gone."""
        if request.linked:
            raise refusals.not_supported("a linked clone cannot be made", why="Firecracker has raw disks alone", fix="make a full clone")
        name = request.target_name
        if self._store.find(request.source_vm_id) is None and not self._is_there(request):
            raise refusals.not_found("there is no such machine to clone")
        given = _customization(request)
        if not names.is_subdomain(name) or len(name) > _LONGEST_NAME:
            raise refusals.invalid("the clone's name is none", fix="use lower-case letters, digits, '.' and '-'")
        async with self._store.naming:
            record = await asyncio.to_thread(self._claimed, request, given)
        task = None
        if record.state == BUILDING:
            task = await self._board.run(f"{CLONE}:{record.id}", lambda: self._copy(record.id, given))
        return m.CloneResponse(target_vm_id=record.id, task=task)

    def _is_there(self, request: m.CloneRequest) -> bool:
        if not names.is_subdomain(request.target_name):
            return False
        record = self._store.folder(request.target_name).read()
        return record is not None and _is_clone(record, request) and record.state != BUILDING

    def _claimed(self, request: m.CloneRequest, customization: CloneCustomization) -> MicroVmRecord:
        """The record of the clone, new or of an earlier call."""
        there = self._store.folder(request.target_name).read()
        if there is not None:
            if there.state == DELETING:
                raise refusals.retry_later(f"machine {there.name} is being deleted")
            if not _is_clone(there, request):
                raise refusals.conflict(f"machine {there.name} exists and is no clone of this machine", fix="choose another name")
            return there
        folder, source = self._store.get(request.source_vm_id)
        spec = self._snapshots.find(folder, customization.snapshot).spec if customization.snapshot else source.spec
        token = secrets.token_hex(6)
        record = MicroVmRecord(
            name=request.target_name,
            token=token,
            cloned_for=_whose(request),
            origin=msgspec.structs.replace(source.origin, imported="", source=source.id, snapshot=customization.snapshot),
            spec=cloned(spec, customization, token),
            user=self._lifecycle.free_user(),
            limitations=customization.limitations,
        )
        self._store.claim(record)
        return record

    async def _copy(self, id: str, customization: CloneCustomization) -> None:
        target = self._store.get(id)[1]
        source_id = target.origin.source
        first, second = sorted((target.name, source_id.partition("/")[0]))
        async with self._store.lock(first), self._store.lock(second):
            found = self._store.find(id)
            if found is None or found[1].state != BUILDING:
                return
            into, target = found
            try:
                await self._fill(into, target, source_id, customization)
            except BaseException:
                await asyncio.shield(self._lifecycle.undo(into, target))
                raise

    async def _fill(self, into: MicroVmFolder, target: MicroVmRecord, source_id: str, customization: CloneCustomization) -> None:
        folder, source, process = await power.settled(self._store, self._runs, source_id)
        if customization.snapshot:
            place = folder.snapshot(self._snapshots.find(folder, customization.snapshot).id)
            await asyncio.to_thread(_copy_disks, target, into, {each.name: place / f"{each.name}.raw" for each in target.spec.disks})
        else:
            async with self._runs.paused(folder, source, process):
                paths = {each.name: folder.disk(each) for each in target.spec.disks}
                await asyncio.to_thread(_copy_disks, target, into, paths)
        for name in (KERNEL, *((INITRD,) if target.spec.initrd else ())):
            files.link(folder.path / name, into.path / name)
        into.write_guest(_guest(folder.guest(), customization))
        await asyncio.to_thread(self._finish, into, target)

    def _finish(self, into: MicroVmFolder, target: MicroVmRecord) -> None:
        for disk in target.spec.disks:
            files.grow(into.disk(disk), disk.size)
        self._lifecycle.builder.finish(into, target)

    def status(self, id: str) -> TaskProgress:
        """Judge a task that this process does not know."""
        found = self._store.find(id)
        return DONE if found is not None and found[1].state != BUILDING else failed("the clone was not made to its end; clone again")


def cloned(spec: MicroVmSpec, customization: CloneCustomization, token: str) -> MicroVmSpec:
    """Return the hardware of a clone: its source's, with what is asked for, and with addresses of its own. Pure."""
    wanted = {each.name: each for each in customization.networks}
    strange = next((each.name for each in customization.networks if all(each.name != nic.name for nic in spec.nics)), None)
    if strange is not None:
        raise refusals.invalid(f'customization.networks: the machine has no interface "{strange[:64]}"')
    nics = tuple(
        msgspec.structs.replace(
            nic,
            mac=_mac(wanted.get(nic.name)) or machinespecs.mac_of(token, index),
            tap=machinespecs.tap_of(token, index),
            address=wanted[nic.name].static_ip if nic.name in wanted else "",
        )
        for index, nic in enumerate(spec.nics)
    )
    spec = msgspec.structs.replace(spec, nics=nics, vsock=machinespecs.cid_of(token) if spec.vsock else 0, disks=_own(spec.disks))
    if customization.hardware is None:
        return spec
    if customization.hardware.cpu > apifacts.MOST_CPUS:
        raise refusals.invalid("the class of the clone has too many CPUs", why=f"Firecracker gives a machine {apifacts.MOST_CPUS} at most")
    return msgspec.structs.replace(spec, cpu=customization.hardware.cpu, memory_mib=customization.hardware.memory_mib)


def _own(disks: tuple[MicroVmDisk, ...]) -> tuple[MicroVmDisk, ...]:
    """The disks without where the source had them from: what fails with the clone was never imported for it."""
    return tuple(msgspec.structs.replace(each, imported="") for each in disks)


def _mac(network: NetworkPayload | None) -> str:
    return network.mac_address.lower().replace("-", ":") if network is not None else ""


def _customization(request: m.CloneRequest) -> CloneCustomization:
    given = customization.read(request.class_json, request.customize_json)
    if payloads.decode(request.placement_json, PlacementPayload) == PlacementPayload():
        return given
    texts = (*given.limitations, "placement: there is one host with one directory")
    return msgspec.structs.replace(given, limitations=texts)


def _guest(source: GuestRecord, customization: CloneCustomization) -> GuestRecord:
    """The documents for a clone: its source's, without the source's addresses."""
    return GuestRecord(
        user_data=customization.user_data or source.user_data,
        meta_data=source.meta_data,
        hostname=customization.hostname,
        networks=customization.networks,
    )


def _copy_disks(target: MicroVmRecord, into: MicroVmFolder, paths: dict[str, Path]) -> None:
    for disk in target.spec.disks:
        files.copy(paths[disk.name], into.disk(disk))


def _is_clone(record: MicroVmRecord, request: m.CloneRequest) -> bool:
    return record.origin.source == request.source_vm_id and record.cloned_for == _whose(request)


def _whose(request: m.CloneRequest) -> str:
    return f"{request.target_vm.namespace}/{request.target_vm.name}" if request.target_vm is not None else ""
