"""A quota: its bounds, the objects that it counts, and what is beyond them, in kube-apiserver's words. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.quotas.measuring import Amounts, ObjectUsage
from paddock.kubernetes.quotas.usage import Traits

_ATTRIBUTES, _PRIORITY = "VolumeAttributesClass", "PriorityClass"
Scope = tuple[str, str, tuple[str, ...]]


class Quota(msgspec.Struct, frozen=True):
    """One quota, as it is enforced."""

    name: str
    hard: Amounts
    # (scope, operator, values): all must hold for what is counted
    scopes: tuple[Scope, ...]
    # the bounds as they are written
    spelled: dict[str, str] = {}

    @property
    def is_scoped(self) -> bool:
        """True if the quota counts only some objects."""
        return bool(self.scopes)

    def covers(self, measured: ObjectUsage) -> bool:
        """Return whether the quota counts an object. All scopes but one are about Pods."""
        return all(_in_scope(scope, measured) for scope in self.scopes)


def _in_scope(scope: Scope, measured: ObjectUsage) -> bool:
    name, operator, values = scope
    if name == _ATTRIBUTES:
        return measured.classes is not None and _selects(operator, values, measured.classes)
    if measured.traits is None:
        return False
    if name == _PRIORITY:
        given = measured.traits.priority_class
        return _selects(operator, values, frozenset((given,) if given else ()))
    return _has_trait(name, measured.traits)


def _has_trait(scope: str, traits: Traits) -> bool:
    match scope:
        case "Terminating":
            return traits.terminating
        case "NotTerminating":
            return not traits.terminating
        case "BestEffort":
            return traits.best_effort
        case "NotBestEffort":
            return not traits.best_effort
    return scope == "CrossNamespacePodAffinity" and traits.cross_namespace


def _selects(operator: str, values: tuple[str, ...], names: frozenset[str]) -> bool:
    match operator:
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return bool(names & set(values))
    return any(each not in values for each in names) if names else True


def read(data: Data) -> Quota:
    spec = data.get("spec") or {}
    spelled = spec.get("hard") or {}
    hard = {name: quantity.parse(amount) for name, amount in spelled.items()}
    plain = tuple((each, "Exists", ()) for each in spec.get("scopes") or ())
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    chosen = tuple((each.get("scopeName", ""), each.get("operator", ""), tuple(each.get("values") or ())) for each in selected)
    return Quota(data["metadata"]["name"], hard, plain + chosen, spelled)


def used_of(data: Data) -> Amounts:
    """Return what the status of a quota says that is used."""
    used = (data.get("status") or {}).get("used") or {}
    return {name: quantity.parse(amount) for name, amount in used.items() if quantity.is_quantity(amount)}


def growth(quota: Quota, new: ObjectUsage, old: ObjectUsage | None = None) -> Amounts:
    """Return what an object takes more of a quota than it took. Amounts that it gives back are left out."""
    if not quota.covers(new):
        return {}
    before: Mapping[str, int] = old.amounts if old is not None and quota.covers(old) else {}
    found = {name: amount - before.get(name, 0) for name, amount in new.amounts.items() if name in quota.hard}
    return {name: amount for name, amount in found.items() if amount > 0}


def exceeded(quota: Quota, used: Amounts, more: Amounts) -> list[str]:
    """Return the names of the bounds that an object would break."""
    return sorted(name for name, amount in more.items() if used.get(name, 0) + amount > quota.hard[name])


def refusal(quota: Quota, names: Iterable[str], used: Amounts, more: Amounts) -> str:
    """Return why a quota refuses an object."""
    broken = list(names)
    limited = ",".join(f"{name}={quota.spelled[name]}" for name in broken)
    return f"exceeded quota: {quota.name}, requested: {shown(broken, more)}, used: {shown(broken, used)}, limited: {limited}"


def shown(names: Iterable[str], amounts: Amounts) -> str:
    """Return amounts as a refusal spells them."""
    return ",".join(f"{name}={measuring.text(name, amounts.get(name, 0))}" for name in names)
