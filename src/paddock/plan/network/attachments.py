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
from paddock.dialects.core.networkattachment import NetworkAttachmentDefinition
from paddock.engine.networks.nics import HostBridge, Range, TrafficLimit
from paddock.plan.instance import traffic

_TYPES = ("bridge", "cnv-bridge", "ptp")
_RANGES = ("host-local", "whereabouts")
_DEFAULT_BRIDGE = "cni0"
_LAST_VLAN = 4094
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
    return HostBridge(
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
    listed = [each for group in ipam.get("ranges") or () for each in group] or [ipam]
    for each in listed:
        network = ipaddress.ip_network(each.get("subnet") or each.get("range") or "", strict=False)
        if network.version != 4:
            continue
        yield Range(
            network=str(network),
            first=_inside(each.get("rangeStart") or each.get("range_start"), network),
            last=_inside(each.get("rangeEnd") or each.get("range_end"), network),
            gateway=_inside(each.get("gateway"), network),
        )


def _inside(text: Any, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> str:
    if not text:
        return ""
    address = ipaddress.ip_address(text)
    if address not in network:
        raise _Wrong(f"{address} is not in {network}")
    return str(address)


def _routes(routes: Any) -> Iterator[tuple[str, str]]:
    for each in routes:
        network = ipaddress.ip_network(each["dst"], strict=False)
        if network.version == 4:
            gateway = each.get("gw") or ""
            yield str(network), str(ipaddress.ip_address(gateway)) if gateway else ""
