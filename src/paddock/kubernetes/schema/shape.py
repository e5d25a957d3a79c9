"""Declarations read into one small description: shapes.

Every generator and the check read shapes only, never Python types. Reading is lazy, object by object, because a command that
looks at one manifest must not pay for the declarations of all kinds.
"""

import types
from functools import cache, cached_property
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from paddock.kubernetes.schema.field import Field, Object, ScalarConstraint

ABSENT: Any = msgspec.UNSET


class Shape:
    """The values that one place allows. `field` carries the text and the bounds."""

    json_type = ""

    def __init__(self, field: Field) -> None:
        self.field = field


class StringShape(Shape):
    json_type = "string"


class TimeShape(StringShape):
    """An RFC 3339 time."""


class IntegerShape(Shape):
    json_type = "integer"


class NumberShape(Shape):
    json_type = "number"


class BooleanShape(Shape):
    json_type = "boolean"


SCALARS = (StringShape, IntegerShape, NumberShape, BooleanShape)


class QuantityShape(Shape):
    """A Kubernetes quantity, written as a number or as text."""


class IntOrStringShape(Shape):
    """A whole number or a text."""


class AnyShape(Shape):
    """Anything, kept as it is; `json_type` is `object` when it must be one."""

    def __init__(self, field: Field, *, is_object: bool) -> None:
        super().__init__(field)
        self.json_type = "object" if is_object else ""


class ListShape(Shape):
    """A list of one shape."""

    json_type = "array"

    def __init__(self, field: Field, item: Shape) -> None:
        super().__init__(field)
        self.item = item

    @property
    def map_keys(self) -> tuple[str, ...]:
        """The keys of the list where Kubernetes can tell entries apart by them: scalars that are always there."""
        if not isinstance(self.item, ObjectShape):
            return ()
        keys = [self.item.properties[key] for key in self.field.keys]
        return self.field.keys if all(prop.is_key for prop in keys) else ()


class MapShape(Shape):
    """Free keys, values of one shape."""

    json_type = "object"

    def __init__(self, field: Field, value: Shape) -> None:
        super().__init__(field)
        self.value = value


class Property:
    """A member of an object: its name on the wire, its shape, and its default (`ABSENT` when it has none)."""

    def __init__(self, name: str, shape: Shape, default: Any) -> None:
        self.name = name
        self.shape = shape
        self.default = default

    @property
    def field(self) -> Field:
        return self.shape.field

    @property
    def is_key(self) -> bool:
        """True if the field can identify the entries of a list."""
        there = self.field.required or self.default is not ABSENT
        return there and not self.field.nullable and not self.field.aliases and isinstance(self.shape, SCALARS)


class ObjectShape(Shape):
    """An object of declared members."""

    json_type = "object"

    def __init__(self, field: Field, cls: type[Object]) -> None:
        super().__init__(field)
        self.cls = cls

    @property
    def open(self) -> bool:
        """True if unknown members are kept."""
        return self.cls.OPEN

    @property
    def properties(self) -> dict[str, Property]:
        """The members by their name on the wire, in the order of declaration."""
        return _properties(self.cls)

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names that are read as a member's."""
        return {alias: name for name, prop in self.properties.items() for alias in prop.field.aliases}


@cache
def shape_of(cls: type[Object]) -> ObjectShape:
    """The shape of a declared class."""
    return ObjectShape(Field(cls.__doc__ or ""), cls)


@cache
def _properties(cls: type[Object]) -> dict[str, Property]:
    annotations: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        annotations.update(getattr(base, "__annotations__", {}))
    found = {}
    for attribute, wire, default in zip(cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True):
        shape = _read(annotations[attribute], Field())
        found[wire] = Property(wire, shape, _default(default, shape.field))
    return found


def _default(default: Any, field: Field) -> Any:
    if default is None or default is msgspec.NODEFAULT or field.required or field.zero:
        return ABSENT
    return _said(_made(default))


def _made(default: Any) -> Any:
    """A Python default as a value; msgspec keeps those that could be changed as factories."""
    return default.factory() if hasattr(default, "factory") else default


def _said(value: Any) -> Any:
    """A value as data, without the members of objects that are what they would be anyway."""
    if isinstance(value, Object):
        cls = type(value)
        members = zip(cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True)
        return {wire: _said(given) for name, wire, default in members if (given := getattr(value, name)) != _made(default)}
    return [_said(entry) for entry in value] if isinstance(value, list) else value


_SCALARS: dict[Any, type[Shape]] = {str: StringShape, int: IntegerShape, float: NumberShape, bool: BooleanShape}
_MARKS: dict[str, type[Shape]] = {"quantity": QuantityShape, "int-or-string": IntOrStringShape, "time": TimeShape}


def _read(annotation: Any, field: Field) -> Shape:
    """The shape of a type as it is written in a declaration."""
    origin = get_origin(annotation)
    if origin is Annotated:
        mark = None
        for extra in annotation.__metadata__:
            if isinstance(extra, Field):
                field = extra
            elif isinstance(extra, ScalarConstraint):
                mark = extra
        return _MARKS[mark.name](field) if mark else _read(annotation.__origin__, field)
    if origin is Union or origin is types.UnionType:
        (only,) = (member for member in get_args(annotation) if member is not types.NoneType)
        return _read(only, field)
    return _read_plain(annotation, origin, field)


def _read_plain(annotation: Any, origin: Any, field: Field) -> Shape:
    if annotation in _SCALARS:
        return _SCALARS[annotation](field)
    if annotation is Any:
        return AnyShape(field, is_object=False)
    if origin is list:
        return ListShape(field, _read(get_args(annotation)[0], Field()))
    if origin is dict:
        value = get_args(annotation)[1]
        return AnyShape(field, is_object=True) if value is Any else MapShape(field, _read(value, Field()))
    if isinstance(annotation, type) and issubclass(annotation, Object):
        return ObjectShape(field, annotation)
    raise TypeError(f"a declaration cannot use {annotation!r}")
