"""Who follows which machine."""

from collections.abc import Callable
from functools import partial

from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.credentials import CredentialReader
from paddock.controllers.virtualmachineinstance.prober import ProbeTarget
from paddock.controllers.virtualmachineinstance.runfollower import RunFollower
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.networks.networks import Networks
from paddock.plan.instance.identity import owner_of


class Followers:
    """One follower for each run of each machine."""

    def __init__(self, networks: Networks, keyring: CredentialReader, tell: Callable[[str], None]) -> None:
        self._networks = networks
        self._keyring = keyring
        self._tell = tell
        self._followers: dict[str, RunFollower] = {}

    def of(self, instance: VirtualMachineInstance, machine: QemuMachine) -> RunFollower:
        """The follower of a machine that runs, with the credentials as they are now."""
        found = self._followers.get(machine.id)
        if found is None or found.run != machine.observed.run:
            found = RunFollower(instance, machine, self._reach(instance), partial(self._tell, machine.id))
            self._followers[machine.id] = found
            found.start()
        found.keep(self._keyring.of(Key(instance.metadata.namespace or "", instance.metadata.name), instance.spec))
        return found

    def get(self, machine: str) -> RunFollower | None:
        """The follower, if somebody follows."""
        return self._followers.get(machine)

    def agent_changed(self, machine: str) -> None:
        """The engine has news of a machine, perhaps of its agent."""
        found = self._followers.get(machine)
        if found is not None:
            found.agent_changed()

    async def drop(self, machine: str) -> None:
        """Follow a machine no longer."""
        found = self._followers.pop(machine, None)
        if found is not None:
            await found.stop()

    async def stop(self) -> None:
        """Follow nobody."""
        for machine in tuple(self._followers):
            await self.drop(machine)

    def _reach(self, instance: VirtualMachineInstance) -> ProbeTarget:
        """Probes go to the first card, by the ports it names."""
        cards = instance.spec.domain.devices.interfaces or ()
        name = cards[0].name if cards else "default"
        names = {port.name: port.port for card in cards for port in card.ports or () if port.name}
        return ProbeTarget(partial(self._networks.dial, owner_of(instance), name), names)
