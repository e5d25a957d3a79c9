"""Values and places: which places a value has, what a merge makes of two values, and taking places away."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from paddock.base.errors import Terminal
from paddock.base.jsondata import CONTAINERS
from paddock.kubernetes.meta.apply.places import SELF, Places, belongs, encoded, field, keyed, valued
from paddock.kubernetes.meta.apply.types import ATOMIC, DEDUCED, KEYED, MAP, SCALAR, SCALAR_TYPE, SET, MergeType, resolve

# Kinds of values that are owned and replaced as a whole.
_WHOLE = (SCALAR, ATOMIC)

# What a null is read as, where the type is deduced.
_NULL = resolve(DEDUCED, {})


class Unmergeable(Terminal):
    """A list that is merged by keys or as a set has equal entries."""


def entries(kind: MergeType, value: list[Any]) -> Iterator[tuple[str, Any]]:
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


def _step(kind: MergeType, entry: Any) -> str | None:
    if kind.kind == SET:
        return None if entry is None or isinstance(entry, CONTAINERS) else valued(entry)
    if kind.opening and isinstance(entry, dict) and type(only := entry.get(kind.keys[0])) is str:
        return f"{kind.opening}{encoded(only)}}}"
    key = kind.key_of(entry)
    return None if key is None else keyed(key)


def live_entries(kind: MergeType, value: list[Any]) -> dict[str, list[Any]]:
    """The entries of a stored list by step; what a client stored twice is one place with several values."""
    found: dict[str, list[Any]] = {}
    for index, entry in enumerate(value):
        found.setdefault(_step(kind, entry) or f"i:{index}", []).append(entry)
    return found


# --- the places of a value ------------------------------------------------------------------------------------------------


def places_of(kind: MergeType, value: Any, *, live: bool = False) -> Places:
    """The places that a configuration says something about (below its root). A `live` value may hold an entry twice."""
    made: Places = {}
    for name, member in value.items():
        inside = kind.member(name)
        if inside.kind in _WHOLE:
            made[field(name)] = {}
            continue
        below = _places(inside, member, live)
        if below is None:
            continue
        is_free = not kind.declares(name)
        empty = member is None or member == {} or below == {}
        made[field(name)] = below if empty or not is_free else {SELF: {}, **below}
    return made


def _places(kind: MergeType, value: Any, live: bool) -> Places | None:
    """Return the places below a place; {} for the place alone, None when nobody owns it (a container of nothing, or of the wrong kind)."""
    kind = resolve(kind, value)
    if kind.kind == MAP:
        # A null counts as the place itself, as does an empty map.
        return places_of(kind, value, live=live) if isinstance(value, dict) else {} if value is None else None
    if kind.kind == SET and isinstance(value, list):
        return {step: {} for step in (live_entries(kind, value) if live else dict(entries(kind, value)))} or None
    if kind.kind == KEYED and isinstance(value, list):
        return _places_of_entries(kind, value, live) or None
    return {} if kind.kind in _WHOLE or value is None else None


def _places_of_entries(kind: MergeType, value: list[Any], live: bool) -> Places:
    made: Places = {}
    item = kind.item or kind
    for step, found in live_entries(kind, value).items() if live else ((step, [entry]) for step, entry in entries(kind, value)):
        # Entries that stand twice are one place, without what is in them.
        below = (_places(item, found[0], live) or {}) if len(found) == 1 else {}
        made[step] = {SELF: {}, **below} if below else {}
    return made


def everything(kind: MergeType, value: dict[str, Any]) -> Places:
    """All places of a value, containers included: the difference from nothing, in one walk, in the order in which they are written."""
    return _members(kind, value, {})


def _members(kind: MergeType, value: dict[str, Any], made: Places) -> Places:
    steps, item = kind.steps, kind.item or DEDUCED
    for name in sorted(value):
        member = value[name]
        step, below = steps.get(name) or (f"f:{name}", item)
        # Most members are scalars, and every create walks over all of them.
        if below is SCALAR_TYPE or not isinstance(member, CONTAINERS) or not member:
            made[step] = {}
        elif below.kind == MAP and isinstance(member, dict):
            made[step] = _members(below, member, {} if below.present else {SELF: {}})
        else:
            made[step] = _everything(below, member)
    return made


def _everything(kind: MergeType, value: Any) -> Places:
    """The places below a container, itself among them; {} for the container alone."""
    if kind is DEDUCED:
        kind = resolve(kind, value)
    if kind.kind == MAP and isinstance(value, dict):
        return _members(kind, value, {} if kind.present else {SELF: {}})
    made: Places = {}
    if kind.kind in (SET, KEYED) and isinstance(value, list):
        item = kind.item or kind
        made = {SELF: {}}
        for step, found in sorted(live_entries(kind, value).items()):
            # Entries that stand twice are owned as one place.
            is_one = len(found) == 1 and isinstance(found[0], CONTAINERS) and found[0]
            made[step] = _everything(item, found[0]) if is_one else {}
    return made


# --- merging --------------------------------------------------------------------------------------------------------------


def merge(kind: MergeType, live: Any, config: Any) -> Any:
    """The live value with everything that the configuration says; null is as good as an empty container."""
    kind = (_NULL if config is None else resolve(kind, config)) if kind is DEDUCED else kind
    if kind.kind == MAP:
        before, said = (each if isinstance(each, dict) else {} for each in (live, config))
        return _merge_maps(kind, before, said) if before or said else config
    if kind.kind in (SET, KEYED):
        listed, wanted = (each if isinstance(each, list) else [] for each in (live, config))
        return _merge_lists(kind, listed, wanted) if listed or wanted else config
    return config


def _merge_maps(kind: MergeType, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    made = dict(live)
    for name, value in config.items():
        inside = kind.member(name)
        made[name] = value if name not in live or inside.kind in _WHOLE else merge(inside, live[name], value)
    return made


def _merge_lists(kind: MergeType, live: list[Any], config: list[Any]) -> list[Any]:
    """Entries of the configuration in its order; those only live keep their place among those that both have."""
    wanted = dict(entries(kind, config))
    present = live_entries(kind, live)
    item = kind.item or kind
    before = [_step(kind, entry) or f"i:{index}" for index, entry in enumerate(live)]
    after = list(wanted)
    shared = deque(step for step in after if step in present)
    made: list[Any] = []
    merged: set[str] = set()

    def take(step: str) -> None:
        former = present.get(step, ())
        made.append(merge(item, former[0], wanted[step]) if len(former) == 1 else wanted[step])
        merged.add(step)
        if shared and shared[0] == step:
            shared.popleft()

    left = right = 0
    while left < len(before) or right < len(after):
        if left < len(before) and right < len(after):
            if before[left] == after[right]:
                take(after[right])
                left, right = left + 1, right + 1
                continue
            if before[left] in wanted and shared and shared[0] != before[left]:
                # Both have it, and the configuration wants another one first.
                left += 1
                continue
        if left < len(before):
            if before[left] not in wanted:
                made.append(live[left])
                left += 1
                continue
            if before[left] in merged:
                left += 1
        if right < len(after):
            take(after[right])
            right += 1
    return made


# --- taking away ----------------------------------------------------------------------------------------------------------


def without(kind: MergeType, value: Any, gone: Places) -> Any:
    """A value without some places; null where nothing is left of a container."""
    kind = resolve(kind, value)
    if kind.kind == MAP and isinstance(value, dict):
        made = {}
        for name, member in value.items():
            below = gone.get(field(name))
            if below is None:
                made[name] = member
            elif not belongs(below):
                made[name] = without(kind.member(name), member, below)
        return made or None
    if kind.kind in (SET, KEYED) and isinstance(value, list):
        return _without_entries(kind, value, gone) or None
    return None if isinstance(value, dict | list) else value


def _without_entries(kind: MergeType, value: list[Any], gone: Places) -> list[Any]:
    made = []
    for entry in value:
        step = _step(kind, entry)
        below = None if step is None else gone.get(step)
        if below is None:
            made.append(entry)
        elif not belongs(below):
            made.append(without(kind.item or kind, entry, below))
    return made


def with_containers(kind: MergeType, places: Places) -> Places:
    """Places, and the declared members that hold them: those belong to whoever owns something in them."""
    made: Places = {}
    for step, below in places.items():
        if not below or step == SELF:
            made[step] = below
            continue
        word, _, name = step.partition(":")
        inner = with_containers(kind.member(name) if word == "f" else kind.item or kind, below)
        made[step] = {SELF: {}, **inner} if word == "f" and kind.kind == MAP and kind.declares(name) else inner
    return made


def fitted(kind: MergeType, places: Places) -> Places:
    """Places that were written down when maps and lists were merged that are one value now: whoever owned a part owns it all."""
    made: Places | None = None
    for step, below in places.items():
        if not below or step == SELF:
            continue
        word, _, name = step.partition(":")
        inner = kind.member(name) if word == "f" else kind.item or kind
        fit = {} if inner.kind == ATOMIC else below if inner is DEDUCED else fitted(inner, below)
        if fit is not below:
            made = dict(places) if made is None else made
            made[step] = fit
    return places if made is None else made


__all__ = ["Unmergeable", "entries", "everything", "fitted", "live_entries", "merge", "places_of", "with_containers", "without"]
