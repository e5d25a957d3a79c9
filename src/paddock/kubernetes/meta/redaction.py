"""Values without the secrets in them, for reports that people read."""

from typing import Any

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path

HIDDEN = "(not shown)"


def shown(cls: type[Object], path: Path, value: Any) -> Any:
    """Return the value at a path of a class without its secrets."""
    place: shape.Shape | None = shape.shape_of(cls)
    for step in path:
        place = _inside(place, step)
        if place is None:
            return value
        if place.field.secret:
            return HIDDEN
    return without_secrets(place, value)


def without_secrets(field_shape: shape.Shape | None, value: Any) -> Any:
    """Return a value of a shape without its secrets. A value that is absent is none."""
    if value is shape.ABSENT or value is None:
        return value
    if field_shape is not None and field_shape.field.secret:
        return HIDDEN
    if isinstance(value, dict):
        return {key: without_secrets(_inside(field_shape, key), member) for key, member in value.items()}
    if isinstance(value, list):
        return [without_secrets(_inside(field_shape, index), member) for index, member in enumerate(value)]
    return value


def _inside(field_shape: shape.Shape | None, step: str | int) -> shape.Shape | None:
    if isinstance(field_shape, shape.ListShape):
        return field_shape.item
    if isinstance(field_shape, shape.MapShape):
        return field_shape.value
    if isinstance(field_shape, shape.ObjectShape):
        prop = field_shape.properties.get(str(step))
        return prop.shape if prop is not None else None
    return None
