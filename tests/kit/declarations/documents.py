"""Valid documents read off a declaration: the least one, the fullest one, and the least one that has a given field."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import texts

# No value at all: a member with it is left out.
NOTHING = object()
_FREE = {"free": {"form": [1, "two"]}}
Wrap = Callable[[Any], Any]


class Place(NamedTuple):
    """One place of a kind; `wrap` gives the least document that has a value there."""

    path: Path
    shape: shape.Shape
    wrap: Wrap
    # what the place stands in
    outer: shape.Shape | None = None


def least(kind: Kind) -> dict[str, Any]:
    """A document with nothing but what must be there."""
    return {**_members(shape.shape_of(kind.cls)), **_envelope(kind)}


def fullest(kind: Kind) -> dict[str, Any]:
    """A document with a valid value in every field; rules across fields may still object to the company."""
    whole = full(shape.shape_of(kind.cls))
    metadata = {**whole["metadata"], "name": "example"}
    return {**whole, **_envelope(kind), "metadata": metadata}


def _envelope(kind: Kind) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "example"}}


def places(kind: Kind) -> Iterator[Place]:
    """Every place of a kind, outermost first; entries of lists have the index 0, those of maps the key of `key`."""
    place = shape.shape_of(kind.cls)
    root = least(kind)
    yield Place((), place, lambda value: {**value, **_envelope(kind)} if isinstance(value, dict) else value)
    for name, prop in place.properties.items():
        yield from _below(Place((name,), prop.shape, _as_member(name, root, lambda value: value), place))


def _below(place: Place) -> Iterator[Place]:
    yield place
    path, here, wrap, _ = place
    if isinstance(here, shape.ListShape):
        yield from _below(Place((*path, 0), here.item, lambda value: wrap(listed(here, value)), here))
    elif isinstance(here, shape.MapShape):
        yield from _below(Place((*path, key(here)), here.value, lambda value: wrap(mapped(here, {key(here): value})), here))
    elif isinstance(here, shape.ObjectShape):
        members = _members(here)
        for name, prop in here.properties.items():
            yield from _below(Place((*path, name), prop.shape, _as_member(name, members, wrap), here))


def _as_member(name: str, members: dict[str, Any], wrap: Wrap) -> Wrap:
    """A value as a member beside the others that the object must have."""

    def wrapped(value: Any) -> Any:
        if value is NOTHING:
            return wrap({other: member for other, member in members.items() if other != name})
        return wrap({**members, name: value})

    return wrapped


def listed(place: shape.ListShape, first: Any) -> list[Any]:
    """A list that starts with a value and is as long as it has to be."""
    return [first, *(valid(place.item, number) for number in range(1, place.field.min_items or 0))]


def mapped(place: shape.MapShape, first: dict[str, Any]) -> dict[str, Any]:
    """A map that has these entries and is as large as it has to be."""
    missing = (place.field.min_items or 0) - len(first)
    return {**first, **{f"{key(place)}{number}": valid(place.value) for number in range(missing)}}


def key(place: shape.MapShape) -> str:
    """A key that a map takes."""
    return texts.GOOD[place.field.key_format] if place.field.key_format else "key"


def _members(place: shape.ObjectShape) -> dict[str, Any]:
    """Return the required members of an object."""
    return {name: valid(prop.shape) for name, prop in place.properties.items() if prop.field.required}


def valid(place: shape.Shape, number: int = 0) -> Any:
    """The least valid value of a place; other numbers give other values, where there are any."""
    if isinstance(place, shape.ObjectShape):
        return {name: valid(prop.shape, number) for name, prop in place.properties.items() if prop.field.required}
    if isinstance(place, shape.ListShape):
        return [valid(place.item, each) for each in range(place.field.min_items or 0)]
    if isinstance(place, shape.MapShape):
        return mapped(place, {}) if place.field.min_items else {}
    return _scalar(place, number)


def full(place: shape.Shape) -> Any:
    """A valid value with everything in it that can be."""
    if isinstance(place, shape.ObjectShape):
        return {name: full(prop.shape) for name, prop in place.properties.items()}
    if isinstance(place, shape.ListShape):
        return listed(place, full(place.item))
    if isinstance(place, shape.MapShape):
        return mapped(place, {key(place): full(place.value)})
    return _scalar(place, 0)


def _scalar(place: shape.Shape, number: int) -> Any:
    field = place.field
    if isinstance(place, shape.StringShape):
        return _string(place, number)
    if isinstance(place, shape.IntegerShape | shape.NumberShape | shape.IntOrStringShape):
        start = field.ge if field.ge is not None else min(field.le, 0) if field.le is not None else 1
        return start + number
    if isinstance(place, shape.QuantityShape):
        return field.at_least or "1Gi"
    return _FREE if isinstance(place, shape.AnyShape) else True


def _string(place: shape.Shape, number: int) -> str:
    field = place.field
    if field.enum:
        return field.enum[number % len(field.enum)]
    text = texts.good(field, named(place))
    for candidate in (f"{text}{number}", f"{text[:-1]}{number}", f"{number}{text}") if number else ():
        if texts.fits(field, candidate, named(place)):
            return candidate
    return text


def named(place: shape.Shape) -> str:
    """The format of a text, also where its type says it."""
    return place.field.format or ("date-time" if isinstance(place, shape.TimeShape) else "")
