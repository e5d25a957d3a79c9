"""The preparation of a machine; what is cheap and certain comes first:

    may it run here?  ->  its volumes  ->  do quotas admit it?  ->  its kernel  ->  its interfaces  ->  its config  ->  is there room?

Every step finds the results of an earlier attempt and continues from there. A step that cannot succeed yet raises `MissingPrerequisite`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import structs

from paddock.engine.engine import Engine
from paddock.engine.machine.config import KernelConfig, MachineConfig
from paddock.engine.networks.nics import AttachedNic
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubevirt.controllers.virtualmachineinstance.disks import DiskLayers
from paddock.kubevirt.controllers.virtualmachineinstance.hostdirectories import HostDirectories
from paddock.kubevirt.controllers.virtualmachineinstance.nics import InstanceNics
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.scheduler import Scheduler
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of, reference_to
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.identity import owner_of
from paddock.kubevirt.plan.instance.volumes import claim_of, plugged
from paddock.kubevirt.translate.config import MachineTranslation, machine_config
from paddock.kubevirt.translate.limits import Weight
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedCard, ResolvedHost, ResolvedVolume


class Preparer:
    """Prepares machines, and releases what they held."""

    def __init__(
        self,
        engine: Engine,
        objects: InstanceReferences,
        scheduler: Scheduler,
        disks: tuple[DiskLayers, HostDirectories],
        nics: InstanceNics,
        recorder: EventRecorder,
    ) -> None:
        self._engine = engine
        self._objects = objects
        self._scheduler = scheduler
        self._disks, self._directories = disks
        self._nics = nics
        self._recorder = recorder
        # the notes that were recorded for each machine, so that each is recorded once
        self._noted: dict[str, set[str]] = {}
        # machines that hold nothing any more, by the key of their instance
        self._released: dict[Key, str] = {}

    async def prepare(self, instance: VirtualMachineInstance, admitted: Callable[[], Awaitable[None]]) -> MachineConfig:
        """The config of the machine, with everything it names in place. Raises `MissingPrerequisite`.

        `admitted` asks the quotas of the namespace: a machine that waits for them holds no network and no memory.
        """
        self._scheduler.place(instance)
        hot = {each.name for each in plugged(instance.spec)}
        found = {volume.name: await self._volume(instance, volume) for volume in instance.spec.volumes or () if volume.name not in hot}
        await admitted()
        kernel = await self._kernel(instance)
        nics = await self._nics.plug(instance)
        # Hot-plugged volumes are plugged as soon as the machine runs.
        result = self._translated(_without_hotplugged(instance), found, nics, kernel)
        self._check_limits(instance, result)
        self._scheduler.admit(instance.metadata.uid or "", result.config)
        return result.config

    async def check_disks(self, config: MachineConfig) -> None:
        """Raise `VolumeBusy` if a merge took the layers of a disk before the machine was known to have them."""
        for disk in config.disks:
            async with self._engine.volumes.opening(disk.layer):
                pass

    async def resumed(self, instance: VirtualMachineInstance, config: MachineConfig) -> MachineConfig:
        """The config of a suspended machine, with what the host gives it anew. Its disks are as they were. Raises `MissingPrerequisite`."""
        self._scheduler.place(instance)
        cpus, nics = self._scheduler.cpus(instance), await self._nics.plug(instance)
        fresh = structs.replace(
            config,
            cpu=structs.replace(config.cpu, pinned=cpus.vcpus, emulator_pinned=cpus.emulator),
            nics=tuple(structs.replace(nic, backend=nics[nic.name].backend) if nic.name in nics else nic for nic in config.nics),
        )
        self._scheduler.admit(instance.metadata.uid or "", fresh)
        return fresh

    def priority(self, instance: VirtualMachineInstance) -> int:
        """Return the priority among the machines that wait for their start."""
        return self._scheduler.priority(instance)

    def started(self, instance: VirtualMachineInstance) -> None:
        """Release the reservations of a start that succeeded or failed."""
        self._disks.started(instance.metadata.uid or "")

    async def hotplugged(self, instance: VirtualMachineInstance, names: Iterable[str]) -> MachineConfig:
        """The config that the spec asks for now, with these volumes and all interfaces. Raises `MissingPrerequisite`."""
        chosen = set(names)
        try:
            found = {volume.name: await self._volume(instance, volume) for volume in instance.spec.volumes or () if volume.name in chosen}
        finally:
            self.started(instance)
        # The other volumes were found when the machine was started.
        return self._translated(instance, found, await self._nics.plug(instance), await self._kernel(instance)).config

    async def reconnect(self, instance: VirtualMachineInstance) -> None:
        """Have the networks know the interfaces of a machine that lives. Raises `MissingPrerequisite`."""
        if instance.spec.domain.devices.interfaces and not self._nics.attached(instance):
            await self._nics.plug(instance)

    async def release(self, instance: VirtualMachineInstance) -> None:
        """Remove the taps and scratch files of a machine that ended; what belongs to its owner stays."""
        uid, key = instance.metadata.uid or "", key_of(instance)
        if self._released.get(key) == uid:
            return
        self._released[key] = uid
        self._disks.forget(uid)
        self._scheduler.release(uid)
        self._noted.pop(uid, None)
        await self._nics.unplug_all(instance)
        await self._engine.volumes.drop_scratch(uid)
        claims = (claim_of(each) for each in instance.spec.volumes or ())
        self._objects.freed(key.namespace, (each for each in claims if each))

    def forget(self, instance: Key) -> None:
        """Drop what is known of an instance that is gone."""
        self._released.pop(instance, None)
        self._objects.forget(instance)
        self._scheduler.forget(instance)

    # --- translation ------------------------------------------------------------------------------------------------------

    async def _volume(self, instance: VirtualMachineInstance, volume: Volume) -> ResolvedVolume:
        if any(each.name == volume.name for each in instance.spec.domain.devices.filesystems or ()):
            return await self._directory(instance, volume)
        image = self._directories.image(instance, volume)
        layer = await self._disks.layer(instance, volume, image)
        if layer is None:
            return ResolvedVolume()
        if self._is_table(instance, volume.name):
            return ResolvedVolume(file=await self._disks.table(instance, volume))
        claim = volume.persistentVolumeClaim
        return ResolvedVolume(layer=layer, readonly=bool((claim is not None and claim.readOnly) or (image is not None and image.readonly)))

    async def _directory(self, instance: VirtualMachineInstance, volume: Volume) -> ResolvedVolume:
        found = self._directories.find(instance, volume)
        if found is None:
            return ResolvedVolume(directory=await self._disks.directory(instance, volume))
        resolved, note = found
        if note:
            self._note(instance, "HostPathReadOnly", note)
        return resolved

    def _is_table(self, instance: VirtualMachineInstance, name: str) -> bool:
        firmware = instance.spec.domain.firmware
        tables = firmware.acpi if firmware is not None else None
        return tables is not None and name in (tables.slicNameRef, tables.msdmNameRef)

    async def _kernel(self, instance: VirtualMachineInstance) -> KernelConfig | None:
        files = await self._disks.kernel(instance)
        if "kernel" not in files:
            return None
        firmware = instance.spec.domain.firmware
        boot = firmware.kernelBoot if firmware is not None else None
        return KernelConfig(files["kernel"], files.get("initrd"), (boot.kernelArgs if boot is not None else None) or "")

    def _translated(
        self,
        instance: VirtualMachineInstance,
        resolved_volumes: Mapping[str, ResolvedVolume],
        nics: Mapping[str, AttachedNic],
        kernel: KernelConfig | None,
    ) -> MachineTranslation:
        owner = owner_of(instance)
        cards = {name: ResolvedCard(nic.mac, nic.backend, nic.mtu) for name, nic in nics.items()}
        firmware, tpm = instance.spec.domain.firmware, instance.spec.domain.devices.tpm
        efi = firmware.bootloader.efi if firmware is not None and firmware.bootloader is not None else None
        cpus = self._scheduler.cpus(instance)
        resolved = MachineInputs(
            volumes=resolved_volumes,
            vcpus=cpus.vcpus,
            emulator=cpus.emulator,
            cards=cards,
            kernel=kernel,
            efi_variables=self._engine.states.variables(owner) if efi is not None and efi.persistent else None,
            tpm_state=self._engine.states.tpm(owner) if tpm is not None and tpm.persistent else None,
            ignition=self._disks.ignition(instance),
            # Another one for each start: a guest that goes on from a memory sees that it was brought back, or doubled.
            generation_id=instance.metadata.uid or "",
            host=self._host(instance),
        )
        return machine_config(instance, resolved)

    def _host(self, instance: VirtualMachineInstance) -> ResolvedHost:
        facts = self._engine.facts
        firmware = instance.spec.domain.firmware
        efi = firmware.bootloader.efi if firmware is not None and firmware.bootloader is not None else None
        secure = efi is not None and efi.secureBoot is not False
        architecture = instance.spec.architecture or facts.architecture
        qemu = facts.qemus.get(architecture)
        return ResolvedHost(
            accelerator=facts.accelerator_for("efi" if efi is not None else "bios", secure, architecture).accelerator,
            machine_types=qemu.machines if qemu is not None else {},
            processors=qemu.processors if qemu is not None else {},
            cpu_models=qemu.models if qemu is not None else frozenset(),
            cpu_features=qemu.features if qemu is not None else {},
            architectures=frozenset(facts.qemus),
            has_timezone=facts.has_timezone,
            io_uring=facts.io_uring,
            vsock=facts.vsock,
            cpu_flags=facts.cpu_flags,
            numa_nodes=facts.numa_nodes,
        )

    def _check_limits(self, instance: VirtualMachineInstance, result: MachineTranslation) -> None:
        """Raise for what keeps the machine from starting; record an event, once, for what the machine has to do without."""
        for limit in result.of(Weight.UNSCHEDULABLE):
            raise prerequisites.unschedulable(f"0/{self._scheduler.count} nodes are available: {limit.message}.", code=limit.code.reason)
        for limit in result.of(Weight.START_FAILED):
            raise prerequisites.failed(limit.code.reason, limit.message)
        for limit in result.of(Weight.NOTE):
            self._note(instance, limit.code.reason, limit.message)

    def _note(self, instance: VirtualMachineInstance, reason: str, message: str) -> None:
        """Record an event, once for each machine."""
        noted = self._noted.setdefault(instance.metadata.uid or "", set())
        if message not in noted:
            noted.add(message)
            self._recorder.tell(reference_to(instance), "Warning", reason, message)


def _without_hotplugged(instance: VirtualMachineInstance) -> VirtualMachineInstance:
    """The instance without the volumes that are plugged into it while it runs."""
    hot = {each.name for each in plugged(instance.spec)}
    if not hot:
        return instance
    domain = instance.spec.domain
    devices = structs.replace(domain.devices, disks=[each for each in domain.devices.disks or () if each.name not in hot])
    volumes = [each for each in instance.spec.volumes or () if each.name not in hot]
    spec = structs.replace(instance.spec, volumes=volumes, domain=structs.replace(domain, devices=devices))
    return structs.replace(instance, spec=spec)
