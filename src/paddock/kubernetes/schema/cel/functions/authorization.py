"""Questions about rights: `authorizer.group("apps").resource("deployments").namespace("x").check("create").allowed()`.

Whoever runs an expression gives it an `Authorizer`; how the question is answered is their matter.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from paddock.base import names
from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions.function import Function, pure

# A check is expensive compared with everything else.
CHECK_COST = 350_000


class AuthorizationQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """May this user do that? A path, or a resource."""

    user: str
    groups: tuple[str, ...]
    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Authorizer(msgspec.Struct, frozen=True):
    """Answers questions for one user."""

    user: str
    groups: tuple[str, ...]
    decide: Callable[[AuthorizationQuestion], bool]


class PathCheck(msgspec.Struct, frozen=True):
    """A question about a path, without its verb."""

    authorizer: Authorizer
    path: str


class GroupCheck(msgspec.Struct, frozen=True):
    """A question about a group, without its resource."""

    authorizer: Authorizer
    group: str


class ResourceCheck(msgspec.Struct, frozen=True):
    """A question about a resource, without its verb."""

    authorizer: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class AuthorizationDecision(msgspec.Struct, frozen=True):
    allowed: bool


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return PathCheck(authorizer, path)


def _account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if not names.is_subdomain(name):
        raise EvaluationError("Invalid service account name")
    if not names.is_label(namespace):
        raise EvaluationError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return Authorizer(f"system:serviceaccount:{namespace}:{name}", groups, authorizer.decide)


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise EvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, check.group, resource)


def _narrowed(member: str) -> Function:
    return pure(member, (ResourceCheck, str), lambda check, value: msgspec.structs.replace(check, **{member: value}), "resource_check")


def _check(check: Any, verb: str) -> AuthorizationDecision:
    authorizer = check.authorizer
    if isinstance(check, PathCheck):
        return AuthorizationDecision(
            authorizer.decide(AuthorizationQuestion(user=authorizer.user, groups=authorizer.groups, verb=verb, path=check.path))
        )
    asked = AuthorizationQuestion(
        user=authorizer.user,
        groups=authorizer.groups,
        verb=verb,
        group=check.group,
        resource=check.resource,
        subresource=check.subresource,
        namespace=check.namespace,
        name=check.name,
    )
    return AuthorizationDecision(authorizer.decide(asked))


def _costly(function: Function) -> Function:
    def run(budget: Any, *args: Any) -> Any:
        budget.spend(CHECK_COST)
        return function.run(budget, *args)

    return msgspec.structs.replace(function, run=run)


GLOBAL: dict[str, Function] = {}
METHODS: dict[str, Function] = {
    "path": pure("path", (Authorizer, str), _path, "path_check"),
    "group": pure("group", (Authorizer, str), GroupCheck, "group_check"),
    "serviceAccount": pure("serviceAccount", (Authorizer, str, str), _account, "authorizer"),
    "resource": pure("resource", (GroupCheck, str), _resource, "resource_check"),
    **{member: _narrowed(member) for member in ("subresource", "namespace", "name")},
    # Rights here do not look at selectors: a question with one is the question without it.
    **{
        member: pure(member, (ResourceCheck, str), lambda check, text: check, "resource_check")
        for member in ("fieldSelector", "labelSelector")
    },
    "check": _costly(pure("check", (PathCheck | ResourceCheck, str), _check, "decision")),
    "allowed": pure("allowed", (AuthorizationDecision,), lambda decision: decision.allowed, "bool"),
    "reason": pure("reason", (AuthorizationDecision,), lambda decision: "", "string"),
    "errored": pure("errored", (AuthorizationDecision,), lambda decision: False, "bool"),
    "error": pure("error", (AuthorizationDecision,), lambda decision: "", "string"),
}
