"""Comparison of an object with a configuration to apply: would the apply change anything? Pure.

An apply changes nothing when all it says is so already, and our manager owns exactly what it says: nothing more, or something would be
taken away; nothing less, or something would become ours. Who owns what stands in `managedFields` (docs/spec/kube-api.md section 5):
`f:NAME` is a member, `k:{...}` an item of a list with keys, `v:...` an item of a set, `.` the thing itself.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from paddock.base.jsondata import Data

# Who something is, which nobody owns.
_IDENTITY = ("apiVersion", "kind")
_META_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "managedFields", "creationTimestamp", "generation")


def is_applied(wanted: Data, found: Data, manager: str) -> bool:
    """Return whether an apply of `wanted` by this manager would leave `found` as it is. False when that is unknown."""
    owned = applied_fields(found, manager)
    if owned is None:
        return False
    return _matches(_without_identity(wanted), found, owned)


def applied_fields(found: Data, manager: str) -> Mapping[str, Any] | None:
    """The fields that a manager has applied to an object itself, as managedFields has them; None when it has applied none."""
    for entry in found["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (manager, "Apply") and not entry.get("subresource"):
            fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
            return fields
    return None


def changed_labels(wanted: Data, found: Data, manager: str) -> dict[str, str | None]:
    """The labels that a manager has to write on an object that is there, and None for those that it applied and no longer wants."""
    labels, there = wanted["metadata"].get("labels") or {}, found["metadata"].get("labels") or {}
    applied = ((applied_fields(found, manager) or {}).get("f:metadata") or {}).get("f:labels") or {}
    gone = {name[2:] for name in applied if name.startswith("f:")} & there.keys() - labels.keys()
    return {**{name: value for name, value in labels.items() if there.get(name) != value}, **dict.fromkeys(gone)}


def _without_identity(wanted: Data) -> Data:
    body = {name: value for name, value in wanted.items() if name not in (*_IDENTITY, "metadata", "status")}
    metadata = {name: value for name, value in wanted["metadata"].items() if name not in _META_IDENTITY}
    return {**body, "metadata": metadata} if metadata else body


def _matches(wanted: Any, found: Any, owned: Mapping[str, Any]) -> bool:
    if isinstance(wanted, dict):
        return _matches_object(wanted, found, owned)
    if isinstance(wanted, list):
        return _matches_list(wanted, found, owned)
    return bool(wanted == found and type(wanted) is type(found))


def _matches_object(desired: dict[str, Any], found: Any, owned: Mapping[str, Any]) -> bool:
    if not isinstance(found, dict):
        return False
    if not _has_members(owned):
        # Owned as one thing: it is what was applied, no more and no less.
        return desired == found
    names = {name[2:] for name in owned if name.startswith("f:")}
    if names != desired.keys():
        return False
    return all(name in found and _matches(value, found[name], owned[f"f:{name}"]) for name, value in desired.items())


def _matches_list(wanted: list[Any], found: Any, owned: Mapping[str, Any]) -> bool:
    if not isinstance(found, list):
        return False
    keyed = {name: each for name, each in owned.items() if name.startswith("k:")}
    values = [orjson.loads(name[2:]) for name in owned if name.startswith("v:")]
    if values:
        return sorted(map(repr, values)) == sorted(map(repr, wanted)) and all(value in found for value in wanted)
    if not keyed:
        return wanted == found
    if len(keyed) != len(wanted):
        return False
    return all(_matches_item(orjson.loads(name[2:]), wanted, found, each) for name, each in keyed.items())


def _matches_item(keys: dict[str, Any], wanted: list[Any], present: list[Any], owned: Mapping[str, Any]) -> bool:
    mine, theirs = _with_keys(wanted, keys), _with_keys(present, keys)
    return mine is not None and theirs is not None and _matches(mine, theirs, owned)


def _with_keys(items: list[Any], keys: dict[str, Any]) -> dict[str, Any] | None:
    """The item with these keys; one that leaves a key out may mean its default, which we do not know, so it is not found."""
    for item in items:
        if isinstance(item, dict) and all(item.get(name) == value for name, value in keys.items()):
            return item
    return None


def _has_members(owned: Mapping[str, Any]) -> bool:
    return any(name != "." for name in owned)


def same_where_said(wanted: Any, before: Any, now: Any) -> bool:
    """Return whether an object is, in every field that `wanted` sets, as it was before."""
    if not isinstance(wanted, dict):
        return bool(before == now)
    if not isinstance(before, dict) or not isinstance(now, dict):
        return bool(before == now)
    return all(same_where_said(value, before.get(name), now.get(name)) for name, value in wanted.items())
