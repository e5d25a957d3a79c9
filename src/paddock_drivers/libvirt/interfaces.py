"""The network interfaces of a domain. Pure."""

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from msgspec import UNSET

from paddock.contract.payloads import NetworkPayload
from paddock_drivers.libvirt.xmltree import child

MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci", "vmxnet3")
_KILOBYTE = 8000
# The manifest calls the kernel's own driver kvm.
_DRIVERS = {"kvm": "vhost"}
_SWITCH: Mapping[object, str] = {True: "on", False: "off"}


def element(network_payload: NetworkPayload, mac: str, network: str) -> Element:
    """Return the element of an interface: on a bridge, on a network, or on the default one."""
    bridge = network_payload.bridge
    made = Element("interface", {"type": "bridge" if bridge else "network"})
    child(made, "mac", address=mac)
    if bridge:
        child(made, "source", bridge=bridge)
    else:
        group = (
            {"portgroup": network_payload.portgroup}
            if network_payload.portgroup and network_payload.network_name != network_payload.portgroup
            else {}
        )
        child(made, "source", network=network_payload.network_name or network, **group)
    if network_payload.vlan:
        child(child(made, "vlan"), "tag", id=str(network_payload.vlan))
        if bridge:
            # The kernel's bridges take no tag from libvirt; those of Open vSwitch do.
            child(made, "virtualport", type="openvswitch")
    child(made, "model", type=network_payload.model or "virtio")
    _driver(made, network_payload)
    if network_payload.mtu:
        child(made, "mtu", size=str(network_payload.mtu))
    _bandwidth(made, network_payload)
    _filter(made, network_payload)
    if network_payload.name:
        child(made, "alias", name=f"ua-{network_payload.name}")
    return made


def _bandwidth(made: Element, network: NetworkPayload) -> None:
    if network.qos is UNSET or not (network.qos.ingress_limit or network.qos.egress_limit):
        return
    bandwidth = child(made, "bandwidth")
    for tag, bits in (("inbound", network.qos.ingress_limit), ("outbound", network.qos.egress_limit)):
        if bits:
            child(bandwidth, tag, average=str(max(1, bits // _KILOBYTE)))


def _driver(made: Element, network: NetworkPayload) -> None:
    """Tune the driver behind a card. Virtio cards alone have one that can be."""
    if not network.driver or (network.model or "virtio") != "virtio":
        return
    words: dict[str, str | None] = {
        "name": _DRIVERS.get(network.driver.get("name", "")),
        "queues": str(network.driver["queues"]) if network.driver.get("queues") else None,
        "txmode": network.driver.get("txMode"),
        "ioeventfd": _SWITCH.get(network.driver.get("ioEventFD")),
        "event_idx": _SWITCH.get(network.driver.get("eventIDX")),
    }
    if found := {name: value for name, value in words.items() if value}:
        child(made, "driver", **found)


def _filter(made: Element, network: NetworkPayload) -> None:
    """Name the packet filter: the one that was asked for, or the one that keeps a guest to its MAC address."""
    if network.filter_ref:
        found = child(made, "filterref", filter=str(network.filter_ref.get("filter", "")))
        for name, value in (network.filter_ref.get("parameters") or {}).items():
            child(found, "parameter").attrib |= {"name": str(name), "value": str(value)}
        return
    if network.security is not UNSET and (network.security.forbid_mac_changes or network.security.forbid_forged_transmits):
        child(made, "filterref", filter="no-mac-spoofing")
