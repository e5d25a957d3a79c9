"""The rules that match a write to webhooks and policies. Pure, but for the labels of the namespace, which are looked up."""

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.meta.wire import from_data
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.requests import Attempt
from paddock.server.resources.resource import ServedResource


class AdmissionAttributes(msgspec.Struct, frozen=True):
    """The part of a write that rules look at."""

    resource: ServedResource
    operation: str
    subresource: str


class MatchRule(msgspec.Struct, frozen=True):
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str
    names: frozenset[str] = frozenset()

    def covers(self, asked: AdmissionAttributes, resource: ServedResource) -> bool:
        """Return whether the rule covers a request in this version of the resource. `names_it` checks the name."""
        if self.scope not in ("*", "Namespaced" if resource.namespaced else "Cluster"):
            return False
        if not {"*", asked.operation} & self.operations or not {"*", resource.group} & self.groups:
            return False
        if not {"*", resource.version} & self.versions:
            return False
        return any(plural in ("*", resource.plural) and sub in ("*", asked.subresource) for plural, sub in self.resources)

    def names_it(self, name: str) -> bool:
        """Return whether the rule covers an object of this name."""
        return not self.names or name in self.names


def read_rule(data: Data) -> MatchRule:
    resources = tuple((plural, sub) for plural, _, sub in (each.partition("/") for each in data.get("resources") or ()))
    operations, groups, versions = (frozenset(data.get(member) or ()) for member in ("operations", "apiGroups", "apiVersions"))
    return MatchRule(operations, groups, versions, resources, data.get("scope") or "*", frozenset(data.get("resourceNames") or ()))


class Matcher(msgspec.Struct, frozen=True):
    """Rules, exceptions from them, and selectors."""

    rules: tuple[MatchRule, ...]
    excluded: tuple[MatchRule, ...] = ()
    exact: bool = False
    namespaces: LabelSelector = LabelSelector()
    objects: LabelSelector = LabelSelector()

    def candidates(self, asked: AdmissionAttributes, admission: AdmissionContext) -> tuple[tuple[MatchRule, ServedResource], ...]:
        """The rules that cover a request, each with the version it names; the version of the request comes first."""
        mine = [(rule, asked.resource) for rule in self.rules if rule.covers(asked, asked.resource)]
        if self.exact:
            return tuple(mine)
        others = [each for each in admission.registry.of_collection(asked.resource.collection) if each != asked.resource]
        equal = [(rule, other) for rule in self.rules for other in others if rule.covers(asked, other)]
        return (*mine, *equal)

    def selects(self, attempt: Attempt, admission: AdmissionContext) -> bool:
        """Return whether the labels of the namespace and of the object match."""
        return self._selects_namespace(attempt, admission) and self._selects_object(attempt)

    def leaves_out(self, attempt: Attempt, admission: AdmissionContext) -> bool:
        """Return whether an exception covers a write."""
        if not self.excluded:
            return False
        asked = AdmissionAttributes(attempt.resource, attempt.operation, attempt.options.subresource)
        found = Matcher(self.excluded, exact=self.exact).candidates(asked, admission)
        return any(rule.names_it(attempt.name) for rule, _ in found)

    def _selects_namespace(self, attempt: Attempt, admission: AdmissionContext) -> bool:
        if selectors.is_empty(self.namespaces):
            return True
        if is_namespace(attempt.resource):
            return selectors.matches(self.namespaces, _labels(attempt.new or attempt.old))
        if not attempt.resource.namespaced:
            return True
        return selectors.matches(self.namespaces, _labels(admission.view.get("namespaces", "", attempt.namespace)))

    def _selects_object(self, attempt: Attempt) -> bool:
        if selectors.is_empty(self.objects):
            return True
        return any(selectors.matches(self.objects, _labels(each)) for each in (attempt.new, attempt.old) if each is not None)


def read_matcher(data: Data, rules: str) -> Matcher:
    """A webhook, or the resources of a policy; `rules` is the member with the rules."""
    return Matcher(
        tuple(read_rule(each) for each in data.get(rules) or ()),
        tuple(read_rule(each) for each in data.get("excludeResourceRules") or ()),
        data.get("matchPolicy") == "Exact",
        selector_of(data.get("namespaceSelector")),
        selector_of(data.get("objectSelector")),
    )


def selector_of(data: Data | None) -> LabelSelector:
    """A stored selector; none selects everything."""
    return from_data(data, LabelSelector) if data else LabelSelector()


def is_namespace(resource: ServedResource) -> bool:
    """Return whether a resource is the kind Namespace."""
    return resource.plural == "namespaces" and not resource.group


def _labels(data: Data | None) -> dict[str, str]:
    return ((data or {}).get("metadata") or {}).get("labels") or {}
