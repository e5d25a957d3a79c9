"""Sets of places in an object, in the form that managedFields keep them (docs/spec/kube-api.md section 4.4).

A set is a trie of nested dicts, exactly as it is written: keys are `f:<field>`, `k:<keys>`, `v:<value>`; a place belongs to the set
when its dict is empty or has the member `.`; the other members lead to the places below it.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

Places = dict[str, Any]
Key = tuple[tuple[str, Any], ...]
SELF = "."
_encode, _decode = msgspec.json.Encoder(order="sorted").encode, msgspec.json.Decoder().decode


def field(name: str) -> str:
    """The step to a member."""
    return f"f:{name}"


def keyed(key: Key) -> str:
    """The step to an entry of a keyed list."""
    return "k:" + encoded(dict(key))


def valued(value: Any) -> str:
    """The step to an entry of a set."""
    return "v:" + encoded(value)


def encoded(value: Any) -> str:
    """Compact JSON with the keys in order."""
    try:
        return _encode(value).decode()
    except (OverflowError, ValueError):
        # A whole number of more than 64 bits.
        return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def belongs(below: Places) -> bool:
    """Return whether the place itself is in the set."""
    return not below or SELF in below


def _joined(member: bool, children: Places) -> Places | None:
    """The dict of a place; None when nothing is left of it."""
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def _children(below: Places) -> Iterator[tuple[str, Places]]:
    return ((step, place) for step, place in below.items() if step != SELF)


def union(left: Places, right: Places) -> Places:
    """The places of both. Roots are never places themselves."""
    if not left or not right:
        return left or right
    made = dict(left)
    for step, below in _children(right):
        # Most places have none below them.
        made[step] = _union(other, below) if (other := left.get(step)) is not None and (other or below) else below
    return made


def _union(left: Places, right: Places) -> Places:
    children = dict(_children(left))
    for step, below in _children(right):
        children[step] = _union(other, below) if (other := children.get(step)) is not None and (other or below) else below
    return _joined(belongs(left) or belongs(right), children) or {}


def minus(left: Places, right: Places) -> Places:
    """The places of the first that are not in the second: mostly all of them, and then it is the first itself."""
    if not right or not common(left, right):
        return left
    made = {}
    for step, below in _children(left):
        rest = _minus(below, right[step]) if step in right else below
        if rest is not None:
            made[step] = rest
    return made


def _minus(left: Places, right: Places) -> Places | None:
    children = {}
    for step, below in left.items():
        if step == SELF:
            continue
        other = right.get(step)
        rest = below if other is None else _minus(below, other) if below or other else None
        if rest is not None:
            children[step] = rest
    return _joined(belongs(left) and not belongs(right), children)


def common(left: Places, right: Places) -> Places:
    """The places of both at once."""
    made = {}
    for step, below in _children(left):
        both = _common(below, right[step]) if step in right else None
        if both is not None:
            made[step] = both
    return made


def _common(left: Places, right: Places) -> Places | None:
    children = {}
    for step, below in left.items():
        other = right.get(step)
        if other is None or step == SELF:
            continue
        both = _common(below, other) if below or other else below
        if both is not None:
            children[step] = both
    return _joined(belongs(left) and belongs(right), children)


def every(places: Places, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All places, as chains of steps."""
    for step, below in _children(places):
        here = (*before, step)
        if belongs(below):
            yield here
        if below:
            yield from every(below, here)


def show(chain: tuple[str, ...]) -> str:
    """A place as a conflict names it: `.spec.ports[port=80,protocol="TCP"].name`."""
    text = ""
    for step in chain:
        kind, _, said = step.partition(":")
        if kind == "f":
            text += f".{said}"
        elif kind == "k":
            pairs = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(json.loads(said).items()))
            text += f"[{pairs}]"
        else:
            text += f"[={said}]"
    return text


def sorted_places(places: Places) -> Places:
    """The same set with its keys in order, as it is written."""
    # There and back through JSON is several times faster than sorting dict by dict, and nothing but dicts and texts is in it.
    made: Places = _decode(orjson.dumps(places, option=orjson.OPT_SORT_KEYS))
    return made
