"""The addresses behind a Service: Endpoints (`v1`) and EndpointSlices (`discovery.k8s.io/v1`)."""

import ipaddress
from collections.abc import Iterator

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import CustomStrategy, Strategy, WriteContext

SLICES = "discovery.k8s.io"
_RULE = "core/endpoints"


class EndpointSliceStrategy(CustomStrategy):
    """The addresses of a slice are of one type, which stays; its ports have names of their own."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Type, addresses, names of ports."""
        kind = new.get("addressType", "")
        if old is not None and kind != old.get("addressType"):
            yield finding.invalid(("addressType",), kind, "field is immutable", _RULE)
        for index, endpoint in enumerate(new.get("endpoints") or ()):
            if not endpoint.get("addresses"):
                yield finding.required(("endpoints", index, "addresses"), _RULE, "must contain at least 1 address")
            for place, address in enumerate(endpoint.get("addresses") or ()):
                if wrong := _wrong_address(kind, address):
                    yield finding.invalid(("endpoints", index, "addresses", place), address, wrong, _RULE)
        seen = set()
        for index, port in enumerate(new.get("ports") or ()):
            name = port.get("name") or ""
            if name in seen:
                yield finding.duplicate(("ports", index, "name"), name, _RULE)
            seen.add(name)


def _wrong_address(kind: str, address: str) -> str:
    if kind == "FQDN":
        return "" if names.is_subdomain(address) else "must be a lowercase RFC 1123 subdomain"
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    return "" if kind == f"IPv{version}" else f"must be an {kind} address"


class EndpointsStrategy(Strategy):
    """A subset without addresses says nothing."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Addresses."""
        for index, subset in enumerate(new.get("subsets") or ()):
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                yield finding.required(("subsets", index), _RULE, "must specify `addresses` or `notReadyAddresses`")


STRATEGIES: dict[tuple[str, str], Strategy] = {("", "Endpoints"): EndpointsStrategy(), (SLICES, "EndpointSlice"): EndpointSliceStrategy()}
