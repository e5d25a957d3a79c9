"""The effect of an edit on its machine, before it is sent: by the same table and rules as `paddock plan`."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.cli.comparison import ComparedObject, ObjectPair, text
from paddock.cli.machines.edits import ObjectEdit, written
from paddock.cli.verdicts import ChangeVerdict, object_change
from paddock.client.client import Client
from paddock.client.target import Data, Key, plain
from paddock.dialects import admission, catalog
from paddock.meta.manifests.document import Document, Position, SourceMap
from paddock.meta.objects import Resource
from paddock.meta.world import ObjectSet
from paddock.plan.changes.differences import FieldDifference
from paddock.plan.changes.effects import Effect
from paddock.plan.changes.references import references
from paddock.schema.kind import AdmissionSettings

_LOSS = (str(Effect.LOSS), str(Effect.RECREATE), "fails")
# References whose objects say something about sizes and networks. Secrets stay unread.
_READ = ("VMClass", "MachineTemplate", "MachineClass", "NetworkConfiguration", "Provider", "VMNetworkAttachment")
# Those that a translation to KubeVirt needs.
TRANSLATED = (*_READ, "VMImage", "Image", "DataSource", "NetworkAttachmentDefinition")
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


async def surroundings(client: Client, data: Data, kinds: Sequence[str] = _READ) -> Sequence[Resource]:
    """Return the objects that a machine refers to, as far as they are of some kinds and may be read.

    The default kinds are those that decide about sizes and networks.
    """
    group, _ = admission.split_api_version(data.get("apiVersion"))
    namespace = str((data.get("metadata") or {}).get("namespace") or "")
    found: list[Resource] = []
    for reference in references(group, str(data.get("kind")), data):
        for to_group, kind in reference.to:
            if kind in kinds and (declared := catalog.find(to_group, kind)) is not None:
                target = plain(to_group, declared.versions[0].name, declared.plural, kind)
                key = Key(reference.namespace or namespace if declared.namespaced else "", reference.name)
                found += await _read(client, target, key)
    return found


async def _read(client: Client, target: Any, key: Key) -> list[Resource]:
    try:
        value = admission.admit(await client.get(target, key), AdmissionSettings()).value
    except PaddockError:
        # The plan then names the worse case.
        return []
    return [value] if isinstance(value, Resource) else []
