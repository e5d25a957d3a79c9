"""The answers to reviews, and tokens on request."""

from collections.abc import Awaitable, Callable

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages, failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server import bodies
from paddock.server.context import RequestContext, ServerParts, User
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import decode
from paddock.server.representation import answer, form_of
from paddock.server.security.attributes import Attributes
from paddock.server.security.identity import Identities
from paddock.server.security.rbac import MASTERS, Rbac, RbacRule
from paddock.server.security.tokens import AccountTokens
from paddock.server.verbs.options import write_options

Handler = Callable[[RequestContext], Awaitable[HttpResponse]]
AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_HOUR, _LEAST_SECONDS = 3600, 600


class Reviews:
    """Answers questions about users and rights."""

    def __init__(self, parts: ServerParts, identities: Identities, rbac: Rbac, tokens: AccountTokens) -> None:
        self._parts = parts
        self._identities = identities
        self._rbac = rbac
        self._tokens = tokens

    def handlers(self) -> dict[tuple[str, str, str, str], Handler]:
        """Return the handlers by group, plural, subresource and verb."""
        return {
            (AUTHENTICATION, "tokenreviews", "", "create"): self.token,
            (AUTHENTICATION, "selfsubjectreviews", "", "create"): self.myself,
            (AUTHORIZATION, "subjectaccessreviews", "", "create"): self.access,
            (AUTHORIZATION, "localsubjectaccessreviews", "", "create"): self.access,
            (AUTHORIZATION, "selfsubjectaccessreviews", "", "create"): self.access,
            (AUTHORIZATION, "selfsubjectrulesreviews", "", "create"): self.rules,
            ("", "serviceaccounts", "token", "create"): self.issue,
        }

    # --- who --------------------------------------------------------------------------------------------------------------

    async def token(self, call: RequestContext) -> HttpResponse:
        """Answer with the user behind a token."""
        said = self._read(call)
        spec = said.get("spec") or {}
        own = self._tokens.terms.own_audiences
        token, audiences = spec.get("token", ""), tuple(spec.get("audiences") or own)
        if not token:
            raise failure.bad_request("token is required for TokenReview in authentication")
        found, meant = self._tokens.user_for(token, audiences)
        if found is None and set(own) & set(audiences):
            try:
                found, meant = self._identities.by_token(token), tuple(each for each in audiences if each in own)
            except failure.Failure:
                found = None
        if found is None:
            status: Data = {"authenticated": False, "user": {}, "error": "the token is not known, not valid any more, or for somebody else"}
        else:
            status = {"authenticated": True, "user": _user(found), "audiences": list(meant)}
        return self._answer(call, {**said, "spec": {**spec}, "status": status})

    async def myself(self, call: RequestContext) -> HttpResponse:
        """Answer with the client's own user."""
        return self._answer(call, {**self._read(call), "status": {"userInfo": _user(call.user)}})

    # --- may they ---------------------------------------------------------------------------------------------------------

    async def access(self, call: RequestContext) -> HttpResponse:
        """Answer whether a request is allowed."""
        said = self._read(call)
        spec = said.get("spec") or {}
        self._check(call, spec)
        mine = call.route.plural == "selfsubjectaccessreviews"
        user, groups = (call.user.name, call.user.groups) if mine else (spec.get("user", ""), tuple(spec.get("groups") or ()))
        if not mine and not user and not groups:
            wrong = finding.invalid(("spec", "user"), "", "at least one of user or group must be specified", "review")
            raise failure.invalid(call.resource.about_kind(""), [wrong])
        allowed = self._rbac.allows(_asked(spec, user, groups))
        status: Data = {"allowed": allowed}
        if not allowed:
            status["reason"] = ""
        return self._answer(call, {**said, "status": {key: value for key, value in status.items() if value != ""}})

    def _check(self, call: RequestContext, spec: Data) -> None:
        wrong: list[Finding] = []
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (resource is None) == (path is None):
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            wrong.append(finding.invalid(("spec", "resourceAttributes"), resource, why, "review"))
        if call.route.plural == "localsubjectaccessreviews":
            if path is not None:
                wrong.append(finding.invalid(("spec", "nonResourceAttributes"), path, "disallowed on this kind of request", "review"))
            elif (resource or {}).get("namespace") != call.route.namespace:
                why = "must match metadata.namespace"
                wrong.append(finding.invalid(("spec", "resourceAttributes", "namespace"), (resource or {}).get("namespace"), why, "review"))
        if wrong:
            raise failure.invalid(call.resource.about_kind(""), wrong)

    async def rules(self, call: RequestContext) -> HttpResponse:
        """Everything that the one who asks may do in a namespace."""
        said = self._read(call)
        namespace = (said.get("spec") or {}).get("namespace") or ""
        if not namespace:
            raise failure.bad_request("no namespace on request")
        rules = list(self._rbac.rules(call.user.name, call.user.groups, namespace))
        paths = self._rbac.rules(call.user.name, call.user.groups, "")
        if MASTERS in call.user.groups:
            everything = (RbacRule(("*",), ("*",), ("*",)), RbacRule(verbs=("*",), nonResourceURLs=("*",)))
            rules = [*everything, *(rule for rule in rules if rule not in everything)]
            paths = everything[1:]
        status = {
            "resourceRules": [_shown(rule, "apiGroups", "resources", "resourceNames") for rule in rules if rule.resources],
            # What a role says about paths means nothing where it is bound in a namespace.
            "nonResourceRules": [_shown(rule, "nonResourceURLs") for rule in paths if rule.nonResourceURLs],
            "incomplete": False,
        }
        return self._answer(call, {**said, "status": status})

    # --- tokens -----------------------------------------------------------------------------------------------------------

    async def issue(self, call: RequestContext) -> HttpResponse:
        """A token for a ServiceAccount."""
        record = self._parts.reader.get(call.resource, call.route.namespace, call.route.name)
        said = bodies.read_object(call.request).data
        spec = said.get("spec") or {}
        seconds = spec.get("expirationSeconds") or _HOUR
        longest = self._tokens.terms.longest_seconds
        if type(seconds) is not int or not _LEAST_SECONDS <= seconds <= 1 << 32:
            why = "may not specify a duration less than 10 minutes" if type(seconds) is int else "must be an integer"
            wrong = finding.invalid(("spec", "expirationSeconds"), seconds, why, "token")
            raise failure.invalid(failure.FailureTarget(name=call.route.name, group=AUTHENTICATION, kind="TokenRequest"), [wrong])
        if longest:
            seconds = min(seconds, longest)
        options = write_options(call, operation="Create")
        token, end = self._tokens.issue(decode(record.value), list(spec.get("audiences") or ()), seconds, spec.get("boundObjectRef"))
        made = {
            "kind": "TokenRequest",
            "apiVersion": f"{AUTHENTICATION}/v1",
            "metadata": {"name": call.route.name, "namespace": call.route.namespace, "creationTimestamp": self._parts.clock.now()},
            "spec": {**spec, "audiences": spec.get("audiences") or list(self._tokens.terms.own_audiences), "expirationSeconds": seconds},
            "status": {"token": "" if options.dry_run else token, "expirationTimestamp": ages.timestamp(end)},
        }
        return self._answer(call, made)

    # --- forms ------------------------------------------------------------------------------------------------------------

    def _read(self, call: RequestContext) -> Data:
        body = bodies.read_object(call.request).data
        resource = call.resource
        body.setdefault("apiVersion", resource.api_version)
        body.setdefault("kind", resource.kind)
        if (body["apiVersion"], body["kind"]) != (resource.api_version, resource.kind):
            raise failure.bad_request(f"the body must be a {resource.kind} of {resource.api_version}")
        decoded = resource.pipeline.decode({**body, "metadata": body.get("metadata") or {}})
        if decoded.broken or decoded.wrong:
            raise failure.bad_request("; ".join(f"{each.field}: {each.message}" for each in (*decoded.broken, *decoded.wrong)))
        return {**decoded.data, "metadata": {"creationTimestamp": None, **(body.get("metadata") or {})}}

    def _answer(self, call: RequestContext, said: Data) -> HttpResponse:
        return answer(form_of(call.request, transforms=()), orjson.dumps(said), 201)


def _user(user: User) -> Data:
    said: Data = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        said["uid"] = user.uid
    if user.extra:
        said["extra"] = {key: list(values) for key, values in user.extra.items()}
    return said


def _asked(spec: Data, user: str, groups: tuple[str, ...]) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(user, groups, path.get("verb", ""), path=path.get("path", "") or "/")
    said = spec.get("resourceAttributes") or {}
    return Attributes(
        user,
        groups,
        said.get("verb", ""),
        said.get("group", ""),
        said.get("resource", ""),
        said.get("subresource", ""),
        said.get("namespace", ""),
        said.get("name", ""),
    )


def _shown(rule: RbacRule, *keys: str) -> Data:
    return {"verbs": list(rule.verbs), **{key: list(getattr(rule, key)) for key in keys if getattr(rule, key)}}
