"""The effect of each field's change on an existing machine: one table for `paddock plan`, `paddock explain` and the controllers.
Each dialect has its own rows, in the module that its value names.

Per kind, rows of a path pattern; a row covers its place and everything below, the longest pattern wins. Where the effect depends
on the installation or on the guest, the row names the worse case and the reason describes the better one. The rules of the dialects
refuse sizes that shrink and changes of immutable fields; the row describes the effect of reaching that state all the same.
"""

from functools import cache
from importlib import import_module

from paddock.kubernetes import catalog
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import Kind
from paddock.kubevirt.plan.changes.differences import FieldDifference, ValueChange
from paddock.kubevirt.plan.changes.effects import Effect, EffectRow, best
from paddock.kubevirt.plan.changes.patterns import Parts, generalize
from paddock.kubevirt.plan.changes.rows import LABELS, Effects, Rows

_METADATA: Rows = (EffectRow("metadata.labels", Effect.LIVE, LABELS), EffectRow("metadata.annotations", Effect.LIVE, LABELS))


@cache
def effects_of(dialect: str) -> Effects:
    """The rows of the kinds of a dialect."""
    module = catalog.dialect(dialect).effects
    effects: Effects = import_module(module).EFFECTS if module else {}
    return effects


def rows_of(kind: Kind) -> Rows:
    """The rows of a kind, with those of every kind."""
    return (*effects_of(kind.dialect).get((kind.group, kind.kind), ()), *_METADATA)


def judge(kind: Kind, difference: FieldDifference) -> EffectRow | None:
    """The row that tells what a difference does."""
    entry = difference.after if difference.how is ValueChange.ADDED else difference.before
    return best(rows_of(kind), generalize(difference.path), difference.how, entry)


def row_for(kind: Kind, parts: Parts) -> EffectRow | None:
    """The row of a field however it changes; steps through lists may be left out, as users write paths."""
    rows = rows_of(kind)
    return max(
        (row for row in rows if not (row.when or row.having) and _begins(row.parts, parts)), key=lambda row: len(row.parts), default=None
    )


def _begins(pattern: Parts, parts: Path) -> bool:
    plain = tuple(part for part in pattern if part != "[]")
    return plain == tuple(parts)[: len(plain)]
