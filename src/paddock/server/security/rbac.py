"""Role-based access control (docs/spec/kube-api.md section 8): purely additive rules, collected from bindings.

The rules of a user, and what they have allowed, are kept until a role or a binding changes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from paddock.server.admission.world import AccessQuestion
from paddock.server.objects.encoding import decode
from paddock.server.security.attributes import Attributes, attributes_of
from paddock.server.store.contract import CommittedWrite, Store, StoreKey

_GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{_GROUP}", f"clusterroles.{_GROUP}"
BINDINGS, CLUSTER_BINDINGS = f"rolebindings.{_GROUP}", f"clusterrolebindings.{_GROUP}"
_COLLECTIONS = frozenset((ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS))
# Members of this group may do everything, always: the way in when all roles are lost.
MASTERS = "system:masters"
_MOST_KEPT = 4096
_MOST_KNOWN = 64
# Characters of a namespace, and of a user with all groups. Reviews come with texts as long as a body, and what is kept stays until a role
# changes. No namespace is longer; directories give some people hundreds of groups.
_LONGEST_NAMESPACE = 63
_LONGEST_IDENTITY = 16384
# The same for a request: an API group has at most 253 and a resource 63.
_LONGEST_KNOWN = 512


class RbacRule(msgspec.Struct, frozen=True):
    """One policy rule of a role."""

    verbs: tuple[str, ...] = ()
    apiGroups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resourceNames: tuple[str, ...] = ()
    nonResourceURLs: tuple[str, ...] = ()

    def allows(self, asked: Attributes) -> bool:
        """Return whether the rule covers a request."""
        if asked.verb not in self.verbs and "*" not in self.verbs:
            return False
        if not asked.is_resource:
            return any(_covers_path(pattern, asked.path) for pattern in self.nonResourceURLs)
        if asked.group not in self.apiGroups and "*" not in self.apiGroups:
            return False
        if not any(_covers_resource(pattern, asked) for pattern in self.resources):
            return False
        return not self.resourceNames or asked.name in self.resourceNames


def _covers_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def _covers_resource(pattern: str, asked: Attributes) -> bool:
    if pattern in ("*", asked.full_resource):
        return True
    return bool(asked.subresource) and pattern == f"*/{asked.subresource}"


def rules_of(role: dict[str, Any] | None) -> tuple[RbacRule, ...]:
    """The rules of a role object. A list that nobody has given may be null."""
    given = ({name: value for name, value in rule.items() if value is not None} for rule in (role or {}).get("rules") or ())
    return tuple(msgspec.convert(rule, RbacRule) for rule in given)


class UserRights:
    """The rules of a user in one namespace, and the requests that they are known to allow for objects of any name."""

    __slots__ = ("_known", "rules")

    def __init__(self, rules: tuple[RbacRule, ...]) -> None:
        self.rules = rules
        self._known: set[tuple[str, ...]] = set()

    def allow(self, asked: Attributes) -> bool:
        """Return whether a rule allows a request of this user in this namespace."""
        what = (asked.verb, asked.group, asked.resource, asked.subresource, asked.path)
        if what in self._known:
            return True
        found = next((rule for rule in self.rules if rule.allows(asked)), None)
        if found is not None and not found.resourceNames and len(self._known) < _MOST_KNOWN and sum(map(len, what)) <= _LONGEST_KNOWN:
            self._known.add(what)
        return found is not None


class Rbac:
    """Answers from the roles and bindings in the store."""

    def __init__(self, store: Store, *, open_to_all: bool = False) -> None:
        self._store = store
        self._open = open_to_all
        self._kept: dict[tuple[str, tuple[str, ...], str], UserRights] = {}
        store.follow(self._changed)

    def allows(self, asked: Attributes) -> bool:
        """Return whether anything allows a request."""
        if self._open or MASTERS in asked.groups:
            return True
        return self._rights(asked.user, asked.groups, asked.namespace).allow(asked)

    def answers(self, question: AccessQuestion) -> bool:
        """The answer to a question of an expression."""
        return self.allows(attributes_of(question))

    def rules(self, user: str, groups: tuple[str, ...], namespace: str) -> tuple[RbacRule, ...]:
        """Every rule that a user has: those of the cluster, and with a namespace those of it."""
        return self._rights(user, groups, namespace).rules

    def _rights(self, user: str, groups: tuple[str, ...], namespace: str) -> UserRights:
        place = (user, groups, namespace)
        found = self._kept.get(place)
        if found is None:
            found = UserRights(tuple(self._collect(user, groups, namespace)))
            if len(namespace) <= _LONGEST_NAMESPACE and len(user) + sum(map(len, groups)) <= _LONGEST_IDENTITY:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[place] = found
        return found

    def role(self, kind: str, namespace: str, name: str) -> tuple[RbacRule, ...] | None:
        """The rules of a role that a binding refers to; None when it does not exist."""
        key = StoreKey(CLUSTER_ROLES, "", name) if kind == "ClusterRole" else StoreKey(ROLES, namespace, name)
        record = self._store.get(key)
        return None if record is None else rules_of(decode(record.value))

    def _collect(self, user: str, groups: tuple[str, ...], namespace: str) -> Iterator[RbacRule]:
        if namespace:
            # The same objects in each namespace, also in those that exist only in a question.
            yield from self._rights(user, groups, "").rules
        for binding in self._bindings(BINDINGS if namespace else CLUSTER_BINDINGS, namespace):
            if _binds(binding, user, groups, namespace):
                yield from self._bound(binding, namespace)

    def _bindings(self, collection: str, namespace: str) -> Iterator[dict[str, Any]]:
        for record in self._store.scan(collection):
            if record.key.namespace == namespace:
                yield decode(record.value)

    def _bound(self, binding: dict[str, Any], namespace: str) -> tuple[RbacRule, ...]:
        reference = binding.get("roleRef") or {}
        # A role that does not exist gives nothing; it may come later.
        return self.role(reference.get("kind", ""), namespace, reference.get("name", "")) or ()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection in _COLLECTIONS for change in changes):
            self._kept.clear()


def _binds(binding: dict[str, Any], user: str, groups: Iterable[str], namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name")
        if kind == "User" and name == user:
            return True
        if kind == "Group" and name in groups:
            return True
        if kind == "ServiceAccount" and user == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}":
            return True
    return False
