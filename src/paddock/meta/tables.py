"""Objects as rows of a table, as `kubectl get` asks for them (docs/spec/kube-api.md section 2.2)."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from paddock.meta import ages
from paddock.meta.jsonpath import compile_path
from paddock.schema.kind import Column

Data = dict[str, Any]
# Computes the whole row of an object whose cells paths cannot say; given the object and the time.
Cells = Callable[[Data, float], list[Any]]
_NAME = Column("Name", ".metadata.name", "string", "Name must be unique within a namespace.")


class TableForm:
    """How the objects of a resource become rows."""

    def __init__(self, columns: Iterable[Column], cells: Cells | None = None) -> None:
        self._columns = (_NAME, *columns)
        self._cells = cells
        self._values = [compile_path(column.path) for column in self._columns] if cells is None else []
        self.definitions = [_definition(column, index) for index, column in enumerate(self._columns)]

    def cells(self, data: Data, now: float) -> list[Any]:
        """One row."""
        if self._cells is not None:
            return self._cells(data, now)
        return [_cell(column, values(data), now) for column, values in zip(self._columns, self._values, strict=True)]


def _definition(column: Column, index: int) -> Data:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if index == 0 else column.format,
        "description": column.text or f"Value at {column.path}",
        "priority": 1 if column.wide else 0,
    }


def _cell(column: Column, values: list[Any], now: float) -> Any:
    if not values or values[0] is None:
        return None
    value = values[0]
    if column.type == "date":
        return ages.age(value, now) if isinstance(value, str) else "<invalid>"
    if column.type in ("integer", "number", "boolean"):
        return value if isinstance(value, int | float) else None
    if "[*]" in column.path:
        value = values
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return msgspec.json.encode(value).decode()
