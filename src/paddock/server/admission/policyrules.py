"""Rules for ValidatingAdmissionPolicies and their bindings, beyond the types of their fields."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.server.admission.registrations import RULE, check_expression, check_rule, check_selector, conditions
from paddock.server.resources.strategy import Strategy, WriteContext

_MOST_ANNOTATIONS, _LONGEST_VALUE = 20, 5 * 1024
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*\Z", re.ASCII)
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z", re.ASCII)
_WHY_1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character"
_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"


class AdmissionPolicyStrategy(Strategy, ABC):
    """A policy of either kind: parameters, resources, conditions and variables."""

    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Rules, expressions, names."""
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        params, constraints = spec.get("paramKind") is not None, spec.get("matchConstraints")
        place: Path = ("spec", "matchConstraints")
        if params:
            yield from check_param_kind(("spec", "paramKind"), spec["paramKind"])
        if constraints is None:
            yield finding.required(place, RULE)
        else:
            yield from check_resources(place, constraints)
            if not constraints.get("resourceRules"):
                yield finding.required((*place, "resourceRules"), RULE)
            yield from self.check_operations((*place, "resourceRules", "operations"), constraints.get("resourceRules") or ())
        if old is None or any(spec.get(each) != before.get(each) for each in ("paramKind", "matchConditions")):
            yield from conditions(("spec", "matchConditions"), spec.get("matchConditions") or [], params=params)
        yield from check_variables(("spec", "variables"), spec, params=params)
        known = tuple(each.get("name") or "" for each in spec.get("variables") or ()) or None
        yield from self.check_effect(new, known, params=params)

    def check_operations(self, path: Path, rules: Sequence[Data]) -> Iterator[Finding]:
        """Check the operations of its rules; any operation will do."""
        yield from ()

    @abstractmethod
    def check_effect(self, new: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
        """Check the members that say what it does; `known` are the names of its variables."""


class PolicyStrategy(AdmissionPolicyStrategy):
    """Policies. What a look at their expressions shows is written by housekeeping."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """No status yet."""
        new["status"] = {}
        return new

    def check_effect(self, new: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
        """Validations and annotations."""
        spec, path = new.get("spec") or {}, ("spec",)
        validations, annotations = spec.get("validations") or [], spec.get("auditAnnotations") or []
        if not validations and not annotations:
            why = "validations or auditAnnotations must contain at least one item"
            yield finding.required((*path, "validations"), RULE, why)
            yield finding.required((*path, "auditAnnotations"), RULE, why)
        for index, each in enumerate(validations):
            yield from _validation((*path, "validations", index), each, known, params=params)
        if len(annotations) > _MOST_ANNOTATIONS:
            why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
            yield finding.invalid((*path, "auditAnnotations"), len(annotations), why, RULE)
        keys: set[str] = set()
        for index, each in enumerate(annotations):
            place = (*path, "auditAnnotations", index)
            yield from _annotation(place, new["metadata"].get("name", ""), each, known, params=params)
            if each.get("key") in keys:
                yield finding.duplicate((*place, "key"), each.get("key"), RULE)
            keys.add(each.get("key") or "")


def check_param_kind(path: Path, kind: Data) -> Iterator[Finding]:
    """Check the kind of the parameters."""
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    place = (*path, "apiVersion")
    if not version:
        yield finding.required(place, RULE)
    elif version.count("/") > 1:
        yield finding.invalid(place, version, f"unexpected GroupVersion string: {version}", RULE)
    else:
        group, _, plain = version.rpartition("/")
        if group and not names.is_subdomain(group):
            yield finding.invalid(place, group, _SUBDOMAIN, RULE)
        if not plain:
            yield finding.invalid(place, version, "version must be specified", RULE)
        elif not _LABEL_1035.match(plain):
            yield finding.invalid(place, plain, _WHY_1035, RULE)
    if not name:
        yield finding.required((*path, "kind"), RULE)
    elif not _LABEL_1035.match(name.lower()):
        yield finding.invalid((*path, "kind"), name, f"may have mixed case, but should otherwise match: {_WHY_1035}", RULE)


def check_resources(path: Path, said: Data) -> Iterator[Finding]:
    """Check the requests that a policy or a binding selects."""
    for selector in ("namespaceSelector", "objectSelector"):
        yield from check_selector((*path, selector), said.get(selector))
    for member in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(said.get(member) or ()):
            place = (*path, member, index)
            found = rule.get("resourceNames") or []
            for at, name in enumerate(found):
                if name in found[:at]:
                    yield finding.duplicate((*place, "resourceNames", at), name, RULE)
            yield from check_rule(place, rule)


def check_variables(path: Path, spec: Data, *, params: bool) -> Iterator[Finding]:
    """Check the variables of a policy."""
    known: list[str] = []
    for index, each in enumerate(spec.get("variables") or ()):
        name, text, place = each.get("name") or "", each.get("expression") or "", (*path, index)
        if not name.strip():
            yield finding.required((*place, "name"), RULE, "name is not specified")
        elif not _IDENTIFIER.match(name) or name in _RESERVED:
            yield finding.invalid((*place, "name"), name, "must be a valid CEL identifier", RULE)
        elif name in known:
            yield finding.duplicate((*place, "name"), name, RULE)
        if text.strip():
            yield from check_expression((*place, "expression"), text, params=params, known=tuple(known))
        else:
            yield finding.required((*place, "expression"), RULE, "expression is not specified")
        known.append(name)


def _validation(path: Path, said: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
    text, message, saying = said.get("expression") or "", said.get("message"), said.get("messageExpression")
    if text.strip():
        yield from check_expression((*path, "expression"), text, "bool", params=params, known=known)
    else:
        yield finding.required((*path, "expression"), RULE, "expression is not specified")
    if saying:
        place = (*path, "messageExpression")
        if saying.strip():
            yield from check_expression(place, saying, "string", params=params, authorizer=False, known=known)
        else:
            yield finding.invalid(place, saying, "must be non-empty if specified", RULE)
    if message and not message.strip():
        yield finding.invalid((*path, "message"), message, "must be non-empty if specified", RULE)
    elif message and ("\n" in message.strip() or "\r" in message.strip()):
        yield finding.invalid((*path, "message"), message, "must not contain line breaks", RULE)


def _annotation(path: Path, policy: str, said: Data, known: tuple[str, ...] | None, *, params: bool) -> Iterator[Finding]:
    key, text = said.get("key") or "", said.get("valueExpression") or ""
    if not policy:
        yield finding.invalid((*path, "key"), key, "requires metadata.name be non-empty", RULE)
    elif not names.is_qualified(f"{policy}/{key}"):
        yield finding.invalid((*path, "key"), f"{policy}/{key}", names.WHY_QUALIFIED, RULE)
    place = (*path, "valueExpression")
    if not text.strip():
        yield finding.required(place, RULE, "valueExpression is not specified")
    elif len(text.strip()) > _LONGEST_VALUE:
        yield finding.required(place, RULE, f"must not exceed {_LONGEST_VALUE} bytes in length")
    else:
        yield from check_expression(place, text, "string", "null_type", params=params, known=known)


class PolicyBindingStrategy(Strategy):
    def counts_generation(self) -> bool:
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A policy, parameters, actions."""
        spec = new.get("spec") or {}
        policy, reference = spec.get("policyName") or "", spec.get("paramRef")
        if not policy:
            yield finding.required(("spec", "policyName"), RULE)
        elif not names.is_subdomain(policy):
            yield finding.invalid(("spec", "policyName"), policy, _SUBDOMAIN, RULE)
        if reference is not None:
            yield from check_reference(("spec", "paramRef"), reference)
        if spec.get("matchResources") is not None:
            yield from check_resources(("spec", "matchResources"), spec["matchResources"])
        yield from self.check_actions(spec)

    def check_actions(self, spec: Data) -> Iterator[Finding]:
        """Check the actions of a binding."""
        yield from _actions(("spec", "validationActions"), spec.get("validationActions") or [])


def check_reference(path: Path, reference: Data) -> Iterator[Finding]:
    """Check the parameters that a binding refers to."""
    name, selector = reference.get("name"), reference.get("selector")
    if name and selector is not None:
        for member in ("name", "selector"):
            yield finding.forbidden((*path, member), "name and selector are mutually exclusive", RULE)
    elif not name and selector is None:
        yield finding.required(path, RULE, "one of name or selector must be specified")
    yield from check_selector((*path, "selector"), selector)
    if not reference.get("parameterNotFoundAction"):
        yield finding.required((*path, "parameterNotFoundAction"), RULE)


def _actions(path: Path, actions: list[str]) -> Iterator[Finding]:
    for index, action in enumerate(actions):
        if action in actions[:index]:
            yield finding.duplicate((*path, index), action, RULE)
    if {"Deny", "Warn"} <= set(actions):
        why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers "
        yield finding.invalid(path, actions, f"{why}serves no purpose)", RULE)
    if not actions:
        yield finding.required(path, RULE, "at least one validation action is required")
