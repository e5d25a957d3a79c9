"""Answers of web servers, for threads: `http.client` with our rules on top.

- Every connection goes through `ReachPolicy`, also after a redirect.
- What is secret (credentials, secret headers, a client certificate) goes to the origin it was given for and to no other.
- An error is an `ImageError` that names the address without its query and never a header's value.
"""

import base64
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

from paddock.base import certificates, reasons
from paddock.base.certificates import trusting
from paddock.base.images.errors import ImageError, ImageRefused, ImageUnavailable
from paddock.base.images.reachpolicy import ReachPolicy
from paddock.base.images.sources import ServerTrust, canonical_url, safe_url
from paddock.base.images.stopflag import StopFlag

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10
_ORIGIN_ONLY = ("authorization", "cookie", "proxy-authorization")
_AGENT = "paddock"
# Bytes a second. An answer that is slower for as long as silence is borne is given up: a server that sends a byte now and then would
# hold the slot of its import for ever.
SLOWEST = 1024


@dataclass(frozen=True)
class UploadFile:
    """A file to send. `tell` gets the number of bytes sent so far."""

    path: Path
    tell: Callable[[int], None]


class _CountedFile:
    """An open file that reports how much of it was read."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file = file
        self._tell = tell
        self._done = 0

    def read(self, count: int = -1) -> bytes:
        data = self._file.read(count)
        self._done += len(data)
        self._tell(self._done)
        return data


RequestBody = bytes | Path | UploadFile | None


@dataclass(frozen=True)
class DownloadRequest:
    """One request. `private` headers, user and client certificate go to the first origin only."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    private: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    trust: ServerTrust = field(default_factory=ServerTrust)
    # a file is sent as it is
    body: RequestBody = field(default=None, repr=False)


class DownloadResponse:
    """An answer whose body is read from the socket."""

    def __init__(self, connection: "_Connection", answer: http.client.HTTPResponse, url: str, stop: StopFlag) -> None:
        self._connection = connection
        self._answer = answer
        self._stop = stop
        self._pace = _Pace(connection.stall_seconds, url)
        self.url = url
        self.status = answer.status
        self.reason = answer.reason
        self.headers = answer.headers

    @property
    def length(self) -> int | None:
        """Bytes of this body, when the server says so."""
        return self._answer.length

    def read_into(self, buffer: memoryview) -> int:
        """Put what has come into the buffer; 0 is the end. Raises `ImageError`, also when the server sends too slowly."""
        count = self._read_into(buffer)
        self._pace.add(count)
        return count

    def _read_into(self, buffer: memoryview) -> int:
        self._stop.check()
        answer = self._answer
        try:
            if answer.chunked:
                data = answer.read1(len(buffer))
                buffer[: len(data)] = data
                return len(data)
            if answer.isclosed() or answer.length == 0:
                return 0
            # Not `readinto`: it waits until the buffer is full, and loses what it has when the connection breaks.
            count: int = answer.fp.readinto1(buffer[: answer.length] if answer.length is not None else buffer)
            if answer.length is not None:
                answer.length -= count
            return count
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._stop.check()
            raise trouble(self.url, error) from error

    def read(self, limit: int) -> bytes:
        """The whole body, when it is not longer than this; else its beginning."""
        parts = []
        left = limit
        buffer = bytearray(min(limit, 65536))
        while left > 0 and (count := self.read_into(memoryview(buffer)[:left])):
            parts.append(bytes(buffer[:count]))
            left -= count
        return b"".join(parts)

    def hang_up(self) -> None:
        """End the read of another thread."""
        self._connection.hang_up()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def __enter__(self) -> "DownloadResponse":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Pace:
    """The speed of an answer, while somebody reads it."""

    def __init__(self, seconds: float, url: str) -> None:
        self._seconds = seconds
        self._url = url
        self._since: float | None = None
        self._count = 0

    def add(self, count: int) -> None:
        now = time.monotonic()
        self._count += count
        if self._since is None or self._count > SLOWEST * self._seconds:
            self._since, self._count = now, 0
        elif now - self._since > self._seconds and count:
            raise too_slow(self._url)


class _Connection(http.client.HTTPConnection):
    """Dials through `ReachPolicy`, perhaps through a proxy, and speaks TLS when it has a context."""

    def __init__(self, host: str, port: int, reach: ReachPolicy, stop: StopFlag, context: ssl.SSLContext | None) -> None:
        super().__init__(host, port, blocksize=256 * 1024)
        self._reach = reach
        self._stop = stop
        self._context = context
        self._watched: socket.socket | None = None
        self.server_name = host
        self.connect_seconds = 15.0
        self.stall_seconds = 60.0

    def connect(self) -> None:
        self._stop.check()
        sock = self._reach.dial(self.host, self.port, self.connect_seconds)
        self._watch(sock)
        self.sock = sock
        if self._tunnel_host:  # type: ignore[attr-defined]
            self._tunnel()  # type: ignore[attr-defined]
        if self._context is not None:
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self.server_name)
            self._watch(self.sock)
        self.sock.settimeout(self.stall_seconds)

    def _watch(self, sock: socket.socket) -> None:
        if self._watched is not None:
            self._stop.leave(self._watched)
        self._watched = sock
        self._stop.watch(sock)

    @contextmanager
    def hurried(self) -> Iterator[threading.Event]:
        """The whole head of an answer has to come within this time: each byte of it may take as long as a read may."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.hang_up()

        timer = threading.Timer(self.stall_seconds + self.connect_seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield late
        except (OSError, http.client.HTTPException, ValueError) as error:
            if late.is_set():
                raise TimeoutError from error
            raise
        finally:
            timer.cancel()

    def hang_up(self) -> None:
        """End reads and writes, also those of another thread."""
        if (watched := self._watched) is not None:
            with suppress(OSError):
                socket.socket.shutdown(watched, socket.SHUT_RDWR)

    def close(self) -> None:
        if self._watched is not None:
            self._stop.leave(self._watched)
            self._watched = None
        super().close()


class WebClient:
    """Makes requests. Safe to use from several threads."""

    def __init__(
        self,
        reach: ReachPolicy,
        *,
        connect_seconds: float = 15.0,
        stall_seconds: float = 60.0,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        self._reach = reach
        # A proxy is the operator's word, and may be anywhere.
        self._any = ReachPolicy(("0.0.0.0/0", "::/0"))
        self._connect_seconds = connect_seconds
        self._stall_seconds = stall_seconds
        self._proxies = dict(getproxies_environment() if proxies is None else proxies)
        self._contexts: dict[ServerTrust, ssl.SSLContext] = {}

    def open(self, request: DownloadRequest, stop: StopFlag) -> DownloadResponse:
        """The answer after redirects, whatever its status is."""
        url = canonical_url(request.url)
        origin = _origin(url)
        method, body = request.method, request.body
        for _ in range(_MOST_REDIRECTS + 1):
            at_home = _origin(url) == origin
            headers = dict(request.headers)
            if at_home:
                headers.update(request.private)
            else:
                headers = {name: value for name, value in headers.items() if name.lower() not in _ORIGIN_ONLY}
            trust = request.trust if at_home else ServerTrust(ca=request.trust.ca, verify=request.trust.verify)
            response = self._once(DownloadRequest(url, method, tuple(headers.items()), trust=trust, body=body), stop)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return response
            response.close()
            if response.status == 303:
                method, body = "GET" if method != "HEAD" else method, None
            url = redirected(url, location)
        raise ImageRefused("Refused", f"{safe_url(request.url)} redirects more than {_MOST_REDIRECTS} times")

    def _once(self, request: DownloadRequest, stop: StopFlag) -> DownloadResponse:
        parts = urlsplit(request.url)
        secure = parts.scheme == "https"
        host, port = parts.hostname or "", parts.port or (443 if secure else 80)
        context = self._context(request.trust) if secure else None
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = self._connection((host, port), secure, context, stop)
        if self._proxy_of(parts.scheme, host) and not secure:
            target = request.url
        headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity", **dict(request.headers)}
        if self._proxy_of(parts.scheme, host) and not secure:
            headers.update(_proxy_headers(self._proxy_of(parts.scheme, host)))
        headers["Host"] = parts.netloc.rpartition("@")[2]
        try:
            answer = _exchange(connection, request, target, headers)
            _one_length(answer, request.url)
        except ImageError:
            connection.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            stop.check()
            found = trouble(request.url, error)
            if context is not None and found.code == "Unreachable" and not request.trust.certificate:
                # A refusal for want of a client certificate may be lost with the connection (TLS 1.3).
                found.fix = found.fix or "it may ask for a client certificate"
            raise found from error
        return DownloadResponse(connection, answer, request.url, stop)

    def _connection(self, to: tuple[str, int], secure: bool, context: ssl.SSLContext | None, stop: StopFlag) -> _Connection:
        host, port = to
        proxy = self._proxy_of("https" if secure else "http", host)
        if proxy:
            self._reach.judge_literal(host, port)
            parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
            connection = _Connection(parts.hostname or "", parts.port or 3128, self._any, stop, context)
            if secure:
                connection.set_tunnel(host, port, _proxy_headers(proxy))
        else:
            connection = _Connection(host, port, self._reach, stop, context)
        connection.server_name = host
        connection.connect_seconds = self._connect_seconds
        connection.stall_seconds = self._stall_seconds
        return connection

    def _proxy_of(self, scheme: str, host: str) -> str:
        proxy = self._proxies.get(scheme, "")
        return "" if not proxy or proxy_bypass_environment(host, self._proxies) else proxy

    def _context(self, trust: ServerTrust) -> ssl.SSLContext:
        context = self._contexts.get(trust)
        if context is None:
            if len(self._contexts) > 64:
                self._contexts.clear()
            context = self._contexts[trust] = _make_context(trust)
        return context


def redirected(url: str, location: str) -> str:
    """Return the address that a server at `url` names as the next one."""
    try:
        return canonical_url(urljoin(url, location.strip()))
    except ValueError as error:
        text = f"{safe_url(url)} redirects to an address that cannot be read"
        raise ImageRefused("Refused", text, why=str(error)[:100], fix="check the address of the source") from error


def _exchange(connection: _Connection, request: DownloadRequest, target: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    if isinstance(request.body, Path | UploadFile):
        upload = request.body if isinstance(request.body, UploadFile) else UploadFile(request.body, lambda _: None)
        with open(upload.path, "rb", buffering=0) as file:
            headers["Content-Length"] = str(file.seek(0, 2))
            file.seek(0)
            connection.request(request.method, target, body=_CountedFile(file, upload.tell), headers=headers)
    else:
        connection.request(request.method, target, body=request.body, headers=headers)
    with connection.hurried() as late:
        answer = connection.getresponse()
    if late.is_set():
        # A head that ends in its middle is taken for a whole one.
        answer.close()
        raise TimeoutError
    return answer


def _one_length(answer: http.client.HTTPResponse, url: str) -> None:
    """Refuse an answer of two lengths: one of them is wrong, and what would be stored is not what the server has."""
    lengths = {part.strip() for value in answer.headers.get_all("Content-Length", []) for part in value.split(",")}
    if len(lengths) > 1:
        answer.close()
        text = f"{safe_url(url)} gives its answer several lengths ({', '.join(sorted(lengths)[:3])})"
        raise ImageUnavailable("Truncated", text, fix="repair the server, or the proxy before it")


def _make_context(trust: ServerTrust) -> ssl.SSLContext:
    context = trusting()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not trust.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if trust.ca:
        try:
            context.load_verify_locations(cadata=trust.ca)
        except (ssl.SSLError, ValueError) as error:
            raise ImageRefused(
                "Certificate", "the CA bundle of the source cannot be read", why=_reason(error), fix="give certificates in PEM"
            ) from error
    if trust.certificate:
        _load_certificate(context, trust)
    return context


def _load_certificate(context: ssl.SSLContext, trust: ServerTrust) -> None:
    try:
        certificates.show(context, trust.certificate.encode(), trust.key.encode())
    except (ssl.SSLError, OSError, ValueError) as error:
        fix = "give the certificate and its key in PEM, without a password"
        raise ImageRefused("Certificate", "the client certificate of the source cannot be used", why=_reason(error), fix=fix) from error


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if not parts.username:
        return {}
    return {"Proxy-Authorization": basic(unquote(parts.username), unquote(parts.password or ""))}


def basic(username: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or type(error).__name__


def too_slow(url: str) -> ImageError:
    """The server sends, and the import would never end."""
    return ImageUnavailable("TooSlow", f"{safe_url(url)} sends less than {SLOWEST} bytes a second")


def trouble(url: str, error: Exception) -> ImageError:
    """Return the error for a failure below HTTP."""
    where = safe_url(url)
    if isinstance(error, ssl.SSLCertVerificationError):
        fix = "give the certificate of its authority with the source"
        return ImageUnavailable("Certificate", f"the certificate of {where} cannot be verified (x509)", why=_reason(error), fix=fix)
    if isinstance(error, ssl.SSLError) and "alert" in (error.reason or "").lower().replace("_", " "):
        return ImageUnavailable(
            "Certificate", f"{where} ended the TLS handshake", why=_reason(error), fix="it may ask for a client certificate"
        )
    if isinstance(error, TimeoutError):
        return ImageUnavailable("TimedOut", f"{where} sent nothing for too long")
    return ImageUnavailable("Unreachable", f"the connection to {where} broke", why=_reason(error))


def bad_status(response: DownloadResponse) -> ImageError:
    """Return the error for a status that is no success."""
    where, status = safe_url(response.url), response.status
    text = f"{where} answered {status} {http.client.responses.get(status, response.reason)}".rstrip()
    if status in (401, 403, 407):
        return ImageRefused("NotAuthorized", text, fix="check the credentials of the source")
    if status in (404, 410):
        return ImageRefused("NotFound", text, fix="check the address of the source")
    if status in (408, 429) or status >= 500:
        reason = reasons.IMAGE_SERVER_FAILING if status >= 500 else reasons.IMAGE_SERVER_BUSY if status == 429 else ""
        return ImageUnavailable("Unreachable", text, reason=reason)
    return ImageRefused("Refused", text)


def retry_after(response: DownloadResponse) -> float:
    """Seconds that the server asks us to wait; 0 when it does not."""
    value = response.headers.get("Retry-After", "")
    return min(float(value), 60.0) if re.fullmatch(r"\d{1,6}", value) else 0.0
