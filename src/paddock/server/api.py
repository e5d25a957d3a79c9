"""The road of a request, from the edge to its answer (docs/design/0005-api-server.md)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Protocol

import orjson

from paddock.base import together
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.failure import Failure
from paddock.server.builtin import trust
from paddock.server.context import RequestContext, ServerParts, User
from paddock.server.discovery.groups import Discovery
from paddock.server.discovery.openapi import OpenApi
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, Upgrade
from paddock.server.edge.refusals import HttpRefusal
from paddock.server.health import ServerHealth
from paddock.server.requestmetrics import RequestMetrics
from paddock.server.resources.resource import ServedResource
from paddock.server.routing import RequestRoute, route
from paddock.server.security.audit.log import DECISION
from paddock.server.security.deadlines import Deadlines, check_timeout
from paddock.server.security.flow.control import FlowControl
from paddock.server.security.identity import PendingIdentity
from paddock.server.verbs import deleting, reading, scaling, writing

_LOG = logging.getLogger(__name__)
Verb = Callable[[ServerParts, RequestContext], Awaitable[Answer]]
_VERBS: dict[str, Verb] = {
    "get": reading.get,
    "list": reading.list_,
    "watch": reading.watch,
    "create": writing.create,
    "update": writing.update,
    "patch": writing.patch_,
    "delete": deleting.delete,
    "deletecollection": deleting.delete_collection,
}
# They are answered in one go, so that the time they take is time that others wait.
_READS = frozenset(("get", "list"))
_STATUS_VERBS: dict[str, Verb] = {"get": reading.get, "update": writing.update, "patch": writing.patch_}
_SCALE_VERBS: dict[str, Verb] = {"get": scaling.get, "update": scaling.update, "patch": scaling.patch_}
# Verbs that need a name in the path, and those that must not have one.
_NAMED = ("get", "update", "patch", "delete")
_LONGEST_WARNINGS = 4096


class RequestGuard(Protocol):
    """Authentication and authorization of requests."""

    def identify(self, request: HttpRequest) -> User:
        """The user behind a request; raises a `Failure` of 401 or 403."""

    def check(self, request: HttpRequest, route: RequestRoute, user: User) -> None:
        """Raises a `Failure` of 403 when the user may not do it."""


class RequestRecord(Protocol):
    """The record of one request, while it is answered."""

    audit_id: str
    made: str
    notes: dict[str, str]


class Journal(Protocol):
    def begin(self, request: HttpRequest, route: RequestRoute) -> RequestRecord: ...

    def identified(self, entry: Any, user: User) -> None:
        """It is known who asks; raises a `Failure` when what they want could not be recorded."""

    def end(self, entry: Any, answer: Answer | None, *, panic: bool = False) -> None:
        """Note its answer; None when the client did not stay for one. A panic is a defect of the server."""


# Serves a subresource, or paths outside the API groups.
Subhandler = Callable[[RequestContext], Awaitable[Answer]]
Pathhandler = Callable[[HttpRequest, User], Awaitable[Answer]]
Limits = tuple[FlowControl, Deadlines]


class Api:
    def __init__(self, parts: ServerParts, guard: RequestGuard, journal: Journal, limits: Limits | None = None) -> None:
        self._parts = parts
        self._guard = guard
        self._journal = journal
        self._discovery = Discovery(parts.registry)
        self._openapi = OpenApi(parts.registry)
        self.health = ServerHealth()
        self.metrics = RequestMetrics(parts.registry)
        self.flows, self._deadlines = limits or (FlowControl(parts.store), Deadlines())
        # (group, plural, subresource, verb) and path prefixes that others serve; `name/*` serves all below a subresource, too
        self.subresources: dict[tuple[str, str, str, str], Subhandler] = {}
        self.paths: dict[str, Pathhandler] = {}
        # a group that is not served at the moment -> why; empty while it is
        self.unready: dict[str, Callable[[], str]] = {}

    async def __call__(self, request: HttpRequest) -> Answer:
        """The answer to a request; never raises, except when it is cancelled."""
        place = route(request)
        begun = self.metrics.begin(place)
        try:
            answer = await self._answered(request, place)
        finally:
            self.metrics.left(place)
        self.metrics.end(request, place, answer, begun)
        return answer

    async def _answered(self, request: HttpRequest, route: RequestRoute) -> Answer:
        entry = self._journal.begin(request, route)
        task = together.this_task()
        timer: asyncio.TimerHandle | None = None
        extra: list[tuple[str, str]] = [("audit-id", entry.audit_id)]
        panic = False
        try:
            timer = self._deadlines.begin(task, request, route)
            answer = await self._admitted(request, route, entry, extra)
        except Failure as said:
            answer = _status(said)
        except HttpRefusal as refused:
            answer = refused.response
        except asyncio.CancelledError:
            if not self._deadlines.end(task, timer):
                self._journal.end(entry, None)
                raise
            task.uncancel()
            answer = _status(failure.late())
        except Exception:
            _LOG.exception("request failed", extra={"method": request.method, "path": request.path, "audit_id": entry.audit_id})
            answer = _status(failure.internal(f"this is a defect of the server; its log has the details under {entry.audit_id}"))
            panic = True
        if self._deadlines.end(task, timer):
            # It was ready in the very moment in which it was late.
            task.uncancel()
        if not isinstance(answer, Upgrade):
            answer.headers = (*answer.headers, *extra)
        self._journal.end(entry, answer, panic=panic)
        return answer

    def refused(self, request: HttpRequest, answer: HttpResponse) -> None:
        """Note a request that the edge has refused, before anybody asked whose it is."""
        self._journal.end(self._journal.begin(request, route(request)), answer)

    async def _admitted(self, request: HttpRequest, route: RequestRoute, entry: RequestRecord, extra: list[tuple[str, str]]) -> Answer:
        """Authenticate a request, receive a large body, wait for a turn, authorize and answer. Headers of it are added to `extra`."""
        try:
            user = self._guard.identify(request)
        except PendingIdentity as pending:
            await pending.settle()
            user = self._identified_at_last(request)
        self._journal.identified(entry, user)
        if request.arriving is not None:
            # Nothing large is kept of somebody who may not do it, and nobody has a seat while it arrives.
            self._check(request, route, user, entry)
            await request.receive(user.name)
        flow = self.flows.flow(user, route)
        extra.extend(flow.headers)
        if not self.flows.enter(flow):
            await self.flows.wait(flow, newcomer=request.is_first)
        began = perf_counter() if route.verb in _READS else 0.0
        warnings: list[str] = []
        try:
            self._check(request, route, user, entry)
            return await self._serve(request, route, (user, entry), warnings)
        finally:
            self.flows.leave(flow, perf_counter() - began if began else 0.0)
            if warnings:
                extra.extend(_warning_headers(warnings))

    def _check(self, request: HttpRequest, route: RequestRoute, user: User, entry: RequestRecord) -> None:
        """Raise a `Failure` if the user lacks the right. The audit log tells it from the refusals of quotas and policies, also 403."""
        try:
            self._guard.check(request, route, user)
        except Failure:
            entry.notes[DECISION] = "forbid"
            raise

    def _identified_at_last(self, request: HttpRequest) -> User:
        try:
            return self._guard.identify(request)
        except PendingIdentity:
            raise failure.unauthorized() from None

    async def _serve(self, request: HttpRequest, route: RequestRoute, who: tuple[User, RequestRecord], warnings: list[str]) -> Answer:
        user, entry = who
        if not route.is_resource:
            return await self._serve_path(request, user)
        why_not = self.unready.get(route.group)
        if why_not is not None and (reason := why_not()):
            raise failure.unavailable(reason)
        resource = self._parts.registry.find(route.group, route.version, route.plural)
        if resource is None or (resource.private and not trust.is_controller(user.name)):
            raise failure.no_such_path()
        call = RequestContext(request, route, resource, user)
        if resource.deprecation:
            call.warnings.append(resource.deprecation)
        try:
            return await self._verb_of(resource, route)(self._parts, call)
        finally:
            warnings.extend(call.warnings)
            entry.made, entry.notes = call.made, call.notes

    def _verb_of(self, resource: ServedResource, route: RequestRoute) -> Verb:
        own = self._own_handler(route)
        if own is not None:
            return lambda _, call: own(call)
        if route.subresource:
            found = _SCALE_VERBS if route.subresource == "scale" and resource.scale else {}
            if resource.status and route.subresource in resource.strategy.states():
                found = _STATUS_VERBS
            if not found and any(each.name == route.subresource for each in resource.subresources):
                raise failure.method_not_allowed()
            if not found:
                raise failure.no_such_path()
        else:
            found = _VERBS
        if route.verb not in found or (not route.subresource and route.verb not in resource.verbs):
            raise failure.method_not_allowed()
        _check_place(resource, route)
        return found[route.verb]

    def _own_handler(self, route: RequestRoute) -> Subhandler | None:
        """Return the subresource's own handler, if there is one."""
        own = self.subresources.get((route.group, route.plural, route.subresource, route.verb))
        if own is None and "/" in route.subresource:
            above = route.subresource.partition("/")[0]
            own = self.subresources.get((route.group, route.plural, f"{above}/*", route.verb))
        return own

    async def _serve_path(self, request: HttpRequest, user: User) -> Answer:
        for prefix, handler in self.paths.items():
            if request.path == prefix or request.path.startswith(prefix + "/"):
                return await handler(request, user)
        if request.method not in ("GET", "HEAD"):
            raise failure.method_not_allowed()
        check_timeout(request)
        response = self.health.answer(request) or self._discovery.answer(request) or await self._openapi.answer(request)
        if response is not None:
            return response
        if request.path == "/":
            paths = ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            return HttpResponse(200, orjson.dumps({"paths": paths}), (("content-type", "application/json"),))
        return HttpResponse(
            404, b"404 page not found\n", (("content-type", "text/plain; charset=utf-8"), ("x-content-type-options", "nosniff"))
        )


def _check_place(resource: ServedResource, route: RequestRoute) -> None:
    """A verb on the wrong kind of path is not served."""
    if route.verb in _NAMED and not route.name:
        raise failure.method_not_allowed()
    if route.verb == "create" and route.name and not route.subresource:
        raise failure.method_not_allowed()
    if resource.namespaced and not route.namespace and route.verb not in ("list", "watch"):
        raise failure.method_not_allowed() if resource.strategic and not route.name else failure.no_such_path()
    if not resource.namespaced and route.namespace and route.plural != "namespaces":
        raise failure.no_such_path()


def _status(said: Failure) -> HttpResponse:
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"), ("cache-control", "no-cache, private"))
    if said.retry_after is not None:
        headers = (*headers, ("retry-after", str(said.retry_after)))
    return HttpResponse(said.code, orjson.dumps(said.to_status()), headers)


def _warning_headers(warnings: list[str]) -> list[tuple[str, str]]:
    found, size = [], 0
    for text in dict.fromkeys(warnings):
        quoted = '"' + "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"') + '"'
        size += len(quoted)
        if size > _LONGEST_WARNINGS:
            break
        found.append(("warning", f"299 - {quoted}"))
    return found
