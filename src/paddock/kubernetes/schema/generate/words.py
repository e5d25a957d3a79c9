"""Declarations in words: descriptions of schemas, and the cells of reference pages."""

from collections.abc import Iterator

import msgspec

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.messages import bounds_text

_TYPES: dict[type[shape.Shape], str] = {
    shape.StringShape: "string",
    shape.TimeShape: "time",
    shape.IntegerShape: "integer",
    shape.NumberShape: "number",
    shape.BooleanShape: "boolean",
    shape.QuantityShape: "quantity",
    shape.IntOrStringShape: "integer or string",
    shape.AnyShape: "anything",
    shape.ObjectShape: "object",
}


def sentence(text: str) -> str:
    """A text with a full stop, so that another sentence can follow."""
    return text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."


def class_text(field_shape: shape.Shape) -> str:
    """Return the description of an object's class."""
    return " ".join((field_shape.cls.__doc__ or "").split()) if isinstance(field_shape, shape.ObjectShape) else ""


def own_text(field_shape: shape.Shape) -> str:
    """The text of a field; an object without one is described by its class."""
    return " ".join(field_shape.field.text.split()) or class_text(field_shape)


def caveats(field: Field) -> Iterator[str]:
    """Yield the caveats of a field besides its meaning."""
    if field.aliases:
        yield f"Also read under the name {' or '.join(field.aliases)}."
    if field.not_honoured:
        yield sentence(f"Accepted and kept, not honoured: {field.not_honoured}")
    if field.deprecated:
        yield sentence(f"Deprecated: {field.deprecated}")


def describe(field_shape: shape.Shape) -> str:
    """The description of a field in a schema: its text, what a schema cannot say, and the caveats."""
    parts = [own_text(field_shape), *unsaid(field_shape), *caveats(field_shape.field)]
    return " ".join(sentence(part) for part in parts if part)


def unsaid(field_shape: shape.Shape) -> Iterator[str]:
    """The constraints that no generated schema can express; everywhere else a schema refuses what is wrong."""
    field = field_shape.field
    form = FORMATS.get(field.format or "")
    if form is not None and not form.pattern and not form.native:
        yield sentence(capital(form.message))
    if field.key_format:
        yield sentence(f"Each key {FORMATS[field.key_format].message}")
    if field.keys and isinstance(field_shape, shape.ListShape) and not field_shape.map_keys:
        yield f"Entries differ in {' and '.join(field.keys)}."


def type_of(field_shape: shape.Shape) -> str:
    """The type of a field as a reader calls it."""
    if isinstance(field_shape, shape.ListShape):
        return f"list of {_plural(type_of(field_shape.item))}"
    if isinstance(field_shape, shape.MapShape):
        return f"map of {_plural(type_of(field_shape.value))}"
    if isinstance(field_shape, shape.AnyShape) and field_shape.json_type:
        return "free object"
    return _TYPES[type(field_shape)]


def _plural(word: str) -> str:
    if word.startswith(("list of", "map of")):
        head, _, tail = word.partition(" ")
        return f"{head}s {tail}"
    return {"anything": "anything", "quantity": "quantities", "integer or string": "integers or strings"}.get(word, f"{word}s")


def allowed(field_shape: shape.Shape) -> Iterator[str]:
    """Yield the values that a field allows, bound by bound; nothing when everything of its type is allowed."""
    field = field_shape.field
    if field.enum:
        yield "one of " + ", ".join(f"`{word}`" for word in field.enum)
    yield from _numbers(field_shape)
    yield from _texts(field)
    yield from _collections(field_shape)
    if field.nullable:
        yield "or null"


def _numbers(field_shape: shape.Shape) -> Iterator[str]:
    field = field_shape.field
    if field.ge is not None or field.le is not None:
        yield _without_must(bounds_text(field))
    elif isinstance(field_shape, shape.IntegerShape) and field.bits != 64:
        yield f"{field.bits} bits"
    if field.positive:
        yield "greater than 0"
    if field.at_least:
        yield f"at least {field.at_least}"
    if field.whole:
        yield "whole bytes"


def _texts(field: Field) -> Iterator[str]:
    if field.min_length is not None and field.max_length is not None:
        yield f"{field.min_length} to {field.max_length} characters"
    elif field.min_length is not None:
        yield "not empty" if field.min_length == 1 else f"at least {field.min_length} characters"
    elif field.max_length is not None:
        yield f"at most {field.max_length} characters"
    if field.message.startswith("must "):
        yield _without_must(field.message)
    elif field.pattern:
        yield f"matches `{field.pattern}`"
    elif field.format:
        yield _without_must(FORMATS[field.format].message)
    if field.empty_is_unset:
        yield "empty is the same as absent"


def _collections(field_shape: shape.Shape) -> Iterator[str]:
    field = field_shape.field
    if field.min_items is not None:
        yield f"at least {field.min_items} {_entries(field.min_items)}"
    if field.max_items is not None:
        yield f"at most {field.max_items} {_entries(field.max_items)}"
    if field.unique:
        yield "no entry twice"
    if field.keys:
        yield f"unique by {', '.join(field.keys)}"
    if field.key_format:
        yield f"each key {_without_must(FORMATS[field.key_format].message)}"
    inner = (
        field_shape.item
        if isinstance(field_shape, shape.ListShape)
        else field_shape.value
        if isinstance(field_shape, shape.MapShape)
        else None
    )
    # What an entry that is an object may hold stands in the lines of its own members.
    if inner is not None and not isinstance(inner, shape.ObjectShape):
        yield from (f"each {text}" for text in allowed(inner))


def _entries(count: int) -> str:
    return "entry" if count == 1 else "entries"


def default_of(prop: shape.Property) -> str:
    """The default of a field as JSON; empty when it has none, or one that says no more than that its members have theirs."""
    if prop.default is shape.ABSENT or prop.default == {}:
        return ""
    return msgspec.json.encode(prop.default).decode()


def _without_must(text: str) -> str:
    return text.removeprefix("must be ")


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]
