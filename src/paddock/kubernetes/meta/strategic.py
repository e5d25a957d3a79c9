"""Strategic merge patches of built-in kinds (docs/spec/kube-api.md section 4.2).

Clients send lists of any length, so no list is searched: an index finds entries by the JSON of their merge key, where true is not 1.
"""

from collections import deque
from typing import Any

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta.apply.places import encoded
from paddock.kubernetes.meta.patch import BadPatch

_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_DELETE_FROM, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"
# A deleted entry keeps its place until the end, so that the index of the others stays right.
_GONE = object()


def apply(document: Data, patch: Data, schema: Data) -> Data:
    """The document with a strategic merge patch applied. The document given is not changed."""
    return _merge_map(copied(document), patch, schema)


def _merge_map(live: Data, patch: Data, schema: Data) -> Data:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: copied(value) for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise BadPatch(f"unknown {_DIRECTIVE} directive {directive!r}")
    if _RETAIN in patch:
        retained = patch[_RETAIN]
        if not isinstance(retained, list):
            raise BadPatch(f"{_RETAIN} must be a list")
        kept = {key for key in retained if isinstance(key, str)}
        live = {key: value for key, value in live.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            live.pop(key, None)
        else:
            live[key] = _merge(live.get(key), value, _member(schema, key), patch, key)
    for key in patch:
        if key.startswith(_DELETE_FROM):
            _delete_from(live, key[len(_DELETE_FROM) :], patch[key])
        elif key.startswith(_ORDER) and key[len(_ORDER) :] not in patch:
            _reorder(live, key[len(_ORDER) :], patch[key], _member(schema, key[len(_ORDER) :]))
    return live


def _member(schema: Data, key: str) -> Data:
    if key == "metadata" and "x-kubernetes-group-version-kind" in schema:
        return METADATA
    member = (schema.get("properties") or {}).get(key)
    if member is None:
        extra = schema.get("additionalProperties")
        member = extra if isinstance(extra, dict) else {}
    found: Data = member
    return found


METADATA: Data = {
    "properties": {
        "ownerReferences": {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid"},
        "finalizers": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
    }
}


def _merge(live: Any, value: Any, schema: Data, patch: Data, key: str) -> Any:
    if isinstance(value, dict):
        return _merge_map(live if isinstance(live, dict) else {}, value, schema)
    if isinstance(value, list) and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        before = live if isinstance(live, list) else []
        made = _merge_list(before, value, schema)
        order = patch.get(_ORDER + key)
        if not isinstance(order, list):
            return _ordered(made, value, before, schema)
        # Under an explicit order, Kubernetes ranks new entries where deleted ones left room in the live list.
        return _ordered(made, order, made[: len(before)], schema)
    return copied(value)


def _merge_list(live: list[Any], patch: list[Any], schema: Data) -> list[Any]:
    merge_key = schema.get("x-kubernetes-patch-merge-key")
    if merge_key is None:
        return _united(live, patch)
    if any(isinstance(entry, dict) and entry.get(_DIRECTIVE) == "replace" for entry in patch):
        return [copied(entry) for entry in patch if _DIRECTIVE not in entry]
    merged = list(live)
    places: dict[str, list[int]] = {}
    for index, each in enumerate(live):
        if isinstance(each, dict):
            places.setdefault(encoded(each.get(merge_key)), []).append(index)
    item = schema.get("items") or {}
    for entry in patch:
        if not isinstance(entry, dict) or merge_key not in entry:
            raise BadPatch(f"map: {entry!r} does not contain declared merge key: {merge_key}")
        name = encoded(entry[merge_key])
        if entry.get(_DIRECTIVE) == "delete":
            for index in places.pop(name, ()):
                merged[index] = _GONE
        elif name in places:
            first = places[name][0]
            merged[first] = _merge_map(merged[first], entry, item)
        else:
            places[name] = [len(merged)]
            merged.append(_merge_map({}, entry, item))
    return [each for each in merged if each is not _GONE]


def _united(live: list[Any], patch: list[Any]) -> list[Any]:
    """The live values, and those of the patch that are new."""
    new: dict[str, Any] = {}
    for value in patch:
        new.setdefault(encoded(value), value)
    for value in live:
        new.pop(encoded(value), None)
    return [*live, *new.values()]


def _delete_from(live: Data, key: str, gone: Any) -> None:
    if isinstance(live.get(key), list) and isinstance(gone, list):
        named = {encoded(value) for value in gone}
        live[key] = [value for value in live[key] if encoded(value) not in named]


def _reorder(live: Data, key: str, order: Any, schema: Data) -> None:
    if isinstance(live.get(key), list) and isinstance(order, list):
        live[key] = _ordered(live[key], order, live[key], schema)


def _ordered(made: list[Any], order: list[Any], before: list[Any], schema: Data) -> list[Any]:
    """Entries in the order given; each other one stands in front of the first that the live list had behind it."""
    merge_key = schema.get("x-kubernetes-patch-merge-key")

    def name(entry: Any) -> str:
        return encoded(entry.get(merge_key) if merge_key and isinstance(entry, dict) else entry)

    def ranks(entries: list[Any]) -> dict[str, int]:
        return {each: rank for rank, each in enumerate(dict.fromkeys(map(name, entries)))}

    wanted, former = ranks(order), ranks(before)
    named = [(name(entry), entry) for entry in made]
    others = deque((former.get(each, len(former)), entry) for each, entry in named if each not in wanted)
    placed: list[Any] = []
    for each, entry in sorted((pair for pair in named if pair[0] in wanted), key=lambda pair: wanted[pair[0]]):
        # New entries have no place among the live ones.
        while others and others[0][0] < former.get(each, -1):
            placed.append(others.popleft()[1])
        placed.append(entry)
    return placed + [entry for _, entry in others]
