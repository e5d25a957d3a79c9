"""The networks of a KubeVirt machine as VMNetworkAttachments, and its cards."""

import dataclasses
import re

import msgspec

from paddock.dialects.virtrigaud.kinds.machine import VMNetworkRef
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION, ObjectRef
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import (
    NETWORK_TYPES,
    BridgeConfig,
    GuestDNSConfig,
    IPAllocation,
    LibvirtNetwork,
    NetworkConfig,
    NetworkDriver,
    NetworkMetadata,
    NetworkQoS,
    PortgroupSecurity,
    ProxmoxNetwork,
    StaticIPConfig,
    StaticRoute,
    VLANConfig,
    VMNetworkAttachment,
    VMNetworkAttachmentSpec,
    VSphereNetwork,
)
from paddock.dialects.virtrigaud.translate import addresses, cni, marks, read_class, wiring
from paddock.dialects.virtrigaud.translate.account import Account
from paddock.dialects.virtrigaud.translate.read_image import typed
from paddock.dialects.virtrigaud.translate.reading import MachineReader, from_json, is_name, plain
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.finding import Severity
from paddock.kubevirt.kinds.networks import Interface, Network

POD = "pod-network"
_LIBVIRT_MODELS = ("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci")
_PROXMOX_MODELS = ("virtio", "e1000", "rtl8139")
_VSPHERE_MODELS = {"virtio": "vmxnet3", "e1000": "e1000", "e1000e": "e1000e"}
_PROXMOX_BRIDGE = re.compile(r"vmbr[0-9]+\Z", re.ASCII)
_MOST_CARDS, _MOST_QUEUES, _LABEL = 10, 16, 63


@dataclasses.dataclass(frozen=True)
class NicWiring:
    """The cards, and the networks that they are attached to."""

    cards: list[VMNetworkRef]
    attachments: tuple[VMNetworkAttachment, ...]


def read(reading: MachineReader, network_data: str | None) -> NicWiring:
    """Cards with a network of their own each; a network that several cards share is there once."""
    networks = {network.name: network for network in reading.instance.networks or ()}
    interfaces = reading.instance.domain.devices.interfaces or []
    static = addresses.read(network_data, interfaces)
    remembered = from_json(reading.annotations.get(marks.NETWORKS))
    remembered = remembered if isinstance(remembered, dict) else {}
    cards: list[VMNetworkRef] = []
    attachments: dict[tuple[str | None, str], VMNetworkAttachment] = {}
    for interface in interfaces[:_MOST_CARDS]:
        network = networks.get(interface.name)
        if network is None or (network.pod is None and network.multus is None):
            continue
        name = _card_name(interface.name)
        attachment = None
        text = remembered.get(interface.name)
        # A card of ours without a network keeps the default one.
        if network.pod is None or isinstance(text, str) or marks.PROVIDER not in reading.annotations:
            attachment = _attachment(reading, interface, network, text if isinstance(text, str) else "")
            key = (attachment.metadata.namespace, attachment.metadata.name)
            attachments[key] = _one(attachments.get(key), attachment)
        cards.append(_nic(reading, interface, name, attachment, static.get(interface.name)))
    made = tuple(attachments.values())
    if reading.instance.domain.devices.networkInterfaceMultiqueue:
        made = tuple(_with_queues(network, reading) for network in made)
    return NicWiring(cards, made)


def _with_queues(network: VMNetworkAttachment, reading: MachineReader) -> VMNetworkAttachment:
    """Several queues, as many as the machine has processors; only libvirt's block can say so."""
    libvirt = network.spec.network.libvirt
    if network.spec.network.type == "nat" and libvirt is None:
        libvirt = LibvirtNetwork()
    if libvirt is None or libvirt.model != "virtio":
        return network
    driver = NetworkDriver(queues=max(2, min(_MOST_QUEUES, read_class.cpus(reading))))
    config = msgspec.structs.replace(network.spec.network, libvirt=msgspec.structs.replace(libvirt, driver=driver))
    return msgspec.structs.replace(network, spec=msgspec.structs.replace(network.spec, network=config))


def _one(first: VMNetworkAttachment | None, second: VMNetworkAttachment) -> VMNetworkAttachment:
    """A network that two cards name. Of a NAT network the first card is on the pod network, and the others on its bridge."""
    if first is None or first.spec.network.type != "nat" or second.spec.network.type == "nat":
        return first or second
    network = msgspec.structs.replace(second.spec.network, type="nat")
    return msgspec.structs.replace(second, spec=msgspec.structs.replace(second.spec, network=network))


def _card_name(name: str) -> str:
    return name if is_name(name) and len(name) <= _LABEL else plain(name)[:_LABEL].rstrip("-")


def _nic(
    reading: MachineReader, interface: Interface, name: str, attachment: VMNetworkAttachment | None, static: VMNetworkRef | None
) -> VMNetworkRef:
    ref = None
    if attachment is not None:
        namespace = attachment.metadata.namespace
        own = reading.vm.metadata.namespace
        ref = ObjectRef(name=attachment.metadata.name, namespace=None if namespace == own else namespace)
    mac = interface.macAddress
    made = mac is not None and mac == marks.mac(reading.namespace, reading.name, name)
    return msgspec.structs.replace(static or VMNetworkRef(), name=name, networkRef=ref, macAddress=None if made else mac)


def _attachment(reading: MachineReader, interface: Interface, network: Network, remembered: str) -> VMNetworkAttachment:
    model = interface.model or "virtio"
    if network.multus is None:
        spec = NetworkConfig(type="nat", libvirt=LibvirtNetwork(model=model) if model in _LIBVIRT_MODELS[1:] else None)
        name = POD if model == "virtio" else f"{POD}-{plain(model)}"
        return _made(reading, remembered, ObjectRef(name=name), VMNetworkAttachmentSpec(network=spec))
    namespace, name = marks.referred(network.multus.networkName)
    definition = reading.object_set.get(NetworkAttachmentDefinition, namespace or reading.namespace, name)
    fallback = ObjectRef(name=plain(name if model == "virtio" else f"{name}-{model}"), namespace=namespace)
    if definition is not None:
        ours = (definition.metadata.annotations or {}).get(marks.NETWORK, "")
        named = ObjectRef(name=ours, namespace=namespace) if is_name(ours) else fallback
        spec_of_network = _bridged(definition, model, named.name)
        if spec_of_network is not None:
            return _made(reading, remembered, named, spec_of_network)
    ref = _chosen(remembered, fallback)
    here = namespace is None or namespace == (ref.namespace or reading.namespace)
    known = name if here else network.multus.networkName
    libvirt = LibvirtNetwork(networkName=known, model=model if model in _LIBVIRT_MODELS else "virtio")
    return _made(reading, remembered, fallback, VMNetworkAttachmentSpec(network=NetworkConfig(libvirt=libvirt)))


def _chosen(remembered: str, fallback: ObjectRef) -> ObjectRef:
    namespace, name = marks.referred(remembered)
    return ObjectRef(name=name, namespace=namespace) if is_name(name) else fallback


def _made(reading: MachineReader, remembered: str, fallback: ObjectRef, spec: VMNetworkAttachmentSpec) -> VMNetworkAttachment:
    metadata = reading.metadata_of(_chosen(remembered, fallback))
    return VMNetworkAttachment(apiVersion=API_VERSION, kind="VMNetworkAttachment", metadata=metadata, spec=spec)


def _bridged(definition: NetworkAttachmentDefinition, model: str, name: str) -> VMNetworkAttachmentSpec | None:
    """The network that a definition describes, when one can say all of it: a bridge, perhaps with limits."""
    config = cni.read(definition.spec.config if definition.spec is not None else None)
    if config is None or not config.plugins or not isinstance(config.plugins[0], cni.BridgePlugin):
        return None
    bridge, rest = config.plugins[0], config.plugins[1:]
    limits = rest[0] if rest and isinstance(rest[0], cni.Bandwidth) else None
    if len(rest) > (limits is not None):
        return None
    annotations = definition.metadata.annotations or {}
    kind = annotations.get(marks.NETWORK_TYPE, "bridged")
    about = from_json(annotations.get(marks.ABOUT))
    spec = VMNetworkAttachmentSpec(
        network=_network(bridge, definition, model, kind if kind in NETWORK_TYPES else "bridged"),
        ipAllocation=_allocation(bridge),
        qos=None if limits is None else NetworkQoS(ingressLimit=limits.ingressRate, egressLimit=limits.egressRate),
        metadata=typed(NetworkMetadata, about.get("metadata")) if isinstance(about, dict) else None,
    )
    return spec if _says_the_same(spec, definition, config, name) else None


def _says_the_same(spec: VMNetworkAttachmentSpec, definition: NetworkAttachmentDefinition, config: cni.CniConfig, name: str) -> bool:
    """Return whether the network is valid, and becomes the same definition again."""
    namespace = definition.metadata.namespace
    network = VMNetworkAttachment(
        apiVersion=API_VERSION, kind="VMNetworkAttachment", metadata=ObjectMeta(name=name, namespace=namespace), spec=spec
    )
    if any(found.severity is Severity.ERROR for found in check(VMNetworkAttachment, to_data(network)).findings):
        return False
    blocks = [block for block in ("libvirt", "proxmox", "vsphere") if getattr(spec.network, block) is not None]
    return wiring.plugins(network, blocks[0] if blocks else "", Account(network, ())) == config.plugins


def _network(bridge: cni.BridgePlugin, definition: NetworkAttachmentDefinition, model: str, kind: str) -> NetworkConfig:
    annotations = definition.metadata.annotations or {}
    block = annotations.get(marks.SOURCE, "")
    # A name that was made up for a network that has none.
    made_up = marks.bridge(f"{namespace_of(definition)}/{annotations.get(marks.NETWORK, '')}")
    named = None if bridge.bridge == made_up else bridge.bridge
    if not block and marks.NETWORK in annotations:
        return NetworkConfig(type=kind, mtu=bridge.mtu or wiring.MTU)
    if block not in ("libvirt", "proxmox", "vsphere"):
        block = _able(bridge, model)
    mtu = bridge.mtu or wiring.MTU
    if block == "vsphere":
        return NetworkConfig(type=kind, mtu=mtu, vsphere=_vsphere(bridge, named, model))
    if block == "proxmox":
        own = mtu if mtu > 9000 else None
        proxmox = ProxmoxNetwork(bridge=named, vlanTag=bridge.vlan, model=model if model in _PROXMOX_MODELS else "virtio", mtu=own)
        return NetworkConfig(type=kind, mtu=wiring.MTU if own else mtu, proxmox=proxmox)
    libvirt = LibvirtNetwork(bridge=BridgeConfig(name=named) if named else None, model=model if model in _LIBVIRT_MODELS else "virtio")
    return NetworkConfig(type=kind, mtu=mtu, libvirt=libvirt)


def _able(bridge: cni.BridgePlugin, model: str) -> str:
    """The block that can say the most of a bridge."""
    if bridge.vlanTrunk or bridge.macspoofchk or bridge.promiscMode:
        return "vsphere"
    of_proxmox = _PROXMOX_BRIDGE.match(bridge.bridge) is not None and len(bridge.bridge) <= 15
    if bridge.vlan or (bridge.mtu or 0) > 9000:
        return "proxmox" if of_proxmox else "vsphere"
    return "libvirt"


def _vsphere(bridge: cni.BridgePlugin, named: str | None, model: str) -> VSphereNetwork:
    vlan = None
    if bridge.vlan:
        vlan = VLANConfig(type="vlan", vlanID=bridge.vlan)
    elif bridge.vlanTrunk:
        vlan = VLANConfig(type="trunk", trunkVlanIDs=[each.id for each in bridge.vlanTrunk if each.id is not None])
    security = None
    if bridge.macspoofchk or bridge.promiscMode:
        security = PortgroupSecurity(allowPromiscuous=bool(bridge.promiscMode), allowForgedTransmits=not bridge.macspoofchk)
    return VSphereNetwork(portgroup=named, vlan=vlan, security=security, adapterType=_VSPHERE_MODELS.get(model, "vmxnet3"))


def _allocation(bridge: cni.BridgePlugin) -> IPAllocation | None:
    dns = None
    if bridge.dns is not None:
        pairs = [option.partition(":") for option in bridge.dns.options or ()]
        options = {name: value for name, _, value in pairs}
        dns = GuestDNSConfig(servers=bridge.dns.nameservers, searchDomains=bridge.dns.search, options=options or None)
    ipam = bridge.ipam
    if ipam is None or ipam.type != "static" or not ipam.addresses:
        return None if dns is None else IPAllocation(dnsConfig=dns)
    first = ipam.addresses[0]
    routes = [StaticRoute(destination=route.dst, gateway=route.gw or "", metric=route.priority) for route in ipam.routes or ()]
    static = StaticIPConfig(address=first.address, gateway=first.gateway, routes=routes or None)
    return IPAllocation(type="Static", staticConfig=static, dnsConfig=dns)
