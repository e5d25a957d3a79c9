"""Lists of parts of machines, in the formats of `-o`."""

from collections.abc import Sequence
from typing import Any

from paddock.cli import tables, terminal
from paddock.cli.tables import TableColumn
from paddock.fleet.documents import report


def shown(output: str | None, titles: Sequence[str], rows: Sequence[Sequence[str]], data: Sequence[dict[str, Any]]) -> str:
    """Return a list as a table, as names, or as data. The first column is the name. None and `wide` make a table."""
    if output in ("json", "yaml"):
        return report.structured(list(data), output)
    if output == "name":
        return "".join(f"{row[0]}\n" for row in rows)
    columns = [TableColumn(title=title, shrinks=index > 0) for index, title in enumerate(titles)]
    return tables.text(columns, rows, terminal.current())


def size(count: int | None) -> str:
    """Return bytes for people: 16Mi, 1.5Gi; empty for an unknown size."""
    if count is None:
        return ""
    unit = next((each for each in (4, 3, 2, 1) if count >= 1024**each), 0)
    return f"{count / 1024**unit:.1f}".removesuffix(".0") + ("", "Ki", "Mi", "Gi", "Ti")[unit]
