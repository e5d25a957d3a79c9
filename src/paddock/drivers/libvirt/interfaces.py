"""The network interfaces of a domain. Pure."""

from collections.abc import Mapping
from xml.etree.ElementTree import Element

from msgspec import UNSET

from paddock.contract.payloads import NetworkPayload
from paddock.drivers.libvirt.xmltree import child

MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci", "vmxnet3")
_KILOBYTE = 8000
# The manifest calls the kernel's own driver kvm.
_DRIVERS = {"kvm": "vhost"}
_SWITCH: Mapping[object, str] = {True: "on", False: "off"}


def element(card: NetworkPayload, mac: str, network: str) -> Element:
    """Return the element of an interface: on a bridge, on a network, or on the default one."""
    bridge = card.bridge
    made = Element("interface", {"type": "bridge" if bridge else "network"})
    child(made, "mac", address=mac)
    if bridge:
        child(made, "source", bridge=bridge)
    else:
        group = {"portgroup": card.portgroup} if card.portgroup and card.network_name != card.portgroup else {}
        child(made, "source", network=card.network_name or network, **group)
    if card.vlan:
        child(child(made, "vlan"), "tag", id=str(card.vlan))
        if bridge:
            # The kernel's bridges take no tag from libvirt; those of Open vSwitch do.
            child(made, "virtualport", type="openvswitch")
    child(made, "model", type=card.model or "virtio")
    _driver(made, card)
    if card.mtu:
        child(made, "mtu", size=str(card.mtu))
    _bandwidth(made, card)
    _filter(made, card)
    if card.name:
        child(made, "alias", name=f"ua-{card.name}")
    return made


def _bandwidth(made: Element, card: NetworkPayload) -> None:
    if card.qos is UNSET or not (card.qos.ingress_limit or card.qos.egress_limit):
        return
    bandwidth = child(made, "bandwidth")
    for tag, bits in (("inbound", card.qos.ingress_limit), ("outbound", card.qos.egress_limit)):
        if bits:
            child(bandwidth, tag, average=str(max(1, bits // _KILOBYTE)))


def _driver(made: Element, card: NetworkPayload) -> None:
    """Tune the driver behind a card. Virtio cards alone have one that can be."""
    if not card.driver or (card.model or "virtio") != "virtio":
        return
    words: dict[str, str | None] = {
        "name": _DRIVERS.get(card.driver.get("name", "")),
        "queues": str(card.driver["queues"]) if card.driver.get("queues") else None,
        "txmode": card.driver.get("txMode"),
        "ioeventfd": _SWITCH.get(card.driver.get("ioEventFD")),
        "event_idx": _SWITCH.get(card.driver.get("eventIDX")),
    }
    if found := {name: value for name, value in words.items() if value}:
        child(made, "driver", **found)


def _filter(made: Element, card: NetworkPayload) -> None:
    """Name the packet filter: the one that was asked for, or the one that keeps a guest to its MAC address."""
    if card.filter_ref:
        found = child(made, "filterref", filter=str(card.filter_ref.get("filter", "")))
        for name, value in (card.filter_ref.get("parameters") or {}).items():
            child(found, "parameter").attrib |= {"name": str(name), "value": str(value)}
        return
    if card.security is not UNSET and (card.security.forbid_mac_changes or card.security.forbid_forged_transmits):
        child(made, "filterref", filter="no-mac-spoofing")
