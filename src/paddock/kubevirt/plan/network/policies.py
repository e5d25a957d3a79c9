"""NetworkPolicies as the engine holds cards to them: selectors become owners, names of ports become numbers. Pure."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.engine.networks.nics import NicPeer, NicPolicy, PolicyAllowance, Ports, Protocol
from paddock.kubernetes.meta.selectors import matches, read

# As the API has them.


class PolicySubject(msgspec.Struct, frozen=True):
    """A machine, as policies see it."""

    owner: str
    namespace: str
    labels: Mapping[str, str]
    # (name of a port, protocol) -> its number
    named: Mapping[tuple[str, str], int] = msgspec.field(default_factory=dict)


class ClusterView(msgspec.Struct, frozen=True):
    """All machines, and the labels of all namespaces."""

    subjects: tuple[PolicySubject, ...]
    namespaces: Mapping[str, Mapping[str, str]]


def policies(objects: Iterable[Data], view: ClusterView) -> list[NicPolicy]:
    """Return the engine's policies, in the order of names."""
    found = [policy for data in objects for policy in _of(data, view)]
    return sorted(found, key=lambda each: each.name)


def _of(data: Data, view: ClusterView) -> Iterator[NicPolicy]:
    meta, spec = data["metadata"], data.get("spec") or {}
    namespace = meta.get("namespace") or ""
    selector = read(spec.get("podSelector"))
    chosen = [each for each in view.subjects if each.namespace == namespace and matches(selector, each.labels)]
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") is not None else [])]
    incoming = spec.get("ingress") or [] if "Ingress" in types else None
    outgoing = spec.get("egress") or [] if "Egress" in types else None
    egress = None if outgoing is None else tuple(allow for rule in outgoing for allow in _outgoing(rule, namespace, view))
    # A name of a port may be another number at each machine: those with the same numbers are one policy.
    groups: dict[tuple[PolicyAllowance, ...] | None, list[str]] = {}
    for subject in chosen:
        ingress = None if incoming is None else tuple(allow for rule in incoming for allow in _incoming(rule, namespace, subject, view))
        groups.setdefault(ingress, []).append(subject.owner)
    for ingress, owners in groups.items():
        name = f"{namespace}/{meta['name']}"
        mark = f"#{hashlib.sha256(repr(ingress).encode()).hexdigest()[:8]}" if len(groups) > 1 else ""
        yield NicPolicy(name + mark, tuple(sorted(set(owners))), ingress, egress)


def _incoming(rule: Data, namespace: str, subject: PolicySubject, view: ClusterView) -> Iterator[PolicyAllowance]:
    peers = _peers(rule.get("from"), namespace, view)
    ports = rule.get("ports")
    if not ports:
        yield PolicyAllowance(peers, None)
        return
    numbers = tuple(found for port in ports if (found := _numbered(port, subject)) is not None)
    if numbers:
        yield PolicyAllowance(peers, numbers)


def _outgoing(rule: Data, namespace: str, view: ClusterView) -> Iterator[PolicyAllowance]:
    """A name of a port is what it is at each peer."""
    ports = rule.get("ports")
    if not ports:
        yield PolicyAllowance(_peers(rule.get("to"), namespace, view), None)
        return
    plain = tuple(found for port in ports if (found := _numbered(port, None)) is not None)
    if plain:
        yield PolicyAllowance(_peers(rule.get("to"), namespace, view), plain)
    named = [port for port in ports if isinstance(port.get("port"), str) and not port["port"].isdecimal()]
    if not named:
        return
    owners = _chosen(rule.get("to"), namespace, view)
    for subject in view.subjects:
        numbers = tuple(found for port in named if (found := _numbered(port, subject)) is not None)
        if numbers and (owners is None or subject.owner in owners):
            yield PolicyAllowance((NicPeer(owners=(subject.owner,)),), numbers)


def _numbered(port: Data, subject: PolicySubject | None) -> Ports | None:
    """A port in numbers; None where its name is not known, and for protocols that machines are not reached by."""
    said, name = port.get("port"), port.get("protocol") or "TCP"
    if name not in ("TCP", "UDP"):
        return None
    protocol: Protocol = "udp" if name == "UDP" else "tcp"
    if said is None:
        return Ports(protocol, 1, 65535)
    if isinstance(said, str) and not said.isdecimal():
        number = subject.named.get((said, name), 0) if subject is not None else 0
        return Ports(protocol, number) if number else None
    return Ports(protocol, int(said), int(port.get("endPort") or 0))


def _peers(listed: Any, namespace: str, view: ClusterView) -> tuple[NicPeer, ...] | None:
    """None: everybody, which is what no list and an empty one mean."""
    if not listed:
        return None
    found: list[NicPeer] = []
    for each in listed:
        block = each.get("ipBlock")
        if block:
            found.append(NicPeer(block=str(block["cidr"]), without=tuple(block.get("except") or ())))
        else:
            found.append(NicPeer(owners=_selected(each, namespace, view)))
    return tuple(found)


def _chosen(listed: Any, namespace: str, view: ClusterView) -> set[str] | None:
    if not listed:
        return None
    return {owner for each in listed if not each.get("ipBlock") for owner in _selected(each, namespace, view)}


def _selected(peer: Data, namespace: str, view: ClusterView) -> tuple[str, ...]:
    pods = read(peer.get("podSelector"))
    if peer.get("namespaceSelector") is None:
        spaces = {namespace}
    else:
        selector = read(peer["namespaceSelector"])
        spaces = {name for name, labels in view.namespaces.items() if matches(selector, labels)}
    return tuple(sorted({each.owner for each in view.subjects if each.namespace in spaces and matches(pods, each.labels)}))
