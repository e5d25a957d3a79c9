"""NetworkAttachmentDefinitions as bridges of the host. Pure.

What is understood: type bridge (and its name cnv-bridge) and type ptp, alone or as the first of a list of plugins, with static, host-local,
whereabouts or dhcp addresses, and type bandwidth after it. A ptp network is a bridge of its own, with the gateway on it. Addresses that a
definition gives are given to the guest by DHCP. Everything else is reported, not ignored.
"""

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from paddock.base import reasons
from paddock.engine.networks.nics import HostBridge, Range, TrafficLimit
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubevirt.plan.instance import traffic

_TYPES = ("bridge", "cnv-bridge", "ptp")
_RANGES = ("host-local", "whereabouts")
_DEFAULT_BRIDGE = "cni0"
_LAST_VLAN = 4094
_LEAST_MTU6 = 1280
# Longer ones have no room, and no link has a shorter one.
_LEAST_PREFIX6, _MOST_PREFIX6 = 64, 126
Data = Mapping[str, Any]


class _Wrong(Exception):
    """A definition that cannot be carried out; its text says why."""

    def __init__(self, text: str, reason: str = reasons.NETWORK_MALFORMED) -> None:
        super().__init__(text)
        self.reason = reason


class AttachmentRefusal(str):
    """The sentence that says why a definition gives no bridge, with its reason code."""

    reason: str

    def __new__(cls, text: str, reason: str = reasons.NETWORK_MALFORMED) -> Self:
        made = super().__new__(cls, text)
        made.reason = reason
        return made


def bridge_of(name: str, definition: NetworkAttachmentDefinition | None) -> HostBridge | AttachmentRefusal:
    """The bridge, or why there is none."""
    if definition is None:
        return AttachmentRefusal(f"the NetworkAttachmentDefinition {name} does not exist", reasons.NETWORK_MISSING)
    config = definition.spec.config if definition.spec is not None else None
    if not config:
        return AttachmentRefusal(f"the NetworkAttachmentDefinition {name} has no configuration")
    try:
        document = msgspec.json.decode(config)
        plugin = _plugin(document)
        if plugin["type"] == "ptp":
            plugin |= {"bridge": f"ptp-{hashlib.sha256(name.encode()).hexdigest()[:8]}", "isGateway": True}
        return replace(_bridge(plugin), traffic=_traffic(document))
    except msgspec.DecodeError as error:
        return AttachmentRefusal(f"the configuration of the NetworkAttachmentDefinition {name} is not JSON: {error}")
    except _Wrong as error:
        return AttachmentRefusal(f"the NetworkAttachmentDefinition {name} cannot be used: {error}", error.reason)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        return AttachmentRefusal(f"the NetworkAttachmentDefinition {name} cannot be used: it is malformed ({error})")


def _plugin(config: Any) -> dict[str, Any]:
    if not isinstance(config, dict):
        raise _Wrong("its configuration is not an object")
    plugins = config.get("plugins", [config])
    if not plugins:
        raise _Wrong("its list of plugins is empty")
    first = plugins[0]
    kind = first.get("type")
    if kind not in _TYPES:
        raise _Wrong(f"networks of type {kind!r} are not known here; use type bridge or ptp", reasons.NETWORK_TYPE)
    return dict(first)


def _bridge(plugin: Data) -> HostBridge:
    if plugin.get("vlanTrunk"):
        raise _Wrong("trunks are not supported; name one vlan", reasons.NETWORK_VLAN)
    vlan = int(plugin.get("vlan") or 0)
    if not 0 <= vlan <= _LAST_VLAN:
        raise _Wrong(f"{vlan} is no VLAN: they go from 1 to {_LAST_VLAN}", reasons.NETWORK_VLAN)
    ipam: Data = plugin.get("ipam") or {}
    kind = ipam.get("type", "")
    if kind not in ("", "static", "dhcp", *_RANGES):
        raise _Wrong(f"addresses of type {kind!r} are not known here; use static, host-local or dhcp", reasons.NETWORK_TYPE)
    dns: Data = ipam.get("dns") or plugin.get("dns") or {}
    made = HostBridge(
        name=str(plugin.get("bridge") or _DEFAULT_BRIDGE),
        vlan=vlan,
        mtu=int(plugin.get("mtu") or 0),
        is_gateway=bool(plugin.get("isGateway") or plugin.get("isDefaultGateway")),
        masquerade=bool(plugin.get("ipMasq")),
        static=tuple(_static(ipam)) if kind == "static" else (),
        ranges=tuple(_ranges(ipam)) if kind in _RANGES else (),
        routes=tuple(_routes(ipam.get("routes") or ())),
        dns=tuple(str(ipaddress.ip_address(each)) for each in dns.get("nameservers") or ()),
        domain=str(dns.get("domain") or ""),
        search=tuple(map(str, dns.get("search") or ())),
    )
    _check_families(made)
    _check_ipv6(made)
    return made


def _check_families(bridge: HostBridge) -> None:
    listed = [address for address, _ in bridge.static] + [each.network for each in bridge.ranges]
    for version in (4, 6):
        own = [each for each in listed if ipaddress.ip_interface(each).version == version]
        if len(own) > 1:
            raise _Wrong(f"it gives two IPv{version} addresses ({own[0]}, {own[1]}); a guest gets one of each family")


def _check_ipv6(bridge: HostBridge) -> None:
    """Refuse what guests cannot learn of IPv6: router advertisements name one router by its link-local address."""
    listed = [(ipaddress.IPv6Interface(address), gateway) for address, gateway in bridge.static if ":" in address]
    listed += [(ipaddress.IPv6Interface(each.network), each.gateway) for each in bridge.ranges if ":" in each.network]
    routes = [each for each in bridge.routes if ":" in each[0]]
    if not listed:
        if routes:
            raise _Wrong(f"it has a route to {routes[0][0]}, and gives no IPv6 address")
        return
    if 0 < bridge.mtu < _LEAST_MTU6:
        raise _Wrong(f"its MTU {bridge.mtu} is too small for IPv6, which needs {_LEAST_MTU6}")
    network, gateway = listed[0][0].network, listed[0][1]
    if network.is_link_local or network.is_multicast or network.is_loopback:
        raise _Wrong(f"the addresses of {network} are not for hosts")
    if bridge.ranges and not _LEAST_PREFIX6 <= network.prefixlen <= _MOST_PREFIX6 and not bridge.static:
        raise _Wrong(f"the prefix of {network} is not {_LEAST_PREFIX6} to {_MOST_PREFIX6} bits long")
    _check_router(bridge, network, gateway)
    has_router = bool(gateway) or (bridge.is_gateway and bool(bridge.ranges))
    for destination, through in routes:
        if not has_router or through not in ("", gateway):
            raise _Wrong(f"guests cannot learn the route to {destination}: IPv6 routes lead through the gateway of the IPv6 addresses")


def _check_router(bridge: HostBridge, network: ipaddress.IPv6Network, gateway: str) -> None:
    if not gateway:
        return
    if bridge.is_gateway and ipaddress.IPv6Address(gateway) not in network:
        raise _Wrong(f"the gateway {gateway} is not in {network}")
    if not bridge.is_gateway and not ipaddress.IPv6Address(gateway).is_link_local:
        raise _Wrong(
            f"guests cannot learn the gateway {gateway}: set isGateway if it is this host, name its link-local address if it is another "
            "router, or leave it out if that router advertises itself"
        )


def _traffic(document: Data) -> TrafficLimit:
    """The limits of the bandwidth plugin, which speaks of bits."""
    found: Data = next((each for each in document.get("plugins") or () if each.get("type") == "bandwidth"), {})
    rates = {name: _bits(found, name) // 8 for name in ("ingressRate", "ingressBurst", "egressRate", "egressBurst")}
    return TrafficLimit(rates["ingressRate"], rates["ingressBurst"], rates["egressRate"], rates["egressBurst"])


def _bits(plugin: Data, name: str) -> int:
    value = int(plugin.get(name) or 0)
    if value and not traffic.LEAST_RATE <= value <= traffic.MOST_RATE:
        raise _Wrong(f"{name} is {value}: give {traffic.LEAST_RATE} to {traffic.MOST_RATE} bits")
    return value


def _static(ipam: Data) -> Iterator[tuple[str, str]]:
    for each in ipam.get("addresses") or ():
        gateway = each.get("gateway") or ""
        yield str(ipaddress.ip_interface(each["address"])), str(ipaddress.ip_address(gateway)) if gateway else ""


def _ranges(ipam: Data) -> Iterator[Range]:
    listed = [*(each for group in ipam.get("ranges") or () for each in group), *(ipam.get("ipRanges") or ())]
    if not listed or ipam.get("subnet") or ipam.get("range"):
        listed.append(ipam)
    for each in listed:
        network = ipaddress.ip_network(each.get("subnet") or each.get("range") or "", strict=False)
        yield Range(
            network=str(network),
            first=_inside(each.get("rangeStart") or each.get("range_start"), network),
            last=_inside(each.get("rangeEnd") or each.get("range_end"), network),
            gateway=_gateway(each.get("gateway"), network),
            excluded=tuple(_excluded(each.get("exclude") or (), network)),
        )


def _excluded(listed: Any, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> Iterator[str]:
    for text in listed:
        part = ipaddress.ip_network(text, strict=False)
        if part.version != network.version:
            raise _Wrong(f"it excludes {part} from {network}, which is of the other family")
        yield str(part)


def _inside(text: Any, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    if not text:
        return ""
    address = ipaddress.ip_address(text)
    if address not in network:
        raise _Wrong(f"{address} is not in {network}")
    return str(address)


def _gateway(text: Any, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    """A gateway in a network, or on the link."""
    if text and network.version == 6 and ipaddress.IPv6Address(text).is_link_local:
        return str(ipaddress.IPv6Address(text))
    return _inside(text, network)


def _routes(routes: Any) -> Iterator[tuple[str, str]]:
    for each in routes:
        network = ipaddress.ip_network(each["dst"], strict=False)
        gateway = each.get("gw") or ""
        yield str(network), str(ipaddress.ip_address(gateway)) if gateway else ""
