"""The rules of VirtRigaud's VMNetworkAttachment."""

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VLANConfig, VMNetworkAttachment

NETWORK: Path = ("spec", "network")
ALLOCATION: Path = ("spec", "ipAllocation")
FIREWALL: Path = ("spec", "security", "firewall", "rules")
BLOCKS = ("vsphere", "libvirt", "proxmox")
VLAN = "virtrigaud/vlan"
NETWORK_SOURCE = "virtrigaud/network-source"
IP_ALLOCATION = "virtrigaud/ip-allocation"
PORTS = "virtrigaud/port-range"
NETWORKS = "virtrigaud/firewall-network"
# What the type of a VLAN needs.
_VLAN_NEEDS = {"vlan": ("vlanID",), "trunk": ("trunkVlanIDs",), "pvlan": ("primaryVlanID", "secondaryVlanID")}


@rule(NETWORK_SOURCE)
def network_is_somewhere(attachment: "VMNetworkAttachment", settings: AdmissionSettings) -> Iterator[Finding]:
    """A network that leads outside has a block for at least one provider, and each block names one thing (warnings)."""
    network = attachment.spec.network
    if network.type in ("bridged", "external") and all(getattr(network, name) is None for name in BLOCKS):
        text = f"no network: give at least one of {', '.join(BLOCKS)}, or a type that needs none"
        yield finding.warning(NETWORK, text, NETWORK_SOURCE)
    if network.libvirt is not None and network.libvirt.networkName and network.libvirt.bridge is not None:
        text = "networkName and bridge are both given; the bridge is taken"
        yield finding.warning((*NETWORK, "libvirt", "networkName"), text, NETWORK_SOURCE)


@rule(VLAN)
def vlan_has_its_numbers(attachment: "VMNetworkAttachment", settings: AdmissionSettings) -> Iterator[Finding]:
    """A VLAN has the numbers its type needs, and no others (warnings)."""
    vsphere = attachment.spec.network.vsphere
    if vsphere is not None and vsphere.vlan is not None:
        yield from _vlan(vsphere.vlan, (*NETWORK, "vsphere", "vlan"))


def _vlan(vlan: "VLANConfig", path: Path) -> Iterator[Finding]:
    needs = _VLAN_NEEDS.get(vlan.type, ())
    for name in needs:
        if not getattr(vlan, name):
            yield finding.warning((*path, name), f'type "{vlan.type}" needs it', VLAN)
    for name in ("vlanID", "trunkVlanIDs", "primaryVlanID", "secondaryVlanID"):
        if name not in needs and getattr(vlan, name):
            yield finding.warning((*path, name), f'has no effect with type "{vlan.type}"', VLAN)


@rule(IP_ALLOCATION)
def allocation_has_its_block(attachment: "VMNetworkAttachment", settings: AdmissionSettings) -> Iterator[Finding]:
    """The kind of allocation has its own block, and a gateway can be reached (warnings)."""
    allocation = attachment.spec.ipAllocation
    if allocation is None:
        return
    if allocation.type == "Pool" and allocation.poolConfig is None:
        yield finding.warning((*ALLOCATION, "poolConfig"), 'type "Pool" needs the name of a pool', IP_ALLOCATION)
    for kind, name in (("Static", "staticConfig"), ("Pool", "poolConfig"), ("DHCP", "dhcpConfig")):
        if allocation.type != kind and getattr(allocation, name) is not None:
            text = f'has no effect with type "{allocation.type}"'
            yield finding.warning((*ALLOCATION, name), text, IP_ALLOCATION)
    static = allocation.staticConfig
    if static is not None and static.gateway:
        network, gateway = _network(static.address), _address(static.gateway)
        if network is not None and gateway is not None and gateway not in network:
            text = f"{static.gateway} is outside of {network}, so the guest cannot reach it"
            yield finding.warning((*ALLOCATION, "staticConfig", "gateway"), text, IP_ALLOCATION)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


@rule(
    PORTS,
    Cel(
        "spec.security.firewall.rules[].ports",
        "!has(self.end) || self.end >= self.start",
        "must not be smaller than start",
        ".end",
    ),
)
def ports_go_up(attachment: "VMNetworkAttachment", settings: AdmissionSettings) -> Iterator[Finding]:
    """The last port of a range is not smaller than the first."""
    security = attachment.spec.security
    if security is None or security.firewall is None:
        return
    for index, each in enumerate(security.firewall.rules or ()):
        if each.ports is not None and each.ports.end is not None and each.ports.end < each.ports.start:
            why = f"must not be smaller than start ({each.ports.start})"
            yield finding.invalid((*FIREWALL, index, "ports", "end"), each.ports.end, why, PORTS)


@rule(NETWORKS)
def firewall_networks_are_networks(attachment: "VMNetworkAttachment", settings: AdmissionSettings) -> Iterator[Finding]:
    """The networks of a firewall rule are networks (a warning)."""
    security = attachment.spec.security
    if security is None or security.firewall is None:
        return
    for index, each in enumerate(security.firewall.rules or ()):
        for name in ("sourceCIDR", "destinationCIDR"):
            value = getattr(each, name)
            if value and _network(value) is None:
                text = f"{value} is no network such as 10.0.0.0/24, so the rule matches nothing"
                yield finding.warning((*FIREWALL, index, name), text, NETWORKS)


RULES = (network_is_somewhere, vlan_has_its_numbers, allocation_has_its_block, ports_go_up, firewall_networks_are_networks)
