"""A record of the values that a translation uses; every other value is a loss (docs/design/0014-unread-fields.md).

A translator reads the `view` of a record instead of the object, or names what it reads with `take`. `settle` returns the losses: those
that the translator named, and each value that it neither used nor named. So a field that is declared tomorrow is a loss until a
translator reads it.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import msgspec

from paddock.kubernetes.meta.fieldview import UNUSED, given, is_all_read, is_blank, is_view, read, said, viewed
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.redaction import shown
from paddock.kubernetes.meta.translated import Loss, LossCollector
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path

T = TypeVar("T", bound=Resource)
R = TypeVar("R", bound=Resource)
# Why a value does not fit, and what happens instead.
Reason = tuple[str, str]
# By the beginning of the path; the first that matches counts.
Reasons = tuple[tuple[Path, Reason], ...]
UNREAD: Reason = ("no translation of this field is known", "the result is made without it")
Unused = list[tuple[Path, Any]]


class FieldRecord(LossCollector, Generic[R]):
    """The spec of one object: which of its values a translation uses, and which it names as lost."""

    def __init__(self, resource: R, reasons: Reasons = (), otherwise: Reason = UNREAD) -> None:
        super().__init__(f"{resource.kind}/{resource.metadata.name}")
        self.resource = resource
        self._reasons = reasons
        self._otherwise = otherwise
        self._taken: set[Path] = set()
        # places of which everything below is spoken for
        self._whole: set[Path] = set()
        # places at or above one of these
        self._touched: set[Path] = set()

    @cached_property
    def view(self) -> R:
        """The object, with a spec that notes what is read of it."""
        resource: Any = self.resource
        return cast(R, msgspec.structs.replace(resource, spec=viewed(resource.spec)))

    def take(self, *path: str | int) -> None:
        """Note that the result has a value. The members of an object are taken one by one."""
        self._taken.add(path)

    def take_whole(self, *path: str | int) -> None:
        """Note that the result has a value with everything below it, or that another loss speaks for all of it."""
        self._whole.add(path)

    def lose(self, path: Path, value: Any, why: str, instead: str) -> None:
        """Note a value that the target cannot say, with everything below it."""
        self._whole.add(path)
        super().lose(path, shown(type(self.resource), path, value), why, instead)

    def is_lost(self, path: Path) -> bool:
        """Return whether the value at a path was named as lost."""
        return any(loss.path == path for loss in self.losses)

    def settle(self) -> tuple[Loss, ...]:
        """Return all losses, those that nobody named last."""
        spec: Any = getattr(self.resource, "spec", None)
        if not isinstance(spec, Object):
            return self.losses
        view: Any = self.view if self._is_viewed else None
        if view is not None and is_all_read(spec, view.spec):
            return self.losses
        self._touched = {path[:length] for path in (*self._taken, *self._whole) for length in range(1, len(path) + 1)}
        parts = self._parts(("spec",), spec, UNUSED if view is None else view.spec)
        for path, value in [each for part in parts for each in self._unused(*part)]:
            reason = next((reason for start, reason in self._reasons if path[: len(start)] == start), None)
            why, instead = reason or self._otherwise
            data = shown(type(self.resource), path, said(value))
            self.note(Loss(of=self.of, path=path, value=data, why=why, instead=instead, unread=reason is None))
            self._whole.add(path)
        return self.losses

    def _unused(self, path: Path, value: Any, reading: Any) -> Unused:
        """Return the outermost places of a value that are not used. `reading` is what a reader got of it."""
        if path in self._whole:
            return []
        if not _holds_objects(value):
            is_read = reading is not UNUSED and not is_view(reading)
            if is_read or (path in self._taken and not isinstance(value, Object)):
                return []
        parts = list(self._parts(path, value, reading))
        is_touched = path in self._touched or (reading is not UNUSED and (not parts or (is_view(reading) and bool(vars(reading)))))
        found = [(place, self._unused(place, each, below)) for place, each, below in parts]
        if is_touched or any(not unused or unused[0][0] != place for place, unused in found):
            return [each for _, unused in found for each in unused]
        return [(path, value)]

    def _parts(self, path: Path, value: Any, reading: Any) -> Iterator[tuple[Path, Any, Any]]:
        """Yield the members of an object and the entries of a list or map, each with what a reader got of it."""
        if isinstance(value, Object):
            for member, each in given(value):
                # Only a view tells that nobody looked whether an empty object is there.
                if self._is_viewed or not is_blank(each):
                    yield (*path, member.name), each, read(reading, member) if is_view(reading) else UNUSED
        elif isinstance(value, list | dict):
            for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                yield (*path, key), each, UNUSED if reading is UNUSED else reading[key]

    @property
    def _is_viewed(self) -> bool:
        return "view" in self.__dict__


def _holds_objects(value: Any) -> bool:
    each = next(iter(value.values() if isinstance(value, dict) else value), None) if isinstance(value, list | dict) else None
    return isinstance(each, Object)


class RecordedWorld(ObjectSet):
    """A world that records what is used of the objects that a translator looks up. `reasons` names the kinds that are recorded."""

    def __init__(self, object_set: ObjectSet, reasons: Mapping[type[Resource], Reasons]) -> None:
        super().__init__(complete=object_set.complete)
        self._found = object_set._found
        self._reasons = reasons
        self._records: dict[int, FieldRecord[Any]] = {}

    def get(self, cls: type[T], namespace: str, name: str) -> T | None:
        """The view of the object of this name, or None."""
        found = super().get(cls, namespace, name)
        return found if found is None else self._view(found)

    def all(self, cls: type[T]) -> Iterator[T]:
        """Views of every object of a class, in the order they were handed over."""
        return map(self._view, super().all(cls))

    def settle(self) -> tuple[Loss, ...]:
        """Return the losses of every object that was looked up."""
        return tuple(loss for record in self._records.values() for loss in record.settle())

    def _view(self, value: T) -> T:
        reasons = self._reasons.get(type(value))
        if reasons is None:
            return value
        record = self._records.setdefault(id(value), FieldRecord(value, reasons))
        return cast(T, record.view)
