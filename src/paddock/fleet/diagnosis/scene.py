"""The known part of a cluster at one moment: objects, events, and the gaps."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import msgspec

from paddock.base.jsondata import Data
from paddock.base.jsondata import at as at
from paddock.base.jsondata import entries as entries
from paddock.base.jsondata import texts as texts
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import conditions as conditions
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import holds as holds


class ObjectPlace(NamedTuple):
    """The place of an object. `namespace` is empty for what has none."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def id(self) -> KindId:
        return self.group, self.kind

    def __str__(self) -> str:
        return f"{_whose().get(self.group, '')}{self.kind} {self.name}"


@cache
def _whose() -> Mapping[str, str]:
    """Return what stands before kinds that KubeVirt has, too, by group."""
    known = {each.kind for each in catalog.dialect(catalog.HUB).machines}
    return {each.group: f"{each.title} " for each in catalog.fronts() if known & {machine.kind for machine in each.machines}}


class ChildQuery(NamedTuple):
    """All objects of a kind in a namespace, narrowed by labels."""

    group: str
    kind: str
    namespace: str
    labels: str = ""


class EventQuery(NamedTuple):
    """All events about objects of a name."""

    namespace: str
    name: str


Ask = ObjectPlace | ChildQuery | EventQuery


class ObjectSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found. `now` is in seconds since the epoch."""

    now: float
    objects: Mapping[ObjectPlace, Data] = {}
    # asked for, and not there
    missing: frozenset[ObjectPlace] = frozenset()
    # what could not be read, and why
    blind: Mapping[Ask, str] = {}
    # kinds that the server does not have
    absent: frozenset[KindId] = frozenset()
    lists: Mapping[ChildQuery, tuple[ObjectPlace, ...]] = {}
    events: Mapping[EventQuery, tuple[Data, ...]] = {}

    def knows(self, ask: Ask) -> bool:
        """Return whether there is nothing more to read about it."""
        if ask in self.blind:
            return True
        if isinstance(ask, EventQuery):
            return ask in self.events
        if ask[:2] in self.absent:
            return True
        if isinstance(ask, ChildQuery):
            return ask in self.lists
        return ask in self.objects or ask in self.missing

    def is_missing(self, ref: ObjectPlace) -> bool:
        """Return whether the object is known not to exist."""
        return ref in self.missing or (ref not in self.objects and ref.id in self.absent)
