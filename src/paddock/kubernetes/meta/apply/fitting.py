"""Checks that an applied configuration fits the schema: apply merges by types, so it cannot start from a value of another type.

The words are those that clients look for. A null fits everywhere; what a schema leaves open fits, too.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from paddock.kubernetes.meta.apply.places import Key, keyed, show
from paddock.kubernetes.meta.apply.types import MergeType, of_schema, resolve

Schema = dict[str, Any]


class _SetEntry(NamedTuple):
    """The step to an entry of a set, as JSON."""

    text: str


# A chain of (outer place, step): a member, an index, the keys of an entry. It becomes a text only where something does not fit.
Step = str | int | Key | _SetEntry
Trail = tuple[Any, Step] | None
_TEXT: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_OWNER: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
        "controller": _FLAG,
        "blockOwnerDeletion": _FLAG,
    },
}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "selfLink"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TEXT),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _WHOLE),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "ownerReferences": {"type": "array", "items": _OWNER, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    },
}


def misfits(schema: Schema, config: dict[str, Any]) -> Iterator[str]:
    """Everything that does not fit, as `place: why`."""
    types = of_schema(schema)
    for name, value in config.items():
        if name not in ("apiVersion", "kind"):
            member = _METADATA if name == "metadata" else _member(schema, name)
            yield from _of_member((None, name), member, types.member(name), value)


def _member(schema: Schema, name: str) -> Schema | None:
    """The schema of a member; {} where anything goes, None where there is no such member."""
    declared: Schema | None = (schema.get("properties") or {}).get(name)
    if declared is not None:
        return declared
    free = schema.get("additionalProperties")
    if isinstance(free, dict):
        return free
    closed = "properties" in schema and free is None and not schema.get("x-kubernetes-preserve-unknown-fields")
    return None if closed else {}


def _of_member(trail: Trail, schema: Schema | None, kind: MergeType, value: Any) -> Iterator[str]:
    if schema is None:
        yield f"{_shown(trail)}: field not declared in schema"
    elif schema and value is not None:
        yield from _misfits(trail, schema, resolve(kind, value), value)


def _misfits(trail: Trail, schema: Schema, kind: MergeType, value: Any) -> Iterator[str]:
    if schema.get("x-kubernetes-embedded-resource"):
        schema = {**schema, "properties": {**schema.get("properties", {}), "apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}}
    wanted: Any = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, dict | list):
            yield f"{_shown(trail)}: expected scalar, got {_said(value)}"
    elif wanted == "array":
        yield from _of_list(trail, schema, kind, value)
    elif wanted == "object" or "properties" in schema or "additionalProperties" in schema:
        if not isinstance(value, dict):
            yield f"{_shown(trail)}: expected map, got {_said(value)}"
            return
        for name, inner in value.items():
            member = _member(schema, name)
            # Most members are scalars that fit.
            if member is None or isinstance(inner, dict | list) or not _fits(member, inner):
                yield from _of_member((trail, name), member, kind.member(name), inner)
    elif not _fits(schema, value):
        yield f"{_shown(trail)}: expected {_SCALARS[wanted]}, got {_said(value)}"


def _shown(trail: Trail) -> str:
    """A place as an answer names it."""
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        steps.append(_shown_step(step))
    return "".join(reversed(steps))


def _shown_step(step: Step) -> str:
    if isinstance(step, str):
        return f".{step}"
    if isinstance(step, _SetEntry):
        return f"[={step.text}]"
    return f"[{step}]" if isinstance(step, int) else show((keyed(step),))


_SCALARS = {"string": "string", "boolean": "boolean", "integer": "numeric (int or float)", "number": "numeric (int or float)"}


def _fits(schema: Schema, value: Any) -> bool:
    """Return whether a scalar has the type that its schema wants; what a schema leaves open fits."""
    wanted = schema.get("type")
    if wanted == "string":
        return isinstance(value, str)
    if wanted == "boolean":
        return isinstance(value, bool)
    if wanted in _SCALARS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return wanted not in ("object", "array") and "properties" not in schema and "additionalProperties" not in schema


def _of_list(trail: Trail, schema: Schema, kind: MergeType, value: Any) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{_shown(trail)}: expected list, got {_said(value)}"
        return
    items = schema.get("items") or {}
    item = kind.item or kind
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    is_set = schema.get("x-kubernetes-list-type") == "set"
    seen: set[str] = set()
    for index, entry in enumerate(value):
        step: Step = index
        text = ""
        if keys:
            key, why = _key(index, entry, kind)
            if key is None:
                yield f"{_shown(trail)}: {why}"
                continue
            step, text = key, keyed(key)
        elif is_set:
            text = _said(entry)
            step = _SetEntry(text)
        if text and text in seen:
            yield f"{_shown(trail)}: duplicate entries for key {_shown_step(step)}"
        seen.add(text)
        if items and entry is not None:
            yield from _misfits((trail, step), items, resolve(item, entry), entry)


def _key(index: int, entry: Any, kind: MergeType) -> tuple[Key | None, str]:
    if not isinstance(entry, dict):
        return None, f"element {index}: associative list with keys may not have non-map elements"
    key = kind.key_of(entry)
    if key is not None:
        return key, ""
    missing = [each for each in kind.keys if entry.get(each, kind.defaults.get(each)) is None]
    if len(missing) == len(kind.keys):
        omitted = f"all key fields [{' '.join(_said(each) for each in missing)}] (and doesn't have default values for any key fields)"
    else:
        omitted = f"key field {_said((missing or kind.keys)[0])} (and doesn't have default value)"
    return None, f"element {index}: associative list with keys has an element that omits {omitted}"


def _said(value: Any) -> str:
    return orjson.dumps(value).decode()
