"""The audit log: from requests to events, one JSON line each (`audit.k8s.io/v1` Event)."""

from typing import Any, Protocol

import orjson

from paddock.base.clock import IdentityClock
from paddock.kubernetes.meta import ages, failure
from paddock.server.context import User
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, Upgrade
from paddock.server.routing import RequestRoute
from paddock.server.security.audit import content
from paddock.server.security.audit.policy import AuditDecision

_MUTATING = frozenset(("create", "update", "patch", "delete", "deletecollection", "post", "put"))
_LONGEST_URI, _LONGEST_AGENT, _LONGEST_ID = 4096, 256, 64
# The annotation that tells whether rights refused a request.
DECISION = "authorization.k8s.io/decision"
# The client went before its answer came; the code that proxies use for it.
GONE = 499


class AuditDecider(Protocol):
    def of(self, user: User | None, route: RequestRoute, code: int) -> AuditDecision: ...


class LineWriter(Protocol):
    @property
    def blocked(self) -> str:
        """The reason why nothing may be changed now, because it could not be recorded; empty when changes are allowed."""

    def write(self, line: bytes) -> None:
        """Write a line; never raises."""


class AuditEntry:
    """The record of one request, while it is answered."""

    __slots__ = ("audit_id", "made", "notes", "place", "request", "start", "user")

    def __init__(self, audit_id: str, request: HttpRequest, route: RequestRoute, start: float) -> None:
        self.audit_id = audit_id
        self.request = request
        self.place = route
        self.start = start
        self.user: User | None = None
        # the name of an object whose name is not in the path
        self.made = ""
        # what whoever judged the request wants to be known
        self.notes: dict[str, str] = {}


class AuditLog:
    """Records requests as a policy says."""

    def __init__(self, lines: LineWriter, policy: AuditDecider, clock: IdentityClock) -> None:
        self._lines = lines
        self._policy = policy
        self._clock = clock

    def begin(self, request: HttpRequest, route: RequestRoute) -> AuditEntry:
        given = request.headers.get("audit-id", "")
        audit_id = given if given and len(given) <= _LONGEST_ID and given.isascii() and given.isprintable() else self._clock.uid()
        return AuditEntry(audit_id, request, route, self._clock.seconds())

    def identified(self, entry: AuditEntry, user: User) -> None:
        """It is known who asks. Raises 503 for a change that could not be recorded, where that is wanted."""
        entry.user = user
        blocked = self._lines.blocked
        if blocked and entry.place.verb in _MUTATING:
            raise failure.unavailable(f"the audit log cannot be written: {blocked}")
        self._note(entry, "RequestReceived", None)

    def end(self, entry: AuditEntry, answer: Answer | None, *, panic: bool = False) -> None:
        """Note its answer; None when the client did not stay for one. A panic is a defect of the server."""
        if isinstance(answer, StreamResponse | Upgrade):
            self._note(entry, "ResponseStarted", answer)
        self._note(entry, "Panic" if panic else "ResponseComplete", answer)

    def _note(self, entry: AuditEntry, stage: str, answer: Answer | None) -> None:
        code = 0 if stage == "RequestReceived" else GONE if answer is None else 101 if isinstance(answer, Upgrade) else answer.status
        config = self._policy.of(entry.user.by or entry.user if entry.user else None, entry.place, code)
        if config.level != "None" and stage not in config.omitted:
            self._lines.write(orjson.dumps(self._event(entry, stage, (code, answer), config)) + b"\n")

    def _event(self, entry: AuditEntry, stage: str, outcome: tuple[int, Answer | None], config: AuditDecision) -> dict[str, Any]:
        code, answer = outcome
        request, place, user = entry.request, entry.place, entry.user
        closed = content.is_closed(place)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata" if closed else config.level,
            "auditID": entry.audit_id,
            "stage": stage,
            "requestURI": request.target[:_LONGEST_URI],
            "verb": place.verb,
            "user": _user(user.by or user) if user else {},
            "sourceIPs": [request.peer.address],
            "userAgent": request.headers.get("user-agent", "")[:_LONGEST_AGENT],
            "requestReceivedTimestamp": ages.micro_timestamp(entry.start),
            "stageTimestamp": ages.micro_timestamp(self._clock.seconds()),
        }
        if user is not None and user.by is not None:
            event["impersonatedUser"] = _user(user)
        if place.is_resource:
            event["objectRef"] = _reference(entry)
        if code:
            event["responseStatus"] = _status(code, answer, closed=closed)
            if code != 401:
                event["annotations"] = {DECISION: "allow", **entry.notes}
        if not closed and config.level in ("Request", "RequestResponse"):
            managed = not config.without_managed_fields
            event["requestObject"] = content.request_object(request, place, managed=managed)
            if config.level == "RequestResponse" and isinstance(answer, HttpResponse):
                event["responseObject"] = content.response_object(answer, place, managed=managed)
        return {key: value for key, value in event.items() if value is not None}


def _user(user: User) -> dict[str, Any]:
    said: dict[str, Any] = {"username": user.name}
    if user.uid:
        said["uid"] = user.uid
    if user.groups:
        said["groups"] = list(user.groups)
    if user.extra:
        said["extra"] = {key: list(values) for key, values in user.extra.items()}
    return said


def _reference(entry: AuditEntry) -> dict[str, str]:
    place = entry.place
    parts = {
        "resource": place.plural,
        "namespace": place.namespace,
        "name": place.name or entry.made,
        "apiGroup": place.group,
        "apiVersion": place.version,
        "subresource": place.subresource,
    }
    return {key: value for key, value in parts.items() if value}


def _status(code: int, answer: Answer | None, *, closed: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"metadata": {}, "code": code}
    if answer is None:
        said["message"] = "the client went before its answer came; whether a change was made is not said here"
    elif isinstance(answer, HttpResponse) and code >= 400:
        try:
            found = orjson.loads(answer.body)
        except ValueError:
            return said
        for key in ("status", "reason") if closed else ("status", "reason", "message"):
            if isinstance(found, dict) and isinstance(found.get(key), str):
                said[key] = found[key][:1024]
    return said
