"""The grouping of requests: FlowSchemas, compiled, and how they match a request (`flowcontrol.apiserver.k8s.io/v1`)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from paddock.server.context import User
from paddock.server.routing import RequestRoute

_ACCOUNT = "system:serviceaccount:"


class Subjects(msgspec.Struct, frozen=True):
    """The subjects of a rule."""

    users: frozenset[str]
    groups: frozenset[str]
    # "namespace:name", or "namespace:*"
    accounts: frozenset[str]

    def match(self, user: User) -> bool:
        """Return whether the user is one of the subjects."""
        if user.name in self.users or "*" in self.users or "*" in self.groups or not self.groups.isdisjoint(user.groups):
            return True
        if not self.accounts or not user.name.startswith(_ACCOUNT):
            return False
        name = user.name[len(_ACCOUNT) :]
        return name in self.accounts or f"{name.partition(':')[0]}:*" in self.accounts


class ResourceRule(msgspec.Struct, frozen=True):
    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    namespaces: frozenset[str]
    cluster: bool

    def match(self, route: RequestRoute) -> bool:
        """Return whether the rule covers a request."""
        if not _in(route.verb, self.verbs) or not _in(route.group, self.groups):
            return False
        plural = f"{route.plural}/{route.subresource}" if route.subresource else route.plural
        if not _in(plural, self.resources):
            return False
        return _in(route.namespace, self.namespaces) if route.namespace else self.cluster


class PathRule(msgspec.Struct, frozen=True):
    verbs: frozenset[str]
    paths: tuple[str, ...]

    def match(self, route: RequestRoute) -> bool:
        """Return whether the rule covers a request."""
        if not _in(route.verb, self.verbs):
            return False
        return any(each in ("*", route.path) or (each.endswith("*") and route.path.startswith(each[:-1])) for each in self.paths)


class FlowRule(msgspec.Struct, frozen=True):
    subjects: Subjects
    resources: tuple[ResourceRule, ...]
    paths: tuple[PathRule, ...]

    def match(self, user: User, route: RequestRoute) -> bool:
        """Return whether the rule covers a request."""
        if not self.subjects.match(user):
            return False
        rules: Iterable[ResourceRule | PathRule] = self.resources if route.is_resource else self.paths
        return any(rule.match(route) for rule in rules)


class FlowMatcher(msgspec.Struct, frozen=True):
    name: str
    uid: str
    level: str
    precedence: int
    # ByUser, ByNamespace or nothing
    distinguished: str
    rules: tuple[FlowRule, ...]

    def match(self, user: User, route: RequestRoute) -> bool:
        """Return whether the schema covers a request."""
        return any(rule.match(user, route) for rule in self.rules)

    def distinguisher(self, user: User, route: RequestRoute) -> str:
        """Return the text that separates the flows of the schema."""
        if self.distinguished == "ByUser":
            return user.name
        return route.namespace if self.distinguished == "ByNamespace" else ""


def schema_of(data: dict[str, Any]) -> FlowMatcher:
    """The schema of a stored object, which has been validated."""
    meta, spec = data["metadata"], data["spec"]
    method = (spec.get("distinguisherMethod") or {}).get("type", "")
    rules = tuple(_rule(each) for each in spec.get("rules") or ())
    level = spec["priorityLevelConfiguration"]["name"]
    return FlowMatcher(meta["name"], meta["uid"], level, spec.get("matchingPrecedence", 1000), method, rules)


def ordered(schemas: Iterable[FlowMatcher]) -> list[FlowMatcher]:
    """In the order in which they are tried."""
    return sorted(schemas, key=lambda each: (each.precedence, each.name))


def _rule(said: dict[str, Any]) -> FlowRule:
    names: dict[str, set[str]] = {"User": set(), "Group": set(), "ServiceAccount": set()}
    for subject in said.get("subjects") or ():
        kind = subject.get("kind", "")
        found = subject.get(kind[:1].lower() + kind[1:]) or {}
        name = found.get("name", "")
        names.get(kind, set()).add(f"{found.get('namespace', '')}:{name}" if kind == "ServiceAccount" else name)
    subjects = Subjects(frozenset(names["User"]), frozenset(names["Group"]), frozenset(names["ServiceAccount"]))
    return FlowRule(
        subjects,
        tuple(_resource_rule(each) for each in said.get("resourceRules") or ()),
        tuple(PathRule(_set(each, "verbs"), tuple(each.get("nonResourceURLs") or ())) for each in said.get("nonResourceRules") or ()),
    )


def _resource_rule(said: dict[str, Any]) -> ResourceRule:
    return ResourceRule(
        _set(said, "verbs"), _set(said, "apiGroups"), _set(said, "resources"), _set(said, "namespaces"), bool(said.get("clusterScope"))
    )


def _set(said: dict[str, Any], key: str) -> frozenset[str]:
    return frozenset(said.get(key) or ())


def _in(value: str, known: frozenset[str]) -> bool:
    return value in known or "*" in known
