"""Judges an object: the states that a step waits for, and the comparisons of a validation."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.plan.cases.document import CaseCheck, WaitCondition

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|[^\]]*)\]")
_ABSENT = object()


def holds(condition: WaitCondition, found: Data | None) -> bool:
    """Return whether an object is in a state; None is one that is not there. One that is being deleted is in none."""
    if condition == "Deleted" or found is None:
        return condition == "Deleted" and found is None
    return not (found.get("metadata") or {}).get("deletionTimestamp") and _STATES[condition](found)


def described(found: Data | None) -> str:
    """The state of an object in words, for a step that waited in vain."""
    if found is None:
        return "it is not there"
    status = found.get("status") or {}
    ready = _condition(found, "Ready") or _condition(found, "ProviderAvailable")
    parts = [f"phase {status['phase']}"] if status.get("phase") else []
    parts += [f"{ready.get('reason')}: {ready.get('message')}"] if ready else []
    return ", ".join(parts) or "its status says nothing"


def problem(check: CaseCheck, found: Data) -> str:
    """The reason why a comparison does not hold; empty if it does."""
    value = _at(found, check.path)
    if check.operator == "exists":
        wanted = check.value is not False
        return "" if (value not in (_ABSENT, None, "", [], {})) == wanted else f"{check.path} is {'absent' if wanted else _text(value)}"
    if value is _ABSENT:
        return f"{check.path} is absent"
    try:
        good = _OPERATORS[check.operator](value, check.value)
    except (TypeError, ValueError, re.error):
        good = False
    return "" if good else f"{check.path} is {_text(value)}, not {check.operator} {_text(check.value)}"


def _at(data: Any, path: str) -> Any:
    """A member by a path such as .status.conditions[0].reason."""
    for name, index in _STEP.findall(path):
        if name and isinstance(data, Mapping) and name in data:
            data = data[name]
        elif index.isdecimal() and isinstance(data, list) and int(index) < len(data):
            data = data[int(index)]
        else:
            return _ABSENT
    return data


def _text(value: Any) -> str:
    return repr(value)[:200]


def _condition(found: Data, type: str) -> Data:
    listed = (found.get("status") or {}).get("conditions") or []
    return next((dict(each) for each in listed if each.get("type") == type), {})


def _is_true(found: Data, type: str) -> bool:
    """A condition of the object as it is now."""
    each = _condition(found, type)
    seen = each.get("observedGeneration")
    return each.get("status") == "True" and seen in (None, (found.get("metadata") or {}).get("generation"))


def _ready(found: Data) -> bool:
    return _is_true(found, "Ready") or _is_true(found, "ProviderAvailable")


def _runs(found: Data, phase: str, power: str) -> bool:
    status = found.get("status") or {}
    return status.get("phase") == phase and status.get("powerState") == power


def _provisioned(found: Data) -> bool:
    status = found.get("status") or {}
    return bool(status.get("id")) and not status.get("lastTaskRef") and _condition(found, "Provisioning").get("status") == "False"


_STATES: Mapping[WaitCondition, Callable[[Data], bool]] = {
    "Ready": _ready,
    "Available": lambda found: _ready(found) or _is_true(found, "Available"),
    "Running": lambda found: _runs(found, "Running", "On"),
    "Stopped": lambda found: _runs(found, "Stopped", "Off"),
    "Failed": lambda found: (found.get("status") or {}).get("phase") == "Failed",
    "Provisioned": _provisioned,
}
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: bool(a == b),
    "ne": lambda a, b: bool(a != b),
    "gt": lambda a, b: bool(a > b),
    "lt": lambda a, b: bool(a < b),
    "gte": lambda a, b: bool(a >= b),
    "lte": lambda a, b: bool(a <= b),
    "contains": lambda a, b: b in a,
    "matches": lambda a, b: re.search(str(b), str(a)) is not None,
}
