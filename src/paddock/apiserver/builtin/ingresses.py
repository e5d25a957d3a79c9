"""`networking.k8s.io/v1 Ingress`: kept for controllers that come from outside. The server itself routes nothing, as upstream's does."""

from collections.abc import Iterator
from typing import Annotated, Any

from paddock.apiserver.builtin.tables import NONE, Cells, Data, age_of, column, name_of
from paddock.apiserver.resources.strategy import Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.schema import finding
from paddock.schema.field import Field, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Column, Kind

GROUP = "networking.k8s.io"
_RULE = "core/ingress"
_CLASSES = f"ingressclasses.{GROUP}"
IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
# The older way to name a class.
_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


class BackendPort(Object):
    """A port of a Service, by one of its names."""

    name: Annotated[str | None, Field("Name of the port.")] = None
    number: Annotated[int | None, Field("Number of the port.", ge=1, le=65535)] = None


class ServiceBackend(Object):
    """A Service."""

    name: Annotated[str, Field("Name of the Service.", required=True)] = ""
    port: Annotated[BackendPort | None, Field("Its port.")] = None


class ResourceBackend(Object):
    """Something else that answers."""

    apiGroup: Annotated[str | None, Field("Its group.")] = None
    kind: Annotated[str, Field("Its kind.", required=True)] = ""
    name: Annotated[str, Field("Its name.", required=True)] = ""


class Backend(Object):
    """Who answers: a Service or another resource."""

    service: Annotated[ServiceBackend | None, Field("A Service.")] = None
    resource: Annotated[ResourceBackend | None, Field("Something else in the namespace.")] = None


class HttpPath(Object):
    """A path and who answers it."""

    path: Annotated[str | None, Field("The path.")] = None
    pathType: Annotated[str, Field("How the path is compared.", required=True, enum=_PATH_TYPES)] = ""
    backend: Annotated[Backend | None, Field("Who answers.")] = None


class HttpRule(Object):
    """The paths of a host."""

    paths: Annotated[list[HttpPath] | None, Field("The paths.")] = None


class IngressRule(Object):
    """A host and its paths."""

    host: Annotated[str | None, Field("Name of the host; default: every one.")] = None
    http: Annotated[HttpRule | None, Field("Its paths.")] = None


class IngressTls(Object):
    """Names and the Secret with their certificate."""

    hosts: Annotated[list[str] | None, Field("The names.")] = None
    secretName: Annotated[str | None, Field("The Secret.")] = None


class IngressSpec(Object):
    """What is let in, and where it goes."""

    ingressClassName: Annotated[str | None, Field("The class, which says who makes it work.")] = None
    defaultBackend: Annotated[Backend | None, Field("Who answers what no rule names.")] = None
    tls: Annotated[list[IngressTls] | None, Field("Certificates.")] = None
    rules: Annotated[list[IngressRule] | None, Field("Hosts and paths.")] = None


class PortStatus(Object):
    """A port that a load balancer has."""

    port: Annotated[int, Field("Number of the port.", required=True)] = 0
    protocol: Annotated[str, Field("Its protocol.", required=True)] = ""
    error: Annotated[str | None, Field("What went wrong with it.")] = None


class EntryPoint(Object):
    """An address of a load balancer."""

    ip: Annotated[str | None, Field("Its address.")] = None
    hostname: Annotated[str | None, Field("Its name.")] = None
    ports: Annotated[list[PortStatus] | None, Field("Its ports.")] = None


class LoadBalancer(Object):
    """Where it can be reached."""

    ingress: Annotated[list[EntryPoint] | None, Field("Addresses.")] = None


class IngressStatus(Object):
    """What was observed."""

    loadBalancer: Annotated[LoadBalancer | None, Field("Where it can be reached.")] = None


class Ingress(Resource):
    """What comes from outside to Services."""

    spec: Annotated[IngressSpec | None, Field("What is let in, and where it goes.")] = None
    status: Annotated[IngressStatus | None, Field("What was observed.")] = None


class IngressStrategy(Strategy):
    """An Ingress leads somewhere."""

    def counts_generation(self) -> bool:
        return True

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The default class; nothing has been observed."""
        new["status"] = {"loadBalancer": {}}
        spec = new.get("spec") or {}
        says_none = spec.get("ingressClassName") is None and _CLASS not in (new["metadata"].get("annotations") or {})
        if says_none and (name := _default_class(context)):
            spec["ingressClassName"] = name
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Something answers, and paths are paths."""
        spec = new.get("spec") or {}
        if not spec.get("rules") and not spec.get("defaultBackend"):
            yield finding.invalid(("spec",), spec, "either `defaultBackend` or `rules` must be specified", _RULE)
        if spec.get("defaultBackend"):
            yield from _backend(spec["defaultBackend"], ("spec", "defaultBackend"))
        for index, rule in enumerate(spec.get("rules") or ()):
            if rule.get("http") is not None:
                yield from _paths(rule["http"].get("paths") or (), ("spec", "rules", index, "http", "paths"))


def _default_class(context: WriteContext) -> str | None:
    """Return the newest of the classes that are marked, and of equal ones the first by name."""
    metas = (each["metadata"] for each in context.view.list(_CLASSES))
    marked = [each for each in metas if (each.get("annotations") or {}).get(IS_DEFAULT) == "true"]
    newest = max((each.get("creationTimestamp", "") for each in marked), default="")
    return min((each["name"] for each in marked if each.get("creationTimestamp", "") == newest), default=None)


def _paths(paths: Any, place: finding.Path) -> Iterator[Finding]:
    if not paths:
        yield finding.required(place, _RULE)
    for number, entry in enumerate(paths):
        path, kind = entry.get("path") or "", entry.get("pathType")
        if kind in ("Exact", "Prefix") or (path and kind == "ImplementationSpecific"):
            if not path.startswith("/"):
                yield finding.invalid((*place, number, "path"), path, "must be an absolute path", _RULE)
            for wrong in ("//", "/./", "/../", "%2f", "%2F") if kind != "ImplementationSpecific" else ():
                if wrong in path:
                    yield finding.invalid((*place, number, "path"), path, f"must not contain '{wrong}'", _RULE)
        yield from _backend(entry.get("backend") or {}, (*place, number, "backend"))


def _backend(backend: Data, place: finding.Path) -> Iterator[Finding]:
    service, resource = backend.get("service"), backend.get("resource")
    if (service is None) == (resource is None):
        why = "cannot set both resource and service backends" if service else "must specify a resource or a service backend"
        yield finding.invalid(place, backend, why, _RULE)
    elif service is not None:
        port = service.get("port") or {}
        if port.get("name") and port.get("number"):
            yield finding.invalid((*place, "service", "port"), port, "cannot set both port name & port number", _RULE)
        elif not port.get("name") and not port.get("number"):
            yield finding.required((*place, "service", "port"), _RULE, "port name or number is required")


def _cells(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    shown = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    points = ((data.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = ",".join(point.get("ip") or point.get("hostname") or "" for point in points)
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(data), spec.get("ingressClassName") or NONE, shown or "*", addresses, ports, age_of(data, now)]


COLUMNS: tuple[Column, ...] = (column("Class"), column("Hosts"), column("Address"), column("Ports"), AGE)
TABLES: dict[tuple[str, str], tuple[tuple[Column, ...], Cells]] = {(GROUP, "Ingress"): (COLUMNS, _cells)}
KINDS = (
    Kind(
        group=GROUP,
        kind="Ingress",
        plural="ingresses",
        cls=Ingress,
        dialect="core",
        short_names=("ing",),
        builtin=True,
        status=True,
    ),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "Ingress"): IngressStrategy()}
