"""The gate: who is it, whom do they act for, and may they."""

from urllib.parse import unquote

from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.matching import BadSelector, parse_fields
from paddock.server.context import User
from paddock.server.edge.http import HttpRequest
from paddock.server.resources import kubevirtsubresources
from paddock.server.routing import RequestRoute
from paddock.server.security.attributes import Attributes
from paddock.server.security.identity import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Identities
from paddock.server.security.rbac import Rbac

_PREFIX, _EXTRA = "impersonate-", "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"


class Guard:
    """Authenticates, lets people act for others where they may, authorizes."""

    def __init__(self, identities: Identities, rbac: Rbac) -> None:
        self._identities = identities
        self._rbac = rbac

    def identify(self, request: HttpRequest) -> User:
        """The user a request is done as; raises a `Failure` of 401, or of 403 when they may not act for that user."""
        return self._impersonated(request, self._identities.user(request))

    def check(self, request: HttpRequest, route: RequestRoute, user: User) -> None:
        """Raises a `Failure` of 403 when the user may not do it."""
        asked = attributes(request, route, user)
        if not self._rbac.allows(asked):
            raise refusal(asked)

    def _impersonated(self, request: HttpRequest, user: User) -> User:
        headers = request.headers
        acting = [key for key in headers if key.startswith(_PREFIX)]
        if not acting:
            return user
        name = headers.get("impersonate-user", "")
        if not name:
            raise failure.bad_request("requested impersonation without impersonating a user")
        groups = tuple(group for group in request.values("impersonate-group") if group)
        # Names of extra fields may hold what a header name cannot: they come percent-encoded.
        extra = {unquote(key[len(_EXTRA) :]): tuple(request.values(key)) for key in acting if key.startswith(_EXTRA)}
        found = User(name, groups, headers.get("impersonate-uid", ""), extra)
        self._check_impersonation(user, found)
        found.groups = _completed(name, groups)
        found.by = user
        return found

    def _check_impersonation(self, user: User, impersonated: User) -> None:
        """Each part of somebody needs a right of its own."""
        parts = [("", "users", "", "", impersonated.name)]
        if impersonated.name.startswith(_ACCOUNT) and impersonated.name.count(":") == 3:
            _, _, namespace, account = impersonated.name.split(":")
            parts = [("", "serviceaccounts", "", namespace, account)]
        parts.extend(("", "groups", "", "", group) for group in impersonated.groups)
        parts.extend((_AUTHENTICATION, "userextras", key, "", value) for key, values in impersonated.extra.items() for value in values)
        if impersonated.uid:
            parts.append((_AUTHENTICATION, "uids", "", "", impersonated.uid))
        for group, resource, sub, namespace, subject in parts:
            asked = Attributes(user.name, user.groups, "impersonate", group, resource, sub, namespace, subject)
            if not self._rbac.allows(asked):
                raise refusal(asked)


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """The groups of somebody who is acted for, with those that everybody of their kind has."""
    if name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if name.startswith(_ACCOUNT) and not groups:
        namespace = name.removeprefix(_ACCOUNT).partition(":")[0]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return groups if AUTHENTICATED in groups or UNAUTHENTICATED in groups else (*groups, AUTHENTICATED)


def attributes(request: HttpRequest, route: RequestRoute, user: User) -> Attributes:
    """Return the attributes to authorize for a request."""
    if not route.is_resource:
        return Attributes(user.name, user.groups, "get" if route.verb == "head" else route.verb, path=route.path)
    name = route.name or _selected_name(request, route)
    is_machine = route.group == kubevirtsubresources.GROUP
    sub = kubevirtsubresources.right_to(route.subresource) if is_machine else route.subresource.partition("/")[0]
    namespace = "" if route.plural == "namespaces" and not route.group else route.namespace
    if route.plural == "namespaces" and not route.group:
        namespace = route.name
    return Attributes(user.name, user.groups, route.verb, route.group, route.plural, sub, namespace, name)


def _selected_name(request: HttpRequest, route: RequestRoute) -> str:
    """A list or watch of one name is a request for that name."""
    if route.verb not in ("list", "watch", "deletecollection"):
        return ""
    try:
        return parse_fields(request.parameter("fieldSelector")).exact("metadata.name") or ""
    except BadSelector:
        return ""


def refusal(asked: Attributes) -> failure.Failure:
    """403, in Kubernetes' words."""
    if not asked.is_resource:
        return failure.Failure(403, "Forbidden", f"forbidden: {asked.denied()}", about=failure.FailureTarget())
    about = failure.FailureTarget(name=asked.name, group=asked.group, kind=asked.resource)
    return failure.forbidden(about, asked.denied())
