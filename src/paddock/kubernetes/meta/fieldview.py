"""A view of a declared object that notes which of its members are read.

A view is an instance of a subclass with the same values, so a translator reads it as it reads the object. The first read of a member
goes through a property, which keeps what it returned in the view's `__dict__`: that dictionary is the note. Members are views in turn,
made when they are read. What looks at all members at once, as a comparison does, reads everything below.

msgspec's own functions (`to_builtins`, `structs.replace`) see the values and note nothing: give them `whole(view)`.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from paddock.kubernetes.schema.field import Object

T = TypeVar("T")
# What stands for a member that nobody read.
UNUSED: Any = msgspec.UNSET


class FieldAccessor(NamedTuple):
    """A member of a declared class."""

    attribute: str
    # the name in manifests
    name: str
    # reads the value of an object or of its view, and notes nothing
    get: Any
    default: Any


@cache
def members_of(cls: type[Object]) -> tuple[FieldAccessor, ...]:
    """Return the members of a class, in the order of declaration."""
    parts = zip(cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True)
    return tuple(FieldAccessor(attribute, name, getattr(cls, attribute).__get__, _made(default)) for attribute, name, default in parts)


def _made(default: Any) -> Any:
    return default.factory() if hasattr(default, "factory") else default


def given(value: Object) -> Iterator[tuple[FieldAccessor, Any]]:
    """Yield the members that say something, with their values: what is absent, empty or its default says nothing."""
    for member in members_of(type(value)):
        each = member.get(value)
        if each is not None and each != member.default and each not in ([], {}):
            yield member, each


def is_blank(value: Any) -> bool:
    """Return whether a value is an object that could say something and does not. One that has no members says it by being there."""
    return isinstance(value, Object) and bool(members_of(type(value))) and all(is_blank(each) for _, each in given(value))


def said(value: Any) -> Any:
    """Return a value as data, without the members that say nothing."""
    if isinstance(value, Object):
        return {member.name: said(each) for member, each in given(value)}
    if isinstance(value, list):
        return [said(each) for each in value]
    return {key: said(each) for key, each in value.items()} if isinstance(value, dict) else value


def viewed(value: Any) -> Any:
    """Return the view of a value: of an object, or of a list or map that holds objects; other values are themselves."""
    if isinstance(value, Object):
        return _view(value)
    if isinstance(value, list) and value and isinstance(value[0], Object | list | dict):
        return [viewed(each) for each in value]
    if isinstance(value, dict) and any(isinstance(each, Object) for each in value.values()):
        return {key: viewed(each) for key, each in value.items()}
    return value


def _view(value: Object) -> Any:
    cls = value.__class__
    return _view_class(cls)(**{each.attribute: each.get(value) for each in members_of(cls)})


def is_all_read(value: Any, reading: Any) -> bool:
    """Return whether everything that a value says is read; `reading` is what a reader got of it. The quick answer for most objects."""
    if reading is value:
        return True
    if is_view(reading):
        noted = vars(reading)
        for attribute, _, get, default in members_of(value.__class__):
            each = get(value)
            if each is not None and each is not default and not is_all_read(each, noted.get(attribute, UNUSED)):
                return False
        return True
    if reading is not UNUSED and isinstance(value, list):
        return all(map(is_all_read, value, reading))
    return False


def is_view(value: Any) -> bool:
    """Return whether a value notes what is read of it."""
    return "VIEWED" in type(value).__dict__


def read(view: Any, member: FieldAccessor) -> Any:
    """Return what a reader got of a member: a view, or a value that was read whole; `UNUSED` when nobody read it."""
    return view.__dict__.get(member.attribute, UNUSED)


def whole(value: T) -> T:
    """Return the value behind a view, and note that everything below is read. Other values are themselves."""
    if is_view(value):
        return _plain(value)  # type: ignore[no-any-return]
    if isinstance(value, list):
        return [whole(each) for each in value]  # type: ignore[return-value]
    return value


def _plain(view: Any) -> Any:
    cls: Any = type(view).VIEWED
    values = {each.attribute: each.get(view) for each in members_of(cls)}
    view.__dict__.update(values)
    return cls(**values)


@cache
def _view_class(cls: type[Object]) -> Any:
    """Return the class of the views of a declared class."""
    namespace: dict[str, Any] = {each.attribute: _property(each) for each in members_of(cls)}
    namespace |= {"VIEWED": cls, "__eq__": _equals, "__hash__": _hash, "__module__": cls.__module__, "__doc__": cls.__doc__}
    make: Any = type(cls)
    return make(cls.__name__, (cls,), namespace, dict=True)


def _property(member: FieldAccessor) -> property:
    attribute, get = member.attribute, member.get

    def value(self: Any) -> Any:
        noted = self.__dict__
        if attribute not in noted:
            noted[attribute] = viewed(get(self))
        return noted[attribute]

    return property(value)


def _equals(self: Any, other: object) -> bool:
    return bool(_plain(self) == whole(other))


def _hash(self: Any) -> int:
    return hash(_plain(self))
