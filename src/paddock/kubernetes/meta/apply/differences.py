"""Differences of two values: added paths (containers included), changed paths, removed paths."""

from typing import Any

from paddock.base.jsonequality import identical
from paddock.kubernetes.meta.apply.places import SELF, Places, field, union
from paddock.kubernetes.meta.apply.types import DEDUCED, KEYED, MAP, SCALAR_TYPE, SET, MergeType, resolve
from paddock.kubernetes.meta.apply.values import live_entries


class ApplyDifference:
    """The differences between two values."""

    def __init__(self) -> None:
        self.added: Places = {}
        self.modified: Places = {}
        self.removed: Places = {}


_MISSING: Any = object()
Sets = tuple[Places, Places, Places]


def difference(kind: MergeType, before: dict[str, Any], after: dict[str, Any]) -> ApplyDifference:
    """Return the differences between two forms of an object."""
    found = ApplyDifference()
    _compare_maps(kind, before, after, (found.added, found.modified, found.removed))
    return found


def _compare(kind: MergeType, pair: tuple[Any, Any], step: str, sets: Sets) -> None:
    before, after = pair
    if before is not _MISSING and after is not _MISSING and identical(before, after):
        return
    is_leaf = False
    inside: Sets = ({}, {}, {})
    for each in _read_as(kind, before, after):
        below = _descend(each, before, after)
        if below is None:
            is_leaf = True
        else:
            inside = (union(inside[0], below[0]), union(inside[1], below[1]), union(inside[2], below[2]))
    itself = 0 if before is _MISSING else 2 if after is _MISSING else 1
    for index, (place, found) in enumerate(zip(sets, inside, strict=True)):
        # A container counts as a place of its own when it appears or goes, never when something in it changes.
        here = index == itself and (is_leaf or itself != 1) and not kind.present
        if found or here:
            made = {} if not found else {SELF: {}, **found} if here else found
            place[step] = union(place, {step: made})[step] if step in place else made


def _read_as(kind: MergeType, before: Any, after: Any) -> tuple[MergeType, ...]:
    """The type, or where it is deduced the types of both values, if they are not of one."""
    if kind is not DEDUCED:
        return (kind,)
    found = [resolve(DEDUCED, {} if value is None else value) for value in (before, after) if value is not _MISSING]
    return (found[0],) if found[0] is found[-1] else (found[0], found[-1])


def _descend(kind: MergeType, before: Any, after: Any) -> Sets | None:
    """Return the differences inside containers; None where the values are compared as a whole."""
    if kind.kind not in (MAP, SET, KEYED):
        return None
    wanted: Any = dict if kind.kind == MAP else list
    old, new = (value if isinstance(value, wanted) else wanted() for value in (before, after))
    if not (old or new):
        return None
    below: Sets = ({}, {}, {})
    (_compare_maps if kind.kind == MAP else _compare_lists)(kind, old, new, below)
    return below


def _compare_maps(kind: MergeType, before: Any, after: Any, sets: Sets) -> None:
    for name in {**before, **after}:
        old, new = before.get(name, _MISSING), after.get(name, _MISSING)
        # Most members are texts that stay.
        if old is new or (type(old) is type(new) is str and old == new):
            continue
        inside = kind.member(name)
        # A map can have tens of thousands of scalars, of which each is one place, and no other member of the map has its step.
        if inside is not SCALAR_TYPE:
            _compare(inside, (old, new), field(name), sets)
        elif old is _MISSING or new is _MISSING or not identical(old, new):
            sets[0 if old is _MISSING else 2 if new is _MISSING else 1][field(name)] = {}


def _compare_lists(kind: MergeType, before: Any, after: Any, sets: Sets) -> None:
    item = kind.item or kind
    former, later = live_entries(kind, before), live_entries(kind, after)
    for step in {**former, **later}:
        old, new = former.get(step, []), later.get(step, [])
        if len(old) <= 1 and len(new) <= 1:
            _compare(item, (old[0] if old else _MISSING, new[0] if new else _MISSING), step, sets)
        elif len(old) > 1 and len(new) > 1:
            # Entries that stand twice are owned as one place.
            if old != new:
                sets[1][step] = {}
        elif len(old) > 1:
            if new:
                _compare(item, (_MISSING, new[0]), step, sets)
            sets[2][step] = {}
        else:
            if old:
                _compare(item, (old[0], _MISSING), step, sets)
            sets[0][step] = {}
