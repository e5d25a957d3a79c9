"""`vitistack.io/v1alpha1 NetworkConfiguration`: a network that machines name (docs/spec/vitistack.md section 1.2).

The documents write two of its members both as `vlan` and `bridge` and as `VLAN` and `Bridge`; both are read.
"""

import ipaddress
from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Version, rule

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Net = ipaddress.IPv4Network | ipaddress.IPv6Network


class DnsServers(Object):
    """Name servers."""

    servers: Annotated[list[Annotated[str, Field(format="ip")]] | None, Field("Addresses of name servers.", max_items=16)] = None
    searchDomains: Annotated[
        list[Annotated[str, Field(format="dns1123-subdomain")]] | None, Field("Domains that are searched.", max_items=32)
    ] = None


class Ipam(Object):
    """The allocation of addresses."""

    type: Annotated[str, Field("Who gives addresses.", enum=("static", "dhcp", "kea"))] = "dhcp"
    subnet: Annotated[str | None, Field("The network, such as 10.0.0.0/24.", format="cidr")] = None
    gateway: Annotated[str | None, Field("Default gateway, inside the subnet.", format="ip")] = None
    dns: Annotated[DnsServers | None, Field("Name servers.")] = None


class Reservation(Object):
    """An address that one card always gets."""

    macAddress: Annotated[str, Field("Address of the card.", required=True, format="mac")] = ""
    ipAddress: Annotated[str, Field("Address it gets, inside the subnet.", required=True, format="ip")] = ""
    hostname: Annotated[str | None, Field("Host name it gets.", format="dns1123-subdomain")] = None


class DhcpSettings(Object):
    """The DHCP server."""

    enabled: Annotated[bool | None, Field("Whether there is one.")] = None
    poolStart: Annotated[str | None, Field("First address of the pool, inside the subnet.", format="ip")] = None
    poolEnd: Annotated[str | None, Field("Last address of the pool, inside the subnet.", format="ip")] = None
    leaseTime: Annotated[str | None, Field("How long an address is lent, such as 12h.", format="duration")] = None
    reservations: Annotated[list[Reservation] | None, Field("Addresses given to one card each.", max_items=1024)] = None


class NetworkFirewallRule(Object):
    """Permitted traffic."""

    direction: Annotated[str | None, Field("Direction, seen from the machine.", enum=("ingress", "egress"))] = None
    protocol: Annotated[str | None, Field("Protocol.", enum=("tcp", "udp", "icmp"))] = None
    port: Annotated[str | None, Field("Port or range of ports.")] = None
    source: Annotated[str | None, Field("Network or address it comes from.")] = None
    destination: Annotated[str | None, Field("Network or address it goes to.")] = None
    action: Annotated[str | None, Field("What happens to it.", enum=("allow", "deny"))] = None


class Security(Object):
    """The traffic that may pass on this network."""

    isolation: Annotated[bool | None, Field("Keep machines of this network apart.")] = None
    firewallRules: Annotated[list[NetworkFirewallRule] | None, Field("Rules, first match wins.", max_items=256)] = None


class NetworkConfigurationSpec(Object):
    """The wiring, and what else is known of the network."""

    bridge: Annotated[
        str,
        Field(
            "Bridge of the host.",
            max_length=15,
            pattern=r"^[^/ \t\n\r\f\v]+$",
            message="must be the name of a Linux interface: 1 to 15 characters without / and spaces",
            aliases=("Bridge",),
        ),
    ] = "br0"
    vlan: Annotated[int | None, Field("VLAN; 0 or none: untagged.", ge=0, le=4094, aliases=("VLAN",))] = None
    networkId: Annotated[str | None, Field("Identifier of the network elsewhere.")] = None
    mtu: Annotated[int | None, Field("Largest packet.", ge=576, le=65535)] = None
    ipam: Annotated[Ipam | None, Field("Who gives addresses, and which.")] = None
    dhcp: Annotated[DhcpSettings | None, Field("The DHCP server.")] = None
    security: Annotated[Security | None, Field("What may pass; enforced by Paddock's own engine only.")] = None


class NetworkConfigurationStatus(Object):
    """The observed state of a network."""

    ready: Annotated[bool | None, Field("Whether machines can be attached.")] = None
    allocatedIPs: Annotated[list[str] | None, Field("Addresses in use.")] = None
    connectedMachines: Annotated[list[str] | None, Field("Machines that use it, as namespace/name.")] = None


class NetworkConfiguration(Resource):
    """A network that machines of its namespace attach to: a bridge of the host, perhaps with a VLAN."""

    spec: Annotated[NetworkConfigurationSpec, Field("The network.")] = NetworkConfigurationSpec()
    status: Annotated[NetworkConfigurationStatus | None, Field("What was observed.")] = None


def _net(config: NetworkConfiguration) -> _Net | None:
    try:
        return ipaddress.ip_network((config.spec.ipam and config.spec.ipam.subnet) or "", strict=False)
    except ValueError:
        return None


def _address(text: str | None) -> _Address | None:
    try:
        return ipaddress.ip_address(text or "")
    except ValueError:
        return None


def _addresses(config: NetworkConfiguration) -> Iterator[tuple[Path, str | None]]:
    """Every address that has to lie inside the subnet."""
    spec = config.spec
    if spec.ipam:
        yield ("spec", "ipam", "gateway"), spec.ipam.gateway
    if spec.dhcp:
        yield ("spec", "dhcp", "poolStart"), spec.dhcp.poolStart
        yield ("spec", "dhcp", "poolEnd"), spec.dhcp.poolEnd
        for index, reservation in enumerate(spec.dhcp.reservations or ()):
            yield ("spec", "dhcp", "reservations", index, "ipAddress"), reservation.ipAddress


@rule(
    "vitistack/network-name",
    Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"),
)
def name_is_a_label_value(config: NetworkConfiguration, settings: AdmissionSettings) -> Iterator[Finding]:
    """The name becomes a label value."""
    name = config.metadata.name
    if len(name) > 63:
        yield finding.invalid(("metadata", "name"), name, "must be no more than 63 characters", "vitistack/network-name")


@rule("vitistack/subnet")
def addresses_are_inside(config: NetworkConfiguration, settings: AdmissionSettings) -> Iterator[Finding]:
    """The gateway, the pool and reserved addresses lie inside the subnet."""
    net = _net(config)
    if net is None:
        return
    for path, text in _addresses(config):
        address = _address(text)
        if address is not None and address not in net:
            yield finding.invalid(path, text, f"must be inside the subnet {net}", "vitistack/subnet")


@rule("vitistack/pool")
def pool_is_a_range(config: NetworkConfiguration, settings: AdmissionSettings) -> Iterator[Finding]:
    """The pool starts before it ends, in one address family."""
    dhcp = config.spec.dhcp
    if dhcp is None:
        return
    start, end = _address(dhcp.poolStart), _address(dhcp.poolEnd)
    if start is None or end is None:
        return
    if start.version != end.version or int(start) > int(end):
        why = f"must not be before poolStart {start}"
        yield finding.invalid(("spec", "dhcp", "poolEnd"), dhcp.poolEnd, why, "vitistack/pool")


RULES = (name_is_a_label_value, addresses_are_inside, pool_is_a_range)

KINDS = (
    Kind(
        group="vitistack.io",
        kind="NetworkConfiguration",
        plural="networkconfigurations",
        singular="networkconfiguration",
        short_names=("nc",),
        cls=NetworkConfiguration,
        dialect="vitistack",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("VLAN", ".spec.vlan", "integer"),
            Column("Bridge", ".spec.bridge"),
            Column("Ready", ".status.ready", "boolean"),
            AGE,
        ),
        rules=RULES,
    ),
)
