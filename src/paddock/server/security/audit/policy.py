"""Audit policies (`audit.k8s.io/v1` Policy): the parts of each request to record, and the default policy."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from paddock.base.errors import Terminal
from paddock.server.context import User
from paddock.server.routing import RequestRoute

Level = Literal["None", "Metadata", "Request", "RequestResponse"]
Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
_READS = ("get", "list", "watch", "head", "options")


class UnusablePolicy(Terminal):
    """A policy file cannot be followed."""


class AuditDecision(msgspec.Struct, frozen=True):
    """The parts of one request to record."""

    level: Level
    omitted: frozenset[str] = frozenset()
    without_managed_fields: bool = False


class GroupResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: str = ""
    resources: tuple[str, ...] = ()
    resourceNames: tuple[str, ...] = ()

    def match(self, route: RequestRoute) -> bool:
        """Return whether a request is about one of the resources."""
        if self.group not in ("*", route.group):
            return False
        if not self.resources:
            return True
        if self.resourceNames and route.name not in self.resourceNames:
            return False
        sub = route.subresource.partition("/")[0]
        full = f"{route.plural}/{sub}" if sub else route.plural
        wanted = {"*", full, f"{route.plural}/*", f"*/{sub}" if sub else full}
        return not wanted.isdisjoint(self.resources)


class AuditRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule; what it does not say, it does not ask."""

    level: Level
    users: tuple[str, ...] = ()
    userGroups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    nonResourceURLs: tuple[str, ...] = ()
    omitStages: tuple[Stage, ...] = ()
    omitManagedFields: bool | None = None

    def match(self, user: User | None, route: RequestRoute) -> bool:
        """Return whether the rule covers a request."""
        if self.users and (user is None or user.name not in self.users):
            return False
        if self.userGroups and (user is None or set(self.userGroups).isdisjoint(user.groups)):
            return False
        if self.verbs and route.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return route.is_resource and self._match_resource(route)
        if self.nonResourceURLs:
            return not route.is_resource and any(_covers(each, route.path) for each in self.nonResourceURLs)
        return True

    def _match_resource(self, route: RequestRoute) -> bool:
        if self.namespaces and route.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.match(route) for each in self.resources)


def _covers(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


class AuditPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules, of which the first that matches decides; without one nothing is recorded."""

    apiVersion: Literal["audit.k8s.io/v1"]
    kind: Literal["Policy"]
    rules: tuple[AuditRule, ...]
    metadata: dict[str, Any] = {}
    omitStages: tuple[Stage, ...] = ()
    omitManagedFields: bool = False

    def of(self, user: User | None, route: RequestRoute, code: int) -> AuditDecision:
        """Return the parts of a request to record; `code` is 0 as long as there is no answer."""
        for rule in self.rules:
            if rule.match(user, route):
                managed = self.omitManagedFields if rule.omitManagedFields is None else rule.omitManagedFields
                return AuditDecision(rule.level, frozenset((*self.omitStages, *rule.omitStages)), managed)
        return AuditDecision("None")


class Plain:
    """Without a policy file: every request that would change something, and every one that is refused, when it is over."""

    _OMITTED = frozenset(("RequestReceived", "ResponseStarted"))

    def __init__(self, level: Level) -> None:
        self._recorded = AuditDecision(level, self._OMITTED)
        self._not = AuditDecision("None")

    def of(self, user: User | None, route: RequestRoute, code: int) -> AuditDecision:
        """Return the parts of a request to record; `code` is 0 as long as there is no answer."""
        return self._not if route.verb in _READS and code < 400 else self._recorded


def read(path: Path) -> AuditPolicy:
    """The policy of a file; raises `UnusablePolicy`."""
    import yaml  # noqa: PLC0415 - only where a policy is given

    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
        found = msgspec.convert(said, AuditPolicy, strict=True)
    except OSError as error:
        raise UnusablePolicy(f"cannot read the audit policy {path}", why=error.strerror or str(error)) from None
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UnusablePolicy(f"the audit policy {path} cannot be followed", why=" ".join(str(error).split()), fix="mend it") from None
    if not found.rules:
        raise UnusablePolicy(f"the audit policy {path} has no rules", why="nothing would be recorded", fix="give it a rule")
    for number, rule in enumerate(found.rules):
        wrong = _wrong(rule)
        if wrong:
            raise UnusablePolicy(f"rules[{number}] of the audit policy {path} cannot be followed", why=wrong, fix="mend it")
    return found


def _wrong(rule: AuditRule) -> str:
    if rule.nonResourceURLs and (rule.resources or rule.namespaces):
        return "rules cannot apply to both regular resources and non-resource URLs"
    for url in rule.nonResourceURLs:
        if url != "*" and not url.startswith("/"):
            return "non-resource URL rules must begin with a '/' character"
        if "*" in url[:-1]:
            return "non-resource URL wildcards '*' must be the final character of the rule"
    if any(each.resourceNames and not each.resources for each in rule.resources):
        return "using resourceNames requires at least one resource"
    return ""
