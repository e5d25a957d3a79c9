"""`networking.k8s.io/v1 Ingress`: kept for controllers that come from outside. The server itself routes nothing, as upstream's does."""

from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin.tables import NONE, Cells, age_of, name_of
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "networking.k8s.io"
_RULE = "core/ingress"
_CLASSES = f"ingressclasses.{GROUP}"
IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
# The older way to name a class.
_CLASS = "kubernetes.io/ingress.class"


class IngressStrategy(Strategy):
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


def _paths(paths: Any, at: finding.Path) -> Iterator[Finding]:
    if not paths:
        yield finding.required(at, _RULE)
    for number, entry in enumerate(paths):
        path, kind = entry.get("path") or "", entry.get("pathType")
        if kind in ("Exact", "Prefix") or (path and kind == "ImplementationSpecific"):
            if not path.startswith("/"):
                yield finding.invalid((*at, number, "path"), path, "must be an absolute path", _RULE)
            for wrong in ("//", "/./", "/../", "%2f", "%2F") if kind != "ImplementationSpecific" else ():
                if wrong in path:
                    yield finding.invalid((*at, number, "path"), path, f"must not contain '{wrong}'", _RULE)
        yield from _backend(entry.get("backend") or {}, (*at, number, "backend"))


def _backend(backend: Data, path: finding.Path) -> Iterator[Finding]:
    service, resource = backend.get("service"), backend.get("resource")
    if (service is None) == (resource is None):
        why = "cannot set both resource and service backends" if service else "must specify a resource or a service backend"
        yield finding.invalid(path, backend, why, _RULE)
    elif service is not None:
        port = service.get("port") or {}
        if port.get("name") and port.get("number"):
            yield finding.invalid((*path, "service", "port"), port, "cannot set both port name & port number", _RULE)
        elif not port.get("name") and not port.get("number"):
            yield finding.required((*path, "service", "port"), _RULE, "port name or number is required")


def _cells(data: Data, now: float) -> list[Any]:
    spec = data.get("spec") or {}
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    shown = ",".join(hosts[:3]) + (f" + {len(hosts) - 3} more..." if len(hosts) > 3 else "")
    points = ((data.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = ",".join(point.get("ip") or point.get("hostname") or "" for point in points)
    ports = "80, 443" if spec.get("tls") else "80"
    return [name_of(data), spec.get("ingressClassName") or NONE, shown or "*", addresses, ports, age_of(data, now)]


CELLS: dict[tuple[str, str], Cells] = {(GROUP, "Ingress"): _cells}
STRATEGIES: dict[tuple[str, str], Strategy] = {(GROUP, "Ingress"): IngressStrategy()}
