"""managedFields: what every write does to who owns what (docs/spec/kube-api.md sections 4.4 and 4.5)."""

from typing import NamedTuple

from paddock.base.jsondata import Data
from paddock.base.jsonequality import identical_apart
from paddock.kubernetes.meta.apply import types, values
from paddock.kubernetes.meta.apply.differences import difference
from paddock.kubernetes.meta.apply.places import SELF, Places, common, minus, sorted_places, union

APPLY, UPDATE = "Apply", "Update"
# More Update entries than this are merged into one, the oldest first.
_MOST_UPDATERS = 10
_METADATA = frozenset(("metadata",))
_ANCIENT = "ancient-changes"
# Nobody's: identity, and what the server keeps itself.
_UNOWNED_METADATA = (
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "uid",
    "generation",
    "resourceVersion",
    "managedFields",
)
_UNOWNED: Places = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {SELF: {}, **{f"f:{name}": {} for name in _UNOWNED_METADATA}},
}


class Manager(NamedTuple):
    """A field manager: its name, the version of its fields, the subresource it writes."""

    name: str
    api_version: str
    subresource: str = ""


class ManagedFieldsEntry:
    # `stored`: how it stands in an object already
    __slots__ = ("manager", "operation", "places", "stored", "time")

    def __init__(self, manager: Manager, operation: str, places: Places, time: str, stored: Data | None = None) -> None:
        self.manager = manager
        self.operation = operation
        self.places = places
        self.time = time
        self.stored = stored

    def over(self, places: Places) -> "ManagedFieldsEntry":
        """The same manager with other places."""
        return self if places is self.places else ManagedFieldsEntry(self.manager, self.operation, places, self.time)

    @property
    def identity(self) -> tuple[str, ...]:
        """Appliers are one whatever version they use; updaters differ by it."""
        version = "" if self.operation == APPLY else self.manager.api_version
        return (self.operation, self.manager.name, version, self.manager.subresource)

    def written(self, *, is_sorted: bool = False) -> Data:
        """As it stands in an object."""
        if self.stored is not None:
            return self.stored
        made: Data = {
            "manager": self.manager.name,
            "operation": self.operation,
            "apiVersion": self.manager.api_version,
            **({"time": self.time} if self.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": self.places if is_sorted else sorted_places(self.places),
        }
        if self.manager.subresource:
            made["subresource"] = self.manager.subresource
        return made


def read(data: Data | None) -> list[ManagedFieldsEntry] | None:
    """The entries of an object; None when they cannot be read, which is as if there were none."""
    found = []
    for raw in ((data or {}).get("metadata") or {}).get("managedFields") or []:
        fields = raw.get("fieldsV1") if isinstance(raw, dict) else None
        if not isinstance(fields, dict) or raw.get("operation") not in (APPLY, UPDATE) or not isinstance(raw.get("manager"), str):
            return None
        manager = Manager(raw["manager"], str(raw.get("apiVersion", "")), str(raw.get("subresource", "")))
        found.append(ManagedFieldsEntry(manager, raw["operation"], fields, str(raw.get("time", "")), raw))
    return found


def owned(places: Places, subresource: str) -> Places:
    """The places of a write that can be owned: a status write owns status only, any other everything but the status."""
    return _written_by(subresource, minus(places, _UNOWNED))


def _written_by(subresource: str, places: Places) -> Places:
    if subresource == "status":
        return {step: below for step, below in places.items() if step == "f:status"}
    return places


def record(live: Data | None, new: Data, schema: Data, manager: Manager, now: str, *, is_fitted: bool = False) -> None:
    """Set managedFields of `new`, in place, as an update by `manager` makes them. `is_fitted`: those of `live` fit this schema."""
    if "managedFields" in new["metadata"] and live is not None and _given(new, live):
        # A client that writes them itself is believed; an empty list gives all ownership up.
        given = _fitted(types.of_schema(schema), read(new) or []) if any(new["metadata"]["managedFields"]) else []
        if given:
            new["metadata"]["managedFields"] = [entry.written() for entry in given]
        else:
            new["metadata"].pop("managedFields")
        return
    if live is not None and not live["metadata"].get("managedFields"):
        # Who gave all ownership up is not followed until somebody applies.
        new["metadata"].pop("managedFields", None)
        return
    root = types.of_schema(schema)
    if live is None:
        made = _owned_of_new(root, new, manager.subresource)
        new["metadata"].pop("managedFields", None)
        if made:
            new["metadata"]["managedFields"] = [ManagedFieldsEntry(manager, UPDATE, made, now).written(is_sorted=True)]
        return
    entries = read(live) or []
    if not is_fitted or any(entry.manager.api_version != manager.api_version for entry in entries):
        entries = _fitted(root, entries)
    write(new, updated(root, (_plain(live), _plain(new)), entries, ManagedFieldsEntry(manager, UPDATE, {}, now)))


def _fitted(root: types.MergeType, entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    return [entry.over(values.fitted(root, entry.places)) for entry in entries]


def _owned_of_new(root: types.MergeType, new: Data, subresource: str) -> Places:
    """As `owned` of everything in an object, without walking over what nobody can own."""
    metadata = {name: value for name, value in new["metadata"].items() if name not in _UNOWNED_METADATA}
    made = values.everything(root, {**_plain(new), "metadata": metadata})
    made["f:metadata"].pop(SELF, None)
    if not made["f:metadata"]:
        del made["f:metadata"]
    return _written_by(subresource, made)


def updated(
    root: types.MergeType, values_: tuple[Data, Data], entries: list[ManagedFieldsEntry], mine: ManagedFieldsEntry
) -> list[ManagedFieldsEntry]:
    """Return the owners after a value was replaced by another: the writer takes the changes, everybody loses the removed places."""
    live, new = values_
    changed = difference(root, live, new)
    taken = owned(union(changed.added, changed.modified), mine.manager.subresource)
    now, kept = mine.time, []
    for entry in entries:
        places = minus(entry.places, changed.removed)
        if entry.identity == mine.identity:
            places = union(places, taken)
            mine = entry if places == entry.places else ManagedFieldsEntry(mine.manager, UPDATE, places, now)
        elif rest := minus(places, taken):
            kept.append(entry.over(rest))
    if not mine.places:
        mine.places = taken
    return [*kept, mine] if mine.places else kept


def _given(new: Data, live: Data) -> bool:
    """Return whether the client changed managedFields, to something readable."""
    given = new["metadata"]["managedFields"]
    if given == live["metadata"].get("managedFields"):
        return False
    return not any(given) or read(new) is not None


def _plain(data: Data | None) -> Data:
    return {key: value for key, value in (data or {}).items() if key not in ("apiVersion", "kind")}


def write(data: Data, entries: list[ManagedFieldsEntry]) -> None:
    """Put entries into an object, in their order."""
    updaters = [entry for entry in entries if entry.operation == UPDATE and not entry.manager.subresource]
    if len(updaters) > _MOST_UPDATERS:
        entries = _with_ancient(entries, updaters)
    entries = sorted(entries, key=lambda entry: (entry.operation, entry.time, *entry.manager))
    if entries:
        data["metadata"]["managedFields"] = [entry.written() for entry in entries]
    else:
        data["metadata"].pop("managedFields", None)


def _with_ancient(entries: list[ManagedFieldsEntry], updaters: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    oldest = sorted(updaters, key=lambda entry: (entry.time, *entry.manager))[: len(updaters) - _MOST_UPDATERS + 1]
    merged: dict[str, ManagedFieldsEntry] = {}
    for entry in oldest:
        version = entry.manager.api_version
        before = merged.get(version)
        places = entry.places if before is None else union(before.places, entry.places)
        merged[version] = ManagedFieldsEntry(Manager(_ANCIENT, version), UPDATE, places, entry.time)
    return [entry for entry in entries if entry not in oldest] + list(merged.values())


def same(new: Data, old: Data) -> bool:
    """Return whether a write changes nothing. Times of ownership alone are nothing."""
    if not identical_apart(new, old, _METADATA):
        return False
    return new["metadata"] == old["metadata"] or _timeless(new["metadata"]) == _timeless(old["metadata"])


def _timeless(metadata: Data) -> Data:
    fields = [{**entry, "time": None} for entry in metadata.get("managedFields") or []]
    return {**metadata, "managedFields": fields}


__all__ = ["APPLY", "UPDATE", "ManagedFieldsEntry", "Manager", "common", "owned", "read", "record", "same", "write"]
