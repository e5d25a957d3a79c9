"""Address ranges of Services and their allocated addresses (`networking.k8s.io/v1 ServiceCIDR`, `IPAddress`).

The server makes the ServiceCIDR `kubernetes` from its own setting, and takes addresses from that network only. It notes the address
of a Service in the Service; an IPAddress is made by clients.
"""

import ipaddress
from collections.abc import Iterator
from typing import Any

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin.tables import NONE, Cells, age_of, name_of
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "networking.k8s.io"
OWN = "kubernetes"
_RULE = "core/service-network"
_SERVER = "system:apiserver"


class AddressStrategy(Strategy):
    """An address has one owner for as long as it is taken."""

    def wrong_name(self, name: str) -> str:
        """The name is an address as it is usually written."""
        try:
            canonical = str(ipaddress.ip_address(name))
        except ValueError:
            return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return "" if canonical == name else f'must be in canonical form ("{canonical}")'

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The owner is named, and stays."""
        parent = (new.get("spec") or {}).get("parentRef")
        path = ("spec", "parentRef")
        if parent is None:
            yield finding.required(path, _RULE)
        elif parent.get("group") and not names.is_subdomain(parent["group"]):
            yield finding.invalid((*path, "group"), parent["group"], "must be a lowercase RFC 1123 subdomain", _RULE)
        if old is not None and parent != (old.get("spec") or {}).get("parentRef"):
            yield finding.invalid(path, parent, "field is immutable", _RULE)


class NetworkStrategy(Strategy):
    """Networks stay, apart from a second one of the other family."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing has been observed."""
        new["status"] = {}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Networks of different families, and no changes."""
        wanted = (new.get("spec") or {}).get("cidrs") or []
        path = ("spec", "cidrs")
        before = ((old or {}).get("spec") or {}).get("cidrs") or []
        if old is None and not wanted:
            yield finding.required(path, _RULE, "at least one CIDR required")
        # The server's own network is what its settings say at the start.
        elif old is not None and context.user != _SERVER and wanted != before and (len(before), wanted[:1]) != (1, before):
            yield finding.invalid(path, wanted, "field is immutable", _RULE)
        families = []
        for index, text in enumerate(wanted):
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                yield finding.invalid((*path, index), text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)", _RULE)
                continue
            families.append(network.version)
            if ipaddress.ip_interface(text).ip != network.network_address:
                yield finding.invalid((*path, index), text, "must not have bits set beyond the prefix length", _RULE)
            elif str(network) != text:
                yield finding.invalid((*path, index), text, f'must be in canonical form ("{network}")', _RULE)
        if len(families) != len(set(families)):
            yield finding.invalid(
                path, wanted, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64", _RULE
            )


def own_network(*cidrs: str) -> Data:
    """Return the network of the server's settings, one for each family."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "ServiceCIDR", "metadata": {"name": OWN}, "spec": {"cidrs": [*cidrs]}}


def ready(network: Data, now: str) -> Data:
    """Return the network with the condition that Services get addresses from it."""
    known = (network.get("status") or {}).get("conditions") or []
    if not any(each.get("type") == "Ready" and each.get("status") == "True" for each in known):
        said = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready", "lastTransitionTime": now}
        known = [*(each for each in known if each.get("type") != "Ready"), said]
    return {**network, "metadata": dict(network["metadata"]), "status": {"conditions": known}}


def _network_cells(data: Data, now: float) -> list[Any]:
    return [name_of(data), ",".join((data.get("spec") or {}).get("cidrs") or ()), age_of(data, now)]


def _address_cells(data: Data, now: float) -> list[Any]:
    parent = (data.get("spec") or {}).get("parentRef")
    shown = NONE
    if parent:
        resource = ".".join(each for each in (parent.get("resource"), parent.get("group")) if each).lower()
        shown = "/".join(each for each in (resource, parent.get("namespace"), parent.get("name")) if each)
    return [name_of(data), shown, age_of(data, now)]


CELLS: dict[tuple[str, str], Cells] = {(GROUP, "ServiceCIDR"): _network_cells, (GROUP, "IPAddress"): _address_cells}
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "IPAddress"): AddressStrategy(), (GROUP, "ServiceCIDR"): NetworkStrategy()}
