"""A cluster that is a list of objects: what `paddock why` finds out of them, without any server."""

from collections.abc import Iterable
from typing import Any

from paddock.fleet.diagnosis import walk
from paddock.fleet.diagnosis.explain import Explanation, explain
from paddock.fleet.diagnosis.links import WIDE
from paddock.fleet.diagnosis.scene import Ask, ChildQuery, EventQuery, ObjectPlace, ObjectSnapshot
from paddock.kubernetes.meta import ages

Data = dict[str, Any]
NOW = 1_800_000_000.0


def ref_of(data: Data) -> ObjectPlace:
    """The place of an object."""
    group = data["apiVersion"].rpartition("/")[0]
    namespace = "" if (group, data["kind"]) in WIDE else data["metadata"].get("namespace", "default")
    return ObjectPlace(group, data["kind"], namespace, data["metadata"]["name"])


class Cluster:
    """The objects; `blind` are kinds that may not be looked at."""

    def __init__(self, objects: Iterable[Data], blind: Iterable[str] = ()) -> None:
        self.objects = {ref_of(each): each for each in objects}
        self._blind = set(blind)
        # how often something was asked for
        self.rounds = 0

    def scene(self, start: ObjectPlace) -> ObjectSnapshot:
        """Everything that an explanation asks for."""
        asked: set[Ask] = {start}
        while True:
            scene = self._of(asked)
            more = walk.asks(scene, start)
            if not more:
                return scene
            self.rounds += 1
            asked |= more

    def why(self, start: ObjectPlace) -> Explanation:
        """The explanation."""
        return explain(self.scene(start), start)

    def _of(self, asked: Iterable[Ask]) -> ObjectSnapshot:
        asked = set(asked)
        blind = {each: "not allowed" for each in asked if getattr(each, "kind", "Event") in self._blind}
        seen = asked - blind.keys()
        lists = {each: self._list(each) for each in seen if isinstance(each, ChildQuery)}
        places = {each for each in seen if isinstance(each, ObjectPlace)} | {each for found in lists.values() for each in found}
        return ObjectSnapshot(
            now=NOW,
            objects={each: self.objects[each] for each in places if each in self.objects},
            missing=frozenset(each for each in places if each not in self.objects),
            blind=blind,
            lists=lists,
            events={each: self._events(each) for each in seen if isinstance(each, EventQuery)},
        )

    def _list(self, asked: ChildQuery) -> tuple[ObjectPlace, ...]:
        wanted = dict(pair.split("=", 1) for pair in asked.labels.split(",") if pair)
        found = (each for each in self.objects if each[:3] == asked[:3])
        return tuple(each for each in found if wanted.items() <= (self.objects[each]["metadata"].get("labels") or {}).items())

    def _events(self, asked: EventQuery) -> tuple[Data, ...]:
        found = (each for ref, each in self.objects.items() if ref.kind == "Event" and ref.namespace == asked.namespace)
        return tuple(each for each in found if each["involvedObject"]["name"] == asked.name)


def made(kind: str, api_version: str, name: str, spec: Data | None = None, status: Data | None = None, **metadata: Any) -> Data:
    """An object, a minute old."""
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": ages.timestamp(NOW - 60), **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec or {}, "status": status or {}}


def condition(type: str, status: str, reason: str, message: str = "", ago: float = 60.0) -> Data:
    """A condition."""
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": ages.timestamp(NOW - ago)}


def event(about: Data, reason: str, message: str, kind: str = "Warning", ago: float = 30.0, count: int = 1) -> Data:
    """An event."""
    told = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": about["metadata"]["name"], "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['metadata']['name']}.{reason}", "namespace": "default"},
        "involvedObject": told,
        "type": kind,
        "reason": reason,
        "message": message,
        "count": count,
        "lastTimestamp": ages.timestamp(NOW - ago),
    }
