"""Policies and bindings as they are asked: read once from what is stored."""

from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.server.admission.matching import Matcher, read_matcher

# the types of patches, with the member that holds the expression
MEMBERS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


class PolicyBinding(msgspec.Struct, frozen=True, eq=False):
    """A binding, read. `matcher` is None when it takes all that its policy takes."""

    name: str
    policy: str
    matcher: Matcher | None
    reference: Data | None
    actions: tuple[str, ...]


class ValidatingPolicy(msgspec.Struct, frozen=True, eq=False):
    name: str
    matcher: Matcher
    param_kind: Data | None
    ignores: bool
    conditions: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    validations: tuple[Data, ...]
    annotations: tuple[tuple[str, str], ...]
    bindings: tuple[PolicyBinding, ...]


class MutatingPolicy(msgspec.Struct, frozen=True, eq=False):
    """A policy that changes what is written, read. A mutation is the type of its patch and an expression."""

    name: str
    matcher: Matcher
    param_kind: Data | None
    ignores: bool
    again: bool
    conditions: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    mutations: tuple[tuple[str, str], ...]
    bindings: tuple[PolicyBinding, ...]


class BadMutation(Exception):
    """An expression has no value, or one that does not fit the object."""


def _pairs(entries: Any, value: str, name: str = "name") -> tuple[tuple[str, str], ...]:
    return tuple((each.get(name) or "", each.get(value) or "") for each in entries or ())


def read_policy(data: Data, bindings: tuple[PolicyBinding, ...]) -> ValidatingPolicy:
    """A stored policy with its bindings."""
    spec = data.get("spec") or {}
    return ValidatingPolicy(
        data["metadata"]["name"],
        read_matcher(spec.get("matchConstraints") or {}, "resourceRules"),
        spec.get("paramKind"),
        spec.get("failurePolicy") == "Ignore",
        _pairs(spec.get("matchConditions"), "expression"),
        _pairs(spec.get("variables"), "expression"),
        tuple(spec.get("validations") or ()),
        _pairs(spec.get("auditAnnotations"), "valueExpression", "key"),
        bindings,
    )


def read_binding(data: Data) -> PolicyBinding:
    spec = data.get("spec") or {}
    where = spec.get("matchResources")
    matcher = None if where is None else read_matcher(where, "resourceRules")
    return PolicyBinding(
        data["metadata"]["name"], spec.get("policyName") or "", matcher, spec.get("paramRef"), tuple(spec.get("validationActions") or ())
    )


def read_mutating(data: Data, bindings: tuple[PolicyBinding, ...]) -> MutatingPolicy:
    """A stored mutating policy with its bindings."""
    spec = data.get("spec") or {}
    mutations = spec.get("mutations") or ()
    return MutatingPolicy(
        data["metadata"]["name"],
        read_matcher(spec.get("matchConstraints") or {}, "resourceRules"),
        spec.get("paramKind"),
        spec.get("failurePolicy") == "Ignore",
        spec.get("reinvocationPolicy") == "IfNeeded",
        _pairs(spec.get("matchConditions"), "expression"),
        _pairs(spec.get("variables"), "expression"),
        tuple(
            (each.get("patchType") or "", (each.get(MEMBERS.get(each.get("patchType"), "")) or {}).get("expression") or "")
            for each in mutations
        ),
        bindings,
    )
