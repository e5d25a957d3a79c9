"""`networking.k8s.io/v1 NetworkPolicy`: what machines may receive and send. The engine carries it out (docs/guide/networks.md)."""

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Any

from paddock.apiserver.builtin.tables import Cells, Data, age_of, column, name_of
from paddock.apiserver.resources.strategy import Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector, read, text
from paddock.schema import finding
from paddock.schema.field import Field, IntOrString, Object
from paddock.schema.finding import Finding, Path
from paddock.schema.kind import AGE, Column, Kind

GROUP = "networking.k8s.io"
_RULE = "core/networkpolicy"
_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")


class IPBlock(Object, rename={"except_": "except"}):
    """Addresses outside."""

    cidr: Annotated[str, Field("The addresses, such as 192.168.1.0/24.", required=True)] = ""
    except_: Annotated[list[str] | None, Field("Parts that are not meant.")] = None


class PolicyPort(Object):
    """A port, or a range of ports."""

    protocol: Annotated[str | None, Field("Protocol; default: TCP.", enum=_PROTOCOLS)] = None
    port: Annotated[IntOrString | None, Field("The port, or the name of a machine's port; default: all.")] = None
    endPort: Annotated[int | None, Field("Last port of the range that begins with `port`.", ge=1, le=65535)] = None


class PolicyPeer(Object):
    """Who may talk: addresses, or machines by labels."""

    podSelector: Annotated[LabelSelector | None, Field("Labels of machines.")] = None
    namespaceSelector: Annotated[LabelSelector | None, Field("Labels of their namespaces; default: the policy's own.")] = None
    ipBlock: Annotated[IPBlock | None, Field("Addresses.")] = None


class NetworkPolicyIngressRule(Object, rename={"from_": "from"}):
    """What may come in."""

    ports: Annotated[list[PolicyPort] | None, Field("At which ports; none means all.")] = None
    from_: Annotated[list[PolicyPeer] | None, Field("From whom; none means everybody.")] = None


class NetworkPolicyEgressRule(Object):
    """What may go out."""

    ports: Annotated[list[PolicyPort] | None, Field("To which ports; none means all.")] = None
    to: Annotated[list[PolicyPeer] | None, Field("To whom; none means everybody.")] = None


class NetworkPolicySpec(Object):
    """Whom the policy is about, and what it allows."""

    podSelector: Annotated[LabelSelector | None, Field("Labels of the machines it is about; none means all of the namespace.")] = None
    ingress: Annotated[list[NetworkPolicyIngressRule] | None, Field("What may come in.")] = None
    egress: Annotated[list[NetworkPolicyEgressRule] | None, Field("What may go out.")] = None
    policyTypes: Annotated[list[Annotated[str, Field(enum=_TYPES)]] | None, Field("The directions it speaks of.")] = None


class NetworkPolicy(Resource):
    """What machines may receive and send. Machines that no policy selects may do everything."""

    spec: Annotated[NetworkPolicySpec | None, Field("Whom it is about, and what it allows.")] = None


class NetworkPolicyStrategy(Strategy):
    """Blocks are blocks, ports are ports."""

    def counts_generation(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """The directions follow from what is there."""
        spec: Data = new.setdefault("spec", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") is not None else [])]
        spec.setdefault("podSelector", {})
        for direction in ("ingress", "egress"):
            for rule in spec.get(direction) or ():
                for port in rule.get("ports") or ():
                    port.setdefault("protocol", "TCP")

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Peers and ports."""
        spec = new.get("spec") or {}
        for direction, side in (("ingress", "from"), ("egress", "to")):
            for index, rule in enumerate(spec.get(direction) or ()):
                place: Path = ("spec", direction, index)
                for number, port in enumerate(rule.get("ports") or ()):
                    yield from _port(port, (*place, "ports", number))
                for number, peer in enumerate(rule.get(side) or ()):
                    yield from _peer(peer, (*place, side, number))


def _port(port: Data, place: Path) -> Iterator[Finding]:
    number, last = port.get("port"), port.get("endPort")
    if isinstance(number, int) and not 1 <= number <= 65535:
        yield finding.invalid((*place, "port"), number, "must be between 1 and 65535, inclusive", _RULE)
    if last is None:
        return
    if number is None:
        yield finding.required((*place, "port"), _RULE, "may not be empty when `endPort` is specified")
    elif isinstance(number, str):
        yield finding.invalid((*place, "endPort"), last, "may not be specified when `port` is non-numeric", _RULE)
    elif last < number:
        yield finding.invalid((*place, "endPort"), last, "must be greater than or equal to `port`", _RULE)


def _peer(peer: Data, place: Path) -> Iterator[Finding]:
    block = peer.get("ipBlock")
    selects = peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None
    if block is None:
        if not selects:
            yield finding.required(place, _RULE, "must specify a peer")
        return
    if selects:
        yield finding.forbidden(place, "may not specify both ipBlock and another peer", _RULE)
    whole = _network(block.get("cidr"))
    if whole is None:
        yield finding.invalid((*place, "ipBlock", "cidr"), block.get("cidr"), "must be a valid CIDR value, (e.g. 10.9.8.0/24)", _RULE)
        return
    for index, part in enumerate(block.get("except") or ()):
        inner = _network(part)
        where = (*place, "ipBlock", "except", index)
        if inner is None:
            yield finding.invalid(where, part, "must be a valid CIDR value, (e.g. 10.9.8.0/24)", _RULE)
        elif inner.version != whole.version or not inner.subnet_of(whole) or inner == whole:  # type: ignore[arg-type]  # of one version
            yield finding.invalid(where, part, "must be a strict subset of `cidr`", _RULE)


def _network(said: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(said if "/" in said else "")
    except (TypeError, ValueError):
        return None


def _cells(data: Data, now: float) -> list[Any]:
    selector = text(read((data.get("spec") or {}).get("podSelector")))
    return [name_of(data), selector or "<none>", age_of(data, now)]


COLUMNS: tuple[Column, ...] = (column("Pod-Selector"), AGE)
TABLES: dict[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {(GROUP, "NetworkPolicy"): (COLUMNS, _cells)}
KINDS = (
    Kind(
        group=GROUP,
        kind="NetworkPolicy",
        plural="networkpolicies",
        cls=NetworkPolicy,
        dialect="core",
        short_names=("netpol",),
        builtin=True,
        status=False,
    ),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "NetworkPolicy"): NetworkPolicyStrategy()}
