"""Losses of a round trip: every value of an object that its image does not have.

A translation out of the hub (`from_kubevirt`) translates its result forward again and compares: whatever the image lacks is a
loss, whether or not anybody thought of it. This is how "nothing is dropped silently" is kept without a list of all fields.
"""

from collections.abc import Iterator
from typing import Any

from paddock.base import quantity
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path


def residue(before: Object, after: Object) -> tuple[tuple[Path, Any], ...]:
    """The places of `before`, outermost first, whose value `after` does not have. Both are of one class."""
    return tuple(_compare(shape.shape_of(type(before)), to_data(before), to_data(after), ()))


def _compare(field_shape: shape.Shape, before: Any, after: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if before == after:
        return
    if isinstance(field_shape, shape.QuantityShape) and after is not None and quantity.parse(before) == quantity.parse(after):
        return
    if isinstance(field_shape, shape.ObjectShape) and isinstance(before, dict) and isinstance(after, dict):
        yield from _compare_objects(field_shape, before, after, path)
    elif isinstance(field_shape, shape.MapShape) and isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from _compare(field_shape.value, value, after.get(key), (*path, key))
    elif isinstance(field_shape, shape.ListShape) and isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(field_shape, before, after, path)
    else:
        yield path, before


def _compare_objects(
    field_shape: shape.ObjectShape, before: dict[str, Any], after: dict[str, Any], path: Path
) -> Iterator[tuple[Path, Any]]:
    for name, value in before.items():
        prop = field_shape.properties.get(name)
        if prop is None:
            if after.get(name) != value:
                yield (*path, name), value
            continue
        # A default that one side spells out and the other leaves to the reader is no difference.
        image = after.get(name, None if prop.default is shape.ABSENT else prop.default)
        yield from _compare(prop.shape, value, image, (*path, name))


def _compare_lists(field_shape: shape.ListShape, before: list[Any], after: list[Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """Entries that have a name are compared with the entry of the same name, others with the one at the same place."""
    names = [_name(field_shape, entry) for entry in before]
    if all(name is not None for name in names) and len(set(names)) == len(names):
        images = {_name(field_shape, entry): entry for entry in after}
        for index, (name, entry) in enumerate(zip(names, before, strict=True)):
            yield from _compare(field_shape.item, entry, images.get(name), (*path, index))
    elif isinstance(field_shape.item, shape.ObjectShape):
        for index, entry in enumerate(before):
            yield from _compare(field_shape.item, entry, after[index] if index < len(after) else None, (*path, index))
    else:
        yield path, before


def _name(field_shape: shape.ListShape, entry: Any) -> tuple[Any, ...] | None:
    """Return the key of an entry in its list."""
    if not isinstance(entry, dict):
        return None
    if field_shape.field.keys:
        return tuple(entry.get(key) for key in field_shape.field.keys)
    name = entry.get("name") or (entry.get("metadata") or {}).get("name")
    return None if name is None else (name,)
