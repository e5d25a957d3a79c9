"""Hypothesis strategies read off declarations: valid documents of any kind, valid values of any class.

`documents(kind)` draws raw documents as a user writes them, `objects(cls)` typed values as a translator takes them. Rules across
fields are not part of a declaration's shape; where a test needs them kept, it pins fields: `{"spec.running": st.just(True)}`, list
entries as `[]`, entries of maps as `{}`. `NOTHING` pins a field to be absent.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from paddock.base import quantity
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.check import check
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.formats import FORMATS, compiled
from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import documents as fixed
from tests.kit.declarations import texts

T = TypeVar("T", bound=Object)
Draw = Callable[[st.SearchStrategy[Any]], Any]
Pins = Mapping[str, st.SearchStrategy[Any]]

NOTHING: Any = fixed.NOTHING
_ABSENT = st.just(NOTHING)
_LETTERS = st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"])
_UNITS = ("", "", "Ki", "Mi", "Gi", "Ti", "k", "M", "G", "m", "e3", ".0", ".5Gi")


class _Drawing(msgspec.Struct, frozen=True):
    """The parameters of one drawing. The deeper, the fewer optional members, so that documents stay readable."""

    draw: Any
    pins: Any
    breadth: int
    depth: int

    def deeper(self) -> "_Drawing":
        """The same, one object further down."""
        return msgspec.structs.replace(self, depth=self.depth - 1, breadth=max(2, self.breadth - 1))


@st.composite
def documents(draw: Draw, kind: Kind, pins: Pins | None = None, *, breadth: int = 6, depth: int = 9) -> dict[str, Any]:
    """Documents of a kind that its schema accepts, as a user writes them."""
    drawing = _Drawing(draw, {"status": _ABSENT, **_ENVELOPE, **(pins or {})}, breadth, depth)
    made: dict[str, Any] = _members(drawing, shape.shape_of(kind.cls), "")
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "example"}, **made}


_ENVELOPE: Pins = {"apiVersion": _ABSENT, "kind": _ABSENT, "metadata": _ABSENT}


@st.composite
def values(draw: Draw, cls: type[Object], pins: Pins | None = None, *, breadth: int = 6, depth: int = 9) -> dict[str, Any]:
    """Raw values of a class that its schema accepts."""
    return _members(_Drawing(draw, pins or {}, breadth, depth), shape.shape_of(cls), "")


def objects(cls: type[T], pins: Pins | None = None, *, breadth: int = 6, depth: int = 9) -> st.SearchStrategy[T]:
    """Typed values of a class, with their defaults."""
    return values(cls, pins, breadth=breadth, depth=depth).map(lambda raw: from_data(check(cls, raw).value, cls))


def resources(kind: Kind, pins: Pins | None = None, *, breadth: int = 6, depth: int = 9) -> st.SearchStrategy[Any]:
    """Typed objects of a kind, with their envelope and their defaults."""
    return documents(kind, pins, breadth=breadth, depth=depth).map(lambda raw: from_data(check(kind.cls, raw).value, kind.cls))


def _members(drawing: _Drawing, place: shape.ObjectShape, path: str) -> dict[str, Any]:
    paths = {name: f"{path}.{name}" if path else name for name in place.properties}
    pinned = [name for name in place.properties if paths[name] in drawing.pins]
    optional = [name for name, prop in place.properties.items() if not prop.field.required and name not in pinned]
    chosen: set[str] = set()
    if optional and drawing.depth > 0:
        chosen = set(drawing.draw(st.lists(st.sampled_from(optional), unique=True, max_size=drawing.breadth)))
    made = {
        name: _value(drawing.deeper(), prop.shape, paths[name])
        for name, prop in place.properties.items()
        if prop.field.required or name in chosen or name in pinned
    }
    return {name: value for name, value in made.items() if value is not NOTHING}


def _value(drawing: _Drawing, place: shape.Shape, path: str) -> Any:
    pin = drawing.pins.get(path)
    if pin is not None:
        return drawing.draw(pin)
    if place.field.nullable and not place.field.required and drawing.draw(st.integers(0, 9)) == 0:
        return None
    if isinstance(place, shape.ObjectShape):
        return _members(drawing, place, path)
    if isinstance(place, shape.ListShape):
        return _list(drawing, place, path)
    if isinstance(place, shape.MapShape):
        return _map(drawing, place, path)
    return drawing.draw(scalar(place))


def _size(drawing: _Drawing, field: Field, most: int) -> int:
    least = field.min_items or 0
    most = max(least, min(most, field.max_items if field.max_items is not None else most))
    size: int = drawing.draw(st.integers(least, most))
    return size


def _list(drawing: _Drawing, place: shape.ListShape, path: str) -> list[Any]:
    size = _size(drawing, place.field, 2 if isinstance(place.item, shape.ObjectShape) else 3)
    made: list[Any] = []
    seen = []
    # Entries that must differ are drawn again a few times, and then taken from the deterministic ones.
    for number in range(size * 4):
        if len(made) == size:
            break
        entry = _value(drawing, place.item, f"{path}[]") if number < size * 3 else fixed.valid(place.item, number)
        mark = [entry.get(key) for key in place.field.keys] if place.field.keys else entry
        if (place.field.keys or place.field.unique) and mark in seen:
            continue
        seen.append(mark)
        made.append(entry)
    return made


def _map(drawing: _Drawing, place: shape.MapShape, path: str) -> dict[str, Any]:
    keys = text(Field(format=place.field.key_format)) if place.field.key_format else st.text(_LETTERS, min_size=1, max_size=8)
    size = _size(drawing, place.field, 2)
    names = drawing.draw(st.lists(keys, unique=True, min_size=size, max_size=size))
    return {name: _value(drawing, place.value, f"{path}{{}}") for name in names}


def scalar(place: shape.Shape) -> st.SearchStrategy[Any]:
    """Values of a place that has no members."""
    field = place.field
    if isinstance(place, shape.StringShape):
        return text(field, fixed.named(place))
    if isinstance(place, shape.IntegerShape):
        return integers(field)
    if isinstance(place, shape.NumberShape):
        return st.one_of(integers(field), st.floats(field.ge, field.le, allow_nan=False, allow_infinity=False, width=32))
    if isinstance(place, shape.BooleanShape):
        return st.booleans()
    if isinstance(place, shape.QuantityShape):
        return quantities(field)
    if isinstance(place, shape.IntOrStringShape):
        return st.one_of(integers(field), text(field))
    return _FREE if place.json_type else st.one_of(_FREE, _PLAIN)


def integers(field: Field) -> st.SearchStrategy[int]:
    """Integers within the bounds of a field."""
    widest = 2 ** (field.bits - 1)
    return st.integers(field.ge if field.ge is not None else -widest, field.le if field.le is not None else widest - 1)


def quantities(field: Field) -> st.SearchStrategy[int | str]:
    """Quantities within the bounds of a field, as numbers and as texts."""
    least = quantity.whole(field.at_least) if field.at_least else 1 if field.positive else 0
    numbers = st.integers(least, 2**40)
    written = st.builds(lambda number, unit: f"{number}{unit}", st.integers(1, 4096), st.sampled_from(_UNITS))
    return st.one_of(numbers, numbers.map(str), written).filter(lambda value: _is_within(field, value))


def _is_within(field: Field, value: int | str) -> bool:
    amount = quantity.parse(value)
    if field.whole and amount % quantity.UNIT:
        return False
    if field.positive and amount <= 0:
        return False
    return field.at_least is None or amount >= quantity.parse(field.at_least)


def text(field: Field, named: str = "") -> st.SearchStrategy[str]:
    """Texts that a field takes."""
    form = named or field.format or ""
    if field.enum:
        return st.sampled_from(field.enum)
    if form:
        made = _formatted(form)
    elif field.pattern:
        made = st.from_regex(compiled(field.pattern))
    else:
        return st.text(_LETTERS, min_size=field.min_length or 0, max_size=min(field.max_length or 24, (field.min_length or 0) + 24))
    good = st.just(texts.good(field, form))
    return st.one_of(good, made.filter(lambda value: _is_allowed(field, form, value)))


def _is_allowed(field: Field, form: str, value: str) -> bool:
    if field.min_length is not None and len(value) < field.min_length:
        return False
    return (field.max_length is None or len(value) <= field.max_length) and texts.fits(field, value, form)


def _formatted(form: str) -> st.SearchStrategy[str]:
    pattern = FORMATS[form].pattern
    if form in _WRITTEN:
        return _WRITTEN[form]
    return st.from_regex(compiled(pattern)) if pattern else st.just(texts.GOOD[form])


_NAME = st.text("abcxyz0189-", min_size=1, max_size=12)
_WRITTEN: dict[str, st.SearchStrategy[str]] = {
    "dns1123-label": _NAME,
    "dns1123-subdomain": st.lists(_NAME, min_size=1, max_size=3).map(".".join),
    "namespaced-name": st.one_of(_NAME, st.builds(lambda outer, name: f"{outer}/{name}", _NAME, _NAME)),
    "label-key": st.one_of(_NAME, st.builds(lambda outer, name: f"{outer}.example/{name}", _NAME, _NAME)),
    "label-value": st.one_of(st.just(""), _NAME),
    "ip": st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str),
    "ipv4": st.ip_addresses(v=4).map(str),
    "cidr": st.builds(lambda address, length: f"{address}/{length}", st.ip_addresses(), st.integers(0, 32)),
    "cidr4": st.builds(lambda address, length: f"{address}/{length}", st.ip_addresses(v=4), st.integers(0, 32)),
    "mac": st.lists(st.integers(0, 255), min_size=6, max_size=6).map(lambda octets: ":".join(f"{octet:02x}" for octet in octets)),
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat(timespec='seconds')}Z"),
}
_PLAIN = st.one_of(st.booleans(), st.integers(-1000, 1000), st.text(_LETTERS, max_size=8))
_FREE = st.dictionaries(st.text(_LETTERS, min_size=1, max_size=6), st.one_of(_PLAIN, st.lists(_PLAIN, max_size=2)), max_size=2)

# Whatever JSON can hold, and a little more: what a reader of YAML may hand over.
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.sampled_from(["", "1Gi", "-1", "\ud800"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=8,
)
