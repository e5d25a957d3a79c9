"""The gate: who is it, whom do they act for, and may they."""

from paddock.apiserver.edge.http import Request
from paddock.apiserver.parts import User
from paddock.apiserver.routing import Route
from paddock.apiserver.security.attributes import Attributes
from paddock.apiserver.security.identity import ANONYMOUS, AUTHENTICATED, Identities
from paddock.apiserver.security.rbac import Rbac
from paddock.meta import failure
from paddock.meta.matching import BadSelector, parse_fields

_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"


class Guard:
    """Authenticates, lets people act for others where they may, authorizes."""

    def __init__(self, identities: Identities, rbac: Rbac) -> None:
        self._identities = identities
        self._rbac = rbac

    def identify(self, request: Request) -> User:
        """The user a request is done as; raises a `Failure` of 401, or of 403 when they may not act for that user."""
        return self._impersonated(request, self._identities.user(request))

    def check(self, request: Request, place: Route, user: User) -> None:
        """Raises a `Failure` of 403 when the user may not do it."""
        asked = attributes(request, place, user)
        if not self._rbac.allows(asked):
            raise refusal(asked)

    def _impersonated(self, request: Request, user: User) -> User:
        headers = request.headers
        name = headers.get("impersonate-user", "")
        acting = [key for key in headers if key.startswith("impersonate-")]
        if not acting:
            return user
        if not name:
            raise failure.bad_request("requested impersonation without impersonating a user")
        groups = tuple(group.strip() for group in headers.get("impersonate-group", "").split(",") if group.strip())
        extra: dict[str, tuple[str, ...]] = {key[len(_EXTRA) :]: (headers[key],) for key in acting if key.startswith(_EXTRA)}
        self._check_impersonation(user, name, groups, extra)
        if name.startswith(_ACCOUNT):
            namespace = name.removeprefix(_ACCOUNT).partition(":")[0]
            groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        if name != ANONYMOUS.name and AUTHENTICATED not in groups:
            groups = (*groups, AUTHENTICATED)
        found = User(name, groups, headers.get("impersonate-uid", ""), extra)
        found.by = user
        return found

    def _check_impersonation(self, user: User, name: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> None:
        wanted = []
        if name.startswith(_ACCOUNT) and name.count(":") == 3:
            _, _, namespace, account = name.split(":")
            wanted.append(("", "serviceaccounts", "", namespace, account))
        else:
            wanted.append(("", "users", "", "", name))
        wanted.extend(("", "groups", "", "", group) for group in groups)
        wanted.extend(("authentication.k8s.io", "userextras", key, "", value) for key, values in extra.items() for value in values)
        for group, resource, sub, namespace, subject in wanted:
            asked = Attributes(user.name, user.groups, "impersonate", group, resource, sub, namespace, subject)
            if not self._rbac.allows(asked):
                raise refusal(asked)


def attributes(request: Request, place: Route, user: User) -> Attributes:
    """What authorization is asked about a request."""
    if not place.is_resource:
        return Attributes(user.name, user.groups, "get" if place.verb == "head" else place.verb, path=place.path)
    name = place.name or _selected_name(request, place)
    sub = place.subresource.partition("/")[0]
    namespace = "" if place.plural == "namespaces" and not place.group else place.namespace
    if place.plural == "namespaces" and not place.group:
        namespace = place.name
    return Attributes(user.name, user.groups, place.verb, place.group, place.plural, sub, namespace, name)


def _selected_name(request: Request, place: Route) -> str:
    """A list or watch of one name is a request for that name."""
    if place.verb not in ("list", "watch", "deletecollection"):
        return ""
    try:
        return parse_fields(request.parameter("fieldSelector")).exact("metadata.name") or ""
    except BadSelector:
        return ""


def refusal(asked: Attributes) -> failure.Failure:
    """403, in Kubernetes' words."""
    if not asked.is_resource:
        return failure.Failure(403, "Forbidden", f"forbidden: {asked.denied()}", about=failure.About())
    about = failure.About(name=asked.name, group=asked.group, kind=asked.resource)
    return failure.forbidden(about, asked.denied())
