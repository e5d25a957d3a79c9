"""Getting everything that a machine needs before its first start; what is cheap and certain comes first:

    may it run here?  ->  is its data there?  ->  its seeds  ->  its cards  ->  the machine's config  ->  is there room?

Every step finds what an earlier attempt left and goes on from there; what cannot be had yet is a `NotYet`.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import structs

from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance import prerequisites
from paddock.controllers.virtualmachineinstance.disks import DiskLayers
from paddock.controllers.virtualmachineinstance.events import MachineEvents
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.nics import Cards
from paddock.controllers.virtualmachineinstance.scheduler import Scheduler
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.volumes import Volume
from paddock.engine.engine import Engine
from paddock.engine.host import capacity
from paddock.engine.host.capacity import PinnedCpus, Shortage
from paddock.engine.machine.config import KernelConfig, MachineConfig
from paddock.engine.networks.nics import AttachedNic
from paddock.plan.instance import volumes as volume_plan
from paddock.plan.instance.identity import owner_of
from paddock.translate.machine.config import MachineTranslation, machine_config
from paddock.translate.machine.limits import Weight
from paddock.translate.machine.resolved import MachineInputs, ResolvedCard, ResolvedHost, ResolvedVolume

# Memory becomes free when another machine ends, which is not always heard of here.
_ROOM_SECONDS = 5.0


class Preparer:
    """Prepares machines, and lets go of what they held."""

    def __init__(
        self, engine: Engine, lookups: Lookups, placing: Scheduler, disks: DiskLayers, cards: Cards, telling: MachineEvents
    ) -> None:
        self._engine = engine
        self._lookups = lookups
        self._placing = placing
        self._disks = disks
        self._cards = cards
        self._telling = telling
        # notes that were told of each machine, so that each is told once
        self._noted: dict[str, set[str]] = {}
        # machines that hold nothing any more, by the place of their instance
        self._released: dict[Key, str] = {}
        # the memory that machines take with the config that they have
        self._needs: dict[str, tuple[MachineConfig, int]] = {}

    async def prepare(self, instance: VirtualMachineInstance) -> MachineConfig:
        """The config of the machine, with everything it names in place. Raises `NotYet`."""
        self._placing.check(instance)
        found = {volume.name: await self._volume(instance, volume) for volume in instance.spec.volumes or () if not _hot(volume)}
        kernel = await self._kernel(instance)
        plugs = await self._cards.plug(instance)
        # What is plugged while it runs is plugged as soon as it runs.
        result = self._translated(_cold(instance), found, plugs, kernel)
        self._say(instance, result)
        self._check_room(instance, result.config)
        return result.config

    def begun(self, instance: VirtualMachineInstance) -> None:
        """What was prepared runs now, or could not be."""
        self._disks.begun(instance.metadata.uid or "")

    async def wanted(self, instance: VirtualMachineInstance, names: Iterable[str]) -> MachineConfig:
        """The config as the spec wants it now, of a machine that runs: with these volumes, and all cards. Raises `NotYet`."""
        chosen = set(names)
        try:
            found = {volume.name: await self._volume(instance, volume) for volume in instance.spec.volumes or () if volume.name in chosen}
        finally:
            self.begun(instance)
        # What else stands in the spec was looked at when the machine was started, and is not looked for again.
        return self._translated(instance, found, await self._cards.plug(instance), await self._kernel(instance)).config

    async def reconnect(self, instance: VirtualMachineInstance) -> None:
        """The cards of a machine that lives are known to the networks. Raises `NotYet`."""
        if instance.spec.domain.devices.interfaces and not self._cards.known(instance):
            await self._cards.plug(instance)

    # --- finding ----------------------------------------------------------------------------------------------------------

    async def _volume(self, instance: VirtualMachineInstance, volume: Volume) -> ResolvedVolume:
        if any(each.name == volume.name for each in instance.spec.domain.devices.filesystems or ()):
            return ResolvedVolume(directory=await self._disks.directory(instance, volume))
        layer = await self._disks.layer(instance, volume)
        if layer is None:
            return ResolvedVolume()
        if self._is_table(instance, volume.name):
            return ResolvedVolume(file=await self._disks.table(instance, volume))
        claim = volume.persistentVolumeClaim
        return ResolvedVolume(layer=layer, readonly=bool(claim is not None and claim.readOnly))

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
        found: Mapping[str, ResolvedVolume],
        plugs: Mapping[str, AttachedNic],
        kernel: KernelConfig | None,
    ) -> MachineTranslation:
        owner = owner_of(instance)
        cards = {name: ResolvedCard(plug.mac, plug.backend, plug.mtu) for name, plug in plugs.items()}
        firmware, tpm = instance.spec.domain.firmware, instance.spec.domain.devices.tpm
        efi = firmware.bootloader.efi if firmware is not None and firmware.bootloader is not None else None
        cpus = self._cpus(instance)
        resolved = MachineInputs(
            volumes=found,
            vcpus=cpus.vcpus,
            emulator=cpus.emulator,
            cards=cards,
            kernel=kernel,
            efi_variables=self._engine.states.variables(owner) if efi is not None and efi.persistent else None,
            tpm_state=self._engine.states.tpm(owner) if tpm is not None and tpm.persistent else None,
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

    def _say(self, instance: VirtualMachineInstance, result: MachineTranslation) -> None:
        """What cannot be done is told: it holds the machine back, or stands beside its start."""
        for limit in result.of(Weight.UNSCHEDULABLE):
            raise prerequisites.unschedulable(f"0/1 nodes are available: {limit.message}.")
        for limit in result.of(Weight.START_FAILED):
            raise prerequisites.failed(limit.code.reason, limit.message)
        for limit in result.of(Weight.NOTE):
            noted = self._noted.setdefault(instance.metadata.uid or "", set())
            if limit.message not in noted:
                noted.add(limit.message)
                self._telling.note(instance, limit.code.reason, limit.message)

    # --- room -------------------------------------------------------------------------------------------------------------

    def _cpus(self, instance: VirtualMachineInstance) -> PinnedCpus:
        """CPUs for this machine alone, where it wants any: those it has, or some that nobody has."""
        cpu = instance.spec.domain.cpu
        if cpu is None or not cpu.dedicatedCpuPlacement:
            return PinnedCpus(())
        taken = {
            each.id: PinnedCpus(each.config.cpu.pinned, each.config.cpu.emulator_pinned)
            for each in self._engine.machines
            if each.observed.live
        }
        own = taken.pop(instance.metadata.uid or "", None)
        if own is not None and own.vcpus:
            return own
        count = (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1)
        try:
            return capacity.dedicate(self._engine.facts.cpus, taken, count, isolate=bool(cpu.isolateEmulatorThread))
        except Shortage as error:
            waits = prerequisites.unschedulable(f"0/1 nodes are available: {error}.")
            waits.again = _ROOM_SECONDS
            raise waits from error

    def _check_room(self, instance: VirtualMachineInstance, config: MachineConfig) -> None:
        """Memory is given out whole: a machine that does not fit waits until it does."""
        uid = instance.metadata.uid or ""
        given = {each.id: self._need(each.id, each.config) for each in self._engine.machines if each.observed.live}
        given.pop(uid, None)
        try:
            capacity.admit(self._need(uid, config), given, self._engine.room)
            if config.memory.hugepage:
                capacity.admit_hugepages(config, self._engine.facts.hugepages())
        except Shortage as error:
            waits = prerequisites.unschedulable(f"0/1 nodes are available: {error}.")
            waits.again = _ROOM_SECONDS
            raise waits from error

    def _need(self, machine: str, config: MachineConfig) -> int:
        """The memory that a machine takes, worked out once for each config: every start asks for that of all that live."""
        known = self._needs.get(machine)
        if known is None or known[0] is not config:
            known = self._needs[machine] = (config, capacity.needed(config, self._accelerator(config)))
        return known[1]

    def _accelerator(self, config: MachineConfig) -> Literal["kvm", "tcg"]:
        return self._engine.facts.verdict(config).accelerator

    def why_emulated(self, config: MachineConfig) -> str:
        """What keeps KVM from running the machine; "" if nothing does."""
        return self._engine.facts.verdict(config).reason

    def machine_type(self, config: MachineConfig) -> str:
        """The machine type by its full name."""
        qemu = self._engine.facts.qemus.get(config.architecture)
        return (qemu.resolve(config.machine_type) if qemu is not None else None) or config.machine_type

    def overhead(self, config: MachineConfig) -> int:
        """What the machine takes of the host's memory besides its guest's."""
        return capacity.overhead(config, self._accelerator(config))

    # --- letting go -------------------------------------------------------------------------------------------------------

    async def release(self, instance: VirtualMachineInstance) -> None:
        """The machine has ended: its taps and its scratch files go; what belongs to its owner stays."""
        uid, key = instance.metadata.uid or "", Key(instance.metadata.namespace or "", instance.metadata.name)
        if self._released.get(key) == uid:
            return
        self._released[key] = uid
        self._disks.forget(uid)
        self._needs.pop(uid, None)
        self._noted.pop(uid, None)
        await self._cards.unplug(instance)
        await self._engine.volumes.drop_scratch(uid)
        claims = (volume_plan.claim_of(each) for each in instance.spec.volumes or ())
        self._lookups.freed(key.namespace, (each for each in claims if each))

    def forget(self, key: Key) -> None:
        """The instance is gone."""
        self._released.pop(key, None)
        self._lookups.forget(key)
        self._placing.forget(key)


def _hot(volume: Volume) -> bool:
    return volume_plan.is_hotplugged(volume)


def _cold(instance: VirtualMachineInstance) -> VirtualMachineInstance:
    """The instance without what is plugged into it while it runs."""
    hot = {each.name for each in instance.spec.volumes or () if _hot(each)}
    if not hot:
        return instance
    domain = instance.spec.domain
    devices = structs.replace(domain.devices, disks=[each for each in domain.devices.disks or () if each.name not in hot])
    volumes = [each for each in instance.spec.volumes or () if each.name not in hot]
    spec = structs.replace(instance.spec, volumes=volumes, domain=structs.replace(domain, devices=devices))
    return structs.replace(instance, spec=spec)
