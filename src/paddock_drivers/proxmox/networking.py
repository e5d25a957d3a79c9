"""The network interfaces of a machine, and their addresses. Pure."""

import hashlib
import ipaddress
import re

from msgspec import UNSET

from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import properties
from paddock_drivers.proxmox.config import ProxmoxConfiguredNic, ProxmoxMachineConfig

_VIRTIO = "virtio"
_MODELS = (_VIRTIO, "e1000", "e1000e", "rtl8139", "vmxnet3", "pcnet", "ne2k_pci")
_BRIDGE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,14}\Z", re.ASCII)
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}\Z", re.ASCII)
_VLANS = range(1, 4095)
# The cluster's own vendor prefix.
_VENDOR = "BC:24:11"
_MOST_NICS = 32
_BITS_OF_RATE = 8 << 20


def generated_mac(uuid: str, index: int) -> str:
    """Return the MAC address of a machine's interface: the same for the same machine."""
    digest = hashlib.sha256(f"{uuid}/{index}".encode()).hexdigest().upper()
    return ":".join((_VENDOR, digest[:2], digest[2:4], digest[4:6]))


def interface(network: NetworkPayload, nic: ProxmoxConfiguredNic | None, bridge: str, mac: str) -> str:
    """Return the property string of an interface; what the machine has and the request leaves open stays."""
    model = network.model or (nic.model if nic is not None else "virtio")
    if model not in _MODELS:
        raise refusals.invalid(f'network "{network.name}" has a model that Proxmox VE lacks', fix=f"use one of {', '.join(_MODELS)}")
    named = network.bridge or network.network_name
    wanted = named or (nic.options.get("bridge", "") if nic is not None else "") or bridge
    if not _BRIDGE.match(wanted):
        raise refusals.invalid(f'network "{network.name}" is on no bridge of Proxmox VE', fix="name a bridge such as vmbr0, or a VNet")
    if network.mac_address and not _MAC.match(network.mac_address):
        raise refusals.invalid(f'network "{network.name}" has no MAC address that can be read')
    if network.vlan and network.vlan not in _VLANS:
        raise refusals.invalid(f'network "{network.name}" has a VLAN that does not exist', why="they count from 1 to 4094")
    chosen = network.mac_address.upper().replace("-", ":") or (nic.mac if nic is not None else "") or mac
    members: dict[str, str | int | float | bool] = {model: chosen, "bridge": wanted}
    kept = nic.options if nic is not None else {}
    members |= {key: value for key, value in kept.items() if key in ("firewall", "link_down", "mtu", "queues", "trunks")}
    if network.vlan:
        members["tag"] = network.vlan
    if network.nic_firewall:
        members["firewall"] = True
    if network.mtu and model == _VIRTIO:
        members["mtu"] = network.mtu
    if (rate := _rate(network)) is not None:
        members["rate"] = rate
    return properties.render(members, "")


def _rate(network: NetworkPayload) -> float | None:
    """Megabytes a second, of both directions: the lowest of all limits."""
    limits = [each / _BITS_OF_RATE for each in (network.qos.ingress_limit, network.qos.egress_limit) if each] if network.qos else []
    if network.rate_limit:
        limits.append(network.rate_limit)
    return max(round(min(limits), 4), 0.0001) if limits else None


def limitations(networks: tuple[NetworkPayload, ...]) -> tuple[str, ...]:
    """Name what networks ask for and interfaces here do not have."""
    left = []
    for nic in networks:
        if nic.qos is not UNSET:
            limits = {each for each in (nic.qos.ingress_limit, nic.qos.egress_limit) if each}
            if len(limits) > 1 or (limits and not (nic.qos.ingress_limit and nic.qos.egress_limit)):
                left.append(f"network {nic.name}: Proxmox VE bounds both directions alike, by the lower limit")
            if nic.qos.priority is not None or nic.qos.dscp is not None:
                left.append(f"network {nic.name}: Proxmox VE marks no packets with a priority or a DSCP")
        if nic.mtu and nic.model not in ("", _VIRTIO):
            left.append(f"network {nic.name}: Proxmox VE sets the MTU of virtio interfaces only")
        if nic.pci_slot_number is not None:
            left.append(f"network {nic.name}: Proxmox VE chooses PCI slots itself")
    return tuple(left)


def change(
    networks: tuple[NetworkPayload, ...], config: ProxmoxMachineConfig, bridge: str, uuid: str
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the interfaces to set, and those that are too many. A request without networks leaves the machine's alone."""
    if not networks:
        return {}, ()
    if len(networks) > _MOST_NICS:
        raise refusals.invalid("the machine has too many networks", why=f"Proxmox VE has {_MOST_NICS} interfaces")
    have = {each.slot: each for each in config.nics}
    form = {}
    for index, nic in enumerate(networks):
        slot = f"net{index}"
        wanted = interface(nic, have.get(slot), bridge, generated_mac(uuid, index))
        if slot not in have or _members(wanted) != _members(config.text(slot)):
            form[slot] = wanted
    return form, tuple(slot for slot in have if int(slot[3:]) >= len(networks))


def _members(text: str) -> dict[str, str]:
    found = properties.parse(text, "model")
    if "model" in found:
        found[found.pop("model")] = found.pop("macaddr", "")
    if "rate" in found:
        found["rate"] = f"{float(found['rate']):g}"
    return {key: value.upper() if ":" in value else value for key, value in found.items()}


def with_macs(networks: tuple[NetworkPayload, ...], config: ProxmoxMachineConfig, form: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the name and the MAC address of each network, as the machine has it after a change."""
    found = []
    for index, each in enumerate(networks):
        slot = f"net{index}"
        nic = ProxmoxMachineConfig(config.vmid, {slot: form.get(slot) or config.text(slot)}).nics
        found.append((each.name or slot, nic[0].mac if nic else ""))
    return tuple(found)


def addresses(networks: tuple[NetworkPayload, ...]) -> dict[str, str]:
    """Return the keys by which the cluster's own cloud-init drive gives addresses."""
    form, servers = {}, []
    for index, nic in enumerate(networks):
        form[f"ipconfig{index}"] = _address(nic)
        servers += [each.strip() for each in nic.dns.split(",") if each.strip()]
    if servers:
        form["nameserver"] = " ".join(dict.fromkeys(servers))
    if domains := dict.fromkeys(name for each in networks for name in each.search_domains or ()):
        form["searchdomain"] = " ".join(domains)
    return form


def _address(network: NetworkPayload) -> str:
    if not network.static_ip:
        return "ip=dhcp"
    try:
        address = ipaddress.ip_address(network.static_ip)
        gateway = ipaddress.ip_address(network.gateway) if network.gateway else None
    except ValueError as error:
        raise refusals.invalid(f'network "{network.name}" has an address that cannot be read', why=str(error)) from error
    kind = "" if address.version == 4 else "6"
    members = {f"ip{kind}": f"{address}/{network.prefix or (24 if address.version == 4 else 64)}"}
    if gateway is not None:
        members[f"gw{kind}"] = str(gateway)
    return properties.render(members, "")
