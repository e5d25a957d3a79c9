"""Looking at a machine from all sides at one moment."""

from collections.abc import Callable, Mapping

from paddock.base import quantity
from paddock.base.clock import Clock
from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.followers import Followers
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.nics import Cards
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import CPUTopology, VolumeStatus
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.observation import Observation, RunEnd
from paddock.meta import ages
from paddock.plan.instance import volumes
from paddock.plan.instance.observed import ObservedInstance, StartBlocker
from paddock.plan.instance.phases import RUNNING

_LOST = "the directory of the machine is gone: somebody removed it while Paddock was away"


class InstanceObserver:
    """Makes a `ObservedInstance` of an instance."""

    def __init__(self, node: str, clock: Clock, lookups: Lookups, cards: Cards, followers: Followers) -> None:
        self._node = node
        self._clock = clock
        self._lookups = lookups
        self._cards = cards
        self._followers = followers
        # why a hot-plugged volume is not there yet, by machine and volume
        self.plugging: Mapping[str, Mapping[str, str]] = {}
        # how far dumps of its memory are, by volume
        self.dumps: Callable[[VirtualMachineInstance], Mapping[str, volumes.Dump]] = lambda instance: {}
        # why it cannot have more sockets or memory while it runs, by machine and condition
        self.refused: Mapping[str, Mapping[str, str]] = {}
        self.overhead: Callable[[MachineConfig], int] = lambda config: 0
        # why a machine is emulated, and its machine type by its full name
        self.why_emulated: Callable[[MachineConfig], str] = lambda config: ""
        self.machine_type: Callable[[MachineConfig], str] = lambda config: config.machine_type

    def seconds(self) -> float:
        """The date."""
        return self._clock.seconds()

    def look(self, instance: VirtualMachineInstance, machine: QemuMachine | None, hold: StartBlocker | None) -> ObservedInstance:
        """Everything that can be seen of it now."""
        observed = _observed(instance, machine)
        follower = self._followers.get(instance.metadata.uid or "")
        plugs = self._cards.known(instance)
        config = machine.config if machine is not None else None
        cards = list(self._cards.statuses(instance, plugs, observed))
        return ObservedInstance(
            now=ages.timestamp(self._clock.seconds()),
            node=self._node,
            observed=observed,
            hold=hold,
            prepared=machine is not None,
            answers=follower.answers if follower is not None else (False if instance.spec.readinessProbe is not None else None),
            silent=follower.silent if follower is not None else "",
            cards=cards,
            limits=tuple(dict.fromkeys(limit for plug in plugs.values() for limit in plug.limits)),
            volumes=self._volumes(instance, observed),
            guest=follower.guest if follower is not None else None,
            credentials=follower.credentials if follower is not None else None,
            cloud_init=follower.cloud_init if follower is not None else None,
            machine_type=self.machine_type(config) if config is not None else "",
            memory=self._memory(instance, machine, observed),
            topology=_topology(machine, observed),
            refused=self.refused.get(instance.metadata.uid or "", {}),
            outdated=_outdated(instance, machine),
            emulated=_emulated(observed, self.why_emulated(config) if config is not None else ""),
        )

    def _volumes(self, instance: VirtualMachineInstance, observed: Observation | None) -> list[VolumeStatus]:
        plugging, dumps = self._waiting(instance, observed), self.dumps(instance)
        return list(volumes.statuses(instance.spec, self._claims(instance), _sizes(observed), plugging, dumps))

    def _claims(self, instance: VirtualMachineInstance) -> dict[str, PersistentVolumeClaim]:
        who = Key(instance.metadata.namespace or "", instance.metadata.name)
        names = {volumes.claim_of(each) for each in instance.spec.volumes or ()} - {""}
        found = {name: self._lookups.claim(who, name) for name in sorted(names)}
        return {name: claim for name, claim in found.items() if claim is not None}

    def _waiting(self, instance: VirtualMachineInstance, observed: Observation | None) -> dict[str, str]:
        """Why each hot-plugged volume is not there: what preparing it said, or that the machine does not have it yet."""
        said = dict(self.plugging.get(instance.metadata.uid or "", {}))
        for volume in instance.spec.volumes or ():
            plugged = observed is not None and volume.name in observed.disks
            if volumes.is_hotplugged(volume) and volume.memoryDump is None and not plugged:
                said.setdefault(volume.name, f"volume {volume.name} is being plugged")
        return said

    def _memory(
        self, instance: VirtualMachineInstance, machine: QemuMachine | None, observed: Observation | None
    ) -> tuple[int, int, int, int] | None:
        """At boot, now, asked for, taken besides."""
        if machine is None or observed is None:
            return None
        status = instance.status.memory if instance.status is not None else None
        boot = quantity.whole(status.guestAtBoot) if status is not None and status.guestAtBoot else machine.config.memory.size
        guest = instance.spec.domain.memory.guest if instance.spec.domain.memory is not None else None
        asked = quantity.whole(guest) if guest is not None else boot
        return boot, observed.memory or boot, asked, self.overhead(machine.config)


def _observed(instance: VirtualMachineInstance, machine: QemuMachine | None) -> Observation | None:
    """What the engine says. A machine that ran and is not known any more is not started again: it is lost."""
    if machine is not None:
        return machine.observed
    phase = instance.status.phase if instance.status is not None else ""
    return Observation(phase="ended", end=RunEnd("crashed", _LOST)) if phase == RUNNING else None


def _sizes(observed: Observation | None) -> dict[str, int]:
    return {name: disk.size for name, disk in observed.disks.items() if disk.size} if observed is not None else {}


def _topology(machine: QemuMachine | None, observed: Observation | None) -> CPUTopology | None:
    if machine is None or observed is None:
        return None
    cpu = machine.config.cpu
    return CPUTopology(cores=cpu.cores, sockets=observed.sockets or cpu.sockets, threads=cpu.threads)


def _outdated(instance: VirtualMachineInstance, machine: QemuMachine | None) -> str:
    if machine is None or not machine.outdated:
        return ""
    what = "the QEMU of this host was replaced since the machine was started, and it still runs on the old one"
    if machine.immovable:
        return f"{what}; restart it when that suits: it cannot move while it runs, as {'; '.join(machine.immovable)}"
    name, namespace = instance.metadata.name, instance.metadata.namespace
    return f"{what}; `paddock renew {name} -n {namespace}` moves it into the new one without a reboot"


def _emulated(observed: Observation | None, why: str) -> str:
    if observed is None or observed.accelerator != "tcg":
        return ""
    return f"the guest is emulated, and slower by an order of magnitude: {why or 'KVM could not be used when it was started'}"
