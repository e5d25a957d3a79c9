"""Objects as rows of a table, as `kubectl get` asks for them (docs/spec/kube-api.md section 2.2)."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.jsonpath import compile_path
from paddock.kubernetes.schema.kind import Column

# One row as JSON, cut where an age stands: texts, and between them the times that the ages count from.
Row = tuple[bytes | float, ...]
# Computes the whole row of an object whose cells paths cannot say; given the object and the time.
Cells = Callable[[Data, float], list[Any]]
_NAME = Column("Name", ".metadata.name", "string", "Name must be unique within a namespace.")


class TableForm:
    """The conversion of a resource's objects into rows."""

    def __init__(self, columns: Iterable[Column], cells: Cells | None = None) -> None:
        columns = tuple(columns)
        # A kind that places the name itself, as Events do, gets no second one.
        self._columns = columns if any(each.name == _NAME.name for each in columns) else (_NAME, *columns)
        self._cells = cells
        self._values = [compile_path(column.path) for column in self._columns] if cells is None else []
        self.definitions = [_definition(column, index) for index, column in enumerate(self._columns)]

    @property
    def lasts(self) -> bool:
        """True if the rows of an object stay the same but for its age."""
        return self._cells is None

    def row(self, data: Data, now: float) -> Row:
        """The cells of one object, ages left open; a row that does not last has none."""
        if self._cells is not None:
            return (msgspec.json.encode(self._cells(data, now)),)
        made: list[bytes | float] = []
        text = b""
        for column, values in zip(self._columns, self._values, strict=True):
            cell = _cell(column, values(data))
            text += b"," if made or text else b"["
            if isinstance(cell, _Since):
                made.extend((text, cell.start))
                text = b""
            else:
                text += msgspec.json.encode(cell)
        return (*made, text + b"]")


class Ages:
    """Ages at one time as JSON. Most objects of a table are as old as some others."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._made: dict[int, bytes] = {}

    def fill(self, row: Row) -> bytes:
        """The cells of a row."""
        if len(row) == 3:
            return row[0] + self.since(row[1]) + row[2]  # type: ignore[arg-type,operator,return-value]  # text, time, text
        return b"".join(part if isinstance(part, bytes) else self.since(part) for part in row)

    def since(self, start: float) -> bytes:
        """Return the time since a moment."""
        seconds = int(self._now - start)
        made = self._made.get(seconds)
        if made is None:
            made = self._made[seconds] = b'"%b"' % ages.since(start, self._now).encode()
        return made


def _definition(column: Column, index: int) -> Data:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if index == 0 else column.format,
        "description": column.text or f"Value at {column.path}",
        "priority": 1 if column.wide else 0,
    }


class _Since:
    """A cell that says how long ago a time was."""

    def __init__(self, start: float) -> None:
        self.start = start


def _cell(column: Column, values: list[Any]) -> Any:
    """Return a cell; of several values the first, as kube-apiserver does."""
    if not values or values[0] is None:
        return None
    value = values[0]
    if column.type == "date":
        start = ages.seconds_of(value) if isinstance(value, str) else None
        return "<invalid>" if start is None else _Since(start)
    if column.type in ("integer", "number", "boolean"):
        return value if isinstance(value, int | float) else None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode()
