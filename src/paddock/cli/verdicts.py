"""The effect of each change of an object, as far as manifests tell: the table of changes, and what it cannot know without the rest of the
object: how far a machine can grow, and what keeps it from being made at all."""

from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.cli.comparison import ComparedObject, ObjectPair
from paddock.dialects import admission
from paddock.meta.rendering import Rendering
from paddock.meta.wire import from_data, to_data
from paddock.meta.world import ObjectSet
from paddock.plan.changes import rollouts, table
from paddock.plan.changes.differences import FieldDifference
from paddock.plan.changes.effects import Effect, EffectRow
from paddock.plan.changes.references import MACHINE
from paddock.schema.finding import Finding, Path, Severity
from paddock.schema.kind import AdmissionSettings
from paddock.translate import catalog

# The object is taken, and then cannot be carried out.
FAILS = "fails"
_VIRTRIGAUD = "infra.virtrigaud.io"
_STORED = "Paddock stores it and nothing carries it out yet; VirtRigaud's own controllers would"
_PARTS = {"sockets": rollouts.SOCKETS, "memory": rollouts.GUEST}
_LIVE, _RESTART = str(Effect.LIVE), str(Effect.RESTART)
_MILD = (str(Effect.NONE), _LIVE, _RESTART)
Data = dict[str, Any]


class ChangeVerdict(msgspec.Struct, frozen=True):
    """The effect of a change, in a word, and the reason."""

    effect: str
    why: str
    # it was found out for this machine, and not looked up
    final: bool = False


class RenderFailure(msgspec.Struct, frozen=True):
    """The reason why the new form yields no objects, and the field at fault."""

    path: Path
    why: str


class ObjectChange(msgspec.Struct, frozen=True):
    """An object on both sides, and the KubeVirt objects that each form becomes; empty where that cannot be known."""

    pair: ObjectPair
    settings: AdmissionSettings
    before: Sequence[Data] = ()
    after: Sequence[Data] = ()
    failure: RenderFailure | None = None

    def verdict(self, difference: FieldDifference) -> ChangeVerdict:
        """Return the effect of one difference."""
        kind = self.pair.kind
        if self.before and self.before == self.after and not self._is_machine:
            return ChangeVerdict(str(Effect.NONE), "it becomes the same objects as before")
        row = table.judge(kind, difference) if kind is not None else None
        if kind is None or row is None:
            return ChangeVerdict("unknown", "Paddock does not know this kind")
        if kind.group == _VIRTRIGAUD and self.settings.target == "embedded":
            return ChangeVerdict(str(Effect.NONE), f"{_STORED}: {row.effect}: {row.why}")
        if self.failure is not None and self.failure.path == difference.path[: len(self.failure.path)]:
            return ChangeVerdict(FAILS, self.failure.why)
        return self._grown(row) or ChangeVerdict(str(row.effect), row.why)

    def _grown(self, row: EffectRow) -> ChangeVerdict | None:
        """A growth that is live up to a maximum."""
        before, after = self._machines
        if not row.growth or before is None or after is None:
            return None
        reason = rollouts.growth_reason(before, after, _PARTS[row.growth])
        return ChangeVerdict(_RESTART, reason, True) if reason else ChangeVerdict(_LIVE, rollouts.PLUGGED, True)

    def settle(self, verdicts: Sequence[ChangeVerdict]) -> list[ChangeVerdict]:
        """The verdicts together. Whether the machine needs a restart is known here: the table's worse or better case gives way to that."""
        before, after = self._machines
        if before is None or after is None or not all(each.effect in _MILD for each in verdicts):
            return list(verdicts)
        reason = rollouts.restart_reason(before, after)
        if not reason and before != after:
            return [ChangeVerdict(_LIVE, rollouts.FOLLOWS) if each.effect == _RESTART and not each.final else each for each in verdicts]
        if reason and not any(each.effect == _RESTART for each in verdicts):
            return [ChangeVerdict(_RESTART, reason) for each in verdicts]
        return list(verdicts)

    @property
    def _machines(self) -> tuple[Data | None, Data | None]:
        """The specs of the KubeVirt machine of both forms."""
        found = [next((each["spec"] for each in side if each["kind"] == MACHINE[1]), None) for side in (self.before, self.after)]
        return found[0], found[1]

    @property
    def _is_machine(self) -> bool:
        kind = self.pair.kind
        return kind is not None and (kind.group, kind.kind) == MACHINE

    def refusals(self) -> list[Finding]:
        """Return the errors of the rules about changes, for an object that was carried out."""
        old, new, kind = self.pair.old, self.pair.new, self.pair.kind
        if old is None or new is None or kind is None or old.admission.value is None:
            return []
        status = table.CARRIED_OUT.get((kind.group, kind.kind)) if self._is_carried_out(kind.group) else None
        before = old.admission.value if status is None else from_data({**old.admission.data, "status": status}, kind.cls)
        already = len(new.admission.findings)
        found = admission.admit_change(before, new.admission, self.settings).findings[already:]
        return [each for each in found if each.severity is Severity.ERROR]

    def _is_carried_out(self, group: str) -> bool:
        return group != _VIRTRIGAUD or self.settings.target != "embedded"


def object_change(pair: ObjectPair, worlds: tuple[ObjectSet, ObjectSet], settings: AdmissionSettings) -> ObjectChange:
    """A pair with what both forms become."""
    found = ObjectChange(pair, settings)
    kind = pair.kind
    if pair.old is None or pair.new is None or kind is None:
        return found
    if (kind.group, kind.kind) == MACHINE:
        return msgspec.structs.replace(found, before=[pair.old.admission.data], after=[pair.new.admission.data])
    if not catalog.is_all_in_kubevirt(kind.group, kind.kind):
        return found
    try:
        before, after = (_translated(side, world, kind.dialect) for side, world in zip((pair.old, pair.new), worlds, strict=True))
    except PaddockError as error:
        return msgspec.structs.replace(found, failure=_failure(error))
    return msgspec.structs.replace(found, before=before, after=after)


def _translated(side: ComparedObject, world: ObjectSet, dialect: str) -> list[Data]:
    return [to_data(each) for each in catalog.to_kubevirt(dialect)(side.admission.value, world, Rendering()).value]


def _failure(error: PaddockError) -> RenderFailure | None:
    """A form that nothing can be made of, by what the translation says of it."""
    path = getattr(error, "path", None)
    if not isinstance(path, tuple) or getattr(error, "phase", "") != "Failed":
        return None
    why = f"{error.what} in these manifests; without one the Machine goes Failed, and a machine that runs stays as it is"
    return RenderFailure(path, why)
