"""The fields of an object that its kind does not declare, by the OpenAPI document of a server. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]


def undeclared(document: Schema, version: str, data: Schema) -> tuple[str, ...]:
    """Return the paths of the fields that an object has and its kind in this version lacks; none if the document does not have the kind."""
    schemas: Schema = document.get("components", {}).get("schemas", {})
    group = str(data.get("apiVersion", "")).rpartition("/")[0]
    wanted = {"group": group, "version": version, "kind": data.get("kind")}
    found = next((each for each in schemas.values() if wanted in each.get("x-kubernetes-group-version-kind", ())), None)
    if found is None:
        return ()
    # Metadata is the same in every kind, and the documents refer to it.
    parts = {name: value for name, value in data.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return tuple(sorted(set(_walk(found, parts, ""))))


def _walk(schema: Schema, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for each in value:
                yield from _walk(items, each, f"{path}[]")
    elif isinstance(value, Mapping) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if properties is None and others is None:
            # A reference, or anything at all.
            return
        for name, each in value.items():
            place = f"{path}.{name}" if path else name
            below = (properties or {}).get(name, others)
            if isinstance(below, Mapping):
                yield from _walk(below, each, place)
            elif not below:
                yield place
