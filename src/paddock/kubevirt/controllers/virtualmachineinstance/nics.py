"""The network interfaces of machines: plugged by the engine, and remembered while the machine exists."""

from collections.abc import Callable, Iterator, Mapping

from paddock.base.errors import PaddockError
from paddock.engine.machine.observation import Observation
from paddock.engine.networks.networks import Networks
from paddock.engine.networks.nics import AttachedNic, HostBridge
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import InterfaceStatus
from paddock.kubevirt.plan.instance import nics, prerequisites
from paddock.kubevirt.plan.instance.identity import owner_of

# For each network of an instance that a definition describes: its bridge, or why there is none.
Resolve = Callable[[VirtualMachineInstance], Mapping[str, HostBridge | str]]


class InstanceNics:
    def __init__(self, networks: Networks, resolve: Resolve, domain: str) -> None:
        self._networks = networks
        self._resolve = resolve
        self._domain = domain
        self._attached: dict[str, dict[str, AttachedNic]] = {}

    async def plug(self, instance: VirtualMachineInstance) -> Mapping[str, AttachedNic]:
        """Plug the interfaces that are not plugged yet; all of them, by name. Raises `MissingPrerequisite`."""
        found = self._attached.setdefault(instance.metadata.uid or "", {})
        for nic in nics.cards_of(instance, self._resolve(instance), self._domain):
            if isinstance(nic, nics.NicRefusal):
                raise prerequisites.unschedulable(f"card {nic.name}: {nic.message}", code=nic.reason)
            if nic.name in found:
                continue
            try:
                found[nic.name] = await self._networks.plug(nic)
            except PaddockError as error:
                raise prerequisites.failed(error.reason_code or "FailedNetwork", str(error), again=10.0) from error
        return found

    async def unplug_all(self, instance: VirtualMachineInstance) -> None:
        """Remove the taps; the addresses stay with the owner."""
        owner = owner_of(instance)
        attached = self._attached.pop(instance.metadata.uid or "", {})
        names = {each.name for each in instance.spec.domain.devices.interfaces or ()} | attached.keys()
        for name in sorted(names):
            await self._networks.unplug(owner, name)

    async def unplug(self, instance: VirtualMachineInstance, name: str) -> None:
        """Remove one interface while the machine runs."""
        self._attached.get(instance.metadata.uid or "", {}).pop(name, None)
        await self._networks.unplug(owner_of(instance), name)

    def attached(self, instance: VirtualMachineInstance) -> Mapping[str, AttachedNic]:
        """The interfaces that are plugged, by name."""
        return self._attached.get(instance.metadata.uid or "", {})

    def statuses(self, instance: VirtualMachineInstance, observed: Observation | None) -> Iterator[InterfaceStatus]:
        """The interfaces as the host has them."""
        attached = self.attached(instance)
        for interface in instance.spec.domain.devices.interfaces or ():
            nic = attached.get(interface.name)
            if nic is None:
                continue
            seen = observed.nics.get(interface.name) if observed is not None else None
            linked = seen.link_up if seen is not None else interface.state != "down"
            yield nics.status_of(interface, nic, linked=linked, queues=nics.queues_of(instance.spec, interface))
