"""The status of a NetworkConfiguration: who uses it, and with which addresses."""

from collections.abc import Iterable

import msgspec

from paddock.dialects.vitistack.kinds import ownform
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfigurationStatus
from paddock.dialects.vitistack.plan.observed import Instance


class NetworkUser(msgspec.Struct, frozen=True):
    """A machine that names the network, and its run."""

    machine: Machine
    instance: Instance | None = None

    @property
    def name(self) -> str:
        """As the status lists it."""
        return f"{self.machine.metadata.namespace}/{self.machine.metadata.name}"


def status(network: str, users: Iterable[NetworkUser], *, ready: bool) -> NetworkConfigurationStatus:
    """The status; `ready` when machines can be attached."""
    listed = sorted(users, key=lambda user: user.name)
    found = dict.fromkeys(address for user in listed for address in addresses(network, user))
    return NetworkConfigurationStatus(
        ready=ready, allocatedIPs=list(found) or None, connectedMachines=[user.name for user in listed] or None
    )


def addresses(network: str, user: NetworkUser) -> list[str]:
    """The addresses that a machine has on the network."""
    cards = {each.name for each in ownform.networks(user.machine.spec) if each.networkName == network}
    seen = (user.instance.status.interfaces if user.instance else None) or ()
    return [address for nic in seen if nic.name in cards for address in nic.addresses]
