"""Every way to break a constrained field: from the declarations, without chance and without pytest.

`mutations(kind)` takes each place of a kind in turn, in the least document that has it, and gives every document in which just
that place breaks a constraint, with the path at which the mistake has to be reported.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from paddock.base import quantity
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import documents, texts
from tests.kit.declarations.documents import NOTHING, Place


class Mutation(NamedTuple):
    """A document with one mistake."""

    kind: Kind
    thing: Any
    path: Path
    what: str


class Break(NamedTuple):
    """A value that a place refuses; `below` leads from the place to where the mistake is reported."""

    value: Any
    what: str
    below: Path = ()


_TYPES: dict[str, Any] = {"boolean": True, "integer": 7, "fraction": 1.5, "text": "text", "list": [], "object": {}}
_TAKEN: dict[type[shape.Shape], frozenset[str]] = {
    shape.StringShape: frozenset({"text"}),
    shape.TimeShape: frozenset({"text"}),
    shape.IntegerShape: frozenset({"integer"}),
    shape.NumberShape: frozenset({"integer", "fraction"}),
    shape.BooleanShape: frozenset({"boolean"}),
    shape.QuantityShape: frozenset({"integer", "text"}),
    shape.IntOrStringShape: frozenset({"integer", "text"}),
    shape.ListShape: frozenset({"list"}),
    shape.MapShape: frozenset({"object"}),
    shape.ObjectShape: frozenset({"object"}),
}


def mutations(kind: Kind, chosen: Callable[[Path, int], bool] = lambda path, number: True) -> Iterator[Mutation]:
    """Every document with one mistake, in the order of the declaration, at the places that are chosen by their path and number."""
    for number, place in enumerate(documents.places(kind)):
        for broken in _breaks(place) if chosen(place.path, number) else ():
            if kind.takes_fractions and _takes_fraction(place) and broken.value == _TYPES["fraction"]:
                continue
            yield Mutation(kind, place.wrap(broken.value), (*place.path, *broken.below), broken.what)


def _takes_fraction(place: Place) -> bool:
    """Return whether 1.5 is as good as "1.5" at a place, to a kind that takes fractions."""
    return isinstance(place.shape, shape.QuantityShape) and not place.shape.field.whole and not place.shape.field.at_least


def _breaks(place: Place) -> Iterator[Break]:
    yield from _wrong_types(place)
    if _is_entry(place) and not place.shape.field.nullable:
        yield Break(None, "null")
    if place.shape.field.required:
        if not _is_all_of_an_empty_one(place):
            yield Break(NOTHING, "missing")
        yield Break(None, "null in a required field")
    breaks = _BREAKS.get(type(place.shape))
    if breaks:
        yield from breaks(place)


def _is_entry(place: Place) -> bool:
    """Return whether a place is an entry of a list; null in a member means that there is none."""
    return bool(place.path) and isinstance(place.path[-1], int)


def _is_all_of_an_empty_one(place: Place) -> bool:
    """Return whether an object without this place is empty, and an empty one is the same as none."""
    outer = place.outer
    return isinstance(outer, shape.ObjectShape) and outer.field.empty_is_unset and len(documents.valid(outer)) == 1


def _wrong_types(place: Place) -> Iterator[Break]:
    if isinstance(place.shape, shape.AnyShape):
        taken = frozenset({"object"}) if place.shape.json_type else frozenset(_TYPES)
    else:
        taken = _TAKEN[type(place.shape)]
        # A bare On arrives as a boolean, and is taken for the word.
        taken |= {"boolean"} if {"On", "Off"} <= set(place.shape.field.enum) else frozenset()
    yield from (Break(value, f"{name} instead of {_name(place)}") for name, value in _TYPES.items() if name not in taken)


def _name(place: Place) -> str:
    return type(place.shape).__name__.removesuffix("Shape").lower()


def _strings(place: Place) -> Iterator[Break]:
    field = place.shape.field
    for word in field.enum[:1]:
        strangers = (f"{word}x", word.swapcase(), word[:-1])
        yield from (Break(text, "not in the enum") for text in strangers if text and text not in field.enum)
    if field.max_length is not None:
        yield Break("x" * (field.max_length + 1), f"more than {field.max_length} characters")
    if field.min_length is not None and not (field.min_length == 1 and field.empty_is_unset and not field.required):
        yield Break("x" * (field.min_length - 1), f"less than {field.min_length} characters")
    yield from (
        Break(text, f"against {documents.named(place.shape) or field.pattern}") for text in texts.bad(field, documents.named(place.shape))
    )


def _numbers(place: Place) -> Iterator[Break]:
    field = place.shape.field
    if field.ge is not None:
        yield Break(field.ge - 1, f"below {field.ge}")
    if field.le is not None:
        yield Break(field.le + 1, f"above {field.le}")


def _integers(place: Place) -> Iterator[Break]:
    yield from _numbers(place)
    widest = 2 ** (place.shape.field.bits - 1)
    yield Break(widest, f"more than {place.shape.field.bits} bits")
    yield Break(-widest - 1, f"more than {place.shape.field.bits} bits")


def _ints_or_strings(place: Place) -> Iterator[Break]:
    yield from _integers(place)
    yield from _strings(place)


def _quantities(place: Place) -> Iterator[Break]:
    field = place.shape.field
    yield from (Break(text, "not a quantity") for text in ("much", "1 Gi", "1gi", "Gi", "1..5", "--1", "1Gi\n", "0x10"))
    if field.required or not field.empty_is_unset:
        yield Break("", "not a quantity")
    yield from (Break(number, "more than 64 bits") for number in (2**63, -(2**63) - 1))
    if field.positive:
        yield from (Break(value, "not positive") for value in (0, "0", "0Gi", -1, "-1Gi", "0.0"))
    if field.at_least:
        least = quantity.parse(field.at_least)
        yield Break(f"{least // quantity.UNIT - 1}", f"below {field.at_least}")
        yield Break(least // quantity.UNIT - 1, f"below {field.at_least}")
    if field.whole:
        yield from (Break(value, "half a byte") for value in (_more(field, "0.5"), _more(field, "0.001")))


def _more(field: Field, fraction: str) -> str:
    """A value that is large enough and not whole."""
    whole = quantity.whole(field.at_least) if field.at_least else 1
    return f"{whole}{fraction[1:]}"


def _lists(place: Place) -> Iterator[Break]:
    assert isinstance(place.shape, shape.ListShape)
    field, item = place.shape.field, place.shape.item
    if field.max_items is not None:
        entries = [documents.valid(item, number) for number in range(field.max_items + 1)]
        yield Break(entries, f"more than {field.max_items} entries")
    if field.min_items is not None:
        yield Break(documents.valid(place.shape)[: field.min_items - 1], f"less than {field.min_items} entries")
    if field.unique:
        yield Break([documents.valid(item)] * 2, "an entry twice", (1,))
    if field.keys:
        yield _twice(field, item)


def _twice(field: Field, item: shape.Shape) -> Break:
    """Two entries with the same keys, which are given even where they need not be."""
    assert isinstance(item, shape.ObjectShape)
    keys = {key: documents.valid(item.properties[key].shape, 1) for key in field.keys}
    entry = {**documents.valid(item), **keys}
    below: Path = (1, field.keys[0]) if len(field.keys) == 1 else (1,)
    return Break([entry, dict(entry)], f"two entries with the same {', '.join(field.keys)}", below)


def _maps(place: Place) -> Iterator[Break]:
    assert isinstance(place.shape, shape.MapShape)
    field = place.shape.field
    value = documents.valid(place.shape.value)
    key = documents.key(place.shape)
    yield Break(documents.mapped(place.shape, {key: None}), "null", (key,))
    if field.max_items is not None:
        yield Break({f"{key}{number}": value for number in range(field.max_items + 1)}, f"more than {field.max_items} entries")
    if field.min_items is not None:
        yield Break({f"{key}{number}": value for number in range(field.min_items - 1)}, f"less than {field.min_items} entries")
    for wrong in texts.BAD[field.key_format] if field.key_format else ():
        yield Break(documents.mapped(place.shape, {wrong: value}), f"a key against {field.key_format}", (wrong,))


def _objects(place: Place) -> Iterator[Break]:
    assert isinstance(place.shape, shape.ObjectShape)
    if place.shape.open:
        return
    known = {*place.shape.properties, *place.shape.aliases}
    members = documents.valid(place.shape)
    for name, prop in place.shape.properties.items():
        for wrong in slips(name):
            if wrong not in known:
                yield Break({**members, wrong: documents.valid(prop.shape)}, f"{wrong} instead of {name}", (wrong,))
        for alias in prop.field.aliases:
            value = documents.valid(prop.shape)
            yield Break({**members, name: value, alias: value}, f"{name} under two names", (alias,))


def slips(name: str) -> Iterator[str]:
    """A name one letter off, in each of the four ways."""
    middle = len(name) // 2
    made = {
        name[:middle] + name[middle + 1 :]: None,
        name[:middle] + name[middle] + name[middle:]: None,
        name[:middle] + ("x" if name[middle] != "x" else "y") + name[middle + 1 :]: None,
        name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :] if middle else name + "x": None,
        name[0].swapcase() + name[1:]: None,
    }
    yield from (slip for slip in made if slip and slip != name)


_BREAKS: dict[type[shape.Shape], Callable[[Place], Iterator[Break]]] = {
    shape.StringShape: _strings,
    shape.TimeShape: _strings,
    shape.IntegerShape: _integers,
    shape.NumberShape: _numbers,
    shape.IntOrStringShape: _ints_or_strings,
    shape.QuantityShape: _quantities,
    shape.ListShape: _lists,
    shape.MapShape: _maps,
    shape.ObjectShape: _objects,
}
