"""The pipeline of the server's own kinds: what their schemas say to apply and to strategic merge patches, and what is left out.

The declarations serve every command; how lists and maps are merged concerns only a server (docs/spec/kube-api.md 4.2 and 4.6),
so the table of kinds says it. `[]` in a path are the entries of a list.
"""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.meta.apply.types import MergeSchema
from paddock.kubernetes.schema.generate import crd, structural
from paddock.kubernetes.schema.kind import Kind
from paddock.server.kindtable import structure, table
from paddock.server.resources.declared import DeclaredPipeline
from paddock.server.resources.pipeline import Decoded

# What the table of kinds says of merging.
_MERGE_WORDS = ("map-type", "list-type", "list-map-keys", "patch-strategy", "patch-merge-key", "group-version-kind")
_MERGING = (*(f"x-kubernetes-{word}" for word in _MERGE_WORDS), "x-paddock-present", "default")
# Members that Go clients always send: a zero there is what they send for nothing.
_ZERO_IS_ABSENT: dict[tuple[str, str], tuple[str, ...]] = {("", "Service"): ("spec.ports[].targetPort",)}


@cache
def _schema_of(kind: Kind) -> MergeSchema:
    made = crd.schema(kind)
    version = kind.storage_version
    message = table.kinds()[kind.group, kind.kind].messages[version]
    _add_merging(made, structure.schema(message, kind.group, version, kind.kind))
    return MergeSchema(made)


def _add_merging(made: Data, facts: Data) -> None:
    made.update({word: facts[word] for word in _MERGING if word in facts})
    for name, member in made.get("properties", {}).items():
        if name in facts.get("properties", {}):
            _add_merging(member, facts["properties"][name])
    for word in ("items", "additionalProperties"):
        if isinstance(made.get(word), dict) and word in facts:
            _add_merging(made[word], facts[word])


class BuiltinPipeline(DeclaredPipeline):
    """The pipeline of a declared kind that a server has built in."""

    @cached_property
    def schema(self) -> Data:
        """The structural schema with everything that merging needs."""
        return _schema_of(self._kind)

    def decode(self, raw: Data) -> Decoded:
        """Prune, default, and leave out lists and maps that are empty."""
        for path in _ZERO_IS_ABSENT.get((self._facts.group, self._facts.kind), ()):
            _drop_zero(raw, path.replace("[]", ".[]").split("."))
        self._fill_lists(raw)
        decoded = super().decode(raw)
        self._drop_empty(decoded.data)
        if not decoded.broken:
            self._write_quantities(decoded.data)
        return decoded

    @cached_property
    def _write_quantities(self) -> Callable[[Data], None]:
        return _quantities(self.schema) or (lambda data: None)

    @cached_property
    def _fill_lists(self) -> Callable[[Data], None]:
        return _filler(self.schema) or (lambda data: None)

    @cached_property
    def _drop_empty(self) -> Callable[[Data], None]:
        return _dropper(self.schema) or (lambda data: None)


def _drop_zero(value: Any, path: list[str]) -> None:
    head, *rest = path
    if head == "[]":
        for each in value if isinstance(value, list) else ():
            _drop_zero(each, rest)
    elif isinstance(value, dict) and rest:
        _drop_zero(value.get(head), rest)
    elif isinstance(value, dict) and value.get(head) in (0, "") and head in value:
        del value[head]


def _quantities(schema: Data) -> Callable[[Data], None] | None:
    """A function that writes the maps of quantities of the declared members in canonical form, in place; None where there are none."""
    maps, inner = [], []
    for name, member in schema.get("properties", {}).items():
        if _is_quantity(member.get("additionalProperties")):
            maps.append(name)
        elif (below := _quantities(member)) is not None:
            inner.append((name, below))
    if not maps and not inner:
        return None

    def write(data: Data) -> None:
        for name, below in inner:
            if isinstance(data.get(name), dict):
                below(data[name])
        for name in maps:
            given = data.get(name)
            if isinstance(given, dict):
                # What is no quantity stays as it is: the schema refuses it with its own words.
                data[name] = {key: quantity.respelled(each) for key, each in given.items()}

    return write


def _is_quantity(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("pattern", "").endswith(f"{structural.QUANTITY_SUFFIX}$")


def _filler(schema: Data) -> Callable[[Data], None] | None:
    """A function that makes required lists that are missing, or null, empty ones: Go clients send an empty list as either.

    None where no list is required.
    """
    required = schema.get("required", ())
    lists, inner = [], []
    for name, member in schema.get("properties", {}).items():
        many = member.get("type") == "array"
        if many and name in required:
            lists.append(name)
        items = member.get("items") if many else member
        below = _filler(items) if isinstance(items, dict) and name != "metadata" else None
        if below is not None:
            inner.append((name, below, many))
    if not lists and not inner:
        return None

    def fill(data: Data) -> None:
        for name in lists:
            if data.get(name) is None:
                data[name] = []
        for name, below, many in inner:
            value = data.get(name)
            for each in (value if isinstance(value, list) else ()) if many else (value,):
                if isinstance(each, dict):
                    below(each)

    return fill


def _dropper(schema: Data) -> Callable[[Data], None] | None:
    """A function that removes empty lists and maps of the declared members, in place; None where there can be none."""
    empty, inner = [], []
    required = schema.get("required", ())
    for name, member in schema.get("properties", {}).items():
        if name in ("metadata", "apiVersion", "kind"):
            continue
        if name not in required and not member.get("nullable") and (member.get("type") == "array" or "additionalProperties" in member):
            empty.append(name)
        items = member.get("items") if member.get("type") == "array" else None
        below = _dropper(items if isinstance(items, dict) else member)
        if below is not None:
            inner.append((name, below, items is not None))
    if not empty and not inner:
        return None

    def drop(data: Data) -> None:
        for name, below, many in inner:
            value = data.get(name)
            if not value:
                continue
            for each in value if many else (value,):
                if isinstance(each, dict):
                    below(each)
        for name in empty:
            if name in data and not data[name]:
                del data[name]

    return drop
