"""Behaviour of a Service besides its schema: defaults, an address inside, ports on the nodes (docs/spec/kube-api.md section 7).

The name of the Service selects its addresses and ports, so that the choice can be repeated; where they are taken, the next free ones are
used. The stored Services alone decide what is taken; nothing else is remembered, so nothing can be forgotten.
"""

import ipaddress
import re
import zlib
from collections.abc import Iterator, Mapping

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin import servicefamilies
from paddock.server.resources.strategy import Strategy, WriteContext

NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
NODE_PORTS = range(30000, 32768)
_COLLECTION = "services"
_RULE = "core/service"
_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_OUTSIDE = ("NodePort", "LoadBalancer")


def own_address(network: Network = NETWORK) -> str:
    """The address of the Service of the API server itself."""
    return str(network[1])


class ServiceStrategy(Strategy):
    """Everything a client leaves out is filled in; what was given once stays."""

    def __init__(self, *networks: Network) -> None:
        self._networks: Networks = {servicefamilies.of(network): network for network in networks or (NETWORK,)}

    def wrong_name(self, name: str) -> str:
        """The name becomes a host name, which begins with a letter."""
        if _LABEL.match(name):
            return ""
        return (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
            "and end with an alphanumeric character"
        )

    def returns_deleted(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        _set_defaults(new)

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """An address, ports on the nodes."""
        new["status"] = {"loadBalancer": {}}
        servicefamilies.complete(new["spec"], {}, [*self._networks])
        _allocate(new, context, self._networks)
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Keep allocated values, and drop those that the new type does not need."""
        _keep_given(new["spec"], old.get("spec") or {})
        servicefamilies.complete(new["spec"], old.get("spec") or {}, [*self._networks])
        _allocate(new, context, self._networks)
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Addresses and node ports are ours to give, and given once; the address stays while there is one."""
        spec = new.get("spec") or {}
        before = (old or {}).get("spec") or {}
        address = spec.get("clusterIP")
        if old is not None and "ExternalName" not in (spec.get("type"), before.get("type")) and address != before.get("clusterIP"):
            yield finding.invalid(("spec", "clusterIPs", 0), address, "may not change once set", _RULE)
        known = before.get("clusterIPs") or [before.get("clusterIP")]
        for place, own in enumerate(spec.get("clusterIPs") or [address]):
            if own not in (None, "", "None", *known):
                yield from _check_address(new, place, own, context, self._networks)
        yield from servicefamilies.wrong(spec, before, [*self._networks])
        if spec.get("clusterIPs") and spec["clusterIPs"][0] != address:
            yield finding.invalid(("spec", "clusterIPs", 0), spec["clusterIPs"], "first value must match `clusterIP`", _RULE)
        if spec.get("type") in _OUTSIDE:
            yield from _check_node_ports(new, context)
        if spec.get("type") in _OUTSIDE and address == "None":
            yield finding.invalid(("spec", "clusterIPs", 0), address, f"may not be set to 'None' for {spec['type']} services", _RULE)


def _set_defaults(new: Data) -> None:
    spec: Data = new.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    else:
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort") and "port" in port:
            port["targetPort"] = port["port"]
        if not port.get("nodePort"):
            port.pop("nodePort", None)
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in _OUTSIDE:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _keep_given(spec: Data, before: Data) -> None:
    kind = spec["type"]
    if kind != "ExternalName" and before.get("type") != "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]
    elif kind == "ExternalName" and before.get("type") != "ExternalName":
        for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            if spec.get(key) == before.get(key):
                spec.pop(key, None)
    known = {(port["port"], port.get("protocol", "TCP")): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        given = known.get((port.get("port"), port["protocol"]))
        if kind in _OUTSIDE and given and not port.get("nodePort"):
            port["nodePort"] = given
        elif kind not in _OUTSIDE and before.get("type") in _OUTSIDE and given == port.get("nodePort"):
            port.pop("nodePort", None)
    if kind not in _OUTSIDE and before.get("type") in _OUTSIDE:
        for key in ("externalTrafficPolicy", "allocateLoadBalancerNodePorts", "healthCheckNodePort"):
            if spec.get(key) == before.get(key):
                spec.pop(key, None)


# An address, a port on the nodes with its protocol, or its number alone.
_Claim = str | tuple[str, int] | int
Networks = Mapping[servicefamilies.Family, Network]


def _claims(service: Data) -> Iterator[_Claim]:
    spec = service.get("spec") or {}
    yield from dict.fromkeys(each for each in (spec.get("clusterIP"), *(spec.get("clusterIPs") or ())) if each)
    for protocol, number in _node_ports(spec):
        yield protocol, number
        yield number


def _is_taken(claim: _Claim, new: Data, context: WriteContext) -> bool:
    """Return whether another Service has it."""
    meta = new["metadata"]
    own = (meta.get("namespace"), meta.get("name"))
    return any(place != own for place in context.view.holders(_COLLECTION, _claims, claim))


def _seed(new: Data) -> int:
    meta = new["metadata"]
    return zlib.crc32(f"{meta.get('namespace', '')}/{meta.get('name', '')}".encode())


def _allocate(new: Data, context: WriteContext, networks: Networks) -> None:
    spec = new["spec"]
    if spec["type"] == "ExternalName":
        return
    addresses = servicefamilies.given(spec)
    if addresses[:1] != ["None"]:
        # A family that is not there is refused later.
        missing = [networks[family] for family in spec["ipFamilies"][len(addresses) :] if family in networks]
        addresses += [_free_address(new, context, network) for network in missing]
    if addresses:
        spec["clusterIP"], spec["clusterIPs"] = spec.get("clusterIP") or addresses[0], addresses
    if spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and spec["allocateLoadBalancerNodePorts"]):
        _allocate_ports(new, context)


def _free_address(new: Data, context: WriteContext, network: Network) -> str:
    count, seed = network.num_addresses - 2, _seed(new)
    for step in range(count):
        address = str(network[1 + (seed + step) % count])
        if address != own_address(network) and not _is_taken(address, new, context):
            return address
    raise failure.internal(f"no address of {network} is free")


def _node_ports(spec: Data) -> Iterator[tuple[str, int]]:
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port.get("protocol", "TCP"), port["nodePort"]


def _allocate_ports(new: Data, context: WriteContext) -> None:
    ports = new["spec"].get("ports") or ()
    if all(port.get("nodePort") for port in ports):
        return
    given = {number for _, number in _node_ports(new["spec"])}
    seed = _seed(new)
    for port in ports:
        if not port.get("nodePort"):
            candidates = (NODE_PORTS[(seed + step) % len(NODE_PORTS)] for step in range(len(NODE_PORTS)))
            # One number is never given to two Services, whatever the protocol.
            number = next((each for each in candidates if each not in given and not _is_taken(each, new, context)), None)
            if number is None:
                raise failure.internal("no node port is free")
            port["nodePort"] = number
            given.add(number)


def _check_address(new: Data, place: int, address: str, context: WriteContext, networks: Networks) -> Iterator[Finding]:
    path = ("spec", "clusterIPs")
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        yield finding.invalid((*path, place), address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)", _RULE)
        return
    why = ""
    network = networks.get(servicefamilies.family_of(address))
    if network is None:
        # One without that family says so of the family alone, unless the address is all that was given.
        network = next(iter(networks.values()))
    if known not in network:
        why = f"failed to allocate IP {address}: the provided IP is not in the valid range. The range of valid IPs is {network}"
    elif _is_taken(address, new, context) or (address == own_address(network) and not _is_own(new)):
        why = f"failed to allocate IP {address}: provided IP is already allocated"
    if why:
        yield finding.invalid(path, [address], why, _RULE)


def _is_own(new: Data) -> bool:
    return (new["metadata"].get("namespace"), new["metadata"].get("name")) == ("default", "kubernetes")


def _check_node_ports(new: Data, context: WriteContext) -> Iterator[Finding]:
    given = set()
    for index, port in enumerate(new["spec"].get("ports") or ()):
        number = port.get("nodePort")
        if not number:
            continue
        path = ("spec", "ports", index, "nodePort")
        if number not in NODE_PORTS:
            known = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
            yield finding.invalid(path, number, f"provided port is not in the valid range. The range of valid ports is {known}", _RULE)
        elif (port["protocol"], number) in given or _is_taken((port["protocol"], number), new, context):
            yield finding.invalid(path, number, "provided port is already allocated", _RULE)
        given.add((port["protocol"], number))
