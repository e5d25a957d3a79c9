"""Behaviour of roles and bindings besides their schema: free names, an immutable roleRef, and no escalation of privileges."""

from collections.abc import Iterator

from paddock.base import names
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext
from paddock.server.security.attributes import Attributes
from paddock.server.security.covering import HeldRights
from paddock.server.security.rbac import MASTERS, Rbac, RbacRule, rules_of

GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = ("Role", "ClusterRole"), ("RoleBinding", "ClusterRoleBinding")
PLACES = tuple((GROUP, kind) for kind in (*ROLES, *BINDINGS))
_SERVER = "system:apiserver"
_EVERYTHING = (RbacRule(("*",), ("*",), ("*",)), RbacRule(verbs=("*",), nonResourceURLs=("*",)))


class RbacStrategy(Strategy):
    """Common to roles and bindings."""

    def __init__(self, rbac: Rbac, plural: str) -> None:
        self._rbac = rbac
        self._plural = plural

    def wrong_name(self, name: str) -> str:
        """Names are path segments: they may hold colons."""
        if name in (".", ".."):
            return f"may not be '{name}'"
        return next((f"may not contain '{mark}'" for mark in "/%" if mark in name), "")

    def _check_rights(self, rbac_rules: tuple[RbacRule, ...], new: Data, context: WriteContext, verb: str) -> None:
        """Refuse to give away what the giver does not have, unless they hold the verb for it."""
        if MASTERS in context.groups or context.user == _SERVER:
            return
        meta = new["metadata"]
        namespace = meta.get("namespace", "")
        asked = Attributes(context.user, context.groups, verb, GROUP, self._plural, "", namespace, meta.get("name", ""))
        if verb == "bind":
            role = new.get("roleRef") or {}
            resource = "clusterroles" if role.get("kind") == "ClusterRole" else "roles"
            asked = Attributes(context.user, context.groups, verb, GROUP, resource, "", namespace, role.get("name", ""))
        if self._rbac.allows(asked):
            return
        held = HeldRights(self._rbac.rules(context.user, context.groups, namespace))
        lacking = {rule for rule in dict.fromkeys(rbac_rules) if not held.cover(rule)}
        missing = [rule for rule in rbac_rules if rule in lacking]
        if missing:
            about = failure.FailureTarget(name=meta.get("name", ""), group=GROUP, kind=self._plural)
            lacks = "; ".join(_shown(rule) for rule in missing)
            raise failure.forbidden(about, f'user "{context.user}" is attempting to grant RBAC permissions not currently held: {lacks}')


def _shown(rule: RbacRule) -> str:
    parts = (("APIGroups", rule.apiGroups), ("Resources", rule.resources), ("NonResourceURLs", rule.nonResourceURLs), ("Verbs", rule.verbs))
    return "{" + ", ".join(f"{name}:{list(values)}" for name, values in parts if values) + "}"


class RoleStrategy(RbacStrategy):
    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A rule says either resources or paths, and verbs."""
        for index, rule in enumerate(new.get("rules") or ()):
            path = ("rules", index)
            if not rule.get("verbs"):
                yield finding.required((*path, "verbs"), "rbac/rule", "verbs must contain at least one value")
            if rule.get("nonResourceURLs") and (rule.get("resources") or rule.get("apiGroups")):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                yield finding.invalid((*path, "nonResourceURLs"), rule["nonResourceURLs"], why, "rbac/rule")
            elif not rule.get("nonResourceURLs"):
                for key in ("apiGroups", "resources"):
                    if not rule.get(key):
                        yield finding.required((*path, key), "rbac/rule", f"resource rules must supply at least one {key}")
        if old is None or new.get("rules") != old.get("rules") or new.get("aggregationRule") != old.get("aggregationRule"):
            self._check_rights(rules_of(new), new, context, "escalate")
            if any((each or {}).get("aggregationRule") for each in (new, old)):
                # What it will collect nobody knows yet.
                self._check_rights(_EVERYTHING, new, context, "escalate")


class RoleBindingStrategy(RbacStrategy):
    """Role bindings and cluster role bindings."""

    def complete(self, new: Data) -> None:
        """Subjects get the group of their kind."""
        for subject in new.get("subjects") or ():
            subject.setdefault("apiGroup", "" if subject.get("kind") == "ServiceAccount" else GROUP)
            if subject["apiGroup"] == "":
                del subject["apiGroup"]

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The role cannot be changed, and subjects are complete."""
        role = new.get("roleRef") or {}
        if old is not None and role != old.get("roleRef"):
            yield finding.invalid(("roleRef",), role, "cannot change roleRef", "rbac/binding")
        known = ("ClusterRole",) if self._plural == "clusterrolebindings" else ("Role", "ClusterRole")
        if role.get("kind") not in known:
            yield finding.unsupported(("roleRef", "kind"), role.get("kind", ""), known, "rbac/binding")
        for index, subject in enumerate(new.get("subjects") or ()):
            kinds = ("ServiceAccount", "User", "Group")
            if subject.get("kind") not in kinds:
                yield finding.unsupported(("subjects", index, "kind"), subject.get("kind", ""), kinds, "rbac/binding")
            elif not subject.get("name"):
                yield finding.required(("subjects", index, "name"), "rbac/binding")
            elif subject["kind"] == "ServiceAccount" and not names.is_subdomain(subject["name"]):
                why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
                yield finding.invalid(("subjects", index, "name"), subject["name"], why, "rbac/binding")
            elif subject["kind"] == "ServiceAccount" and not subject.get("namespace") and not new["metadata"].get("namespace"):
                yield finding.required(("subjects", index, "namespace"), "rbac/binding")
        changed = old is None or (new.get("subjects") != old.get("subjects"))
        found = self._rbac.role(role.get("kind", ""), new["metadata"].get("namespace", ""), role.get("name", ""))
        if changed:
            # Who binds a role that does not exist gives away whatever it may hold later.
            self._check_rights(found if found is not None else (RbacRule(("*",), ("*",), ("*",)),), new, context, "bind")


def strategies(rbac: Rbac) -> dict[tuple[str, str], Strategy]:
    """Return the strategies of the four kinds."""
    made: dict[tuple[str, str], Strategy] = {(GROUP, kind): RoleStrategy(rbac, f"{kind.lower()}s") for kind in ROLES}
    return made | {(GROUP, kind): RoleBindingStrategy(rbac, f"{kind.lower()}s") for kind in BINDINGS}
