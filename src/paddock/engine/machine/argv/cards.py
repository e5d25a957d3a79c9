"""Network cards: what they are connected to, and the devices."""

from collections.abc import Sequence
from typing import Any

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.blocks import virtio
from paddock.engine.machine.argv.errors import missing, unusable
from paddock.engine.machine.argv.line import Properties, TapOpening
from paddock.engine.machine.config import MachineConfig, Nic, StreamNetwork, Tap, UserNetwork

# QEMU's names of the models; these sit on the root bus, as they are no express devices
CONVENTIONAL = {"e1000": "e1000", "rtl8139": "rtl8139", "pcnet": "pcnet", "ne2k_pci": "ne2k_pci"}
_EXPRESS = {"e1000e": "e1000e", "igb": "igb"}
_PROTOCOLS = ("tcp", "udp")


def queues_of(nic: Nic) -> int:
    """Return the number of queues of the card."""
    return nic.backend.queues if isinstance(nic.backend, Tap) and nic.model == "virtio" else 1


def opening(nic: Nic, *, vhost: bool) -> TapOpening | None:
    """Return the device to open for the card before QEMU gets it."""
    if not isinstance(nic.backend, Tap):
        return None
    return TapOpening(nic=nic.name, device=nic.backend.device, queues=queues_of(nic), vhost=vhost and nic.model == "virtio")


def backend(nic: Nic, files: Sequence[str] | str, vhosts: Sequence[str] | str | None = None) -> Properties:
    """Return the backend of the card, as `-netdev` and `netdev_add` take it; `files` are the open tap device."""
    found: dict[str, Any] = {"id": names.netdev(nic.name)}
    match nic.backend:
        case Tap():
            # Both forms name open files: numbers at the start, names by QMP.
            found |= {"type": "tap", "fds": files if isinstance(files, str) else ":".join(files)}
            if vhosts is not None:
                found |= {"vhost": True, "vhostfds": vhosts if isinstance(vhosts, str) else ":".join(vhosts)}
        case UserNetwork():
            found |= _user(nic.name, nic.backend)
        case StreamNetwork():
            found |= {"type": "stream", "server": False, "addr": {"type": "unix", "path": str(nic.backend.path)}}
    return found


def _user(name: str, user: UserNetwork) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "user", "ipv6": False, "net": user.network, "host": user.gateway}
    found |= {"dhcpstart": user.address, "dns": user.dns}
    if user.network6 and not user.isolated:
        # Which QEMU keeps to IPv4 alone.
        prefix, _, length = user.network6.partition("/")
        found |= {"ipv4": True, "ipv6": True, "ipv6-prefix": prefix, "ipv6-prefixlen": int(length)}
        found |= {"ipv6-host": user.gateway6, "ipv6-dns": user.dns6}
    if user.hostname:
        found["hostname"] = user.hostname
    if user.domain:
        found["domainname"] = user.domain
    if user.search:
        found["dnssearch"] = [{"str": domain} for domain in user.search]
    if user.isolated:
        found["restrict"] = True
    if user.forwards:
        found["hostfwd"] = [{"str": _forward(name, *forward)} for forward in user.forwards]
    return found


def _forward(name: str, protocol: str, address: str, port: int, inner: int) -> str:
    if protocol not in _PROTOCOLS or ":" in address or "-" in address:
        raise unusable(f"a forwarded port of card {name}", f"{protocol}:{address}:{port} is none")
    return f"{protocol}:{address}:{port}-:{inner}"


def device_properties(nic: Nic, config: MachineConfig) -> dict[str, Any]:
    """The card's device, without its place."""
    properties: dict[str, Any] = {"driver": driver(nic, config), "id": names.nic(nic.name)}
    properties |= {"netdev": names.netdev(nic.name), "mac": nic.mac}
    if nic.boot_order is None:
        # Without the option ROM the firmware starts faster, and the card is no boot device by mistake.
        properties["romfile"] = ""
    else:
        properties["bootindex"] = nic.boot_order
    if nic.acpi_index is not None:
        properties["acpi-index"] = nic.acpi_index
    if nic.model == "virtio":
        properties |= _virtio_only(nic)
    return properties


def _virtio_only(nic: Nic) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    queues = queues_of(nic)
    if queues > 1:
        # a vector for each direction of each queue, for the control queue and for changes
        properties |= {"mq": True, "vectors": 2 * queues + 2}
    if nic.mtu is not None:
        properties["host_mtu"] = nic.mtu
    return properties


def driver(nic: Nic, config: MachineConfig) -> str:
    """QEMU's name of the card's model."""
    if nic.model == "virtio":
        return virtio("virtio-net-pci", config)
    found = CONVENTIONAL.get(nic.model) or _EXPRESS.get(nic.model)
    if found is None:
        raise missing(f"network card {nic.name}", f"model {nic.model!r}", f"use one of virtio, {', '.join((*CONVENTIONAL, *_EXPRESS))}")
    return found
