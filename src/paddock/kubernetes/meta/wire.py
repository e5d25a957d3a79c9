"""Typed objects to and from plain JSON data."""

from typing import Any, TypeVar

import msgspec

from paddock.kubernetes.schema.field import Object

T = TypeVar("T", bound=Object)


def to_data(value: Object) -> dict[str, Any]:
    """An object as JSON data; members equal to their default are left out."""
    data: dict[str, Any] = msgspec.to_builtins(value)
    return data


def from_data(data: Any, cls: type[T]) -> T:
    """JSON data that passed its check as an object of its class."""
    return msgspec.convert(data, cls)
