"""The printer columns of a kind of the table."""

from paddock.kubernetes.schema.kind import AGE, Column
from paddock.server.kindtable.table import KindRow

_CREATED = Column("Created At", ".metadata.creationTimestamp", "date", "The time of creation.")


def columns(row: KindRow) -> tuple[Column, ...]:
    """The columns; those behind the name where it comes first, as it does in every table that does not place it itself."""
    return tuple(_column(text) for text in (row.columns[1:] if row.columns[:1] == ("Name",) else row.columns))


def _column(text: str) -> Column:
    if text == AGE.name:
        return AGE
    if text.startswith(_CREATED.name):
        return _CREATED
    name, _, kind = text.rstrip("+").partition(":")
    return Column(name, "", kind or "string", f"{name} of the object.", text.endswith("+"))
