"""Where a Service leads: Endpoints (`v1`) and EndpointSlices (`discovery.k8s.io/v1`)."""

from typing import Annotated

from paddock.dialects.core.event import ObjectReference
from paddock.meta.objects import Resource
from paddock.schema.field import Field, Freeform, Object
from paddock.schema.kind import AGE, Column, Kind, Version

SLICES = "discovery.k8s.io"
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

    addresses: Annotated[list[str], Field("Its addresses.", required=True, min_items=1, max_items=100, unique=True)] = []
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
