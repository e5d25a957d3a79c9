"""Server-side apply (docs/spec/kube-api.md section 4.5): merge, remove what the applier no longer wants, find conflicts."""

from typing import NamedTuple

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.apply import lastapplied, ownership, types, values
from paddock.kubernetes.meta.apply.differences import ApplyDifference, difference
from paddock.kubernetes.meta.apply.ownership import APPLY, UPDATE, ManagedFieldsEntry, Manager
from paddock.kubernetes.meta.apply.places import Places, common, every, minus, show, union
from paddock.kubernetes.meta.apply.types import MergeType
from paddock.kubernetes.meta.failure import FailureTarget

# Owns what was there before anybody kept books.
_BEFORE = "before-first-apply"


def claim(config: Data | None, new: Data, schema: Data, manager: Manager, now: str) -> None:
    """Set managedFields of an object that an apply makes: the applier owns what it sent."""
    sent = ownership.owned(values.places_of(types.of_schema(schema), config or {}), manager.subresource)
    ownership.write(new, [ManagedFieldsEntry(manager, APPLY, sent, now)] if sent else [])


class ApplyRequest(NamedTuple):
    """The parameters of an apply: its manager, its target and its options."""

    manager: Manager
    about: FailureTarget
    now: str
    force: bool = False
    # where this applier gives other values without a conflict, whoever owns them
    free: Places = {}


def apply(live: Data, config: Data, schema: Data, asked: ApplyRequest) -> Data:
    """The object with the configuration applied and its managedFields; raises a `Failure` on conflicts and unmergeable lists."""
    root = types.of_schema(schema)
    manager = asked.manager
    if manager.subresource == "status":
        config = {key: value for key, value in config.items() if key in ("apiVersion", "kind", "metadata", "status")}
        config["metadata"] = {
            key: value for key, value in config["metadata"].items() if key in ("name", "namespace", "resourceVersion", "uid")
        }
    else:
        config = {key: value for key, value in config.items() if key != "status" or "status" not in _subresources(schema)}
    try:
        wanted = ownership.owned(values.places_of(root, config), manager.subresource)
        merged = values.merge(root, live, config)
    except values.Unmergeable as error:
        raise failure.bad_request(f"failed to create typed patch object: {error.what}") from None
    asked = asked._replace(free=lastapplied.yielding(live, root, manager))
    merged, entries = settle(root, (live, merged), wanted, _entries(live, root, asked.now), asked)
    ownership.write(merged, entries)
    return merged


def settle(
    root: MergeType, values_: tuple[Data, Data], places: Places, entries: list[ManagedFieldsEntry], asked: ApplyRequest
) -> tuple[Data, list[ManagedFieldsEntry]]:
    """From the live and the merged value, and the places that are applied: what there will be, and who owns what; raises a `Failure`."""
    live, merged = values_
    entries = [each.over(values.fitted(root, each.places)) for each in entries]
    identity = ManagedFieldsEntry(asked.manager, APPLY, {}, "").identity
    mine = next((entry for entry in entries if entry.identity == identity), None)
    others = [entry for entry in entries if entry is not mine]
    if mine is not None:
        merged = _without_unwanted(root, merged, mine.places, [*(entry.places for entry in others), places])
    changed = difference(root, live, merged)
    others = _resolve(others, changed, asked)
    if not places:
        return merged, others
    # The time is that of the last change that this applier made to the object, not of the last time it spoke.
    time = asked.now if any((changed.added, changed.modified, changed.removed)) else mine.time if mine is not None else ""
    return merged, [*others, ManagedFieldsEntry(asked.manager, APPLY, places, time)]


def _subresources(schema: Data) -> tuple[str, ...]:
    """Kinds with a status subresource say so in their schema's own extension."""
    return tuple(schema.get("x-paddock-subresources") or ())


def _entries(live: Data, root: types.MergeType, now: str) -> list[ManagedFieldsEntry]:
    entries = ownership.read(live)
    if entries:
        return entries
    everything = ownership.owned(values.everything(root, _compared(live)), "")
    return [ManagedFieldsEntry(Manager(_BEFORE, str(live.get("apiVersion", ""))), UPDATE, everything, now)] if everything else []


def _compared(data: Data) -> Data:
    metadata = {key: value for key, value in data["metadata"].items() if key != "managedFields"}
    return {**{key: value for key, value in data.items() if key not in ("apiVersion", "kind")}, "metadata": metadata}


def _without_unwanted(root: MergeType, merged: Data, last: Places, owned: list[Places]) -> Data:
    """Remove the values that this applier owned and no longer sends, unless another manager owns them. Values without any owner stay."""
    if last == owned[-1]:
        return merged
    # Every applier says the name, and nobody owns it.
    kept: Places = {"f:metadata": {"f:name": {}}}
    for places in owned:
        kept = union(kept, places)
    if not minus(last, kept):
        return merged
    last = values.with_containers(root, last)
    there = _places_there(root, merged)
    spared = union(_places_there(root, values.without(root, merged, last) or {}), values.with_containers(root, kept))
    left = _places_there(root, values.without(root, merged, minus(there, spared)) or {})
    return values.without(root, merged, common(minus(there, left), last)) or {}


def _places_there(root: MergeType, value: Data) -> Places:
    return values.with_containers(root, values.places_of(root, value, live=True))


def _resolve(others: list[ManagedFieldsEntry], changed: ApplyDifference, asked: ApplyRequest) -> list[ManagedFieldsEntry]:
    """The other managers after this change; raises a conflict where their fields get other values, unless forced."""
    touched = union(changed.added, changed.modified)
    conflicts = [(entry, both) for entry in others if (both := common(entry.places, touched))]
    if conflicts and not asked.force:
        conflicts = [(entry, left) for entry, both in conflicts if (left := minus(both, asked.free))]
        if conflicts:
            raise _conflict(conflicts, asked.about)
    kept = []
    for entry in others:
        places = minus(minus(entry.places, touched), changed.removed)
        if places:
            kept.append(ManagedFieldsEntry(entry.manager, entry.operation, places, entry.time))
    return kept


def _conflict(conflicts: list[tuple[ManagedFieldsEntry, Places]], about: FailureTarget) -> failure.Failure:
    causes: list[failure.StatusCause] = []
    texts: list[str] = []
    for entry, both in conflicts:
        who = f'"{entry.manager.name}"'
        if entry.manager.subresource:
            who += f' with subresource "{entry.manager.subresource}"'
        if entry.operation == UPDATE:
            who += f" using {entry.manager.api_version}"
        fields = [show(chain) for chain in every(both)]
        causes.extend(failure.StatusCause("FieldManagerConflict", f"conflict with {who}", field) for field in fields)
        listed = f" {fields[0]}" if len(fields) == 1 else "\n- " + "\n- ".join(fields)
        texts.append(f"conflict{'s' if len(fields) > 1 else ''} with {who}:{listed}")
    plural = "s" if len(causes) > 1 else ""
    message = f"Apply failed with {len(causes)} conflict{plural}: {', '.join(texts)}"
    return failure.Failure(409, "Conflict", message, about=about, causes=causes)
