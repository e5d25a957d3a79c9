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

from paddock.schema.field import Object

T = TypeVar("T")
# What stands for a member that nobody read.
UNUSED: Any = msgspec.UNSET


class Member(NamedTuple):
    """A member of a declared class."""

    attribute: str
    # the name in manifests
    name: str
    # reads the value of an object or of its view, and notes nothing
    get: Any
    default: Any


@cache
def members_of(cls: type[Object]) -> tuple[Member, ...]:
    """Return the members of a class, in the order of declaration."""
    parts = zip(cls.__struct_fields__, cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True)
    return tuple(Member(attribute, name, getattr(cls, attribute).__get__, _made(default)) for attribute, name, default in parts)


def _made(default: Any) -> Any:
    return default.factory() if hasattr(default, "factory") else default


def given(value: Object) -> Iterator[tuple[Member, Any]]:
    """Yield the members that say something, with their values: what is absent, empty or its default says nothing."""
    for member in members_of(type(value)):
        each = member.get(value)
        if each is not None and each != member.default and each not in ([], {}):
            yield member, each


def viewed(value: Any) -> Any:
    """Return the view of a value: of an object, or of a list or map that holds objects; other values are themselves."""
    if isinstance(value, Object):
        cls = type(value)
        return _view_class(cls)(**{each.attribute: each.get(value) for each in members_of(cls)})
    if isinstance(value, list):
        return [viewed(each) for each in value]
    if isinstance(value, dict):
        return {key: viewed(each) for key, each in value.items()}
    return value


def is_view(value: Any) -> bool:
    """Return whether a value notes what is read of it."""
    return hasattr(type(value), "VIEWED")


def read(view: Any, member: Member) -> Any:
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


def _property(member: Member) -> property:
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
