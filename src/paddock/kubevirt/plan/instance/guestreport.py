"""The guest's report, in the words of the API. The agent's reader has bounded and cleaned it."""

from collections.abc import Iterable

from paddock.engine.machine.guest import AgentInfo, GuestInterface, GuestOs
from paddock.kubevirt.kinds.status import GuestOSInfo, InterfaceStatus

_NO_MAC = "00:00:00:00:00:00"


def system(guest_os: GuestOs) -> GuestOSInfo:
    return GuestOSInfo(
        name=guest_os.name or None,
        kernelRelease=guest_os.kernel_release or None,
        version=guest_os.version or None,
        prettyName=guest_os.pretty_name or None,
        versionId=guest_os.version_id or None,
        kernelVersion=guest_os.kernel_version or None,
        machine=guest_os.machine or None,
        id=guest_os.id or None,
    )


def commands(agent_info: AgentInfo) -> frozenset[str]:
    """The commands that the agent carries out."""
    return frozenset(name for name, enabled in agent_info.commands if enabled)


def interfaces(guest_interfaces: Iterable[GuestInterface]) -> tuple[InterfaceStatus, ...]:
    """The cards as the guest has them, without its loopback."""
    return tuple(_interface(each) for each in guest_interfaces if each.mac and each.mac != _NO_MAC)


def _interface(interface: GuestInterface) -> InterfaceStatus:
    addresses = [address for address, _ in interface.addresses]
    first = addresses[0] if addresses else None
    return InterfaceStatus(
        interfaceName=interface.name, mac=interface.mac, ipAddress=first, ipAddresses=addresses or None, infoSource="guest-agent"
    )
