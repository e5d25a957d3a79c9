"""The effect of each change of an object, as far as manifests tell: the table of changes, and its limits without the rest of the
object: how far a machine can grow, and what keeps it from being made at all."""

from collections.abc import Sequence
from importlib import import_module

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.dialects import translators as catalog
from paddock.fleet.documents.comparison import ComparedObject, ObjectPair
from paddock.kubernetes import admission
from paddock.kubernetes import catalog as dialects
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Loss, Translated
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.finding import Finding, Path, Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes import rollouts, table
from paddock.kubevirt.plan.changes.differences import FieldDifference
from paddock.kubevirt.plan.changes.effects import Effect, EffectRow
from paddock.kubevirt.plan.changes.references import MACHINE

# The object is taken, and then cannot be carried out.
FAILS = "fails"
_PARTS = {"sockets": rollouts.SOCKETS, "memory": rollouts.GUEST}
_LIVE, _RESTART = str(Effect.LIVE), str(Effect.RESTART)
_MILD = (str(Effect.NONE), _LIVE, _RESTART)


class ChangeVerdict(msgspec.Struct, frozen=True):
    """The effect of a change, and the reason."""

    effect: str
    why: str
    # it was found out for this machine, and not looked up
    final: bool = False


class RenderFailure(msgspec.Struct, frozen=True):
    """The reason why the new form cannot be carried out, and the field that causes it."""

    path: Path
    why: str


class ObjectChange(msgspec.Struct, frozen=True):
    """An object on both sides, and the KubeVirt objects that each form becomes; empty where that cannot be known."""

    pair: ObjectPair
    settings: AdmissionSettings
    before: Sequence[Data] = ()
    after: Sequence[Data] = ()
    failure: RenderFailure | None = None
    # all objects of both sides
    worlds: tuple[ObjectSet, ObjectSet] | None = None
    # what the two forms say that the KubeVirt objects do not
    losses: Sequence[Loss] = ()

    def verdict(self, difference: FieldDifference) -> ChangeVerdict:
        """Return the effect of one difference."""
        kind = self.pair.kind
        lost = self._loss(difference)
        if self.before and self.before == self.after and not self._is_machine:
            why = f"{lost.why}; {lost.instead}" if lost is not None else "it becomes the same objects as before"
            return ChangeVerdict(str(Effect.NONE), why)
        if kind is None:
            return ChangeVerdict("unknown", "Paddock does not know this kind")
        row = table.judge(kind, difference)
        if row is None:
            found = ChangeVerdict("unknown", "Paddock does not know what this field does")
            return found if lost is None else ChangeVerdict(str(Effect.NONE), f"{lost.why}; {lost.instead}")
        if self.failure is not None and self.failure.path == difference.path[: len(self.failure.path)]:
            return ChangeVerdict(FAILS, self.failure.why)
        return (
            self._grown(row)
            or self._moved(difference)
            or self._predicted(kind.dialect, difference)
            or ChangeVerdict(str(row.effect), row.why)
        )

    def _predicted(self, dialect: str, difference: FieldDifference) -> ChangeVerdict | None:
        """Return what the dialect foresees for this very machine."""
        predictions = dialects.dialect(dialect).predictions
        if not predictions or self.worlds is None:
            return None
        old, new = (side.admission.value if side else None for side in (self.pair.old, self.pair.new))
        found = import_module(predictions).prediction(old, new, self.worlds, difference)
        return ChangeVerdict(str(found[0]), found[1]) if found is not None else None

    def _loss(self, difference: FieldDifference) -> Loss | None:
        """The loss that is about a difference: of its field, or of something around or inside it."""
        own = (each for each in self.losses if each.of == self.pair.side.title and each.path)
        return next((each for each in own if all(a == b for a, b in zip(each.path, difference.path, strict=False))), None)

    def _grown(self, row: EffectRow) -> ChangeVerdict | None:
        """A growth that is live up to a maximum."""
        before, after = self._machines
        if not row.growth or before is None or after is None:
            return None
        reason = rollouts.growth_reason(before, after, _PARTS[row.growth])
        return ChangeVerdict(_RESTART, reason, True) if reason else ChangeVerdict(_LIVE, rollouts.PLUGGED, True)

    def _moved(self, difference: FieldDifference) -> ChangeVerdict | None:
        """A volume that moves to another claim."""
        before, after = self._machines
        if before is None or after is None or "volumes" not in difference.path or not rollouts.moved(before, after):
            return None
        reason = rollouts.move_refusal(before, after)
        return ChangeVerdict(_RESTART, reason, True) if reason else ChangeVerdict(_LIVE, rollouts.MOVES, True)

    def settle(self, verdicts: Sequence[ChangeVerdict]) -> list[ChangeVerdict]:
        """The verdicts together. Whether the machine needs a restart is known here: the table's worse or better case gives way to that."""
        before, after = self._machines
        if before is None or after is None or not all(each.effect in _MILD for each in verdicts):
            return list(verdicts)
        reason = rollouts.restart_reason(before, after)
        if not reason and before != after and not rollouts.keeps_metadata(before, after):
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
        """Return the findings of the rules about changes, for an object that is in effect."""
        old, new, kind = self.pair.old, self.pair.new, self.pair.kind
        if old is None or new is None or kind is None or old.admission.value is None:
            return []
        machines = (each for dialect in dialects.every_dialect() for each in dialect.machines)
        status = next((each.carried_out for each in machines if each.id == (kind.group, kind.kind) and each.carried_out), None)
        before = old.admission.value if status is None else from_data({**old.admission.data, "status": status}, kind.cls)
        already = len(new.admission.findings)
        found = admission.admit_change(before, new.admission, self.settings).findings[already:]
        return [each for each in found if each.severity is Severity.ERROR]


def object_change(pair: ObjectPair, worlds: tuple[ObjectSet, ObjectSet], settings: AdmissionSettings) -> ObjectChange:
    """A pair with what both forms become."""
    found = ObjectChange(pair, settings)
    kind = pair.kind
    if pair.old is None or pair.new is None or kind is None:
        return found
    if (kind.group, kind.kind) == MACHINE:
        return msgspec.structs.replace(found, before=[pair.old.admission.data], after=[pair.new.admission.data])
    if not catalog.is_all_in_kubevirt(kind.group, kind.kind):
        return msgspec.structs.replace(found, worlds=worlds)
    try:
        before, after = (_translated(side, object_set, kind.dialect) for side, object_set in zip((pair.old, pair.new), worlds, strict=True))
    except PaddockError as error:
        return msgspec.structs.replace(found, failure=_failure(error))
    objects = [[to_data(each) for each in form.value] for form in (before, after)]
    return msgspec.structs.replace(found, before=objects[0], after=objects[1], losses=(*after.losses, *before.losses))


def _translated(side: ComparedObject, object_set: ObjectSet, dialect: str) -> Translated[tuple[Resource, ...]]:
    return catalog.to_kubevirt(dialect)(side.admission.value, object_set, Rendering())


def _failure(error: PaddockError) -> RenderFailure | None:
    """A form that nothing can be made of, by what the translation says of it."""
    path = getattr(error, "path", None)
    if not isinstance(path, tuple) or getattr(error, "phase", "") != "Failed":
        return None
    why = f"{error.what} in these manifests; without one the Machine goes Failed, and a machine that runs stays as it is"
    return RenderFailure(path, why)
