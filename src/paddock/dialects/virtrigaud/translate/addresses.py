"""Static addresses of cards: cloud-init network data of version 2, and back."""

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from paddock.dialects.virtrigaud.kinds.machine import VMNetworkRef
from paddock.dialects.virtrigaud.translate import marks
from paddock.dialects.virtrigaud.translate.resolved import ResolvedNic, VirtrigaudInputs
from paddock.kubernetes.meta import cloudconfig
from paddock.kubevirt.kinds.networks import Interface

PREFIX = 24
_EVERYWHERE = "0.0.0.0/0"
# Nobody writes as much; what is longer is not read.
_LONGEST = 65536
_MEMBERS = ("ipAddress", "prefix", "gateway", "dns")


@dataclasses.dataclass(frozen=True)
class AddressedNics:
    """The cards, each with the hardware address that finds it, and their network data."""

    interfaces: list[Interface]
    network_data: str | None


def give(resolved: VirtrigaudInputs, interfaces: Sequence[Interface], *, can_tell: bool) -> AddressedNics:
    """Tell the guest its addresses when one is static. Without cloud-init there is no way."""
    wired = {interface.name for interface in interfaces}
    cards = [each for each in resolved.cards if each.ref.name in wired]
    for nic in cards:
        _speak_for(resolved, nic, can_tell=can_tell)
    if not can_tell or not any(each.ref.ipAddress for each in cards):
        return AddressedNics(list(interfaces), None)
    found = [
        interface
        if interface.macAddress
        else msgspec.structs.replace(interface, macAddress=marks.mac(resolved.namespace, resolved.name, interface.name))
        for interface in interfaces
    ]
    macs = {interface.name: interface.macAddress or "" for interface in found}
    ethernets = {each.ref.name: _ethernet(each, macs[each.ref.name]) for each in cards}
    return AddressedNics(found, dump({"version": 2, "ethernets": ethernets}))


def dump(data: Any) -> str:
    """Network data as text."""
    text: str = yaml.safe_dump(data, sort_keys=False)
    return text


def _speak_for(resolved: VirtrigaudInputs, resolved_nic: ResolvedNic, *, can_tell: bool) -> None:
    account, ref = resolved.account, resolved_nic.ref
    for member in _MEMBERS:
        path, value = ("networks", resolved_nic.position, member), getattr(ref, member)
        if value is None:
            continue
        if not can_tell:
            account.lose(path, value, "a guest with Ignition reads no network data", "say it in the Ignition document")
        elif not ref.ipAddress:
            account.lose(path, value, "the card has no ipAddress", "the guest asks DHCP")
        else:
            account.took(*path)


def _prefix(resolved_nic: ResolvedNic) -> int:
    """The machine's own, else that of the network's static address when both are in one network, else 24."""
    if resolved_nic.ref.prefix is not None:
        return resolved_nic.ref.prefix
    allocation = resolved_nic.network.spec.ipAllocation if resolved_nic.network is not None else None
    static = allocation.staticConfig if allocation is not None else None
    if static is not None:
        interface = ipaddress.IPv4Interface(static.address)
        if interface.network.prefixlen and ipaddress.IPv4Address(resolved_nic.ref.ipAddress or "") in interface.network:
            return interface.network.prefixlen
    return PREFIX


def _ethernet(resolved_nic: ResolvedNic, mac: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"match": {"macaddress": _colons(mac)}}
    if not resolved_nic.ref.ipAddress:
        return {**entry, "dhcp4": True}
    entry["addresses"] = [f"{resolved_nic.ref.ipAddress}/{_prefix(resolved_nic)}"]
    if resolved_nic.ref.gateway:
        entry["routes"] = [{"to": _EVERYWHERE, "via": resolved_nic.ref.gateway}]
    servers = [server.strip() for server in (resolved_nic.ref.dns or "").split(",") if server.strip()]
    if servers:
        entry["nameservers"] = {"addresses": servers}
    return entry


def _colons(mac: str) -> str:
    return mac.lower().replace("-", ":")


def load(text: str | None) -> Any:
    """Network data as it was meant, or None. Aliases, which nobody needs here, are refused: they can make a text explode."""
    if not text or len(text) > _LONGEST or cloudconfig.network_problem(text):
        return None
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.CSafeLoader)):
        return None
    try:
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):
        return None


def read(text: str | None, interfaces: Sequence[Interface]) -> dict[str, VMNetworkRef]:
    """Return the network configuration of each card, by its name; only the parts that a machine of VirtRigaud can express."""
    data = load(text)
    data = data.get("network", data) if isinstance(data, Mapping) else None
    ethernets = data.get("ethernets") if isinstance(data, Mapping) else None
    if not isinstance(ethernets, Mapping):
        return {}
    macs = {interface.name: _colons(interface.macAddress) for interface in interfaces if interface.macAddress}
    by_mac = {mac: name for name, mac in macs.items()}
    found = {}
    for key, entry in ethernets.items():
        match = entry.get("match") if isinstance(entry, Mapping) else None
        mac = match.get("macaddress") if isinstance(match, Mapping) else None
        if not isinstance(mac, str):
            continue
        # Two cards may have one hardware address; ours are also called what they are called here.
        name = key if macs.get(key) == _colons(mac) else by_mac.get(_colons(mac))
        static = _static(entry) if name is not None else None
        if name is not None and static is not None:
            found[name] = static
    return found


def _static(entry: Mapping[str, Any]) -> VMNetworkRef | None:
    address = next(_texts(entry.get("addresses")), None)
    try:
        interface = ipaddress.IPv4Interface(address or "")
    except ValueError:
        return None
    routes = entry.get("routes")
    default = [route for route in routes if isinstance(route, Mapping) and route.get("to") in (_EVERYWHERE, "default")] if routes else []
    gateway = default[0].get("via") if default else entry.get("gateway4")
    servers = entry.get("nameservers")
    dns = ",".join(_texts(servers.get("addresses"))) if isinstance(servers, Mapping) else ""
    return VMNetworkRef(
        ipAddress=str(interface.ip),
        prefix=interface.network.prefixlen or None,
        gateway=gateway if isinstance(gateway, str) and _is_ipv4(gateway) else None,
        dns=dns or None,
    )


def _texts(value: Any) -> Iterator[str]:
    return (each for each in value if isinstance(each, str)) if isinstance(value, list) else iter(())


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True
