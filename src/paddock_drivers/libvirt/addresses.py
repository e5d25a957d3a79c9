"""Addresses of guests: by the agent, by the leases of libvirt's networks, and by the neighbours that the host has seen."""

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

import libvirt
import msgspec

from paddock_drivers.libvirt import failures
from paddock_drivers.libvirt.domainview import DomainView

_AGENT_SECONDS = 2
# Addresses that containers and tunnels have within a guest reach nobody.
_LARGEST = 64


class GuestAddresses(msgspec.Struct, frozen=True):
    """Addresses by the MAC address of the interface, and who told them."""

    by_mac: Mapping[str, tuple[str, ...]] = {}
    source: str = ""

    def every(self, macs: Iterable[str]) -> tuple[str, ...]:
        """Return the addresses in the order of the interfaces, each once."""
        return tuple(dict.fromkeys(address for mac in macs for address in self.by_mac.get(mac, ())))


NOWHERE = GuestAddresses()


def find(domain: Any, view: DomainView) -> GuestAddresses:
    """Return the addresses of a guest that runs. In a thread."""
    if agent_connected(view):
        found = _by_agent(domain, {each.mac for each in view.interfaces})
        if found.by_mac:
            return found
    for source, name in (
        (libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE, "lease"),
        (libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_ARP, "arp"),
    ):
        found = _by_source(domain, source, name)
        if found.by_mac:
            return found
    return NOWHERE


def leases(conn: Any) -> GuestAddresses:
    """Return the addresses that all of libvirt's networks have leased: a call for each network. In a thread."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        for network in conn.listAllNetworks(libvirt.VIR_CONNECT_LIST_NETWORKS_ACTIVE):
            for lease in network.DHCPLeases():
                mac = str(lease.get("mac") or "").lower()
                found[mac] = (*found.get(mac, ()), *_reachable([str(lease.get("ipaddr", ""))]))
    except libvirt.libvirtError as error:
        if failures.is_lost(error):
            raise
    return GuestAddresses(found, "lease")


def agent_connected(view: DomainView) -> bool:
    """Return whether a guest's agent has its channel open. libvirt waits long for an agent that is not there."""
    for channel in view.root.iterfind("devices/channel/target"):
        if channel.get("name") == "org.qemu.guest_agent.0":
            return channel.get("state") == "connected"
    return False


def _by_agent(domain: Any, macs: set[str]) -> GuestAddresses:
    try:
        domain.agentSetResponseTimeout(_AGENT_SECONDS, 0)
        answer = domain.interfaceAddresses(libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT, 0)
    except libvirt.libvirtError as error:
        if failures.is_lost(error):
            raise
        return NOWHERE
    return _read(answer, "agent", macs)


def _by_source(domain: Any, source: int, name: str) -> GuestAddresses:
    try:
        return _read(domain.interfaceAddresses(source, 0), name, None)
    except libvirt.libvirtError as error:
        if failures.is_lost(error) and failures.code_of(error) != failures.SYSTEM_ERROR:
            raise
        return NOWHERE


def _read(answer: Mapping[str, Any], source: str, macs: set[str] | None) -> GuestAddresses:
    found: dict[str, tuple[str, ...]] = {}
    for each in answer.values():
        mac = str(each.get("hwaddr") or "").lower()
        if macs is None or mac in macs:
            addresses = _reachable([str(one.get("addr", "")) for one in each.get("addrs") or ()][:_LARGEST])
            if addresses:
                found[mac] = (*found.get(mac, ()), *addresses)
    return GuestAddresses(found, source)


def _reachable(texts: Iterable[str]) -> tuple[str, ...]:
    found = []
    for text in texts:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            continue
        if not (address.is_link_local or address.is_loopback or address.is_unspecified or address.is_multicast):
            found.append(str(address))
    return tuple(found)
