"""FlowSchemas and PriorityLevelConfigurations: which requests belong together, and how much of the server they get."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from paddock.apiserver.builtin import flowdefaults
from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.schema import finding
from paddock.schema.field import Field, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Column, Kind, Version

GROUP = "flowcontrol.apiserver.k8s.io"
_RULE = "core/flow-control"
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_QUEUES = "requests of one flow wait in one queue here; how many queues there are has no effect"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_NO_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)


class LevelReference(Object):
    """A priority level."""

    name: Annotated[str, Field("Name of the PriorityLevelConfiguration.", required=True)] = ""


class Distinguisher(Object):
    """What tells flows apart."""

    type: Annotated[str, Field("ByUser or ByNamespace.", required=True)] = ""


class NamedSubject(Object):
    """A user or a group."""

    name: Annotated[str, Field("The name; `*` means all.", required=True)] = ""


class ServiceAccountSubject(Object):
    """A ServiceAccount."""

    namespace: Annotated[str, Field("Its namespace.", required=True)] = ""
    name: Annotated[str, Field("Its name; `*` means all.", required=True)] = ""


class FlowSubject(Object):
    """Who asks."""

    kind: Annotated[str, Field("User, Group or ServiceAccount.", required=True)] = ""
    user: Annotated[NamedSubject | None, Field("The user.")] = None
    group: Annotated[NamedSubject | None, Field("The group.")] = None
    serviceAccount: Annotated[ServiceAccountSubject | None, Field("The ServiceAccount.")] = None


class ResourcePolicyRule(Object):
    """Requests for resources."""

    verbs: Annotated[list[str], Field("Verbs; `*` means all.", required=True)] = []
    apiGroups: Annotated[list[str], Field("Groups of the resources; `*` means all.", required=True)] = []
    resources: Annotated[list[str], Field("Resources, or resource/subresource; `*` means all.", required=True)] = []
    clusterScope: Annotated[bool | None, Field("Whether requests without a namespace count.")] = None
    namespaces: Annotated[list[str] | None, Field("Namespaces; `*` means all.")] = None


class NonResourcePolicyRule(Object):
    """Requests for paths."""

    verbs: Annotated[list[str], Field("Verbs; `*` means all.", required=True)] = []
    nonResourceURLs: Annotated[list[str], Field("Paths; a `*` at the end covers what follows.", required=True)] = []


class PolicyRules(Object):
    """Somebody's requests."""

    subjects: Annotated[list[FlowSubject], Field("Who asks.", required=True)] = []
    resourceRules: Annotated[list[ResourcePolicyRule] | None, Field("Requests for resources.")] = None
    nonResourceRules: Annotated[list[NonResourcePolicyRule] | None, Field("Requests for paths.")] = None


class FlowSchemaSpec(Object):
    """Which requests, and where they go."""

    priorityLevelConfiguration: Annotated[LevelReference, Field("The level that they go to.", required=True)] = LevelReference()
    matchingPrecedence: Annotated[int | None, Field("Schemas with lower numbers are tried first; 1000 when it is not said.", bits=32)] = (
        None
    )
    distinguisherMethod: Annotated[Distinguisher | None, Field("What makes flows of them; none: they are one flow.")] = None
    rules: Annotated[list[PolicyRules] | None, Field("The requests.")] = None


class FlowCondition(Object):
    """Something that was observed."""

    type: Annotated[str | None, Field("What it is about.")] = None
    status: Annotated[str | None, Field("True, False or Unknown.")] = None
    lastTransitionTime: Annotated[str | None, Field("When the status last changed.", nullable=True)] = None
    reason: Annotated[str | None, Field("Why, in one word.")] = None
    message: Annotated[str | None, Field("Why, for people.")] = None


class FlowStatus(Object):
    """What was observed."""

    conditions: Annotated[list[FlowCondition] | None, Field("Conditions.", keys=("type",))] = None


class FlowSchema(Resource):
    """Requests that belong together."""

    spec: Annotated[FlowSchemaSpec | None, Field("Which requests, and where they go.")] = None
    status: Annotated[FlowStatus | None, Field("What was observed.")] = None


class Queuing(Object):
    """How requests wait."""

    queues: Annotated[int | None, Field("Number of queues.", bits=32, not_honoured=_QUEUES)] = None
    handSize: Annotated[int | None, Field("Queues that a flow may use: so many times queueLengthLimit may wait.", bits=32)] = None
    queueLengthLimit: Annotated[int | None, Field("How many requests of one flow wait; 50 when it is not said.", bits=32)] = None


class LimitResponse(Object):
    """What becomes of requests for which there is no room."""

    type: Annotated[str | None, Field("Queue or Reject.")] = None
    queuing: Annotated[Queuing | None, Field("How they wait.")] = None


class LimitedLevel(Object):
    """A level with limits."""

    nominalConcurrencyShares: Annotated[int | None, Field("Shares of the server's seats; 30 when it is not said.", bits=32)] = None
    limitResponse: Annotated[LimitResponse | None, Field("What becomes of requests for which there is no room.")] = None
    lendablePercent: Annotated[int | None, Field("How much of its seats others may use.", bits=32)] = None
    borrowingLimitPercent: Annotated[int | None, Field("How much it may take from others; none: all there is.", bits=32, nullable=True)] = (
        None
    )


class ExemptLevel(Object):
    """A level without limits."""

    nominalConcurrencyShares: Annotated[
        int | None, Field("Shares of the server's seats.", bits=32, not_honoured="requests of this level take no seats")
    ] = None
    lendablePercent: Annotated[int | None, Field("How much others may use.", bits=32, not_honoured="it has nothing to lend")] = None


class PriorityLevelSpec(Object):
    """How much of the server a level gets."""

    type: Annotated[str | None, Field("Exempt or Limited.")] = None
    limited: Annotated[LimitedLevel | None, Field("The limits.")] = None
    exempt: Annotated[ExemptLevel | None, Field("Of a level without limits.")] = None


class PriorityLevelConfiguration(Resource):
    """How much of the server some requests get."""

    spec: Annotated[PriorityLevelSpec | None, Field("How much.")] = None
    status: Annotated[FlowStatus | None, Field("What was observed.")] = None


class SchemaStrategy(Strategy):
    """FlowSchemas."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Defaults; the status is the server's."""
        new.pop("status", None)
        return _schema_defaults(new)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Defaults."""
        return _schema_defaults(new)

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
    """PriorityLevelConfigurations."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Defaults; the status is the server's."""
        new.pop("status", None)
        return _level_defaults(new)

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Defaults."""
        return _level_defaults(new)

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


def _schema_defaults(new: Data) -> Data:
    spec = new.setdefault("spec", {})
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000
    return new


def _level_defaults(new: Data) -> Data:
    spec = new.setdefault("spec", {})
    for part in ("exempt", "limited"):
        if isinstance(spec.get(part), dict):
            spec[part].setdefault("nominalConcurrencyShares", 30 if part == "limited" else 0)
            spec[part].setdefault("lendablePercent", 0)
    queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
    for key, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
        if isinstance(queuing, dict) and not queuing.get(key):
            queuing[key] = value
    return new


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


def _kind(cls: type[Resource], plural: str, *columns: Column) -> Kind:
    return Kind(
        group=GROUP,
        kind=cls.__name__,
        plural=plural,
        cls=cls,
        dialect="core",
        versions=(Version("v1"),),
        namespaced=False,
        columns=(*columns, AGE),
        builtin=True,
    )


KINDS = (
    _kind(FlowSchema, "flowschemas"),
    _kind(PriorityLevelConfiguration, "prioritylevelconfigurations"),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "FlowSchema"): SchemaStrategy(),
    (GROUP, "PriorityLevelConfiguration"): LevelStrategy(),
}
