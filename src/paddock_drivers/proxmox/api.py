"""The HTTP API of Proxmox VE: one request and its answer.

    config = await api.get(path("nodes", node, "qemu", vmid, "config"), current=True)
    upid = await api.post(path("nodes", node, "qemu", vmid, "status", "start"))

A refusal is a `ProxmoxRefusal` with the cluster's own words. They stand in the answer's status line, and since release 8 in its body too.
Only reads are repeated, by nobody but the transport: whether a write whose answer was lost has happened is for its caller to find out.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import msgspec

from paddock.base.errors import Terminal
from paddock.kubernetes.client.errors import BadAnswer
from paddock.kubernetes.client.transport import Transport, TransportRequest, TransportResponse

FormValue = str | int | float | bool | Sequence[str] | None
_ROOT = "/api2/json"
_FORM = "application/x-www-form-urlencoded"
READ_SECONDS, WRITE_SECONDS = 20.0, 60.0
_UPLOAD_SECONDS = 6 * 3600.0
# Their values stand in no error.
_SECRETS = frozenset({"cipassword", "sshkeys", "ciuser", "cicustom", "url", "password", "command", "input-data", "description"})
_LEAST_SECRET = 4
_CLEANED = re.compile(r"[\x00-\x1f\x7f]+")
_LONGEST = 500


class ProxmoxRefusal(Terminal):
    """The cluster answered that it did not do it."""

    def __init__(self, status: int, reason: str, errors: Mapping[str, str]) -> None:
        reasons = "; ".join(f"{name}: {why}" for name, why in errors.items())
        super().__init__(f"Proxmox VE refuses: {reason or status}", why=reasons)
        self.status = status
        self.reason = reason
        self.errors = dict(errors)

    def says(self, *words: str) -> bool:
        """Return whether the refusal has one of these words in its reason or in the error of a parameter."""
        text = " ".join((self.reason, *self.errors.values())).lower()
        return any(each in text for each in words)


class ProxmoxTransport(Transport, Protocol):
    """A transport that also sends bodies piece by piece."""

    async def send_stream(self, ask: TransportRequest, body: AsyncIterator[bytes], length: int) -> TransportResponse:
        """Return the answer to a request with a long body."""


class _Answer(msgspec.Struct, frozen=True):
    data: Any = None
    errors: dict[str, Any] | None = None
    message: str = ""


class ProxmoxUploadedFile(msgspec.Struct, frozen=True):
    """A file to upload: its name, its size and its bytes."""

    name: str
    size: int
    chunks: AsyncIterator[bytes]


def path(*parts: str | int) -> str:
    """Return the path of some parts, each of which may hold any character."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


class ProxmoxApi:
    """Sends requests to one cluster."""

    def __init__(self, transport: ProxmoxTransport) -> None:
        self._transport = transport
        # requests sent, for those who count them
        self.sent = 0

    async def get(self, target: str, *, seconds: float = READ_SECONDS, **query: FormValue) -> Any:
        """Return what a path has; parameters whose name has a hyphen are written with an underscore."""
        return await self._call("GET", target, _hyphened(query), seconds)

    async def post(self, target: str, form: Mapping[str, FormValue] | None = None, *, seconds: float = WRITE_SECONDS) -> Any:
        """Make something, or begin work; a text that begins with UPID is the task."""
        return await self._call("POST", target, form or {}, seconds)

    async def put(self, target: str, form: Mapping[str, FormValue]) -> Any:
        return await self._call("PUT", target, form, WRITE_SECONDS)

    async def delete(self, target: str, **query: FormValue) -> Any:
        return await self._call("DELETE", target, _hyphened(query), WRITE_SECONDS)

    async def upload(self, target: str, fields: Mapping[str, str], file: ProxmoxUploadedFile) -> Any:
        """Upload a file into a storage; returns the task that puts it in its place."""
        # The name of the file says which boundary no part of it is likely to hold.
        boundary = f"paddock-{file.name.encode().hex()[:40]}-7d4a6d158c9a"
        head = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
        )
        head += f'--{boundary}\r\nContent-Disposition: form-data; name="filename"; filename="{file.name}"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        first, last = head.encode(), f"\r\n--{boundary}--\r\n".encode()

        async def body() -> AsyncIterator[bytes]:
            yield first
            async for chunk in file.chunks:
                yield chunk
            yield last

        ask = TransportRequest(
            method="POST", target=f"{_ROOT}{target}", content_type=f"multipart/form-data; boundary={boundary}", seconds=_UPLOAD_SECONDS
        )
        self.sent += 1
        answer = await self._transport.send_stream(ask, body(), len(first) + file.size + len(last))
        return _data(answer, {})

    async def _call(self, method: str, target: str, form_values: Mapping[str, FormValue], seconds: float) -> Any:
        encoded = urlencode([pair for name, value in form_values.items() for pair in _pairs(name, value)])
        in_query = method in ("GET", "DELETE")
        ask = TransportRequest(
            method=method,
            target=f"{_ROOT}{target}{'?' if in_query and encoded else ''}{encoded if in_query else ''}",
            body=b"" if in_query else encoded.encode(),
            content_type=_FORM,
            seconds=seconds,
        )
        self.sent += 1
        return _data(await self._transport.send(ask), form_values)


def _hyphened(query: Mapping[str, FormValue]) -> dict[str, FormValue]:
    return {name.replace("_", "-"): value for name, value in query.items()}


def _pairs(name: str, value: FormValue) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [(name, "1" if value else "0")]
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, Sequence):
        return [(name, str(each)) for each in value]
    return [(name, f"{value:g}" if isinstance(value, float) else str(value))]


def _data(answer: TransportResponse, form_values: Mapping[str, FormValue]) -> Any:
    try:
        found = msgspec.json.decode(answer.body, type=_Answer) if answer.body else _Answer()
    except msgspec.MsgspecError as error:
        if answer.status < 300:
            raise BadAnswer("Proxmox VE's answer is no JSON", why="something else answers under this address") from error
        found = _Answer()
    if answer.status < 300:
        return found.data
    hidden = [str(value) for name, value in form_values.items() if name in _SECRETS and value]
    errors = {name: _clean(str(why), hidden) for name, why in (found.errors or {}).items()}
    raise ProxmoxRefusal(answer.status, _clean(found.message or answer.reason, hidden), errors)


def _clean(text: str, hidden: Sequence[str]) -> str:
    for secret in hidden:
        if len(secret) >= _LEAST_SECRET:
            text = text.replace(secret, "<hidden>")
    return _CLEANED.sub(" ", text).strip()[:_LONGEST]
