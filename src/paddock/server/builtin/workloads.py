"""Kinds around pods that clients insist on: replication controllers, disruption budgets, runtime and ingress classes.

They are stored and validated. Nothing runs pods here, and their status says so: no replicas, no healthy pods.
"""

from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext

_RULE = "core/workload"


class BudgetStrategy(Strategy):
    """There are no pods, so nothing may go; that is true from the first moment."""

    def counts_generation(self) -> bool:
        return True

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        new["status"] = _observed(new, {}, 1, context.now)
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        if new.get("spec") != old.get("spec"):
            generation = old["metadata"].get("generation", 0) + 1
            new["status"] = _observed(new, old.get("status") or {}, generation, context.now)
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """One bound, a number or a share."""
        spec = new.get("spec") or {}
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            yield finding.invalid(("spec",), spec, "minAvailable and maxUnavailable cannot be both set", _RULE)
        for name in ("minAvailable", "maxUnavailable"):
            value = spec.get(name)
            if isinstance(value, int) and value < 0:
                yield finding.invalid(("spec", name), value, "must be greater than or equal to 0", _RULE)
            elif isinstance(value, str) and not (value.endswith("%") and value[:-1].isdecimal()):
                why = "a valid percent string must be a numeric string followed by an ending '%'"
                yield finding.invalid(("spec", name), value, why, _RULE)
            elif isinstance(value, str) and int(value[:-1]) > 100:
                yield finding.invalid(("spec", name), value, "must not be greater than 100%", _RULE)


def _observed(new: Data, before: Data, generation: int, now: str) -> Data:
    least = (new.get("spec") or {}).get("minAvailable")
    status: Data = {**before, "observedGeneration": generation, "disruptionsAllowed": 0, "currentHealthy": 0, "expectedPods": 0}
    status["desiredHealthy"] = least if isinstance(least, int) else 0
    if not any(each.get("type") == "DisruptionAllowed" for each in before.get("conditions") or ()):
        said: dict[str, Any] = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
        status["conditions"] = [{**said, "observedGeneration": generation, "lastTransitionTime": now}]
    return status


class RuntimeStrategy(Strategy):
    """Pods were made by the class, so its handler stays."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        if old is not None and new.get("handler") != old.get("handler"):
            yield finding.invalid(("handler",), new.get("handler"), "field is immutable", _RULE)


class IngressClassStrategy(Strategy):
    """The controller of a class stays."""

    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        spec = new.get("spec") or {}
        controller, path = spec.get("controller") or "", ("spec", "controller")
        if not controller:
            yield finding.required(path, _RULE)
        elif "/" not in controller.strip("/"):
            yield finding.invalid(path, controller, 'must be a domain-prefixed path (such as "acme.io/foo")', _RULE)
        if old is not None and controller != (old.get("spec") or {}).get("controller"):
            yield finding.invalid(path, controller, "field is immutable", _RULE)
        parameters = spec.get("parameters") or {}
        place = ("spec", "parameters", "namespace")
        if parameters.get("scope") == "Namespace" and parameters.get("namespace") is None:
            yield finding.required(place, _RULE, "`parameters.scope` is set to 'Namespace'")
        elif parameters.get("scope") == "Cluster" and parameters.get("namespace") is not None:
            yield finding.forbidden(place, "`parameters.scope` is set to 'Cluster'", _RULE)


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("policy", "PodDisruptionBudget"): BudgetStrategy(),
    ("node.k8s.io", "RuntimeClass"): RuntimeStrategy(),
    ("networking.k8s.io", "IngressClass"): IngressClassStrategy(),
}
