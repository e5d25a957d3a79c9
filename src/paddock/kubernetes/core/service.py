"""`v1 Service`."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Freeform, IntOrString, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Column, Kind, rule


class ServicePort(Object):
    """One port of the Service and where it leads."""

    name: Annotated[str | None, Field("Name; needed when there are several ports.", format="dns1123-label")] = None
    protocol: Annotated[str | None, Field("Protocol; default: TCP.", enum=("TCP", "UDP", "SCTP"))] = None
    appProtocol: Annotated[str | None, Field("What is spoken on the port.")] = None
    port: Annotated[int, Field("Port of the Service.", required=True, ge=1, le=65535)] = 0
    targetPort: Annotated[IntOrString | None, Field("Port of the machine or its name; default: the port.", ge=1, le=65535)] = None
    nodePort: Annotated[int | None, Field("Port of every node; chosen when absent.", ge=0, le=65535)] = None


class ServiceSpec(Object):
    """The endpoints of a Service, and the ways to reach it."""

    type: Annotated[
        str | None,
        Field("How the Service is reached; default: ClusterIP.", enum=("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")),
    ] = None
    selector: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]] | None,
        Field("Labels of the instances it leads to.", key_format="label-key"),
    ] = None
    ports: Annotated[list[ServicePort] | None, Field("The ports.")] = None
    clusterIP: Annotated[str | None, Field("Address inside the cluster, or None; chosen when absent.")] = None
    clusterIPs: Annotated[list[str] | None, Field("Addresses inside the cluster.", max_items=2)] = None
    externalIPs: Annotated[list[Annotated[str, Field(format="ip")]] | None, Field("More addresses of the nodes.")] = None
    externalName: Annotated[str | None, Field("The name an ExternalName Service stands for.")] = None
    externalTrafficPolicy: Annotated[str | None, Field("Where traffic from outside may go.", enum=("Cluster", "Local"))] = None
    internalTrafficPolicy: Annotated[str | None, Field("Where traffic from inside may go.", enum=("Cluster", "Local"))] = None
    loadBalancerIP: Annotated[str | None, Field("Wanted address of the load balancer.")] = None
    loadBalancerClass: Annotated[str | None, Field("Who provides the load balancer.")] = None
    loadBalancerSourceRanges: Annotated[list[str] | None, Field("Networks that may use the load balancer.")] = None
    allocateLoadBalancerNodePorts: Annotated[bool | None, Field("Whether a LoadBalancer also gets node ports; default: true.")] = None
    healthCheckNodePort: Annotated[int | None, Field("Port for health checks with a Local policy.", ge=0, le=65535)] = None
    publishNotReadyAddresses: Annotated[bool | None, Field("Whether instances that are not ready are reachable too.")] = None
    sessionAffinity: Annotated[str | None, Field("Whether a client stays with an instance.", enum=("None", "ClientIP"))] = None
    sessionAffinityConfig: Annotated[Freeform | None, Field("How long a client stays.")] = None
    ipFamilies: Annotated[list[Annotated[str, Field(enum=("IPv4", "IPv6"))]] | None, Field("Families of addresses.", max_items=2)] = None
    ipFamilyPolicy: Annotated[
        str | None,
        Field("How many families.", enum=("SingleStack", "PreferDualStack", "RequireDualStack")),
    ] = None
    trafficDistribution: Annotated[str | None, Field("Which instances are preferred.")] = None


class LoadBalancerIngress(Object):
    """An address of the load balancer."""

    ip: Annotated[str | None, Field("Address.")] = None
    hostname: Annotated[str | None, Field("Host name.")] = None
    ipMode: Annotated[str | None, Field("How the address works.")] = None
    ports: Annotated[list[Freeform] | None, Field("State of the ports.")] = None


class LoadBalancerStatus(Object):
    """The addresses of the load balancer."""

    ingress: Annotated[list[LoadBalancerIngress] | None, Field("Its addresses.")] = None


class ServiceStatus(Object):
    """The observed state of a Service."""

    loadBalancer: Annotated[LoadBalancerStatus | None, Field("The load balancer.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the Service.", keys=("type",))] = None


class Service(Resource):
    """A stable address for machines that are selected by their labels."""

    spec: Annotated[ServiceSpec | None, Field("Whom it leads to, and how it is reached.")] = None
    status: Annotated[ServiceStatus | None, Field("What was observed.")] = None


@rule("core/service-ports")
def ports_are_distinct(service: Service, settings: AdmissionSettings) -> Iterator[Finding]:
    """A Service has ports unless it is headless or an ExternalName; several ports are named, and none stands twice."""
    spec = service.spec or ServiceSpec()
    ports = spec.ports or []
    if not ports and spec.type != "ExternalName" and spec.clusterIP != "None":
        yield finding.required(("spec", "ports"), "core/service-ports")
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        path = ("spec", "ports", index)
        if not port.name and len(ports) > 1:
            yield finding.required((*path, "name"), "core/service-ports")
        if port.name and port.name in names:
            yield finding.duplicate((*path, "name"), port.name, "core/service-ports")
        number = (port.protocol or "TCP", port.port)
        if port.port and number in numbers:
            yield finding.duplicate(path, {"protocol": number[0], "port": number[1]}, "core/service-ports")
        names.add(port.name or "")
        numbers.add(number)


@rule("core/service-external-name")
def external_names_are_given(service: Service, settings: AdmissionSettings) -> Iterator[Finding]:
    """An ExternalName Service says which name it stands for."""
    if service.spec is not None and service.spec.type == "ExternalName" and not service.spec.externalName:
        yield finding.required(("spec", "externalName"), "core/service-external-name")


KINDS = (
    Kind(
        group="",
        kind="Service",
        plural="services",
        singular="service",
        short_names=("svc",),
        categories=("all",),
        cls=Service,
        dialect="core",
        columns=(
            Column("Type", ".spec.type"),
            Column("Cluster-IP", ".spec.clusterIP"),
            Column("External-IP", ".status.loadBalancer.ingress[0].ip"),
            AGE,
        ),
        builtin=True,
        rules=(ports_are_distinct, external_names_are_given),
    ),
)
