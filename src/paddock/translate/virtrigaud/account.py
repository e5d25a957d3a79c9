"""What has become of each value of a source object.

Whoever maps a field says so (`took`), or says why it does not fit (`lose`). What nobody has spoken for is a loss at the end,
so a field that is declared tomorrow cannot be forgotten.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paddock.meta.objects import Resource
from paddock.meta.translated import Loss, LossCollector
from paddock.meta.wire import to_data
from paddock.schema import shape
from paddock.schema.field import Object
from paddock.schema.finding import Path

# Why a value does not fit, and what happens instead.
Reason = tuple[str, str]
Reasons = tuple[tuple[Path, Reason], ...]
HIDDEN = "(not shown)"


class Account:
    """The values of the spec of one object."""

    def __init__(self, resource: Resource, reasons: Reasons, otherwise: Reason) -> None:
        self.resource = resource
        self._reasons = reasons
        self._otherwise = otherwise
        self._ledger = LossCollector(f"{resource.kind}/{resource.metadata.name}")
        self._spoken_for: set[Path] = set()
        self._lost: set[Path] = set()

    def took(self, *path: str | int) -> None:
        """The value below the spec is in the result."""
        self._spoken_for.add(("spec", *path))

    def lose(self, path: Path, value: Any, why: str, instead: str) -> None:
        """The value below the spec is not in the result as it is. Said once, however often it is looked at."""
        whole = ("spec", *path)
        if whole in self._lost:
            return
        self._lost.add(whole)
        self._spoken_for.add(whole)
        self._ledger.lose(whole, shown(type(self.resource), whole, value), why, instead)

    def settle(self) -> tuple[Loss, ...]:
        """All losses, those nobody has spoken for at the end."""
        place = _inside(shape.shape_of(type(self.resource)), "spec")
        for path, value in self._unspoken(("spec",), _said(place, to_data(self.resource).get("spec", {}))):
            why, instead = next((said for start, said in self._reasons if path[1 : 1 + len(start)] == start), self._otherwise)
            self._ledger.lose(path, shown(type(self.resource), path, value), why, instead)
        self._spoken_for.add(("spec",))
        return self._ledger.losses

    def _unspoken(self, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        """The outermost values of which nothing is spoken for."""
        if path in self._spoken_for or value in (None, {}, []):
            return
        if path != ("spec",) and not any(spoken[: len(path)] == path for spoken in self._spoken_for):
            yield path, value
            return
        members = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, member in members:
            yield from self._unspoken((*path, key), member)


def _said(place: shape.Shape | None, value: Any) -> Any:
    """A value without the members that only repeat their default: nobody can tell whether somebody said them."""
    if isinstance(value, list):
        return [_said(_inside(place, index), member) for index, member in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = place.properties if isinstance(place, shape.ObjectShape) else {}
    return {
        key: _said(_inside(place, key), member)
        for key, member in value.items()
        if key not in properties or properties[key].default is shape.ABSENT or properties[key].default != member
    }


def shown(cls: type[Object], path: Path, value: Any) -> Any:
    """A value as a report may show it: without secrets."""
    place: shape.Shape | None = shape.shape_of(cls)
    for step in path:
        place = _inside(place, step)
        if place is None:
            return value
        if place.field.secret:
            return HIDDEN
    return _without_secrets(place, value)


def _inside(place: shape.Shape | None, step: str | int) -> shape.Shape | None:
    if isinstance(place, shape.ListShape):
        return place.item
    if isinstance(place, shape.MapShape):
        return place.value
    if isinstance(place, shape.ObjectShape):
        prop = place.properties.get(str(step))
        return prop.shape if prop is not None else None
    return None


def _without_secrets(place: shape.Shape | None, value: Any) -> Any:
    if place is not None and place.field.secret:
        return HIDDEN
    if isinstance(value, dict):
        return {key: _without_secrets(_inside(place, key), member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_secrets(_inside(place, index), member) for index, member in enumerate(value)]
    return value
