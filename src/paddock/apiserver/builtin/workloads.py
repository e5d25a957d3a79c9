"""Kinds around pods that clients insist on: replication controllers, disruption budgets, runtime and ingress classes.

They are stored and validated. Nothing runs pods here, and their status says so: no replicas, no healthy pods.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.conditions import Condition
from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector
from paddock.meta.storage import Quantities
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, IntOrString, Object, Time
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Kind, Scale

_RULE = "core/workload"
_POD_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("schedulerName", "default-scheduler"),
    ("terminationGracePeriodSeconds", 30),
)


class ControllerSpec(Object):
    """How many pods of which form."""

    replicas: Annotated[int | None, Field("How many.", ge=0, bits=32)] = 1
    minReadySeconds: Annotated[int | None, Field("How long a pod has to be ready.", ge=0, bits=32)] = None
    selector: Annotated[dict[str, str] | None, Field("Labels of the pods; default: those of the template.")] = None
    template: Annotated[Freeform | None, Field("What the pods are made of.")] = None


class ControllerStatus(Object):
    """What was observed."""

    replicas: Annotated[int, Field("How many there are.", zero=True, bits=32)] = 0
    fullyLabeledReplicas: Annotated[int | None, Field("How many have the labels of the template.")] = None
    readyReplicas: Annotated[int | None, Field("How many are ready.")] = None
    availableReplicas: Annotated[int | None, Field("How many have been ready for long enough.")] = None
    observedGeneration: Annotated[int | None, Field("The generation that this is about.")] = None
    conditions: Annotated[list[Freeform] | None, Field("Conditions.")] = None


class ReplicationController(Resource):
    """A number of equal pods; none are made here."""

    spec: Annotated[ControllerSpec | None, Field("How many of what.")] = None
    status: Annotated[ControllerStatus | None, Field("What was observed.")] = None


class DisruptionBudgetSpec(Object):
    """How much may be missing."""

    minAvailable: Annotated[IntOrString | None, Field("How many have to stay.")] = None
    maxUnavailable: Annotated[IntOrString | None, Field("How many may go.")] = None
    selector: Annotated[LabelSelector | None, Field("Labels of those that count.")] = None
    unhealthyPodEvictionPolicy: Annotated[
        str | None, Field("Whether what is not ready counts.", enum=("IfHealthyBudget", "AlwaysAllow"))
    ] = None


class DisruptionBudgetStatus(Object):
    """What was observed."""

    observedGeneration: Annotated[int | None, Field("The generation that this is about.")] = None
    disruptedPods: Annotated[dict[str, Time] | None, Field("Pods that are on their way out.")] = None
    disruptionsAllowed: Annotated[int, Field("How many may go now.", zero=True, ge=0, bits=32)] = 0
    currentHealthy: Annotated[int, Field("How many are well.", zero=True, ge=0, bits=32)] = 0
    desiredHealthy: Annotated[int, Field("How many have to be well.", zero=True, ge=0, bits=32)] = 0
    expectedPods: Annotated[int, Field("How many there are.", zero=True, ge=0, bits=32)] = 0
    conditions: Annotated[list[Condition] | None, Field("Conditions.", keys=("type",))] = None


class PodDisruptionBudget(Resource):
    """How much may be missing at a time."""

    spec: Annotated[DisruptionBudgetSpec | None, Field("How much may be missing.")] = None
    status: Annotated[DisruptionBudgetStatus | None, Field("What was observed.")] = None


class Overhead(Object):
    """What running costs."""

    podFixed: Annotated[Quantities | None, Field("What every pod costs.")] = None


class Scheduling(Object):
    """Where it can run."""

    nodeSelector: Annotated[dict[str, str] | None, Field("Labels of the nodes.")] = None
    tolerations: Annotated[list[Freeform] | None, Field("Taints that do not matter.")] = None


class RuntimeClass(Resource):
    """A way to run containers."""

    handler: Annotated[str, Field("Name of the runtime on the nodes.", required=True, min_length=1, format="dns1123-label")] = ""
    overhead: Annotated[Overhead | None, Field("What running costs.")] = None
    scheduling: Annotated[Scheduling | None, Field("Where it can run.")] = None


class IngressParameters(Object):
    """An object with settings."""

    apiGroup: Annotated[str | None, Field("Group of the object.")] = None
    kind: Annotated[str, Field("Kind of the object.", required=True, min_length=1)] = ""
    name: Annotated[str, Field("Name of the object.", required=True, min_length=1)] = ""
    scope: Annotated[str | None, Field("Whether it lives in a namespace.", enum=("Cluster", "Namespace"))] = "Cluster"
    namespace: Annotated[str | None, Field("Its namespace.")] = None


class IngressClassSpec(Object):
    """Who makes it."""

    controller: Annotated[str | None, Field("Name of the controller, a domain with a path.", max_length=250)] = None
    parameters: Annotated[IngressParameters | None, Field("Settings.")] = None


class IngressClass(Resource):
    """A kind of ingress."""

    spec: Annotated[IngressClassSpec | None, Field("Who makes it.")] = None


def complete_template(template: Data | None) -> None:
    """Give the template of a pod the defaults that every pod has, in place."""
    spec = (template or {}).get("spec")
    if not isinstance(spec, dict):
        return
    for name, value in _POD_DEFAULTS:
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        if isinstance(container, dict):
            _complete_container(container)


def _complete_container(container: Data) -> None:
    _, _, tag = str(container.get("image") or "").rpartition("/")[2].partition(":")
    container.setdefault("imagePullPolicy", "Always" if tag in ("", "latest") else "IfNotPresent")
    container.setdefault("resources", {})
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")


class TemplateStrategy(Strategy):
    """A template has what its pods would have."""

    def counts_generation(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        complete_template(new.get("template"))


class ControllerStrategy(Strategy):
    """No pod is ever made."""

    def counts_generation(self) -> bool:
        return True

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Nothing runs."""
        new["status"] = {"replicas": 0}
        return new

    def complete(self, new: Data) -> None:
        """Labels from the template."""
        spec = new.setdefault("spec", {"replicas": 1})
        complete_template(spec.get("template"))
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not new["metadata"].get("labels"):
                new["metadata"]["labels"] = dict(labels)

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """It selects what it would make."""
        spec = new.get("spec") or {}
        template, selector = spec.get("template"), spec.get("selector") or {}
        if not selector:
            yield finding.required(("spec", "selector"), _RULE)
        if template is None:
            yield finding.required(("spec", "template"), _RULE)
            return
        labels = (template.get("metadata") or {}).get("labels") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            path = ("spec", "template", "metadata", "labels")
            yield finding.invalid(path, labels, "`selector` does not match template `labels`", _RULE)


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


class IngressStrategy(Strategy):
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


def _kind(group: str, cls: type[Resource], plural: str, **more: Any) -> Kind:
    name = cls.__name__
    return Kind(group=group, kind=name, plural=plural, singular=name.lower(), cls=cls, dialect="core", builtin=True, **more)


KINDS = (
    _kind(
        "",
        ReplicationController,
        "replicationcontrollers",
        short_names=("rc",),
        categories=("all",),
        scale=Scale(selector=""),
    ),
    _kind("policy", PodDisruptionBudget, "poddisruptionbudgets", short_names=("pdb",)),
    _kind("node.k8s.io", RuntimeClass, "runtimeclasses", namespaced=False, status=False, columns=(AGE,)),
    _kind("networking.k8s.io", IngressClass, "ingressclasses", namespaced=False, status=False, columns=(AGE,)),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("", "ReplicationController"): ControllerStrategy(),
    ("", "PodTemplate"): TemplateStrategy(),
    ("policy", "PodDisruptionBudget"): BudgetStrategy(),
    ("node.k8s.io", "RuntimeClass"): RuntimeStrategy(),
    ("networking.k8s.io", "IngressClass"): IngressStrategy(),
}
