"""The network cards of machines: asked for from the engine, and remembered while the machine is there."""

from collections.abc import Callable, Iterator, Mapping

from paddock.base.errors import PaddockError
from paddock.controllers.virtualmachineinstance import prerequisites
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import InterfaceStatus
from paddock.engine.machine.observation import Observation
from paddock.engine.networks.networks import Networks
from paddock.engine.networks.nics import AttachedNic, HostBridge
from paddock.plan.instance import nics
from paddock.plan.instance.identity import owner_of

# For each network of an instance that a definition describes: its bridge, or why there is none.
Resolve = Callable[[VirtualMachineInstance], Mapping[str, HostBridge | str]]


class Cards:
    """Plugs cards in and out."""

    def __init__(self, networks: Networks, resolve: Resolve, domain: str) -> None:
        self._networks = networks
        self._resolve = resolve
        self._domain = domain
        self._plugs: dict[str, dict[str, AttachedNic]] = {}

    async def plug(self, instance: VirtualMachineInstance) -> Mapping[str, AttachedNic]:
        """All cards of the instance, by name. Raises `NotYet`."""
        found = self._plugs.setdefault(instance.metadata.uid or "", {})
        for card in nics.cards_of(instance, self._resolve(instance), self._domain):
            if isinstance(card, nics.NicRefusal):
                raise prerequisites.unschedulable(f"card {card.name}: {card.message}")
            if card.name in found:
                continue
            try:
                found[card.name] = await self._networks.plug(card)
            except PaddockError as error:
                raise prerequisites.failed("FailedNetwork", str(error), again=10.0) from error
        return found

    async def unplug(self, instance: VirtualMachineInstance) -> None:
        """The taps go, the addresses stay."""
        owner = owner_of(instance)
        plugs = self._plugs.pop(instance.metadata.uid or "", {})
        names = {each.name for each in instance.spec.domain.devices.interfaces or ()} | plugs.keys()
        for name in sorted(names):
            await self._networks.unplug(owner, name)

    async def unplug_one(self, instance: VirtualMachineInstance, name: str) -> None:
        """One card goes while the machine runs."""
        self._plugs.get(instance.metadata.uid or "", {}).pop(name, None)
        await self._networks.unplug(owner_of(instance), name)

    def known(self, instance: VirtualMachineInstance) -> Mapping[str, AttachedNic]:
        """What is plugged."""
        return self._plugs.get(instance.metadata.uid or "", {})

    def statuses(
        self, instance: VirtualMachineInstance, plugs: Mapping[str, AttachedNic], observed: Observation | None
    ) -> Iterator[InterfaceStatus]:
        """The cards as the host has them."""
        for card in instance.spec.domain.devices.interfaces or ():
            plug = plugs.get(card.name)
            if plug is None:
                continue
            seen = observed.nics.get(card.name) if observed is not None else None
            linked = seen.link_up if seen is not None else card.state != "down"
            yield nics.status_of(card, plug, linked=linked, queues=nics.queues_of(instance.spec, card))
