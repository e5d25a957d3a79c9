"""Values and places: which places a value has, how two values differ, what a merge makes of them, and taking places away."""

from collections.abc import Iterator
from typing import Any

from paddock.base.errors import Terminal
from paddock.meta.apply.places import SELF, Places, field, keyed, minus, union, valued
from paddock.meta.apply.types import ATOMIC, DEDUCED, KEYED, MAP, SCALAR, SET, Type, resolve


class Unmergeable(Terminal):
    """A list that is merged by keys or as a set has entries that cannot be told apart."""


def entries(kind: Type, value: list[Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a keyed list or a set with their steps; repeated and keyless ones raise `Unmergeable`."""
    seen = set()
    for entry in value:
        step = _step(kind, entry)
        if step is None:
            raise Unmergeable(f"an entry of a list lacks its keys {', '.join(kind.keys)}")
        if step in seen:
            raise Unmergeable(f"duplicate entries for key {step[2:]}")
        seen.add(step)
        yield step, entry


def _step(kind: Type, entry: Any) -> str | None:
    if kind.kind == SET:
        return valued(entry)
    key = kind.key_of(entry)
    return None if key is None else keyed(key)


def live_entries(kind: Type, value: list[Any]) -> dict[str, list[Any]]:
    """The entries of a stored list by step; what a client stored twice is one place with several values."""
    found: dict[str, list[Any]] = {}
    for index, entry in enumerate(value):
        found.setdefault(_step(kind, entry) or f"i:{index}", []).append(entry)
    return found


# --- the places of a value ------------------------------------------------------------------------------------------------


def places_of(kind: Type, value: Any) -> Places:
    """The places that a configuration says something about (below its root)."""
    made: Places = {}
    for name, member in value.items():
        below = _places(kind.member(name), member)
        if below is None:
            continue
        is_free = not kind.declares(name)
        empty = member is None or member == {} or below == {}
        made[field(name)] = below if empty or not is_free else {SELF: {}, **below}
    return made


def _places(kind: Type, value: Any) -> Places | None:
    """What is below a place; {} for the place alone, None when the place is nobody's (an empty list that is merged)."""
    kind = resolve(kind, value)
    if kind.kind == MAP and isinstance(value, dict):
        return places_of(kind, value)
    if kind.kind == SET and isinstance(value, list):
        return {step: {} for step, _ in entries(kind, value)} or None
    if kind.kind == KEYED and isinstance(value, list):
        item = kind.item or kind
        made = {step: {SELF: {}, **(_places(item, entry) or {})} for step, entry in entries(kind, value)}
        return {step: {} if set(below) == {SELF} else below for step, below in made.items()} or None
    return {}


def everything(kind: Type, value: dict[str, Any]) -> Places:
    """All places of a value, containers included: the difference from nothing, in one walk."""
    made: Places = {}
    fields, item = kind.fields, kind.item or DEDUCED
    for name, member in value.items():
        # Most members are scalars, and every create walks over all of them.
        made[f"f:{name}"] = _everything(fields.get(name) or item, member) if isinstance(member, dict | list) and member else {}
    return made


def _everything(kind: Type, value: Any) -> Places:
    """The places below a container, itself among them; {} for the container alone."""
    kind = resolve(kind, value)
    if kind.kind == MAP and isinstance(value, dict):
        return everything(kind, value) if kind.present else {SELF: {}, **everything(kind, value)}
    made: Places = {}
    if kind.kind in (SET, KEYED) and isinstance(value, list):
        item = kind.item or kind
        made = {SELF: {}}
        for step, found in live_entries(kind, value).items():
            # Entries that stand twice are owned as one place.
            is_one = len(found) == 1 and isinstance(found[0], dict | list) and found[0]
            made[step] = _everything(item, found[0]) if is_one else {}
    return made


# --- differences ----------------------------------------------------------------------------------------------------------


class Difference:
    """What changed between two values: new places (containers included), other values, places that are gone."""

    def __init__(self) -> None:
        self.added: Places = {}
        self.modified: Places = {}
        self.removed: Places = {}


_MISSING: Any = object()


def difference(kind: Type, before: dict[str, Any], after: dict[str, Any]) -> Difference:
    """How an object changed."""
    found = Difference()
    _compare_maps(kind, (before, after), (found.added, found.modified, found.removed))
    return found


Sets = tuple[Places, Places, Places]
Pair = tuple[Any, Any]


def _compare(kind: Type, pair: Pair, step: str, sets: Sets) -> None:
    before, after = pair
    if before is not _MISSING and after is not _MISSING and before == after:
        return
    kind = resolve(kind, *(value for value in pair if value is not _MISSING))
    below: Sets = ({}, {}, {})
    is_leaf = not _descends(kind, pair)
    if not is_leaf:
        empty: Any = {} if kind.kind == MAP else []
        inner = tuple(empty if value is _MISSING or value is None else value for value in pair)
        (_compare_maps if kind.kind == MAP else _compare_lists)(kind, (inner[0], inner[1]), below)
    itself = 0 if before is _MISSING else 2 if after is _MISSING else 1
    for index, (place, inside) in enumerate(zip(sets, below, strict=True)):
        # A container counts as a place of its own when it appears or goes, never when something in it changes.
        here = index == itself and (is_leaf or itself != 1) and not kind.present
        if inside:
            place[step] = {SELF: {}, **inside} if here else inside
        elif here:
            place[step] = {}


def _descends(kind: Type, pair: Pair) -> bool:
    """Whether the values are looked into: both are containers of the type, or missing, and one of them holds something."""
    wanted = {MAP: dict, SET: list, KEYED: list}.get(kind.kind)
    if wanted is None:
        return False
    given = [value for value in pair if value is not _MISSING and value is not None]
    return all(isinstance(value, wanted) for value in given) and any(given)


def _compare_maps(kind: Type, pair: Pair, sets: Sets) -> None:
    before, after = pair
    for name in {**before, **after}:
        values = (before.get(name, _MISSING), after.get(name, _MISSING))
        _compare(kind.member(name), values, field(name), sets)


def _compare_lists(kind: Type, pair: Pair, sets: Sets) -> None:
    before, after = (live_entries(kind, value) for value in pair)
    for step in {**before, **after}:
        old, new = before.get(step, _MISSING), after.get(step, _MISSING)
        several = any(value is not _MISSING and len(value) > 1 for value in (old, new))
        if several:
            # Entries that stand twice are owned as one place.
            _compare(Type(ATOMIC), (old, new), step, sets)
        else:
            one = tuple(value if value is _MISSING else value[0] for value in (old, new))
            _compare(kind.item or kind, (one[0], one[1]), step, sets)


# --- merging --------------------------------------------------------------------------------------------------------------


def merge(kind: Type, live: Any, config: Any) -> Any:
    """The live value with everything that the configuration says."""
    kind = resolve(kind, live, config)
    if kind.kind == MAP and isinstance(live, dict) and isinstance(config, dict):
        made = dict(live)
        for name, value in config.items():
            made[name] = merge(kind.member(name), live.get(name), value)
        return made
    if kind.kind in (SET, KEYED) and isinstance(live, list) and isinstance(config, list):
        return _merge_lists(kind, live, config)
    return config


def _merge_lists(kind: Type, live: list[Any], config: list[Any]) -> list[Any]:
    """Entries of the configuration in its order; those only live stay behind the live neighbour they followed."""
    wanted = dict(entries(kind, config))
    present = live_entries(kind, live)
    item = kind.item or kind
    made: list[Any] = []
    placed: set[str] = set()
    order = list(wanted)

    def place(step: str) -> None:
        former = present.get(step)
        made.append(merge(item, former[0], wanted[step]) if former else wanted[step])
        placed.add(step)

    for step, values in present.items():
        if step not in wanted:
            made.extend(values)
            continue
        # Everything the configuration has before this entry comes before it.
        while step not in placed:
            place(order.pop(0))
    for step in order:
        place(step)
    return made


# --- taking away ----------------------------------------------------------------------------------------------------------


def without(kind: Type, value: Any, gone: Places, kept: Places) -> Any:
    """A value without the places `gone`, except what is, or holds, a place of `kept`."""
    kind = resolve(kind, value)
    if kind.kind == MAP and isinstance(value, dict):
        return _without_members(kind, value, gone, kept)
    if kind.kind in (SET, KEYED) and isinstance(value, list):
        return _without_entries(kind, value, gone, kept)
    return value


def _without_members(kind: Type, value: dict[str, Any], gone: Places, kept: Places) -> dict[str, Any]:
    made = {}
    for name, member in value.items():
        step = field(name)
        if step not in gone:
            made[name] = member
            continue
        below, held = gone[step], kept.get(step)
        if held is None and (not below or SELF in below or not kind.declares(name)) and _is_all(kind.member(name), member, below):
            continue
        rest = without(kind.member(name), member, below, held or {}) if below else member
        if held is None and below and _holds_nothing(rest) and not _holds_nothing(member):
            continue
        if below or held is not None:
            made[name] = rest
    return made


def _is_all(kind: Type, member: Any, below: Places) -> bool:
    """Whether nothing is left of a member when its places go."""
    return not below or resolve(kind, member).kind in (SCALAR, ATOMIC) or (SELF in below)


def _holds_nothing(value: Any) -> bool:
    return value in ({}, [])


def _without_entries(kind: Type, value: list[Any], gone: Places, kept: Places) -> list[Any]:
    made = []
    for entry in value:
        step = _step(kind, entry)
        if step is None or step not in gone:
            made.append(entry)
            continue
        below, held = gone[step], kept.get(step)
        if held is None and (not below or SELF in below):
            continue
        made.append(without(kind.item or kind, entry, below, held or {}))
    return made


__all__ = ["Difference", "difference", "entries", "merge", "minus", "places_of", "union", "without"]
