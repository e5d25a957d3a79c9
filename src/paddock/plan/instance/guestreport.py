"""The guest's report, in the words of the API. The agent's reader has bounded and cleaned it."""

from collections.abc import Iterable

from paddock.dialects.kubevirt.status import GuestOSInfo, InterfaceStatus
from paddock.engine.machine.guest import AgentInfo, GuestInterface, GuestOs

_NO_MAC = "00:00:00:00:00:00"


def system(found: GuestOs) -> GuestOSInfo:
    """The operating system."""
    return GuestOSInfo(
        name=found.name or None,
        kernelRelease=found.kernel_release or None,
        version=found.version or None,
        prettyName=found.pretty_name or None,
        versionId=found.version_id or None,
        kernelVersion=found.kernel_version or None,
        machine=found.machine or None,
        id=found.id or None,
    )


def commands(found: AgentInfo) -> frozenset[str]:
    """The commands that the agent carries out."""
    return frozenset(name for name, enabled in found.commands if enabled)


def interfaces(found: Iterable[GuestInterface]) -> tuple[InterfaceStatus, ...]:
    """The cards as the guest has them, without its loopback."""
    return tuple(_interface(each) for each in found if each.mac and each.mac != _NO_MAC)


def _interface(found: GuestInterface) -> InterfaceStatus:
    addresses = [address for address, _ in found.addresses]
    first = addresses[0] if addresses else None
    return InterfaceStatus(
        interfaceName=found.name, mac=found.mac, ipAddress=first, ipAddresses=addresses or None, infoSource="guest-agent"
    )
