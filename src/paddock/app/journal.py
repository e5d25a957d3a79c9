"""The audit log: one JSON line for each finished request (docs/spec/kube-api.md section 8).

At level Metadata it says who did what to which object and what came of it; bodies are never in it, so neither are secrets.
"""

import os
from pathlib import Path
from typing import Any, Protocol

import orjson

from paddock.apiserver.edge.http import Answer, Request, Response
from paddock.apiserver.parts import User
from paddock.apiserver.routing import Route
from paddock.meta import ages

LEVELS = ("None", "Metadata")
_READS = ("get", "list", "watch", "head", "options")
# The file is begun anew when it is larger; the one before is kept.
_LARGEST = 64 * 1024 * 1024


class Seconds(Protocol):
    """A clock."""

    def seconds(self) -> float:
        """Seconds since the epoch."""

    def uid(self) -> str:
        """A new random UUID."""


class AuditLog:
    """Writes requests that change something, or were refused."""

    def __init__(self, path: Path, level: str, clock: Seconds) -> None:
        self._path = path
        self._on = level != "None"
        self._level = level
        self._clock = clock
        self._open: dict[str, tuple[Request, Route, float]] = {}
        self._file = self._opened() if self._on else -1
        self._size = os.fstat(self._file).st_size if self._on else 0

    def _opened(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def begin(self, request: Request, place: Route) -> str:
        """Note a request; returns its audit id, which may be the client's own."""
        given = request.headers.get("audit-id", "")
        audit_id = given if given and len(given) <= 64 and given.isprintable() else self._clock.uid()
        if self._on:
            self._open[audit_id] = (request, place, self._clock.seconds())
        return audit_id

    def end(self, audit_id: str, user: User | None, answer: Answer) -> None:
        """Write the line, if the request is one that is kept."""
        begun = self._open.pop(audit_id, None)
        if begun is None:
            return
        request, place, start = begun
        code = answer.status if isinstance(answer, Response) else 101 if hasattr(answer, "subprotocol") else answer.status
        if place.verb in _READS and code < 400:
            return
        self._write(orjson.dumps(self._line(audit_id, request, place, (user, code, start))) + b"\n")

    def _line(self, audit_id: str, request: Request, place: Route, outcome: tuple[User | None, int, float]) -> dict[str, Any]:
        user, code, start = outcome
        line: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": self._level,
            "auditID": audit_id,
            "stage": "ResponseComplete",
            "requestURI": request.path,
            "verb": place.verb,
            "user": {"username": user.name, "uid": user.uid, "groups": list(user.groups)} if user else {},
            "sourceIPs": [request.peer.address],
            "userAgent": request.headers.get("user-agent", "")[:256],
            "responseStatus": {"metadata": {}, "code": code},
            "requestReceivedTimestamp": ages.micro_timestamp(start),
            "stageTimestamp": ages.micro_timestamp(self._clock.seconds()),
            "annotations": {"authorization.k8s.io/decision": "forbid" if code == 403 else "allow"},
        }
        acting = request.headers.get("impersonate-user")
        if acting:
            # The user is the one that was acted for; who did it is known by their credential.
            line["impersonatedUser"] = {"username": acting}
            line["annotations"]["paddock/credential"] = request.peer.common_name or "token"
        if place.is_resource:
            parts = {
                "resource": place.plural,
                "namespace": place.namespace,
                "name": place.name,
                "apiGroup": place.group,
                "apiVersion": place.version,
                "subresource": place.subresource,
            }
            line["objectRef"] = {key: value for key, value in parts.items() if value}
        return line

    def _write(self, line: bytes) -> None:
        os.write(self._file, line)
        self._size += len(line)
        if self._size > _LARGEST:
            os.close(self._file)
            self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._file = self._opened()
            self._size = 0

    def close(self) -> None:
        """Nothing is written any more."""
        if self._on:
            os.close(self._file)
