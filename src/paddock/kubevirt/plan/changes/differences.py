"""Differences in meaning between two forms of an object: 1Gi is 1024Mi, a default that is left out is there, and entries of a list that
have names are compared by name, wherever they stand.

Both forms are plain data that passed their check, so that defaults are in them.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.kubernetes.meta.redaction import without_secrets
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Path

ABSENT = shape.ABSENT
# Members of every object that say nothing about what it should be.
_ENVELOPE = ("apiVersion", "kind", "metadata", "status")
_METADATA = ("labels", "annotations")


class ValueChange(StrEnum):
    """The kind of a value's change. `up` and `down` are changes of numbers and quantities."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    UP = "up"
    DOWN = "down"
    REORDERED = "reordered"


class FieldDifference(msgspec.Struct, frozen=True):
    """One place where two forms differ.

    `path` leads to it in the new form, or in the old one where it was removed; `named` is the same path with the names of list
    entries in place of their numbers. Secrets are not in the values.
    """

    how: ValueChange
    path: Path
    named: Path
    before: Any
    after: Any


class ListEntryName(str):
    """The name of a list entry in a path that people read."""

    __slots__ = ()


def differences(field_shape: shape.ObjectShape, before: dict[str, Any], after: dict[str, Any]) -> Iterator[FieldDifference]:
    """The differences of two objects of one kind, in the order of the declaration. What the server sets does not count."""
    for name, prop in field_shape.properties.items():
        if name not in _ENVELOPE:
            yield from _compare(prop.shape, before.get(name, ABSENT), after.get(name, ABSENT), _At((name,), (name,)))
    metadata = field_shape.properties["metadata"].shape
    assert isinstance(metadata, shape.ObjectShape)
    for name in _METADATA:
        old, new = (form.get("metadata", {}).get(name) or {} for form in (before, after))
        path = ("metadata", name)
        yield from _compare(metadata.properties[name].shape, old, new, _At(path, path))


class _At:
    """The place of a comparison, in both notations."""

    __slots__ = ("named", "path")

    def __init__(self, path: Path, named: Path) -> None:
        self.path = path
        self.named = named

    def member(self, name: str) -> "_At":
        return _At((*self.path, name), (*self.named, name))

    def entry(self, index: int, name: str | None = None) -> "_At":
        return _At((*self.path, index), (*self.named, index if name is None else ListEntryName(name)))


def _compare(field_shape: shape.Shape, before: Any, after: Any, at: _At) -> Iterator[FieldDifference]:
    if before is after or before == after:
        return
    if before is ABSENT or before is None or after is ABSENT or after is None:
        yield from _one_side(field_shape, before, after, at)
    elif isinstance(field_shape, shape.ObjectShape):
        yield from _objects(field_shape, before, after, at)
    elif isinstance(field_shape, shape.MapShape):
        for key in _union(before, after):
            yield from _compare(field_shape.value, before.get(key, ABSENT), after.get(key, ABSENT), at.member(key))
    elif isinstance(field_shape, shape.ListShape):
        yield from _lists(field_shape, before, after, at)
    else:
        how = _direction(field_shape, before, after)
        if how is not None:
            yield _difference(field_shape, how, at, before, after)


def _one_side(field_shape: shape.Shape, before: Any, after: Any, at: _At) -> Iterator[FieldDifference]:
    """A value that only one form has. Objects, maps and lists of objects are listed member by member; an empty one
    says something by being there."""
    gone = after is ABSENT or after is None
    there = before if gone else after
    if there is ABSENT or there is None or (there == {} and isinstance(field_shape, shape.MapShape)):
        return
    found = False
    if there and (isinstance(field_shape, shape.ObjectShape | shape.MapShape) or _lists_objects(field_shape)):
        nothing = type(there)()
        inner = _compare(field_shape, there, nothing, at) if gone else _compare(field_shape, nothing, there, at)
        for found_inside in inner:
            found = True
            yield found_inside
    if not found:
        yield _difference(field_shape, ValueChange.REMOVED if gone else ValueChange.ADDED, at, before, after)


def _lists_objects(field_shape: shape.Shape) -> bool:
    return isinstance(field_shape, shape.ListShape) and isinstance(field_shape.item, shape.ObjectShape)


def _objects(field_shape: shape.ObjectShape, before: dict[str, Any], after: dict[str, Any], at: _At) -> Iterator[FieldDifference]:
    for name, prop in field_shape.properties.items():
        default = prop.default
        yield from _compare(prop.shape, before.get(name, default), after.get(name, default), at.member(name))
    for name in _union(before, after):
        # An open object keeps members that are not declared.
        if name not in field_shape.properties and before.get(name, ABSENT) != after.get(name, ABSENT):
            yield from _compare(_ANYTHING, before.get(name, ABSENT), after.get(name, ABSENT), at.member(name))


def _lists(field_shape: shape.ListShape, before: list[Any], after: list[Any], at: _At) -> Iterator[FieldDifference]:
    old, new = _by_name(field_shape, before), _by_name(field_shape, after)
    if old is None or new is None:
        yield from _by_number(field_shape, before, after, at)
        return
    for name, index in old.items():
        if name not in new:
            yield _difference(field_shape.item, ValueChange.REMOVED, at.entry(index, name), before[index], ABSENT)
    for name, index in new.items():
        there = at.entry(index, name)
        if name in old:
            yield from _compare(field_shape.item, before[old[name]], after[index], there)
        else:
            yield _difference(field_shape.item, ValueChange.ADDED, there, ABSENT, after[index])
    kept = [name for name in old if name in new]
    now = [name for name in new if name in old]
    if kept != now and not field_shape.field.unique:
        yield _difference(field_shape, ValueChange.REORDERED, at, kept, now)


def _by_number(field_shape: shape.ListShape, before: list[Any], after: list[Any], at: _At) -> Iterator[FieldDifference]:
    if not isinstance(field_shape.item, shape.ObjectShape):
        yield _difference(field_shape, ValueChange.CHANGED, at, before, after)
        return
    for index in range(max(len(before), len(after))):
        if index >= len(after):
            yield _difference(field_shape.item, ValueChange.REMOVED, at.entry(index), before[index], ABSENT)
        elif index >= len(before):
            yield _difference(field_shape.item, ValueChange.ADDED, at.entry(index), ABSENT, after[index])
        else:
            yield from _compare(field_shape.item, before[index], after[index], at.entry(index))


def _by_name(field_shape: shape.ListShape, entries: list[Any]) -> dict[str, int] | None:
    """The entries by what they are known by; None when they have no names of their own."""
    found: dict[str, int] = {}
    for index, entry in enumerate(entries):
        name = _name_of(field_shape, entry)
        if not name or name in found:
            return None
        found[name] = index
    return found


def _name_of(field_shape: shape.ListShape, entry: Any) -> str:
    if field_shape.field.unique:
        return str(entry)
    if not isinstance(entry, dict):
        return ""
    if field_shape.field.keys:
        return ",".join(str(entry.get(key, "")) for key in field_shape.field.keys)
    name = entry.get("name") or (entry.get("metadata") or {}).get("name")
    return name if isinstance(name, str) else ""


def _direction(field_shape: shape.Shape, before: Any, after: Any) -> ValueChange | None:
    """Return the change of a scalar; None when both mean the same."""
    if isinstance(field_shape, shape.QuantityShape):
        before, after = quantity.parse(before), quantity.parse(after)
        if before == after:
            return None
    if type(before) in (int, float) and type(after) in (int, float):
        return ValueChange.UP if after > before else ValueChange.DOWN
    return ValueChange.CHANGED


def _union(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [*before, *(key for key in after if key not in before)]


def _difference(field_shape: shape.Shape, how: ValueChange, at: _At, before: Any, after: Any) -> FieldDifference:
    return FieldDifference(how, at.path, at.named, without_secrets(field_shape, before), without_secrets(field_shape, after))


_ANYTHING = shape.AnyShape(Field(), is_object=False)


def format_named(path: Path) -> str:
    """`spec.disks[data].size`: a path with the names of list entries."""
    text = ""
    for part in path:
        if isinstance(part, int | ListEntryName) or (text and ("." in part or "/" in part or not part)):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
