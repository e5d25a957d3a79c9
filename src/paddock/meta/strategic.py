"""Strategic merge patches of built-in kinds (docs/spec/kube-api.md section 4.2)."""

from typing import Any

from paddock.base.jsondata import copied
from paddock.meta.patch import BadPatch

Data = dict[str, Any]
_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_DELETE_FROM, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


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
        live = {key: value for key, value in live.items() if key in retained}
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
        made = _merge_list(live if isinstance(live, list) else [], value, schema)
        order = patch.get(_ORDER + key)
        return _ordered(made, order, schema) if isinstance(order, list) else made
    return copied(value)


def _merge_list(live: list[Any], patch: list[Any], schema: Data) -> list[Any]:
    merge_key = schema.get("x-kubernetes-patch-merge-key")
    if merge_key is None:
        return live + [value for index, value in enumerate(patch) if value not in live and value not in patch[:index]]
    if any(isinstance(entry, dict) and entry.get(_DIRECTIVE) == "replace" for entry in patch):
        return [copied(entry) for entry in patch if _DIRECTIVE not in entry]
    for entry in patch:
        if not isinstance(entry, dict) or merge_key not in entry:
            raise BadPatch(f"map: {entry!r} does not contain declared merge key: {merge_key}")
        found = [index for index, each in enumerate(live) if isinstance(each, dict) and each.get(merge_key) == entry[merge_key]]
        if entry.get(_DIRECTIVE) == "delete":
            live = [each for index, each in enumerate(live) if index not in found]
        elif found:
            live[found[0]] = _merge_map(live[found[0]], entry, schema.get("items") or {})
        else:
            live.append(_merge_map({}, entry, schema.get("items") or {}))
    return live


def _delete_from(live: Data, key: str, gone: Any) -> None:
    if isinstance(live.get(key), list) and isinstance(gone, list):
        live[key] = [value for value in live[key] if value not in gone]


def _reorder(live: Data, key: str, order: Any, schema: Data) -> None:
    if isinstance(live.get(key), list) and isinstance(order, list):
        live[key] = _ordered(live[key], order, schema)


def _ordered(made: list[Any], order: list[Any], schema: Data) -> list[Any]:
    """Entries in the order given; others stay behind the neighbour they followed."""
    merge_key = schema.get("x-kubernetes-patch-merge-key")

    def name(entry: Any) -> Any:
        return entry.get(merge_key) if merge_key and isinstance(entry, dict) else entry

    wanted = [name(entry) for entry in order]
    ranked = sorted((entry for entry in made if name(entry) in wanted), key=lambda entry: wanted.index(name(entry)))
    result: list[Any] = []
    for index, entry in enumerate(made):
        if name(entry) in wanted:
            continue
        before = next((name(each) for each in reversed(made[:index]) if name(each) in wanted), None)
        result.append((wanted.index(before) if before is not None else -1, entry))
    placed = [entry for rank, entry in result if rank == -1]
    for rank, entry in enumerate(ranked):
        placed.append(entry)
        placed.extend(extra for place, extra in result if place == wanted.index(name(entry)) and place >= 0 and rank >= 0)
    return placed
