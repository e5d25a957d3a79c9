"""Networks: what a card is attached to, and the NetworkAttachmentDefinition that says how.

A definition is made from the VMNetworkAttachment alone and belongs to it, so that all machines on the network share it. Which
block of the attachment counts depends on the provider; the definition's name tells which one did.
"""

import dataclasses
import re

from paddock.base import names
from paddock.dialects.virtrigaud.kinds import sources
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import IPAllocation, VMNetworkAttachment, VSphereNetwork
from paddock.dialects.virtrigaud.translate import cni, marks
from paddock.dialects.virtrigaud.translate.account import Account
from paddock.dialects.virtrigaud.translate.resolved import ResolvedNic, VirtrigaudInputs
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.networks import Interface, MultusNetwork, Network, PodNetwork

API_VERSION = "k8s.cni.cncf.io/v1"
MTU = 1500
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,15}\Z", re.ASCII)
_MODELS = ("e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139", "virtio")
# Types of networks that lead nowhere: a bridge without a way out.
_SEALED = ("isolated", "host-only")


@dataclasses.dataclass(frozen=True)
class NicAttachments:
    """The cards of a machine: how each is attached, and the definitions that it takes."""

    interfaces: list[Interface]
    networks: list[Network]
    definitions: tuple[NetworkAttachmentDefinition, ...]
    multiqueue: bool


def wire(resolved: VirtrigaudInputs) -> NicAttachments | None:
    """All cards; None when the machine says nothing of networks, so that it has the default card."""
    if not resolved.cards:
        return None
    interfaces: list[Interface] = []
    networks: list[Network] = []
    multiqueue = False
    definitions: dict[tuple[str, str], NetworkAttachmentDefinition] = {}
    for nic in resolved.cards:
        attached = _attach(resolved, nic, taken=any(network.pod is not None for network in networks))
        if attached is None:
            continue
        network, definition = attached
        networks.append(network)
        interfaces.append(_interface(resolved, nic, network))
        multiqueue = multiqueue or _queues(nic, _block(resolved, nic)) > 1
        if definition is not None:
            definitions[namespace_of(definition), definition.metadata.name] = definition
    return NicAttachments(interfaces, networks, tuple(definitions.values()), multiqueue)


def _attach(
    resolved: VirtrigaudInputs, resolved_nic: ResolvedNic, *, taken: bool
) -> tuple[Network, NetworkAttachmentDefinition | None] | None:
    path, name = ("networks", resolved_nic.position), resolved_nic.ref.name
    resolved.account.took(*path, "name")
    if resolved_nic.ref.networkRef is None:
        if not taken:
            return Network(name=name, pod=PodNetwork()), None
        why = "it names no network, and a machine is on the pod network only once"
        resolved.account.lose(path, name, why, "the machine is made without the card")
        return None
    resolved.account.took(*path, "networkRef", "namespace")
    resolved.account.took(*path, "networkRef", "name")
    if resolved_nic.network is None or resolved_nic.account is None:
        return _absent(resolved, resolved_nic), None
    return _network(resolved, resolved_nic, resolved_nic.network, resolved_nic.account, taken=taken)


def _absent(resolved: VirtrigaudInputs, resolved_nic: ResolvedNic) -> Network:
    ref = resolved_nic.ref.networkRef
    assert ref is not None
    target = marks.reference(ref.namespace, ref.name, resolved.namespace)
    why = f'VMNetworkAttachment "{ref.name}" is not among the objects'
    instead = f"the card is attached to NetworkAttachmentDefinition {target}, which has to be there"
    resolved.account.lose(("networks", resolved_nic.position, "networkRef", "name"), ref.name, why, instead)
    return Network(name=resolved_nic.ref.name, multus=MultusNetwork(networkName=target))


def _network(
    resolved: VirtrigaudInputs, resolved_nic: ResolvedNic, network: VMNetworkAttachment, account: Account, *, taken: bool
) -> tuple[Network, NetworkAttachmentDefinition | None]:
    name, config = resolved_nic.ref.name, network.spec.network
    if config.type == "nat" and not taken:
        account.took("network", "type")
        return Network(name=name, pod=PodNetwork()), None
    if config.type == "nat":
        why = "a machine is on the pod network only once"
        account.lose(("network", "type"), "nat", why, "the card is on a bridge without a way out")
    existing = _existing(resolved, network, account)
    if existing is not None:
        return Network(name=name, multus=MultusNetwork(networkName=existing)), None
    own = _definition(resolved, network, account)
    target = own.metadata.name
    definition: NetworkAttachmentDefinition | None = own
    # What somebody else made under the network's own name is used as it is.
    foreign = resolved.object_set.get(NetworkAttachmentDefinition, namespace_of(network), network.metadata.name)
    if foreign is not None and marks.NETWORK not in (foreign.metadata.annotations or {}):
        target, definition = network.metadata.name, None
    target = marks.reference(namespace_of(network), target, resolved.namespace)
    return Network(name=name, multus=MultusNetwork(networkName=target)), definition


def _blocks(resolved: VirtrigaudInputs, network: VMNetworkAttachment) -> tuple[str, ...]:
    return sources.network_blocks(network.spec.network, resolved.provider_type)


def _existing(resolved: VirtrigaudInputs, network: VMNetworkAttachment, account: Account) -> str | None:
    """A network of libvirt, known by its name only: a definition of that name is the counterpart, and made by somebody else."""
    blocks = _blocks(resolved, network)
    libvirt = network.spec.network.libvirt
    if not blocks or blocks[0] != "libvirt" or libvirt is None or libvirt.bridge is not None or not libvirt.networkName:
        return None
    namespace, _, name = libvirt.networkName.rpartition("/")
    if not names.is_subdomain(name) or (namespace and not names.is_label(namespace)):
        return None
    account.took("network", "libvirt", "networkName")
    here = namespace or namespace_of(network)
    return marks.reference(here, name, resolved.namespace)


def _definition(resolved: VirtrigaudInputs, network: VMNetworkAttachment, account: Account) -> NetworkAttachmentDefinition:
    blocks = _blocks(resolved, network)
    block = blocks[0] if blocks else ""
    name = f"{network.metadata.name}-{block}" if block else network.metadata.name
    annotations = {marks.NETWORK: network.metadata.name}
    if block:
        annotations[marks.SOURCE] = block
    if network.spec.network.type not in ("bridged", "nat"):
        annotations[marks.NETWORK_TYPE] = network.spec.network.type
    if network.spec.metadata is not None:
        account.took_whole("metadata")
        annotations[marks.ABOUT] = marks.as_json({"metadata": to_data(network.spec.metadata)})
    return NetworkAttachmentDefinition(
        apiVersion=API_VERSION,
        kind="NetworkAttachmentDefinition",
        metadata=ObjectMeta(
            name=name,
            namespace=network.metadata.namespace,
            labels={marks.MANAGED_BY: resolved.rendering.product},
            annotations=annotations,
            ownerReferences=owned_by(network),
        ),
        spec=NetworkAttachmentDefinitionSpec(config=cni.document(name, plugins(network, block, account))),
    )


def plugins(network: VMNetworkAttachment, block: str, account: Account) -> list[cni.BridgePlugin | cni.Bandwidth]:
    """The plugins of a network's definition, by the block that counts."""
    config, allocation = network.spec.network, network.spec.ipAllocation or IPAllocation()
    vlan, trunk = _vlan(network, block, account)
    vsphere = config.vsphere if block == "vsphere" else None
    security = vsphere.security if vsphere is not None else None
    for member in ("allowPromiscuous", "allowForgedTransmits") if security is not None else ():
        account.took("network", "vsphere", "security", member)
    if config.type == "host-only":
        why = "a bridge of the nodes has no address of theirs"
        account.lose(("network", "type"), "host-only", why, "machines see only each other, as with isolated")
    account.took("network", "type")
    plugin = cni.BridgePlugin(
        bridge=_bridge(network, block, account),
        vlan=vlan,
        vlanTrunk=trunk,
        mtu=_mtu(network, block, account),
        macspoofchk=True if security is not None and not security.allowForgedTransmits else None,
        promiscMode=True if security is not None and security.allowPromiscuous else None,
        ipam=_ipam(allocation, account),
        dns=_dns(allocation, account),
    )
    limits = _limits(network, account)
    return [plugin] if limits is None else [plugin, limits]


def _bridge(network: VMNetworkAttachment, block: str, account: Account) -> str:
    """The bridge of the nodes that is the network."""
    config = network.spec.network
    if block == "libvirt" and config.libvirt is not None and config.libvirt.bridge is not None:
        return _device(network, account, ("network", "libvirt", "bridge", "name"), config.libvirt.bridge.name)
    if block == "libvirt" and config.libvirt is not None and config.libvirt.networkName:
        return _device(network, account, ("network", "libvirt", "networkName"), config.libvirt.networkName)
    if block == "proxmox" and config.proxmox is not None and config.proxmox.bridge:
        account.took("network", "proxmox", "bridge")
        return config.proxmox.bridge
    if block == "vsphere" and config.vsphere is not None and config.vsphere.portgroup:
        return _device(network, account, ("network", "vsphere", "portgroup"), config.vsphere.portgroup)
    made = marks.bridge(f"{namespace_of(network)}/{network.metadata.name}")
    if config.type not in _SEALED and config.type != "nat":
        why = "no block names a bridge"
        account.lose(("network", "type"), config.type, why, f"bridge {made} is used; connect it on the nodes")
    return made


def _device(network: VMNetworkAttachment, account: Account, path: tuple[str, ...], name: str) -> str:
    """A bridge by a name that was given, where the kernel takes it for a device's name."""
    if _DEVICE.match(name) and name not in (".", ".."):
        account.took(*path)
        return name
    made = marks.bridge(name)
    account.lose(path, name, "it cannot be the name of a bridge", f"bridge {made} is used; connect it to the same network on the nodes")
    return made


def _vlan(network: VMNetworkAttachment, block: str, account: Account) -> tuple[int | None, list[cni.Vlan] | None]:
    config = network.spec.network
    if block == "proxmox" and config.proxmox is not None:
        account.took("network", "proxmox", "vlanTag")
        return config.proxmox.vlanTag, None
    given = config.vsphere.vlan if block == "vsphere" and config.vsphere is not None else None
    path = ("network", "vsphere", "vlan")
    if given is not None and given.type == "vlan" and given.vlanID:
        account.took(*path, "type")
        account.took(*path, "vlanID")
        return given.vlanID, None
    if given is not None and given.type == "trunk" and given.trunkVlanIDs:
        account.took(*path, "type")
        account.took(*path, "trunkVlanIDs")
        return None, [cni.Vlan(id=number) for number in given.trunkVlanIDs]
    return None, None


def _mtu(network: VMNetworkAttachment, block: str, account: Account) -> int | None:
    config = network.spec.network
    own = config.proxmox.mtu if block == "proxmox" and config.proxmox is not None else None
    if own is None:
        account.took("network", "mtu")
        return None if config.mtu == MTU else config.mtu
    account.took("network", "proxmox", "mtu")
    if config.mtu not in (MTU, own):
        account.lose(("network", "mtu"), config.mtu, "proxmox.mtu is given, too", f"the MTU is {own}")
    account.took("network", "mtu")
    return own


def _ipam(allocation: IPAllocation, account: Account) -> cni.CniIpam | None:
    """A static address is handed to the guest by KubeVirt itself."""
    if allocation.type != "Static" or allocation.staticConfig is None:
        return None
    path, given = ("ipAllocation", "staticConfig"), allocation.staticConfig
    account.took("ipAllocation", "type")
    for member in ("address", "gateway"):
        account.took(*path, member)
    for index, _ in enumerate(given.routes or ()):
        for member in ("destination", "gateway", "metric"):
            account.took(*path, "routes", index, member)
    return cni.CniIpam(
        type="static",
        addresses=[cni.StaticAddress(given.address, given.gateway)],
        routes=[cni.CniRoute(each.destination, each.gateway, each.metric) for each in given.routes or ()] or None,
    )


def _dns(allocation: IPAllocation, account: Account) -> cni.CniDns | None:
    given = allocation.dnsConfig
    if given is None:
        return None
    path = ("ipAllocation", "dnsConfig")
    account.took(*path, "servers")
    account.took(*path, "searchDomains")
    options = []
    for name, value in (given.options or {}).items():
        if ":" in name:
            account.lose((*path, "options", name), value, "a resolver option has a name without a colon", "the guest is not told")
            continue
        account.took(*path, "options", name)
        options.append(f"{name}:{value}" if value else name)
    return cni.CniDns(nameservers=given.servers or None, search=given.searchDomains or None, options=options or None)


def _limits(network: VMNetworkAttachment, account: Account) -> cni.Bandwidth | None:
    """Limits in bits a second; a second's worth may come at once."""
    given = network.spec.qos
    if given is None or (given.ingressLimit is None and given.egressLimit is None):
        return None
    account.took("qos", "ingressLimit")
    account.took("qos", "egressLimit")
    return cni.Bandwidth(
        ingressRate=given.ingressLimit, ingressBurst=given.ingressLimit, egressRate=given.egressLimit, egressBurst=given.egressLimit
    )


def _block(resolved: VirtrigaudInputs, resolved_nic: ResolvedNic) -> str:
    """The block of the card's network that counts."""
    blocks = _blocks(resolved, resolved_nic.network) if resolved_nic.network is not None else ()
    return blocks[0] if blocks else ""


def _queues(resolved_nic: ResolvedNic, block: str) -> int:
    libvirt = resolved_nic.network.spec.network.libvirt if resolved_nic.network is not None and block == "libvirt" else None
    if libvirt is None or libvirt.driver is None or libvirt.model != "virtio":
        return 1
    return libvirt.driver.queues or 1


def _interface(resolved: VirtrigaudInputs, resolved_nic: ResolvedNic, network: Network) -> Interface:
    resolved.account.took("networks", resolved_nic.position, "macAddress")
    return Interface(
        name=resolved_nic.ref.name,
        model=_model(resolved, resolved_nic),
        masquerade=Empty() if network.pod is not None else None,
        bridge=Empty() if network.multus is not None else None,
        macAddress=resolved_nic.ref.macAddress,
    )


def _model(resolved: VirtrigaudInputs, resolved_nic: ResolvedNic) -> str:
    if resolved_nic.network is None or resolved_nic.account is None:
        return "virtio"
    block, config = _block(resolved, resolved_nic), resolved_nic.network.spec.network
    given = {
        "libvirt": config.libvirt.model if config.libvirt is not None else "",
        "proxmox": config.proxmox.model if config.proxmox is not None else "",
        "vsphere": _adapter(config.vsphere),
    }.get(block, "virtio")
    member = "adapterType" if block == "vsphere" else "model"
    if given in _MODELS:
        resolved_nic.account.took("network", block, member)
        return given
    why = "KubeVirt has no such card"
    resolved_nic.account.lose(("network", block, member), given, why, "the card is a virtio card; the guest needs its driver")
    return "virtio"


def _adapter(vsphere: VSphereNetwork | None) -> str:
    # vSphere's defaults, which our machines have then, too.
    return "virtio" if vsphere is None or vsphere.adapterType == "vmxnet3" else vsphere.adapterType
