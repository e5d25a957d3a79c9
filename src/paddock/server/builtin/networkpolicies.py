"""`networking.k8s.io/v1 NetworkPolicy`: what machines may receive and send. The engine carries it out (docs/use/networks.md)."""

import ipaddress
from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.selectors import read, text
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.builtin.tables import Cells, age_of, name_of
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "networking.k8s.io"
_RULE = "core/networkpolicy"


class NetworkPolicyStrategy(Strategy):
    """Blocks are blocks, ports are ports."""

    def counts_generation(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """The directions follow from what is there."""
        spec: Data = new["spec"]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]

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


def _port(port: Data, path: Path) -> Iterator[Finding]:
    number, last = port.get("port"), port.get("endPort")
    if isinstance(number, int) and not 1 <= number <= 65535:
        yield finding.invalid((*path, "port"), number, "must be between 1 and 65535, inclusive", _RULE)
    if last is None:
        return
    if number is None:
        yield finding.required((*path, "port"), _RULE, "may not be empty when `endPort` is specified")
    elif isinstance(number, str):
        yield finding.invalid((*path, "endPort"), last, "may not be specified when `port` is non-numeric", _RULE)
    elif last < number:
        yield finding.invalid((*path, "endPort"), last, "must be greater than or equal to `port`", _RULE)


def _peer(peer: Data, path: Path) -> Iterator[Finding]:
    block = peer.get("ipBlock")
    selects = peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None
    if block is None:
        if not selects:
            yield finding.required(path, _RULE, "must specify a peer")
        return
    if selects:
        yield finding.forbidden(path, "may not specify both ipBlock and another peer", _RULE)
    if not block.get("cidr"):
        return
    whole = _network(block["cidr"])
    if whole is None:
        yield finding.invalid((*path, "ipBlock", "cidr"), block["cidr"], "must be a valid CIDR value, (e.g. 10.9.8.0/24)", _RULE)
        return
    for index, part in enumerate(block.get("except") or ()):
        inner = _network(part)
        where = (*path, "ipBlock", "except", index)
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


CELLS: dict[tuple[str, str], Cells] = {(GROUP, "NetworkPolicy"): _cells}
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "NetworkPolicy"): NetworkPolicyStrategy()}
