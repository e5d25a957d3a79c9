"""ResourceQuota and LimitRange: how much a namespace may hold, and how large its claims may be. `admission` enforces both."""

from collections.abc import Iterator
from typing import Any

from paddock.base import names, quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.resources.strategy import Strategy, WriteContext

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


class QuotaStrategy(Strategy):
    """The status is the server's; housekeeping writes it."""

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
    """Return the mistake in the name of a resource, or an empty text."""
    if not names.is_qualified(name):
        return names.WHY_QUALIFIED
    if "/" not in name and name not in _NAMES and not name.startswith(("hugepages-", "requests.hugepages-")):
        return "must be a standard resource type or fully qualified"
    return ""


def _fits(scope: str, resource: str) -> bool:
    """Return whether a scope applies to a resource."""
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


class LimitStrategy(Strategy):
    def complete(self, new: Data) -> None:
        """Defaults of containers follow from their bounds."""
        for item in (new.get("spec") or {}).get("limits") or ():
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
    """Return whether one amount is more than another; text that is no amount has a finding already."""
    return quantity.is_quantity(low) and quantity.is_quantity(high) and quantity.parse(low) > quantity.parse(high)


STRATEGIES: dict[tuple[str, str], Strategy] = {("", "ResourceQuota"): QuotaStrategy(), ("", "LimitRange"): LimitStrategy()}
