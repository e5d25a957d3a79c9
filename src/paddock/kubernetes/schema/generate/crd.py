"""CustomResourceDefinitions of our kinds, ready for `kubectl apply`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from paddock.base.errors import Terminal
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.generate import structural
from paddock.kubernetes.schema.generate.structural import Schema
from paddock.kubernetes.schema.kind import Cel, Column, Kind, KindFacts, Version

_REASONS = frozenset({"FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"})
_PROTECTED = re.compile(r"(^|\.)(k8s|kubernetes)\.io$")
_NAMES: Schema = {"name": {"type": "string"}, "generateName": {"type": "string"}}


class NoSuchPlace(Terminal):
    """A rule names a place that its kind does not have: a mistake in the declaration."""

    def __init__(self, rule: str, place: str) -> None:
        super().__init__(f"the CEL form of rule {rule} stands at {place!r}", why="the kind has no such place")


def wanted(kind: KindFacts) -> bool:
    """Return whether a kind gets a CRD: not if an API server has it built in, nor if it is never stored."""
    return kind.stored and not kind.builtin


def name_of(kind: KindFacts) -> str:
    """`plural.group`."""
    return f"{kind.plural}.{kind.group}"


def manifest(kind: Kind) -> dict[str, Any]:
    """The CRD of a kind."""
    metadata: dict[str, Any] = {"name": name_of(kind)}
    if _PROTECTED.search(kind.group):
        # A kube-apiserver asks for this word before it takes a group of its own.
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, declared for use with Paddock"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind, version) for version in kind.versions],
            "conversion": {"strategy": "None"},
        },
    }


def _names(kind: Kind) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}{Kind.LIST_SUFFIX}",
        "plural": kind.plural,
        "singular": kind.singular or kind.kind.lower(),
    }
    # The short names of an alias lead to the kind that it is another form of.
    if kind.short_names and kind.alias_of is None:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return names


def _version(kind: Kind, version: Version) -> dict[str, Any]:
    made: dict[str, Any] = {"name": version.name, "served": True, "storage": version.storage}
    if version.deprecated:
        made["deprecated"] = True
        made["deprecationWarning"] = version.deprecated
    subresources: dict[str, Any] = {"status": {}} if kind.status else {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.replicas,
            "statusReplicasPath": kind.scale.status_replicas,
            "labelSelectorPath": kind.scale.selector,
        }
    if subresources:
        made["subresources"] = subresources
    if kind.columns:
        made["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    made["schema"] = {"openAPIV3Schema": schema(kind)}
    return made


def _column(column: Column) -> dict[str, Any]:
    made: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.text:
        made["description"] = column.text
    if column.wide:
        made["priority"] = 1
    return made


def schema(kind: Kind) -> Schema:
    """The structural schema of a kind with its rules."""
    made = structural.root(shape.shape_of(kind.cls))
    by_rule = [*((rule.id, rule.cel) for rule in kind.rules), *((rule.id, rule.cel) for rule in kind.transitions)]
    for rule, cels in by_rule:
        for cel in cels:
            _place(made, cel, rule)
    return made


def _place(root: Schema, cel: Cel, rule: str) -> None:
    place = _find(root, _steps(cel.at), rule, cel.at)
    made = {"rule": cel.rule, "message": cel.message, "reason": cel.reason if cel.reason in _REASONS else "FieldValueInvalid"}
    if cel.field:
        if place is root and cel.field in (".metadata.name", ".metadata.generateName"):
            root["properties"]["metadata"].setdefault("properties", {}).update(_NAMES)
        steps = _steps(cel.field.removeprefix("."))
        if any(step in ("[]", "{}") for step in steps):
            raise NoSuchPlace(rule, f"{cel.at}{cel.field}")
        _find(place, steps, rule, f"{cel.at}{cel.field}")
        made["fieldPath"] = cel.field
    place.setdefault("x-kubernetes-validations", []).append(made)


def _steps(path: str) -> list[str]:
    """`spec.disks[].name` -> spec, disks, [], name; the values of a map are `{}`."""
    return re.findall(r"\[\]|\{\}|[^.\[\]{}]+", path)


def _find(schema: Schema, steps: Iterable[str], rule: str, path: str) -> Schema:
    for step in steps:
        inner = _step(schema, step)
        if inner is None:
            raise NoSuchPlace(rule, path)
        schema = inner
    return schema


def _step(schema: Schema, step: str) -> Schema | None:
    found: Schema | None
    if step == "[]":
        found = schema.get("items")
    elif step == "{}":
        found = schema.get("additionalProperties")
    else:
        found = schema.get("properties", {}).get(step)
    return found


def manifests(kinds: Iterable[Kind]) -> Iterator[dict[str, Any]]:
    """The CRDs of all kinds that get one."""
    return (manifest(kind) for kind in kinds if wanted(kind))
