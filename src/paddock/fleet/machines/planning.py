"""The effect of an edit on its machine, before it is sent: by the same table and rules as `paddock plan`."""

import textwrap
from collections.abc import Iterable, Iterator

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.documents.comparison import ComparedObject, ObjectPair, text
from paddock.fleet.documents.verdicts import ChangeVerdict, object_change
from paddock.fleet.machines.edits import ObjectEdit, written
from paddock.kubernetes import admission
from paddock.kubernetes.meta.manifests.document import Document, Position, SourceMap
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import FieldDifference
from paddock.kubevirt.plan.changes.effects import Effect

_LOSS = (str(Effect.LOSS), str(Effect.RECREATE), "fails")
_HANG = 11


class PlannedChange(msgspec.Struct, frozen=True):
    """One changed field and its effect."""

    effect: str
    change: str
    why: str


class ChangePlan(msgspec.Struct, frozen=True):
    """All changes of one object."""

    title: str
    changes: tuple[PlannedChange, ...]
    running: bool

    @property
    def restarts(self) -> bool:
        """Return True if a running machine takes a part of it only when it restarts."""
        return self.running and any(each.effect == str(Effect.RESTART) for each in self.changes)

    @property
    def loses(self) -> bool:
        """Return True if a part of it loses data, or needs another object."""
        return any(each.effect in _LOSS for each in self.changes)

    def lines(self, width: int) -> Iterator[str]:
        """Yield the plan for people: each change with its effect, and the reason below it."""
        yield f"{self.title}:"
        for each in self.changes:
            effect = each.effect if self.running or each.effect not in (str(Effect.RESTART), str(Effect.LIVE)) else "at start"
            yield f"  {effect:<{_HANG - 2}}{each.change}"
            if effect != "at start":
                pad = " " * _HANG
                yield from textwrap.wrap(each.why, width, initial_indent=pad, subsequent_indent=pad, break_on_hyphens=False)

    def summary(self) -> str:
        """Return one sentence on the whole."""
        if self.loses:
            return "This loses data, or needs a new object. Read the reasons above."
        if not self.running:
            return "The machine does not run; it starts with this."
        if self.restarts:
            return "The running machine takes a part of this only when it restarts."
        return "The running machine takes this at once."


def plan(edit: ObjectEdit, title: str, resources: Iterable[Resource], *, running: bool) -> ChangePlan:
    """Return the plan of an edit. `resources` has the objects that the machine refers to."""
    found = judged(edit, title, resources)
    return ChangePlan(title, tuple(PlannedChange(verdict.effect, text(each), verdict.why) for each, verdict in found), running)


def judged(edit: ObjectEdit, title: str, resources: Iterable[Resource]) -> list[tuple[FieldDifference, ChangeVerdict]]:
    """Return each difference between the two forms of an object with its effect."""
    settings = AdmissionSettings()
    old, new = (_compared(written(each), title, settings) for each in (edit.before, edit.after))
    pair = ObjectPair(old, new)
    objects = tuple(resources)
    worlds = tuple(
        ObjectSet([*objects, *([side.admission.value] if isinstance(side.admission.value, Resource) else [])]) for side in (old, new)
    )
    change = object_change(pair, (worlds[0], worlds[1]), settings)
    found = list(pair.differences())
    verdicts = change.settle([change.verdict(each) for each in found])
    return list(zip(found, verdicts, strict=True))


def _compared(data: Data, title: str, settings: AdmissionSettings) -> ComparedObject:
    nowhere = SourceMap(None, None, "")
    return ComparedObject(Document("server", data, nowhere, Position(0, 0), ()), title, admission.admit(data, settings))
