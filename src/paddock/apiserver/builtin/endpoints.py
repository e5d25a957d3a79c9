"""Where a Service leads: Endpoints (`v1`) and EndpointSlices (`discovery.k8s.io/v1`)."""

import ipaddress
from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import CustomStrategy, Data, Strategy, WriteContext
from paddock.base import names
from paddock.dialects.core.event import ObjectReference
from paddock.meta.objects import Resource
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Column, Kind, Version

SLICES = "discovery.k8s.io"
_RULE = "core/endpoints"
_PROTOCOLS = ("TCP", "UDP", "SCTP")


class EndpointAddress(Object):
    """One address behind a Service."""

    ip: Annotated[str, Field("The address.", required=True, format="ip")] = ""
    hostname: Annotated[str | None, Field("Name of the host.", format="dns1123-label")] = None
    nodeName: Annotated[str | None, Field("Node of the address.")] = None
    targetRef: Annotated[ObjectReference | None, Field("The object that has the address.")] = None


class EndpointPort(Object):
    """One port of the addresses."""

    name: Annotated[str | None, Field("Name of the port of the Service.")] = None
    port: Annotated[int, Field("The port.", required=True, ge=1, le=65535)] = 0
    protocol: Annotated[str, Field("Protocol.", enum=_PROTOCOLS)] = "TCP"
    appProtocol: Annotated[str | None, Field("What is spoken on the port.")] = None


class EndpointSubset(Object):
    """Addresses that have the same ports."""

    addresses: Annotated[list[EndpointAddress] | None, Field("Addresses that are ready.")] = None
    notReadyAddresses: Annotated[list[EndpointAddress] | None, Field("Addresses that are not ready.")] = None
    ports: Annotated[list[EndpointPort] | None, Field("The ports.")] = None


class Endpoints(Resource):
    """The addresses behind the Service of the same name."""

    subsets: Annotated[list[EndpointSubset] | None, Field("Addresses and their ports.")] = None


class EndpointConditions(Object):
    """What may be sent to an endpoint."""

    ready: Annotated[bool | None, Field("Whether it is ready.")] = None
    serving: Annotated[bool | None, Field("Whether it answers.")] = None
    terminating: Annotated[bool | None, Field("Whether it is going down.")] = None


class Endpoint(Object):
    """One backend."""

    addresses: Annotated[list[str], Field("Its addresses.", required=True, min_items=1, max_items=100)] = []
    conditions: Annotated[EndpointConditions, Field("What may be sent to it.")] = EndpointConditions()
    hostname: Annotated[str | None, Field("Name of the host.", format="dns1123-label")] = None
    targetRef: Annotated[ObjectReference | None, Field("The object behind it.")] = None
    deprecatedTopology: Annotated[dict[str, str] | None, Field("Where it is, in the older form.")] = None
    nodeName: Annotated[str | None, Field("Node it is on.")] = None
    zone: Annotated[str | None, Field("Zone it is in.")] = None
    hints: Annotated[Freeform | None, Field("Who should use it.")] = None


class SlicePort(Object):
    """One port of all endpoints of a slice."""

    name: Annotated[str, Field("Name of the port of the Service.")] = ""
    protocol: Annotated[str, Field("Protocol.", enum=_PROTOCOLS)] = "TCP"
    port: Annotated[int | None, Field("The port; none means all.", ge=1, le=65535)] = None
    appProtocol: Annotated[str | None, Field("What is spoken on the port.")] = None


class EndpointSlice(Resource):
    """Some of the backends of a Service."""

    addressType: Annotated[str, Field("Type of the addresses.", required=True, enum=("IPv4", "IPv6", "FQDN"))] = ""
    endpoints: Annotated[list[Endpoint] | None, Field("The backends.", max_items=1000, nullable=True)] = None
    ports: Annotated[list[SlicePort] | None, Field("Their ports.", max_items=20000, nullable=True)] = None


class EndpointSliceStrategy(CustomStrategy):
    """The addresses of a slice are of one type, which stays; its ports have names of their own."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Type, addresses, names of ports."""
        kind = new.get("addressType", "")
        if old is not None and kind != old.get("addressType"):
            yield finding.invalid(("addressType",), kind, "field is immutable", _RULE)
        for index, endpoint in enumerate(new.get("endpoints") or ()):
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


KINDS = (
    Kind(
        group="",
        kind="Endpoints",
        plural="endpoints",
        singular="endpoints",
        short_names=("ep",),
        cls=Endpoints,
        dialect="core",
        columns=(AGE,),
        status=False,
        builtin=True,
    ),
    Kind(
        group=SLICES,
        kind="EndpointSlice",
        plural="endpointslices",
        singular="endpointslice",
        cls=EndpointSlice,
        dialect="core",
        versions=(Version("v1"),),
        columns=(Column("AddressType", ".addressType"), AGE),
        status=False,
        builtin=True,
    ),
)
