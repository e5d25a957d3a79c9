"""What controllers read of the objects that they reconcile, as records of fields tell (docs/design/0014-unread-fields.md)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubernetes.meta.fieldview import said
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.schema.finding import Path, format_path


class FieldReads:
    """The records of every object of some kinds that controllers have read."""

    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds
        self._records: list[FieldRecord[Any]] = []

    def view(self, found: Any) -> Any:
        """The object as a controller gets it, with a record of its own."""
        if not isinstance(found, Resource) or found.kind not in self._kinds:
            return found
        record = FieldRecord(found)
        self._records.append(record)
        return record.view

    def of(self, kind: str) -> set[str]:
        """The fields of a kind that somebody read in some object."""
        seen: set[str] = set()
        for record in self._records:
            if record.resource.kind == kind:
                lost = {each.path for each in record.settle()}
                for path in _leaves(("spec",), said(record.resource.spec)):
                    if not any(path[:length] in lost for length in range(len(path) + 1)):
                        seen.add(general(path))
        return seen

    def conditions(self, kind: str) -> set[str]:
        """What the conditions of a kind's objects said whenever somebody read one."""
        statuses = [record.resource.status for record in self._records if record.resource.kind == kind]
        return {each.message for status in statuses if status is not None for each in status.conditions or ()}


def general(path: Path) -> str:
    """A path without the numbers of entries and the names of labels."""
    return format_path(tuple("" if isinstance(each, int) or "/" in each else each for each in path))


def _leaves(path: Path, value: Any) -> Iterator[Path]:
    entries: Mapping[Any, Any] | dict[int, Any] = value if isinstance(value, Mapping) else {}
    if isinstance(value, list):
        entries = dict(enumerate(value))
    for key, each in entries.items():
        yield from _leaves((*path, key), each)
    if not entries:
        yield path


@contextmanager
def reading(*kinds: str) -> Iterator[FieldReads]:
    """Have controllers read objects of some kinds through records."""
    reads = FieldReads(kinds)
    plain = CachedObject.read

    def recorded(self: CachedObject, target: Target[Any]) -> Any:
        return reads.view(plain(self, target))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachedObject, "read", recorded)
        yield reads
