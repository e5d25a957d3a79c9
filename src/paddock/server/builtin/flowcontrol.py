"""FlowSchemas and PriorityLevelConfigurations: which requests belong together, and how much of the server they get."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin import flowdefaults
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "flowcontrol.apiserver.k8s.io"
_RULE = "core/flow-control"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)


class SchemaStrategy(Strategy):
    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The status is the server's."""
        new["status"] = {}
        return new

    def counts_generation(self) -> bool:
        """Changes of the spec are counted."""
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A place in the order, a level, and rules that say something."""
        name, spec = new["metadata"].get("name", ""), new.get("spec") or {}
        yield from _check_precedence(name, spec.get("matchingPrecedence", 0))
        method = (spec.get("distinguisherMethod") or {}).get("type")
        if method not in (None, "ByUser", "ByNamespace"):
            yield finding.unsupported(("spec", "distinguisherMethod", "type"), method, ("ByNamespace", "ByUser"), _RULE)
        if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
            yield finding.required(("spec", "priorityLevelConfiguration", "name"), _RULE, "must reference a priority level")
        for index, rule in enumerate(spec.get("rules") or ()):
            yield from _check_rules(rule, ("spec", "rules", index))
        if name in flowdefaults.MANDATORY_SCHEMAS and spec != flowdefaults.SCHEMAS[name]:
            yield finding.invalid(("spec",), spec, f"spec of '{name}' must equal the fixed value", _RULE)


class LevelStrategy(Strategy):
    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The status is the server's."""
        new["status"] = {}
        return new

    def counts_generation(self) -> bool:
        """Changes of the spec are counted."""
        return True

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Limits that can be kept; what the server itself needs stays as it is."""
        name, spec = new["metadata"].get("name", ""), new.get("spec") or {}
        kind = spec.get("type", "")
        if (name == "exempt") != (kind == "Exempt"):
            yield finding.invalid(("spec", "type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'", _RULE)
        if kind == "Exempt":
            yield from _check_exempt(spec)
        elif kind == "Limited":
            yield from _check_limited(spec)
        elif kind:
            yield finding.unsupported(("spec", "type"), kind, ("Exempt", "Limited"), _RULE)
        else:
            yield finding.required(("spec", "type"), _RULE)
        if name == "exempt" and {**spec, "exempt": None} != {**flowdefaults.LEVELS[name], "exempt": None}:
            yield finding.invalid(("spec",), spec, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value", _RULE)
        if name == "catch-all" and spec != flowdefaults.LEVELS[name]:
            yield finding.invalid(("spec",), spec, "spec of 'catch-all' must equal the fixed value", _RULE)


def _check_precedence(name: str, value: int) -> Iterator[Finding]:
    path = ("spec", "matchingPrecedence")
    if value <= 0:
        yield finding.invalid(path, value, "must be a positive value", _RULE)
    if value > 10_000:
        yield finding.invalid(path, value, "must not be greater than 10000", _RULE)
    if value == 1 and name != "exempt":
        yield finding.invalid(path, value, "only the schema named 'exempt' may have matchingPrecedence 1", _RULE)


def _check_rules(rule: Data, path: tuple[Any, ...]) -> Iterator[Finding]:
    if not rule.get("subjects"):
        yield finding.required((*path, "subjects"), _RULE, "subjects must contain at least one value")
    for index, subject in enumerate(rule.get("subjects") or ()):
        yield from _check_subject(subject, (*path, "subjects", index))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield finding.required(path, _RULE, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, each in enumerate(rule.get("resourceRules") or ()):
        yield from _check_resource_rule(each, (*path, "resourceRules", index))
    for index, each in enumerate(rule.get("nonResourceRules") or ()):
        place = (*path, "nonResourceRules", index)
        yield from _check_words(each, place, "verbs", "verbs must contain at least one value", "verbs", _VERBS)
        needed = "nonResourceURLs must contain at least one value"
        yield from _check_words(each, place, "nonResourceURLs", needed, "non-resource URLs")
        for number, url in enumerate(each.get("nonResourceURLs") or ()):
            if url != "*" and (not url.startswith("/") or "//" in url or " " in url or "*" in url[:-1]):
                yield finding.invalid((*place, "nonResourceURLs", number), url, "must start with slash, and may end with a wildcard", _RULE)


def _check_subject(subject: Data, path: tuple[Any, ...]) -> Iterator[Finding]:
    kind = subject.get("kind", "")
    members = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
    if kind not in members:
        yield finding.unsupported((*path, "kind"), kind, sorted(members), _RULE)
        return
    found = subject.get(members[kind])
    if not found:
        yield finding.required((*path, members[kind]), _RULE, f"{members[kind]} is required when subject kind is '{kind}'")
    elif not found.get("name"):
        yield finding.required((*path, members[kind], "name"), _RULE)
    elif kind == "ServiceAccount" and not found.get("namespace"):
        yield finding.required((*path, members[kind], "namespace"), _RULE, "must specify namespace for service account")
    for other, member in members.items():
        if other != kind and subject.get(member) is not None:
            yield finding.forbidden((*path, member), f"{member} is forbidden when subject kind is not '{other}'", _RULE)


def _check_resource_rule(rule: Data, path: tuple[Any, ...]) -> Iterator[Finding]:
    yield from _check_words(rule, path, "verbs", "verbs must contain at least one value", "verbs", _VERBS)
    yield from _check_words(rule, path, "apiGroups", "resource rules must supply at least one api group", "api groups")
    yield from _check_words(rule, path, "resources", "resource rules must supply at least one resource", "resources")
    if not rule.get("namespaces"):
        if not rule.get("clusterScope"):
            why = "resource rules that are not cluster scoped must supply at least one namespace"
            yield finding.required((*path, "namespaces"), _RULE, why)
        return
    yield from _check_words(rule, path, "namespaces", "", "namespaces")
    for index, each in enumerate(rule["namespaces"]):
        if each != "*" and not _LABEL.match(each):
            why = f"each member of this list must be '*' or a DNS-1123 label; {_NO_LABEL}"
            yield finding.invalid((*path, "namespaces", index), each, why, _RULE)


def _check_words(rule: Data, path: tuple[Any, ...], key: str, needed: str, others: str, known: Iterable[str] = ()) -> Iterator[Finding]:
    """A list of words that is not empty; `*` stands alone."""
    found = rule.get(key) or []
    if not found:
        yield finding.required((*path, key), _RULE, needed)
    elif "*" in found and len(found) > 1:
        yield finding.invalid((*path, key), found, f"if '*' is present, must not specify other {others}", _RULE)
    elif known and "*" not in found and not set(found) <= set(known):
        yield finding.unsupported((*path, key), found, tuple(known), _RULE)


def _check_exempt(spec: Data) -> Iterator[Finding]:
    if spec.get("limited") is not None:
        yield finding.forbidden(("spec", "limited"), "must be nil if the type is not Limited", _RULE)
    yield from _check_shares(spec.get("exempt") or {}, ("spec", "exempt"))


def _check_limited(spec: Data) -> Iterator[Finding]:
    limited, path = spec.get("limited"), ("spec", "limited")
    if spec.get("exempt") is not None:
        yield finding.forbidden(("spec", "exempt"), "must be nil if the type is Limited", _RULE)
    if limited is None:
        yield finding.required(path, _RULE, "must not be empty when type is Limited")
        return
    yield from _check_shares(limited, path)
    if (limited.get("borrowingLimitPercent") or 0) < 0:
        why = "if specified, must be a non-negative integer"
        yield finding.invalid((*path, "borrowingLimitPercent"), limited["borrowingLimitPercent"], why, _RULE)
    response = limited.get("limitResponse") or {}
    kind, queuing = response.get("type"), response.get("queuing")
    place = (*path, "limitResponse")
    if not kind:
        yield finding.required((*place, "type"), _RULE)
    elif kind not in ("Queue", "Reject"):
        yield finding.unsupported((*place, "type"), kind, ("Queue", "Reject"), _RULE)
    elif kind == "Reject" and queuing is not None:
        yield finding.forbidden((*place, "queuing"), "must be nil if limited.limitResponse.type is not Limited", _RULE)
    elif kind == "Queue" and queuing is None:
        yield finding.required((*place, "queuing"), _RULE, "must not be empty if limited.limitResponse.type is Limited")
    elif queuing is not None:
        yield from _check_queuing(queuing, (*place, "queuing"))


def _check_shares(said: Data, path: tuple[str, ...]) -> Iterator[Finding]:
    shares, lendable = said.get("nominalConcurrencyShares") or 0, said.get("lendablePercent") or 0
    if shares < 0:
        yield finding.invalid((*path, "nominalConcurrencyShares"), shares, "must be a non-negative integer", _RULE)
    if not 0 <= lendable <= 100:
        yield finding.invalid((*path, "lendablePercent"), lendable, "must be between 0 and 100, inclusive", _RULE)


def _check_queuing(queuing: Data, path: tuple[str, ...]) -> Iterator[Finding]:
    for key in ("queueLengthLimit", "queues", "handSize"):
        if queuing.get(key, 0) <= 0:
            yield finding.invalid((*path, key), queuing.get(key, 0), "must be positive", _RULE)
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    if queues > 10_000_000:
        yield finding.invalid((*path, "queues"), queues, "must not be greater than 10000000", _RULE)
    elif hand > queues > 0:
        yield finding.invalid((*path, "handSize"), hand, f"should not be greater than queues ({queues})", _RULE)


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "FlowSchema"): SchemaStrategy(),
    (GROUP, "PriorityLevelConfiguration"): LevelStrategy(),
}
