"""The observed state of an instance and its machine at one moment, from which its status is made."""

from collections.abc import Callable, Mapping

import msgspec

from paddock.base import quantity
from paddock.engine.engine import Engine
from paddock.engine.host import capacity
from paddock.engine.host.facts import HostFacts
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.observation import Observation, RunEnd
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.conditions import holds
from paddock.kubevirt.controllers.virtualmachineinstance.guest import GuestMonitors
from paddock.kubevirt.controllers.virtualmachineinstance.livechanges import LiveChanges
from paddock.kubevirt.controllers.virtualmachineinstance.nics import InstanceNics
from paddock.kubevirt.controllers.virtualmachineinstance.reader import InstanceReferences
from paddock.kubevirt.controllers.virtualmachineinstance.receiving import GuestReceivers
from paddock.kubevirt.controllers.virtualmachineinstance.suspending import GuestSuspensions
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of
from paddock.kubevirt.kinds.instance import OUTDATED, VirtualMachineInstance
from paddock.kubevirt.kinds.status import CPUTopology, VirtualMachineInstanceStatus, VolumeStatus
from paddock.kubevirt.plan.instance import migratable, suspension, volumes
from paddock.kubevirt.plan.instance.observed import ObservedInstance
from paddock.kubevirt.plan.instance.phases import RUNNING
from paddock.kubevirt.plan.instance.prerequisites import StartBlocker
from paddock.kubevirt.plan.migration.steps import NODE_LABEL

_LOST = "the directory of the machine is gone: somebody removed it while Paddock was away"


class ObservedChanges(msgspec.Struct, frozen=True):
    """The parts that know how changes of machines went."""

    live: LiveChanges
    suspensions: GuestSuspensions
    receivers: GuestReceivers


class InstancePlacing(msgspec.Struct, frozen=True):
    node_of: Callable[[VirtualMachineInstance], str]
    count: int = 1
    # no guest runs on them
    simulated: bool = False


class InstanceObserver:
    """Makes an `ObservedInstance` of an instance."""

    def __init__(
        self,
        placing: InstancePlacing,
        engine: Engine,
        objects: InstanceReferences,
        nics: InstanceNics,
        monitors: GuestMonitors,
        changes: ObservedChanges,
    ) -> None:
        self._placing = placing
        self._engine = engine
        self._objects = objects
        self._nics = nics
        self._monitors = monitors
        self._changes = changes.live
        self._suspensions = changes.suspensions
        self._receivers = changes.receivers

    def observe(
        self, instance: VirtualMachineInstance, machine: QemuMachine | None, blocker: StartBlocker | None, now: str
    ) -> ObservedInstance:
        """Everything that can be observed of an instance now."""
        uid, facts = instance.metadata.uid or "", self._engine.facts
        observed = self._observed(instance, machine)
        monitor = self._monitors.get(uid)
        config = machine.config if machine is not None else None
        return ObservedInstance(
            now=now,
            node=self._placing.node_of(instance),
            nodes=self._placing.count,
            obstacle=migratable.obstacle(instance, self._claims(instance)) if self._placing.count > 1 else None,
            simulated=self._placing.simulated,
            receives=self._receivers.awaits(instance, machine),
            observed=observed,
            hold=blocker,
            prepared=machine is not None,
            answers=monitor.answers if monitor is not None else (False if instance.spec.readinessProbe is not None else None),
            silent=monitor.silent if monitor is not None else "",
            cards=list(self._nics.statuses(instance, observed)),
            limits=tuple(dict.fromkeys(limit for nic in self._nics.attached(instance).values() for limit in nic.limits)),
            volumes=self._volumes(instance, observed),
            guest=monitor.guest if monitor is not None else None,
            credentials=monitor.credentials if monitor is not None else None,
            cloud_init=monitor.cloud_init if monitor is not None else None,
            machine_type=_machine_type(facts, config) if config is not None else "",
            memory=_memory(instance, config, observed, facts),
            topology=_topology(config, observed),
            refused=self._changes.refused(uid),
            outdated=_outdated(instance, machine),
            move=self._changes.moves.observe(instance, machine),
            emulated=_emulated(facts, config, observed),
            suspension=suspension.condition(
                observed,
                self._suspensions.refusal(uid),
                wished=suspension.is_wished(instance.metadata.annotations),
                ran=instance.status is not None and instance.status.phase == RUNNING,
            ),
        )

    def _observed(self, instance: VirtualMachineInstance, machine: QemuMachine | None) -> Observation | None:
        """The observation of the engine. A machine that ran and is not known any more is not started again: it is lost."""
        if machine is not None:
            return machine.observed
        if (left := self._engine.machines.unmanaged(instance.metadata.uid or "")) is not None:
            return left.observed
        phase = instance.status.phase if instance.status is not None else ""
        return Observation(phase="ended", end=RunEnd("crashed", _LOST)) if phase == RUNNING else None

    def _volumes(self, instance: VirtualMachineInstance, observed: Observation | None) -> list[VolumeStatus]:
        sizes = {name: disk.size for name, disk in observed.disks.items() if disk.size} if observed is not None else {}
        pending, dumps = self._pending(instance, observed), self._changes.dumps(instance)
        return list(volumes.statuses(instance.spec, self._claims(instance), sizes, pending, dumps))

    def _claims(self, instance: VirtualMachineInstance) -> dict[str, PersistentVolumeClaim]:
        names = {volumes.claim_of(each) for each in instance.spec.volumes or ()} - {""}
        found = {name: self._objects.claim(key_of(instance), name) for name in sorted(names)}
        return {name: claim for name, claim in found.items() if claim is not None}

    def _pending(self, instance: VirtualMachineInstance, observed: Observation | None) -> dict[str, str]:
        """Return the reason why each hot-plugged volume is missing: it cannot be prepared, or the machine does not have it yet."""
        pending, hot = dict(self._changes.pending(instance.metadata.uid or "")), volumes.plugged(instance.spec)
        for volume in instance.spec.volumes or ():
            # A drive without a medium has no size.
            disk = observed.disks.get(volume.name) if observed is not None else None
            is_there = disk is not None and (volume in hot or disk.size > 0)
            if volumes.is_hotplugged(volume) and volume.memoryDump is None and not is_there:
                pending.setdefault(volume.name, volumes.plugging(volume.name))
        return pending


def label_changes(present: Mapping[str, str], status: VirtualMachineInstanceStatus) -> dict[str, str | None]:
    """The changes of an instance's labels that follow from its status."""
    changes: dict[str, str | None] = {}
    if status.nodeName and NODE_LABEL not in present:
        changes[NODE_LABEL] = status.nodeName
    outdated = status.phase == RUNNING and holds(status.conditions, "Outdated")
    if outdated != (OUTDATED in present):
        changes[OUTDATED] = "" if outdated else None
    return changes


def _machine_type(facts: HostFacts, config: MachineConfig) -> str:
    """The machine type by its full name."""
    qemu = facts.qemus.get(config.architecture)
    return (qemu.resolve(config.machine_type) if qemu is not None else None) or config.machine_type


def _memory(
    instance: VirtualMachineInstance, config: MachineConfig | None, observed: Observation | None, facts: HostFacts
) -> tuple[int, int, int, int] | None:
    """Memory in bytes: at boot, now, asked for, taken besides."""
    if config is None or observed is None:
        return None
    status = instance.status.memory if instance.status is not None else None
    boot = quantity.whole(status.guestAtBoot) if status is not None and status.guestAtBoot else config.memory.size
    guest = instance.spec.domain.memory.guest if instance.spec.domain.memory is not None else None
    asked = quantity.whole(guest) if guest is not None else boot
    return boot, observed.memory or boot, asked, capacity.overhead(config, facts.verdict(config).accelerator)


def _topology(config: MachineConfig | None, observed: Observation | None) -> CPUTopology | None:
    if config is None or observed is None:
        return None
    return CPUTopology(cores=config.cpu.cores, sockets=observed.sockets or config.cpu.sockets, threads=config.cpu.threads)


def _outdated(instance: VirtualMachineInstance, machine: QemuMachine | None) -> str:
    if machine is None or not machine.outdated:
        return ""
    what = "the QEMU of this host was replaced since the machine was started, and it still runs on the old one"
    if machine.immovable:
        return f"{what}; restart it when that suits: it cannot move while it runs, as {'; '.join(machine.immovable)}"
    name, namespace = instance.metadata.name, instance.metadata.namespace
    return f"{what}; `paddock renew {name} -n {namespace}` moves it into the new one without a reboot"


def _emulated(facts: HostFacts, config: MachineConfig | None, observed: Observation | None) -> str:
    if observed is None or observed.accelerator != "tcg":
        return ""
    why = facts.verdict(config).reason if config is not None else ""
    return f"the guest is emulated, and slower by an order of magnitude: {why or 'KVM could not be used when it was started'}"
