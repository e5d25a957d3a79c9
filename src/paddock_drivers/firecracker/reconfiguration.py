"""Reconfiguring machines. What a running machine cannot take waits for its next start, and the description says so.

disk grown            at once: the file grows, and the VMM looks at it again
limits                at once
less memory           the balloon takes it from the guest at once; the size follows at the next start
everything else       at the next start
"""

import asyncio

import msgspec

from paddock.base import reasons
from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock_drivers.firecracker import configuration, lifecycle, machinespecs, power, runs
from paddock_drivers.firecracker.api import ApiCall
from paddock_drivers.firecracker.building import MicroVmBuilder
from paddock_drivers.firecracker.machinespecs import AskedMicroVm
from paddock_drivers.firecracker.processes import VmmProcess
from paddock_drivers.firecracker.records import MicroVmDisk, MicroVmFolder, MicroVmRecord, MicroVmSpec
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.firecracker.store import MicroVmStore
from paddock_drivers.kit import description, refusals

_IMAGE = "image: a machine keeps the disk and the kernel that it was made with"


class MicroVmReconfiguration:
    """Brings machines to a desired state."""

    def __init__(self, store: MicroVmStore, settings: FirecrackerSettings, runs: MicroVmRuns, builder: MicroVmBuilder) -> None:
        self._store = store
        self._settings = settings
        self._runs = runs
        self._builder = builder

    async def apply(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state. A change that is refused changes nothing."""
        _, record = self._store.get(request.id)
        wanted = description.of_desired(record.name, request.desired_json)
        asked = machinespecs.asked(_with_image(wanted), self._settings, record.token)
        async with self._store.lock(record.name):
            folder, record, process = await power.settled(self._store, self._runs, request.id)
            spec, detached = merged(record, asked)
            for nic in spec.nics:
                self._runs.network.check(nic.bridge)
            record = await asyncio.to_thread(self._files, folder, record, spec)
            record = msgspec.structs.replace(record, detached=detached, tags=wanted.tags, limitations=_limitations(record, wanted, asked))
            folder.write(record)
            await asyncio.to_thread(self._tell_guest, folder, record, wanted)
            if process is not None:
                await self._live(folder, record, process)
        return m.TaskResponse()

    def _files(self, folder: MicroVmFolder, record: MicroVmRecord, spec: MicroVmSpec) -> MicroVmRecord:
        disks = tuple(self._builder.disk(folder, each) for each in spec.disks)
        runs.give(record.user, *(folder.disk(each) for each in disks))
        return msgspec.structs.replace(record, spec=msgspec.structs.replace(spec, disks=disks))

    def _tell_guest(self, folder: MicroVmFolder, record: MicroVmRecord, description: MachineDescription) -> None:
        """Renew the guest's documents, which it reads at its next start."""
        guest = msgspec.structs.replace(lifecycle.guest_of(description), hostname=folder.guest().hostname)
        if guest != folder.guest():
            folder.write_guest(guest)
            self._builder.write_seed(folder, record)

    async def _live(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess) -> None:
        """Give a running machine what it can take, and note what it has then."""
        running, spec = record.running or record.spec, record.spec
        calls, now = live_calls(running, spec)
        less = max(0, running.memory_mib - spec.memory_mib)
        if less != record.balloon:
            calls.append(configuration.balloon(less))
        await self._runs.send(folder, record, process, calls)
        if (now, less) != (record.running, record.balloon):
            folder.write(msgspec.structs.replace(record, running=now, balloon=less))


def merged(record: MicroVmRecord, asked: AskedMicroVm) -> tuple[MicroVmSpec, tuple[MicroVmDisk, ...]]:
    """Return what the next start gives a machine, and the disks that are detached; raises InvalidSpec for a disk that shrinks. Pure."""
    known = {each.name: each for each in (*record.detached, *record.spec.disks)}
    root, *others = asked.spec.disks
    mine = record.spec.disks[0]
    # A class makes the first disk larger, never smaller.
    disks = [msgspec.structs.replace(mine, size=max(mine.size, root.size))]
    for wanted in others:
        there = known.get(wanted.name)
        if there is not None and wanted.size < there.size:
            raise refusals.invalid(f"disk {wanted.name} cannot shrink", why=f"it has {there.size} bytes", reason=reasons.DISK_SHRINKS)
        disks.append(wanted if there is None else msgspec.structs.replace(there, size=wanted.size))
    names = {each.name for each in disks}
    detached = tuple(each for name, each in known.items() if name not in names)
    return msgspec.structs.replace(asked.spec, disks=tuple(disks), initrd=record.spec.initrd), detached


def live_calls(running: MicroVmSpec, spec: MicroVmSpec) -> tuple[list[ApiCall], MicroVmSpec]:
    """Return the calls that bring a running machine closer to a specification, and what it has then. Pure."""
    calls: list[ApiCall] = []
    wanted = {each.name: each for each in spec.disks}
    disks = []
    for disk in running.disks:
        size = wanted[disk.name].size if disk.name in wanted else disk.size
        if size > disk.size:
            calls.append(configuration.resized(disk))
        disks.append(msgspec.structs.replace(disk, size=max(size, disk.size)))
    limits = {"disk_bandwidth": spec.disk_bandwidth, "disk_operations": spec.disk_operations}
    if (running.disk_bandwidth, running.disk_operations) != (spec.disk_bandwidth, spec.disk_operations):
        calls += [configuration.limited_disk(spec, each) for each in disks]
    nics, cards = [], {each.name: each for each in spec.nics}
    for nic in running.nics:
        found = cards.get(nic.name)
        now = nic if found is None else msgspec.structs.replace(nic, ingress=found.ingress, egress=found.egress)
        if now != nic:
            calls.append(configuration.limited_interface(now))
        nics.append(now)
    return calls, msgspec.structs.replace(running, disks=tuple(disks), nics=tuple(nics), **limits)


def _with_image(description: MachineDescription) -> MachineDescription:
    """A machine that was cloned or imported may have no image that could be named; it keeps its disk anyway."""
    if description.image.path or description.image.template_name or description.image.url:
        return description
    return msgspec.structs.replace(description, image=msgspec.structs.replace(description.image, template_name="kept"))


def _limitations(record: MicroVmRecord, description: MachineDescription, asked: AskedMicroVm) -> tuple[str, ...]:
    name = description.image.template_name or description.image.path
    was = record.origin.image or record.origin.imported or record.origin.file
    other = (_IMAGE,) if (name and was and name != was) or asked.origin.kernel != record.origin.kernel else ()
    return (*asked.limitations, *other)
