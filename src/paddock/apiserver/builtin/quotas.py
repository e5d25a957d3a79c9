"""ResourceQuota and LimitRange: how much a namespace may hold, and how large its claims may be. `admission` enforces both."""

from collections.abc import Iterator
from typing import Annotated, Any

from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.base import names, quantity
from paddock.meta.objects import Resource
from paddock.meta.storage import Quantities
from paddock.schema import finding
from paddock.schema.field import Field, Object
from paddock.schema.finding import Finding, Path
from paddock.schema.kind import AGE, Kind

_QUOTA, _LIMITS = "core/quota", "core/limit-range"
SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_EXCLUSIVE = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_POD_COMPUTE = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
_CLAIMS = frozenset(("persistentvolumeclaims", "requests.storage"))
# Counted in whole objects.
_WHOLE = frozenset(
    (
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
        *("services.nodeports", "services.loadbalancers"),
    )
)
_STORAGE = frozenset(("ephemeral-storage", "requests.storage", "requests.ephemeral-storage", "limits.ephemeral-storage"))
_QUOTA_NAMES = _POD_COMPUTE | _WHOLE | _STORAGE
_NAMES = _QUOTA_NAMES | {"storage"}
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_BOUNDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class ScopeRequirement(Object):
    """One condition on what is counted."""

    scopeName: Annotated[str, Field("The scope.", required=True)] = ""
    operator: Annotated[str, Field("How the values are compared.", required=True)] = ""
    values: Annotated[list[str] | None, Field("The values, for In and NotIn.")] = None


class ScopeSelector(Object):
    """Conditions on what is counted."""

    matchExpressions: Annotated[list[ScopeRequirement] | None, Field("All must hold.")] = None


class QuotaSpec(Object):
    """How much the namespace may hold."""

    hard: Annotated[Quantities | None, Field("The most of each resource.")] = None
    scopes: Annotated[list[str] | None, Field("Only what all of these hold for is counted.")] = None
    scopeSelector: Annotated[ScopeSelector | None, Field("Only what this holds for is counted.")] = None


class QuotaStatus(Object):
    """What is enforced and what is there."""

    hard: Annotated[Quantities | None, Field("What is enforced.")] = None
    used: Annotated[Quantities | None, Field("What is there.")] = None


class ResourceQuota(Resource):
    """The most that a namespace may hold."""

    spec: Annotated[QuotaSpec | None, Field("How much.")] = None
    status: Annotated[QuotaStatus | None, Field("What is enforced and what is there.")] = None


class LimitRangeItem(Object):
    """Bounds for one type of thing."""

    type: Annotated[str, Field("Pod, Container or PersistentVolumeClaim.", required=True)] = ""
    max: Annotated[Quantities | None, Field("The most of each resource.")] = None
    min: Annotated[Quantities | None, Field("The least of each resource.")] = None
    default: Annotated[Quantities | None, Field("The limit where none is given.", not_honoured="there are no containers here")] = None
    defaultRequest: Annotated[Quantities | None, Field("The request where none is given.", not_honoured="there are no containers here")] = (
        None
    )
    maxLimitRequestRatio: Annotated[
        Quantities | None, Field("How much larger the limit may be.", not_honoured="there are no containers here")
    ] = None


class LimitRangeSpec(Object):
    """The bounds."""

    limits: Annotated[list[LimitRangeItem], Field("The bounds, one for each type.", required=True)] = []


class LimitRange(Resource):
    """How much one object of a namespace may ask for."""

    spec: Annotated[LimitRangeSpec | None, Field("The bounds.")] = None


class QuotaStrategy(Strategy):
    """The status is the server's; housekeeping writes it."""

    def complete(self, new: Data) -> None:
        """Amounts in one spelling."""
        _settle(new.setdefault("spec", {}), "hard")
        _settle(new.get("status") or {}, "hard", "used")

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """No status yet."""
        new["status"] = {}
        return new

    def returns_deleted(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Resources that can be counted, scopes that fit them."""
        spec, status = new.get("spec") or {}, new.get("status") or {}
        yield from _amounts(("spec", "hard"), spec.get("hard"))
        yield from _scopes(spec)
        yield from _selected(spec)
        for member in ("hard", "used"):
            yield from _amounts(("status", member), status.get(member))
        if old is not None and set(spec.get("scopes") or ()) != set((old.get("spec") or {}).get("scopes") or ()):
            yield finding.invalid(("spec", "scopes"), spec.get("scopes"), "field is immutable", _QUOTA)


def _amounts(path: Path, amounts: Data | None) -> Iterator[Finding]:
    for name, amount in (amounts or {}).items():
        place = (*path[:-1], f"{path[-1]}[{name}]")
        wrong = _wrong_resource(name)
        if wrong:
            yield finding.invalid(place, name, wrong, _QUOTA)
        if "/" not in name and name not in _QUOTA_NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
            yield finding.invalid(place, name, "must be a standard resource for quota", _QUOTA)
        if not quantity.is_quantity(amount):
            continue
        value = quantity.parse(amount)
        if value < 0:
            yield finding.invalid(place, amount, "must be greater than or equal to 0", _QUOTA)
        if name in _WHOLE and value % quantity.UNIT:
            yield finding.invalid(place, amount, "must be an integer", _QUOTA)


def _wrong_resource(name: str) -> str:
    """What is wrong with the name of a resource; empty when nothing is."""
    if not names.is_qualified(name):
        return names.WHY_QUALIFIED
    if "/" not in name and name not in _NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
        return "must be a standard resource type or fully qualified"
    return ""


def _fits(scope: str, resource: str) -> bool:
    """Whether a scope says anything about a resource."""
    if scope == "BestEffort":
        return resource == "pods"
    if scope == "VolumeAttributesClass":
        return resource in _CLAIMS
    return resource == "pods" or resource in _POD_COMPUTE if scope in SCOPES else True


def _check_scope(scope: str, hard: Data, path: Path, shown: Any) -> Iterator[Finding]:
    for resource in sorted(hard):
        if resource in _QUOTA_NAMES and not _fits(scope, resource):
            yield finding.invalid(path, shown, "unsupported scope applied to resource", _QUOTA)


def _scopes(spec: Data) -> Iterator[Finding]:
    scopes, path = spec.get("scopes") or [], ("spec", "scopes")
    for scope in scopes:
        if scope not in SCOPES:
            yield finding.invalid(path, scopes, "unsupported scope", _QUOTA)
        yield from _check_scope(scope, spec.get("hard") or {}, path, scopes)
    if any(pair <= set(scopes) for pair in _EXCLUSIVE):
        yield finding.invalid(path, scopes, "conflicting scopes", _QUOTA)


def _selected(spec: Data) -> Iterator[Finding]:
    selector = spec.get("scopeSelector") or {}
    conditions, path = selector.get("matchExpressions") or [], ("spec", "scopeSelector", "matchExpressions")
    for each in conditions:
        scope, operator, values = each.get("scopeName", ""), each.get("operator", ""), each.get("values") or []
        if scope not in SCOPES:
            yield finding.invalid((*path, "scopeName"), scope, "unsupported scope", _QUOTA)
        yield from _check_scope(scope, spec.get("hard") or {}, path, selector)
        if scope in SCOPES and scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
            yield finding.invalid((*path, "operator"), operator, f"must be 'Exists' when scope is {scope}", _QUOTA)
        if operator not in _OPERATORS:
            yield finding.invalid((*path, "operator"), operator, "not a valid selector operator", _QUOTA)
        elif operator in ("In", "NotIn") and not values:
            why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield finding.required((*path, "values"), _QUOTA, why)
        elif operator in ("Exists", "DoesNotExist") and values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield finding.invalid((*path, "values"), values, why, _QUOTA)
    if any(pair <= {each.get("scopeName") for each in conditions} for pair in _EXCLUSIVE):
        yield finding.invalid(("spec", "scopes"), spec.get("scopes"), "conflicting scopes", _QUOTA)


def _settle(holder: Data, *members: str) -> None:
    """Write amounts as Kubernetes does, in place."""
    for member in members:
        if holder.get(member):
            holder[member] = {name: quantity.respelled(amount) for name, amount in holder[member].items()}


class LimitStrategy(Strategy):
    """Bounds that fit together."""

    def complete(self, new: Data) -> None:
        """Amounts in one spelling; defaults of containers follow from their bounds."""
        for item in (new.get("spec") or {}).get("limits") or ():
            _settle(item, *_BOUNDS)
            if item.get("type") == "Container":
                _fill(item)

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Each type once, each least no more than its most."""
        seen = set()
        for index, item in enumerate((new.get("spec") or {}).get("limits") or ()):
            path: Path = ("spec", "limits", index)
            kind = item.get("type", "")
            if "/" not in kind and kind not in _LIMIT_TYPES:
                yield finding.invalid((*path, "type"), kind, "must be a standard limit type or fully qualified", _LIMITS)
            if kind in seen:
                yield finding.duplicate((*path, "type"), kind, _LIMITS)
            seen.add(kind)
            yield from _item(path, kind, item)


def _fill(item: Data) -> None:
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


def _item(path: Path, kind: str, item: Data) -> Iterator[Finding]:
    for member in _BOUNDS:
        if kind == "Pod" and member.startswith("default"):
            if item.get(member):
                yield finding.forbidden((*path, member), "may not be specified when `type` is 'Pod'", _LIMITS)
            continue
        for name in item.get(member) or ():
            if wrong := _wrong_resource(name):
                yield finding.invalid((*path, f"{member}[{name}]"), name, wrong, _LIMITS)
    least, most = item.get("min") or {}, item.get("max") or {}
    if kind == "PersistentVolumeClaim" and "storage" not in least and "storage" not in most:
        why = "either minimum or maximum storage value is required, but neither was provided"
        yield finding.required((*path, "limits"), _LIMITS, why)
    yield from _ordered(path, item)


_ORDER = (
    ("min", "max", "min", "min value {low} is greater than max value {high}"),
    ("min", "defaultRequest", "defaultRequest", "min value {low} is greater than default request value {high}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {low} is greater than max value {high}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {low} is greater than default limit value {high}"),
    ("min", "default", "default", "min value {low} is greater than default value {high}"),
    ("default", "max", "default", "default value {low} is greater than max value {high}"),
)


def _ordered(path: Path, item: Data) -> Iterator[Finding]:
    for lower, higher, blamed, text in _ORDER:
        for name, low in (item.get(lower) or {}).items():
            high = (item.get(higher) or {}).get(name)
            if high is not None and _exceeds(low, high):
                shown = item[blamed][name]
                yield finding.invalid((*path, f"{blamed}[{name}]"), shown, text.format(low=low, high=high), _LIMITS)
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        if _exceeds(1, ratio):
            yield finding.invalid((*path, f"maxLimitRequestRatio[{name}]"), ratio, f"ratio {ratio} is less than 1", _LIMITS)


def _exceeds(low: int | str, high: int | str) -> bool:
    """Whether one amount is more than another; what is no amount has been told already."""
    return quantity.is_quantity(low) and quantity.is_quantity(high) and quantity.parse(low) > quantity.parse(high)


KINDS = (
    Kind(
        group="",
        kind="ResourceQuota",
        plural="resourcequotas",
        singular="resourcequota",
        short_names=("quota",),
        cls=ResourceQuota,
        dialect="core",
        columns=(AGE,),
        builtin=True,
    ),
    Kind(
        group="",
        kind="LimitRange",
        plural="limitranges",
        singular="limitrange",
        short_names=("limits",),
        cls=LimitRange,
        dialect="core",
        columns=(AGE,),
        status=False,
        builtin=True,
    ),
)
