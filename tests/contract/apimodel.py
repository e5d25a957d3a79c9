"""The behaviour of ConfigMaps in a hundred lines: the judge of the random test of the whole API."""

from dataclasses import dataclass, field, replace
from typing import Any

Data = dict[str, Any]
Place = tuple[str, str]
# who owns a key, and by which kind of write
Owner = tuple[str, str]


@dataclass(frozen=True)
class Thing:
    """One object as it was at a revision."""

    revision: int
    data: dict[str, str]
    owners: dict[str, frozenset[Owner]] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    def written(self, data: dict[str, str], owner: Owner) -> "Thing":
        """After a write that is no apply: who changes a key has it alone, who leaves it as it is does not claim it."""
        owners = {key: self.owners[key] if self.data.get(key) == value else frozenset([owner]) for key, value in data.items()}
        return replace(self, data=data, owners=owners)

    def conflicts(self, manager: str, config: dict[str, str]) -> bool:
        """Return whether an apply changes values of other owners."""
        mine = (manager, "Apply")
        return any(key in self.data and self.data[key] != value and self.owners[key] - {mine} for key, value in config.items())

    def applied(self, manager: str, config: dict[str, str]) -> "Thing":
        """After an apply: the manager owns what it has said; what it says no more, and nobody else owns, goes."""
        mine = (manager, "Apply")
        data = {key: value for key, value in self.data.items() if key in config or self.owners[key] != frozenset([mine])}
        owners = {key: self.owners[key] - {mine} for key in data}
        for key, value in config.items():
            shared = owners.get(key, frozenset()) if self.data.get(key) == value else frozenset()
            data[key], owners[key] = value, shared | {mine}
        return replace(self, data=data, owners=owners)


@dataclass(frozen=True)
class Happened:
    """One event."""

    revision: int
    kind: str
    place: Place
    thing: Thing


class Model:
    """All objects and all that happened to them."""

    def __init__(self, revision: int) -> None:
        self.begin = self.revision = self.compacted = revision
        self.things: dict[Place, Thing] = {}
        self.log: list[Happened] = []

    def put(self, place: Place, thing: Thing) -> Thing:
        """An object is written; one that is being deleted and that nothing holds is gone by that."""
        self.revision += 1
        thing = replace(thing, revision=self.revision)
        if thing.deleting and not thing.finalizers:
            del self.things[place]
            self.log.append(Happened(self.revision, "DELETED", place, thing))
        else:
            kind = "MODIFIED" if place in self.things else "ADDED"
            self.things[place] = thing
            self.log.append(Happened(self.revision, kind, place, thing))
        return thing

    def delete(self, place: Place) -> None:
        """An object is to be deleted."""
        thing = self.things[place]
        if not thing.deleting:
            self.put(place, replace(thing, deleting=True))

    def at(self, revision: int) -> dict[Place, Thing]:
        """Everything as it was at a revision."""
        found: dict[Place, Thing] = {}
        for each in self.log:
            if each.revision > revision:
                break
            if each.kind == "DELETED":
                found.pop(each.place, None)
            else:
                found[each.place] = each.thing
        return found

    def after(self, revision: int, namespace: str) -> list[Happened]:
        """Return the events that a watch from a revision sees."""
        return [each for each in self.log if each.revision > revision and namespace in ("", each.place[0])]


def thing_of(item: Data) -> Thing:
    """An answered object, as the model has it."""
    meta = item["metadata"]
    owners: dict[str, set[Owner]] = {}
    for entry in meta.get("managedFields") or ():
        for path in entry["fieldsV1"].get("f:data", {}):
            if path != ".":
                owners.setdefault(path.removeprefix("f:"), set()).add((entry["manager"], entry["operation"]))
    return Thing(
        int(meta["resourceVersion"]),
        item.get("data") or {},
        {key: frozenset(found) for key, found in owners.items()},
        tuple(meta.get("finalizers") or ()),
        "deletionTimestamp" in meta,
    )


def place_of(item: Data) -> Place:
    """Return the place of an answered object."""
    return item["metadata"]["namespace"], item["metadata"]["name"]
