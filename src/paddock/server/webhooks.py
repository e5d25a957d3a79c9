"""Asking a webhook: one JSON document out, one back, over HTTPS. Used for conversion and for admission.

Where a webhook is stands in a `clientConfig`: a URL, or a Service, whose endpoints are looked up among the stored objects. Nothing is
sent to anybody whose certificate does not fit. Connections are kept for a while, because a handshake costs more than an answer.
"""

import asyncio
import posixpath
import re
import ssl
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import msgspec

from paddock.base import base64data
from paddock.base.certificates import trusting
from paddock.base.errors import PaddockError, Transient
from paddock.base.jsondata import Data
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.http.connection import ClientConnection

# What an answer may hold, and how long and how many idle connections to one webhook are kept.
LARGEST_ANSWER = 64 * 1024 * 1024
IDLE_SECONDS, IDLE_CONNECTIONS = 30.0, 8
_CONTENT = "application/json"
_SENDABLE = re.compile(r"[!-~]+\Z")


class ServiceView(Protocol):
    """The stored objects, as far as finding a Service needs them."""

    def get(self, resource: str, namespace: str, name: str) -> Data | None: ...
    def list(self, resource: str, namespace: str = "") -> Any: ...


class WebhookAddress(msgspec.Struct, frozen=True):
    """The address of a webhook. `url` is how messages name it; no `authority` means the roots of the system."""

    url: str
    host: str
    port: int
    path: str
    server_name: str
    authority: str = ""


class WebhookReply(msgspec.Struct, frozen=True):
    """The answer of a webhook."""

    status: int
    body: bytes


class CallFailed(Transient):
    """A webhook was not found, not reached or not understood; `why` says what happened."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f'Post "{url}"', why=why)


def address_of(config: Data, view: ServiceView) -> WebhookAddress:
    """Return the present address of a `clientConfig`; raise `CallFailed` when there is none."""
    authority = _authority(config.get("caBundle"))
    service = config.get("service")
    found = _of_service(service, view, authority) if service else _of_url(config, authority)
    if not _SENDABLE.match(f"{found.path}{found.server_name}"):
        raise CallFailed(found.url, "the address has characters that no address has")
    return found


def _of_url(config: Data, authority: str) -> WebhookAddress:
    url = str(config.get("url") or "")
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise CallFailed(url, "a webhook is asked over https only")
    try:
        port = parts.port or 443
    except ValueError as error:
        raise CallFailed(url, str(error)) from None
    path = _clean(parts.path) + (f"?{parts.query}" if parts.query else "")
    return WebhookAddress(url, parts.hostname, port, path, parts.hostname, authority)


def _clean(path: str) -> str:
    """Return a path as kube-apiserver sends it: Go's multiplexers redirect any other form, and a redirect is no answer."""
    return quote("/" + posixpath.normpath("/" + unquote(path)).lstrip("/"), safe="/$&+,:;=@")


def _authority(bundle: Any) -> str:
    """A caBundle as PEM; one that is only white space counts as none."""
    if not bundle:
        return ""
    try:
        text = base64data.decode(bundle).decode("ascii") if isinstance(bundle, str) else ""
    except ValueError:
        return str(bundle)
    return text if text.strip() else ""


def _of_service(service: Data, view: ServiceView, authority: str) -> WebhookAddress:
    namespace, name, port = service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
    path = _clean(service.get("path") or "")
    server_name = f"{name}.{namespace}.svc"
    url = f"https://{server_name}:{port}{path}"
    found = view.get("services", namespace, name)
    if found is None:
        raise CallFailed(url, f'service "{name}" not found')
    host, at = _endpoint(found, port, view, url)
    return WebhookAddress(url, host, at, path, server_name, authority)


def _endpoint(service: Data, port: int, view: ServiceView, url: str) -> tuple[str, int]:
    """A host and port behind a Service."""
    spec, meta = service.get("spec") or {}, service["metadata"]
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "", port
    ports = spec.get("ports") or ()
    offered = next((each for each in ports if each.get("port") == port), None)
    if offered is None:
        raise CallFailed(url, f'no service port {port} found for service "{meta["name"]}"')
    wanted = offered.get("name") or ""
    for slice_ in view.list("endpointslices.discovery.k8s.io", meta["namespace"]):
        if (slice_["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != meta["name"]:
            continue
        ready = [each for each in slice_.get("endpoints") or () if (each.get("conditions") or {}).get("ready") is not False]
        at = _port(slice_.get("ports") or (), wanted)
        if at and ready and ready[0].get("addresses"):
            return str(ready[0]["addresses"][0]), at
    endpoints = view.get("endpoints", meta["namespace"], meta["name"]) or {}
    for subset in endpoints.get("subsets") or ():
        at = _port(subset.get("ports") or (), wanted)
        if at and subset.get("addresses"):
            return str(subset["addresses"][0]["ip"]), at
    raise CallFailed(url, f'no endpoints available for service "{meta["name"]}"')


def _port(ports: Any, name: str) -> int:
    return next((each.get("port") or 0 for each in ports if (each.get("name") or "") == name), 0)


class Caller:
    def __init__(self) -> None:
        self._idle: dict[WebhookAddress, list[ClientConnection]] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, address: WebhookAddress, body: bytes, seconds: float) -> WebhookReply:
        """Send a JSON document and wait for the answer, whatever its status; raises `CallFailed`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._post(address, body)
        except TimeoutError:
            raise CallFailed(address.url, f"no answer within {seconds:g} seconds: context deadline exceeded") from None
        except PaddockError as error:
            raise CallFailed(address.url, "EOF" if isinstance(error, Unreachable) else error.why) from error
        except (OSError, ValueError) as error:
            # Failures of certificates are OSErrors, too.
            raise CallFailed(address.url, str(error) or type(error).__name__) from error

    async def close(self) -> None:
        for connections in self._idle.values():
            for each in connections:
                # A webhook that is slow to close its end would keep the connection for half a minute.
                each.abort()
        self._idle.clear()

    async def _post(self, address: WebhookAddress, body: bytes) -> WebhookReply:
        request = _head(address, len(body)) + body
        while True:
            connection = await self._connection(address)
            is_kept = connection.used > 0
            try:
                await connection.begin(request)
                reply = WebhookReply(connection.status, await _read(connection))
            except Unreachable as error:
                connection.abort()
                if is_kept and not (error.sent and connection.status):
                    # The webhook closed it while it was idle; that says nothing about the webhook.
                    continue
                raise
            except BaseException:
                connection.abort()
                raise
            idle = self._idle.setdefault(address, [])
            if connection.finish():
                if len(idle) < IDLE_CONNECTIONS:
                    idle.append(connection)
                else:
                    connection.abort()
            return reply

    async def _connection(self, address: WebhookAddress) -> ClientConnection:
        loop = asyncio.get_running_loop()
        idle = self._idle.get(address, [])
        while idle:
            found = idle.pop()
            if found.open and loop.time() - found.idle_since < IDLE_SECONDS:
                return found
            found.abort()
        context = self._context(address.authority)
        _, connection = await loop.create_connection(
            ClientConnection, address.host, address.port, ssl=context, server_hostname=address.server_name
        )
        return connection

    def _context(self, authority: str) -> ssl.SSLContext:
        found = self._contexts.get(authority)
        if found is None:
            found = self._contexts[authority] = trusting(authority)
        return found


async def _read(connection: ClientConnection) -> bytes:
    """Return the body of an answer; raise for one that is too large."""
    body = bytearray()
    while part := await connection.read():
        body += part
        if len(body) > LARGEST_ANSWER:
            raise ValueError(f"the answer is larger than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _head(address: WebhookAddress, length: int) -> bytes:
    host = f"[{address.server_name}]" if ":" in address.server_name else address.server_name
    host = host if address.port == 443 else f"{host}:{address.port}"
    lines = (
        f"POST {address.path} HTTP/1.1",
        f"Host: {host}",
        "User-Agent: paddock-apiserver",
        f"Content-Type: {_CONTENT}",
        f"Accept: {_CONTENT}",
        f"Content-Length: {length}",
    )
    return "\r\n".join((*lines, "", "")).encode("ascii", "replace")
