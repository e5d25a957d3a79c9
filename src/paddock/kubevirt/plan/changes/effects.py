"""The ways a change of a field reaches the machine, and the rows of the table of changes."""

from enum import StrEnum

import msgspec

from paddock.kubevirt.plan.changes.differences import ValueChange
from paddock.kubevirt.plan.changes.patterns import ENTRY, MEMBER, Parts, parse


class Effect(StrEnum):
    """The effect of a change on an existing machine, from nothing to the worst."""

    NONE = "no effect"
    LIVE = "live"
    RESTART = "restart"
    RECREATE = "recreate"
    LOSS = "data loss"

    @property
    def weight(self) -> int:
        """Larger is worse."""
        return list(Effect).index(self)


class EffectRow(msgspec.Struct, frozen=True):
    """A place and everything below it.

    `when` limits the row to ways of changing, `having` to list entries with one of these members (a volume from a claim can be
    plugged in, a volume from a container image cannot). A row about entries that come or go speaks of whole entries alone. `growth`
    names what of a machine it lets grow up to a maximum: `sockets` or `memory`.
    """

    path: str
    effect: Effect
    why: str
    when: tuple[ValueChange, ...] = ()
    having: tuple[str, ...] = ()
    growth: str = ""

    @property
    def parts(self) -> Parts:
        return parse(self.path)

    def covers(self, parts: Parts) -> bool:
        """Return whether a place is this one or below it."""
        own = self.parts
        if len(own) < len(parts) and own[-1] == ENTRY and self.when and set(self.when) <= {ValueChange.ADDED, ValueChange.REMOVED}:
            return False
        return len(own) <= len(parts) and all(a in (b, MEMBER) for a, b in zip(own, parts, strict=False))

    def fits(self, how: ValueChange, entry: object) -> bool:
        """Return whether the row applies to this kind of change."""
        if self.when and how not in self.when:
            return False
        return not self.having or (isinstance(entry, dict) and any(member in entry for member in self.having))


def best(rows: tuple[EffectRow, ...], parts: Parts, how: ValueChange | None = None, entry: object = None) -> EffectRow | None:
    """The row for a place: the longest pattern wins, and among equals the one that says more.

    Without a way of changing, the row that holds for every way.
    """
    fitting = [row for row in rows if row.covers(parts) and (not (row.when or row.having) if how is None else row.fits(how, entry))]
    return max(fitting, key=lambda row: (len(row.parts), bool(row.when) + bool(row.having)), default=None)
