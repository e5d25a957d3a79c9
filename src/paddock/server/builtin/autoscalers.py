"""`autoscaling HorizontalPodAutoscaler`: stored as v2, served as v1 as well. Nothing here measures or scales."""

from collections.abc import Iterator
from typing import Any

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.kindtable import pipeline
from paddock.server.resources.strategy import Strategy, WriteContext

RULE = "core/autoscaler"
_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS = (f"{_PREFIX}{name}" for name in ("metrics", "behavior", "current-metrics", "conditions"))
_SOURCES = {"Resource": "resource", "Pods": "pods", "Object": "object", "External": "external", "ContainerResource": "containerResource"}
DEFAULT_SHARE = 80
DEFAULT_METRIC: Data = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": DEFAULT_SHARE}},
}


class AutoscalerStrategy(Strategy):
    """A target, bounds, and what is measured."""

    def complete(self, new: Data) -> None:
        """The load of the processors is measured where nothing else is."""
        spec = new.get("spec")
        if not isinstance(spec, dict):
            return
        if new.get("apiVersion") != "autoscaling/v1":
            spec.setdefault("metrics", [DEFAULT_METRIC])
        elif _METRICS not in (new["metadata"].get("annotations") or {}):
            spec.setdefault("targetCPUUtilizationPercentage", DEFAULT_SHARE)

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing has been observed."""
        new["status"] = pipeline.blank(f"{new['apiVersion']}.HorizontalPodAutoscaler", "status")
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Bounds, target and metrics."""
        spec = new.get("spec") or {}
        if old is not None and spec == old.get("spec"):
            return
        least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
        if least is not None and least < 1:
            yield finding.invalid(("spec", "minReplicas"), least, "must be greater than or equal to 1", RULE)
        if most < 1:
            yield finding.required(("spec", "maxReplicas"), RULE, "must be set and greater than 0")
        if least is not None and most < least:
            yield finding.invalid(("spec", "maxReplicas"), most, "must be greater than or equal to `minReplicas`", RULE)
        if not (spec.get("scaleTargetRef") or {}).get("apiVersion"):
            why = "apiVersion must specify API group"
            yield finding.invalid(("spec", "scaleTargetRef", "apiVersion"), "", why, RULE)
        for index, each in enumerate(spec.get("metrics") or ()):
            place, source = ("spec", "metrics", index), _SOURCES.get(each.get("type", ""))
            if each.get("type") and source is None:
                yield finding.unsupported((*place, "type"), each["type"], sorted(_SOURCES), RULE)
            elif source is not None and each.get(source) is None:
                yield finding.required((*place, source), RULE, "must populate information for the given metric source")


def to_stored(data: Data) -> Data:
    """The v2 form of a v1 object."""
    spec, status = dict(data.get("spec") or {}), dict(data.get("status") or {})
    meta = dict(data["metadata"])
    annotations = dict(meta.get("annotations") or {})
    metrics = _read(annotations.pop(_METRICS, "")) or []
    share = spec.pop("targetCPUUtilizationPercentage", None)
    if share is not None:
        target = {"type": "Utilization", "averageUtilization": share}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    if metrics:
        spec["metrics"] = metrics
    if (behavior := _read(annotations.pop(_BEHAVIOR, ""))) is not None:
        spec["behavior"] = behavior
    current = _read(annotations.pop(_CURRENT, "")) or []
    used = status.pop("currentCPUUtilizationPercentage", None)
    if used is not None:
        measured = {"name": "cpu", "current": {"averageUtilization": used}}
        current = [{"type": "Resource", "resource": measured}, *current]
    conditions = _read(annotations.pop(_CONDITIONS, ""))
    if conditions is not None:
        status["conditions"] = conditions
    status["currentMetrics"] = current or None
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return _with(data, meta, annotations, spec, status)


def from_stored(data: Data) -> Data:
    """The v1 form of a v2 object; what v1 has no field for stands in annotations."""
    spec, status = dict(data.get("spec") or {}), dict(data.get("status") or {})
    meta = dict(data["metadata"])
    annotations = dict(meta.get("annotations") or {})
    others = []
    for each in spec.pop("metrics", None) or ():
        target = (each.get("resource") or {}).get("target") or {}
        if (each.get("resource") or {}).get("name") == "cpu" and target.get("averageUtilization") is not None:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            others.append(each)
    measured = []
    for each in status.pop("currentMetrics", None) or ():
        value = ((each.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if (each.get("resource") or {}).get("name") == "cpu" and value is not None:
            status["currentCPUUtilizationPercentage"] = value
        else:
            measured.append(each)
    kept = {_METRICS: others, _BEHAVIOR: spec.pop("behavior", None), _CURRENT: measured, _CONDITIONS: status.pop("conditions", None)}
    annotations.update({name: orjson.dumps(value).decode() for name, value in kept.items() if value})
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return _with(data, meta, annotations, spec, status)


def _read(text: str) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None


def _with(data: Data, meta: Data, annotations: Data, spec: Data, status: Data) -> Data:
    meta.pop("annotations", None)
    if annotations:
        meta["annotations"] = annotations
    return {**data, "metadata": meta, "spec": spec, "status": status}
