"""A look at the expressions of a policy with the schemas of what it is about: fields that no such object has."""

from collections.abc import Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema.cel.typing import DYN, Ty
from paddock.kubernetes.schema.structural.expressions import type_of
from paddock.server.admission import expressions
from paddock.server.admission.expressions import Scope, Types
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource

# More kinds than these are not looked at.
_MOST_KINDS = 10
_ENVELOPE = ("apiVersion", "kind", "metadata")


def expression_warnings(spec: Data, registry: ResourceRegistry) -> list[Data]:
    """The warnings, by the place of the expression."""
    found: dict[str, list[str]] = {}
    for resource in _resources(spec, registry):
        kind = f"{resource.api_version}, Kind={resource.kind}"
        for place, wrong in _wrong(spec, resource, registry):
            found.setdefault(place, []).append(f"{kind}: {wrong}")
    return [{"fieldRef": place, "warning": "\n".join(texts)} for place, texts in found.items()]


def _resources(spec: Data, registry: ResourceRegistry) -> list[ServedResource]:
    found: dict[tuple[str, str, str], ServedResource] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for plural in rule.get("resources") or ():
                    resource = registry.find(group, version, plural)
                    if resource is not None:
                        found[group, version, resource.kind] = resource
    return [found[place] for place in sorted(found)][:_MOST_KINDS]


def _type(resource: ServedResource) -> Ty:
    """The type of the objects of a resource; metadata is not looked into."""
    body = type_of(_without_open(resource.pipeline.schema), top=True)
    return body if body is DYN else Ty("object", None, lambda name: DYN if name in _ENVELOPE else body.member(name))


def _without_open(schema: Any) -> Any:
    """The schema with nothing said of what takes any members: nobody can tell which of them are none."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {}
    made = {**schema, **{word: _without_open(schema[word]) for word in ("items", "additionalProperties") if word in schema}}
    if "properties" in schema:
        made["properties"] = {name: _without_open(member) for name, member in schema["properties"].items()}
    return made


def _wrong(spec: Data, resource: ServedResource, registry: ResourceRegistry) -> Iterator[tuple[str, str]]:
    seen = _type(resource)
    types: Types = {"object": seen, "oldObject": seen}
    kind = spec.get("paramKind")
    if kind:
        group, _, version = (kind.get("apiVersion") or "").rpartition("/")
        params = registry.find_kind(group, kind.get("kind") or "", version)
        if params is not None:
            types["params"] = _type(params)
    known: list[str] = []
    for index, each in enumerate(spec.get("variables") or ()):
        made, wrong = expressions.type_of(each.get("expression") or "", Scope(bool(kind), known=tuple(known)), types)
        if wrong:
            yield f"spec.variables[{index}].expression", wrong.removeprefix("compilation failed: ")
        known.append(each.get("name") or "")
        types[f"variables.{known[-1]}"] = made
    for index, each in enumerate(spec.get("validations") or ()):
        for member in ("expression", "messageExpression"):
            if each.get(member):
                _, wrong = expressions.type_of(each[member], Scope(bool(kind), known=tuple(known) or None), types)
                if wrong:
                    yield f"spec.validations[{index}].{member}", wrong.removeprefix("compilation failed: ")
