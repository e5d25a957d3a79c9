"""The network cards of a machine as the provider contract has them: each from the block of the Provider's type (ruling 0.19)."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from paddock.contract import payloads
from paddock.contract.payloads import NetworkPayload, NetworkSecurityPayload, QosPayload
from paddock.dialects.virtrigaud.kinds import sources
from paddock.dialects.virtrigaud.kinds.machine import VMNetworkRef
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import (
    IPAllocation,
    LibvirtNetwork,
    NetworkConfig,
    NetworkSecurity,
    ProxmoxNetwork,
    StaticIPConfig,
    TrafficShaping,
    VLANConfig,
    VMNetworkAttachment,
    VSphereNetwork,
)
from paddock.dialects.virtrigaud.plan import support
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.field import Object

_DEFAULT_PREFIX = 24
_WITH_BLOCKS = ("vsphere", "libvirt", "proxmox")
# Types of network that the network of a Provider without blocks can stand for.
_OWN_NETWORK = ("nat", "bridged", "external")
_SEVERAL_VLANS = ("trunk", "pvlan")


def cards(vm: VirtrigaudVirtualMachine, provider: Provider, dependencies: MachineDependencies) -> tuple[NetworkPayload, ...]:
    """The cards in the order of the machine; raises `Refusal` for what the contract or the Provider's type cannot have."""
    made = []
    for ref in vm.spec.networks or ():
        network = dependencies.network(vm, ref.networkRef) if ref.networkRef is not None else None
        made.append(_nic(ref, network, provider))
    return tuple(made)


def encoded(made: Sequence[NetworkPayload], provider_type: str) -> str:
    """`networks_json`. A provider for Proxmox reads further keys in lower case; others would fold these into those of the contract."""
    if provider_type != "proxmox" or not made:
        return payloads.encode_list(tuple(made))
    return msgspec.json.encode([_with_proxmox_keys(each) for each in made]).decode()


def _nic(ref: VMNetworkRef, network: VMNetworkAttachment | None, provider: Provider) -> NetworkPayload:
    payload = NetworkPayload(name=ref.name)
    # Without a network, the provider has a default of its own where the Provider names none: docs/dialects/virtrigaud.md says which.
    payload = _on_default(payload, provider) if network is None else _from_block(payload, network, provider)
    allocation = network.spec.ipAllocation if network is not None else None
    static = _static(allocation)
    address, prefix, gateway = _address(ref, static)
    servers, domains = _resolution(allocation)
    return msgspec.structs.replace(
        payload,
        mac_address=ref.macAddress or "",
        ip_policy=_policy(address, allocation, network),
        static_ip=address,
        prefix=prefix,
        gateway=gateway,
        dns=ref.dns or ",".join(servers),
        qos=_qos(network),
        security=_security(network, provider.spec.type),
        mtu=UNSET if network is None else _mtu(network.spec.network, provider.spec.type),
        routes=tuple(to_data(each) for each in (static.routes or () if static is not None else ())) or UNSET,
        search_domains=domains or UNSET,
    )


def _default(provider: Provider) -> str:
    return (provider.spec.defaults.network if provider.spec.defaults is not None else None) or ""


def _on_default(payload: NetworkPayload, provider: Provider) -> NetworkPayload:
    default = _default(provider)
    return msgspec.structs.replace(payload, network_name=default, portgroup=default if provider.spec.type == "vsphere" else "")


def _from_block(payload: NetworkPayload, network: VMNetworkAttachment, provider: Provider) -> NetworkPayload:
    config = network.spec.network
    name = sources.network_block(config, provider.spec.type)
    default = _default(provider)
    if support.is_behind_nat(network, provider.spec.type) or (
        name is None and provider.spec.type not in _WITH_BLOCKS and config.type in _OWN_NETWORK
    ):
        # Its own network: nothing says more about it.
        return msgspec.structs.replace(payload, network_name=default)
    if name is None:
        if default:
            return _on_default(payload, provider)
        place = f"{network.metadata.namespace}/{network.metadata.name}"
        why = f"VMNetworkAttachment {place} has no block for a Provider of type {provider.spec.type}"
        raise Refusal(why, fix=f"add spec.network.{provider.spec.type}, or set spec.defaults.network of the Provider")
    block = getattr(config, name)
    if isinstance(block, VSphereNetwork):
        return _vsphere(payload, block, default)
    if isinstance(block, LibvirtNetwork):
        bridge = block.bridge.name if block.bridge is not None else ""
        given = block.networkName or ("" if bridge else default)
        return msgspec.structs.replace(
            payload, network_name=given, bridge=bridge, model=block.model, driver=_said(block.driver), filter_ref=_said(block.filterRef)
        )
    assert isinstance(block, ProxmoxNetwork)
    return msgspec.structs.replace(
        payload,
        bridge=block.bridge or default,
        model=block.model,
        vlan=block.vlanTag or 0,
        nic_firewall=block.firewall or UNSET,
        rate_limit=block.rateLimit or UNSET,
    )


def _vsphere(payload: NetworkPayload, block: VSphereNetwork, default: str) -> NetworkPayload:
    portgroup = block.portgroup or default
    vlan, shaping = block.vlan or VLANConfig(), whole(block.trafficShaping) or TrafficShaping()
    return msgspec.structs.replace(
        payload,
        portgroup=portgroup,
        network_name=portgroup,
        vlan=vlan.vlanID or 0 if vlan.type == "vlan" else 0,
        model=block.adapterType,
        pci_slot_number=block.pciSlotNumber,
        switch=_said(block.distributedSwitch),
        vlans=_said(vlan) if vlan.type in _SEVERAL_VLANS else UNSET,
        shaping=_said(shaping) if shaping.enabled else UNSET,
    )


def _said(value: Object | None) -> dict[str, Any] | UnsetType:
    """An object as the manifest has it; nothing for one that says nothing."""
    return UNSET if value is None else to_data(whole(value)) or UNSET


def _mtu(config: NetworkConfig, provider_type: str) -> int | UnsetType:
    """The MTU of a card: that of its block, or of the network if it is not the usual one."""
    usual = config.mtu if config.mtu != NetworkConfig().mtu else None
    own = config.proxmox.mtu if sources.network_block(config, provider_type) == "proxmox" and config.proxmox is not None else None
    return own or usual or UNSET


def _qos(network: VMNetworkAttachment | None) -> QosPayload | UnsetType:
    given = network.spec.qos if network is not None else None
    if given is None:
        return UNSET
    return QosPayload(ingress_limit=given.ingressLimit, egress_limit=given.egressLimit, priority=given.priority, dscp=given.dscp)


def _security(network: VMNetworkAttachment | None, provider_type: str) -> NetworkSecurityPayload | UnsetType:
    if network is None:
        return UNSET
    given, config = network.spec.security, network.spec.network
    is_chosen = config.vsphere is not None and sources.network_block(config, provider_type) == "vsphere"
    switch = config.vsphere.security if is_chosen and config.vsphere is not None else None
    if given is None and switch is None:
        return UNSET
    rules = whole(given) or NetworkSecurity()
    return NetworkSecurityPayload(
        firewall=to_data(rules.firewall) if rules.firewall is not None else None,
        isolation=to_data(rules.isolation) if rules.isolation is not None else None,
        encryption=to_data(rules.encryption) if rules.encryption is not None else None,
        forbid_promiscuous=switch is not None and not switch.allowPromiscuous,
        forbid_mac_changes=switch is not None and not switch.allowMACChanges,
        forbid_forged_transmits=switch is not None and not switch.allowForgedTransmits,
    )


def _static(allocation: IPAllocation | None) -> StaticIPConfig | None:
    return whole(allocation.staticConfig) if allocation is not None and allocation.type == "Static" else None


def _address(ref: VMNetworkRef, static: StaticIPConfig | None) -> tuple[str, int, str]:
    """The static address with prefix and gateway: the machine's own, or that of the network."""
    if ref.ipAddress:
        return ref.ipAddress, ref.prefix or _DEFAULT_PREFIX, ref.gateway or ""
    if static is None:
        return "", 0, ""
    address, _, prefix = static.address.partition("/")
    return address, int(prefix or _DEFAULT_PREFIX), static.gateway or ""


def _policy(address: str, allocation: IPAllocation | None, network: VMNetworkAttachment | None) -> str:
    if address:
        return "static"
    if network is None:
        return ""
    if allocation is None or allocation.type == "DHCP":
        return "dhcp"
    if allocation.type == "None":
        return "none"
    place = f"{network.metadata.namespace}/{network.metadata.name}"
    why = f"VMNetworkAttachment {place} gives no address: ipAllocation.type is {allocation.type}"
    raise Refusal(why, fix="set ipAddress of the machine's network, or another type")


def _resolution(allocation: IPAllocation | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The name servers and the search domains of a network."""
    dns = allocation.dnsConfig if allocation is not None else None
    return (tuple(dns.servers or ()), tuple(dns.searchDomains or ())) if dns is not None else ((), ())


def _with_proxmox_keys(payload: NetworkPayload) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(payload)
    data["name"] = payload.bridge or payload.network_name or payload.name
    if payload.vlan:
        data["vlan"] = payload.vlan
    if payload.static_ip:
        servers = [each.strip() for each in payload.dns.split(",") if each.strip()]
        data["static_ip"] = {"address": f"{payload.static_ip}/{payload.prefix}", "gateway": payload.gateway, "dns": servers}
    if payload.mac_address:
        data["mac"] = payload.mac_address
    return data
