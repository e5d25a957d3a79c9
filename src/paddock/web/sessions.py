"""One-time links and cookies. Secrets have 256 random bits; only their digests are kept, and they end with the program."""

import hashlib
import hmac
import secrets
from typing import Generic, TypeVar

from paddock.base.clock import Clock
from paddock.server.edge.http import HttpRequest
from paddock.web.session import WebSession

T = TypeVar("T")
LINK_SECONDS = 600.0
SESSION_SECONDS = 12 * 3600.0
_BYTES = 32
# Older ones go; nobody has so many browsers.
_MOST_LINKS, _MOST_SESSIONS = 16, 256
# A longer value is no secret of ours.
_LONGEST = 128


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class _DigestTable(Generic[T]):
    """Values by the digests of their secrets, until they expire."""

    def __init__(self, clock: Clock, seconds: float, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._entries: dict[bytes, tuple[float, T]] = {}

    def add(self, value: T) -> str:
        """Keep a value and return its new secret."""
        self.expire()
        while len(self._entries) >= self._most:
            del self._entries[next(iter(self._entries))]
        secret = secrets.token_urlsafe(_BYTES)
        self._entries[_digest(secret)] = (self._clock.seconds() + self._seconds, value)
        return secret

    def find(self, secret: str) -> tuple[bytes, T] | None:
        """Return the value of a secret. Every digest is compared, each in constant time."""
        self.expire()
        if not 0 < len(secret) <= _LONGEST:
            return None
        wanted = _digest(secret)
        found = None
        for digest, (_, value) in self._entries.items():
            if hmac.compare_digest(digest, wanted):
                found = digest, value
        return found

    def remove(self, digest: bytes) -> None:
        self._entries.pop(digest, None)

    def expire(self) -> None:
        now = self._clock.seconds()
        for digest in [digest for digest, (end, _) in self._entries.items() if end <= now]:
            del self._entries[digest]

    def values(self) -> list[T]:
        """Return all values that have not expired."""
        self.expire()
        return [value for _, value in self._entries.values()]


class OneTimeLinks:
    """Links that open a session once, within ten minutes."""

    def __init__(self, clock: Clock) -> None:
        self._table: _DigestTable[None] = _DigestTable(clock, LINK_SECONDS, _MOST_LINKS)

    def issue(self) -> str:
        """Return the secret of a new link."""
        return self._table.add(None)

    def redeem(self, secret: str) -> bool:
        """Return whether the secret opens a session. It never does again."""
        found = self._table.find(secret)
        if found is None:
            return False
        self._table.remove(found[0])
        return True


class SessionTable:
    """The sessions of all browsers, by their cookies."""

    def __init__(self, clock: Clock, port: int, *, secure: bool) -> None:
        self._table: _DigestTable[WebSession] = _DigestTable(clock, SESSION_SECONDS, _MOST_SESSIONS)
        # Cookies do not know ports: two consoles of a host would take each other's.
        self.cookie = f"paddock-console-{port}"
        self._flags = f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}"

    def open(self, session: WebSession) -> str:
        """Begin a session and return the `Set-Cookie` header for it."""
        return f"{self.cookie}={self._table.add(session)}; {self._flags}; Max-Age={SESSION_SECONDS:.0f}"

    def find(self, request: HttpRequest) -> WebSession | None:
        """Return the session of a request; None without one."""
        found = self._table.find(self._secret(request))
        return found[1] if found is not None else None

    def end(self, request: HttpRequest) -> str:
        """End the session of a request and return the header that takes its cookie away."""
        found = self._table.find(self._secret(request))
        if found is not None:
            self._table.remove(found[0])
        return f"{self.cookie}=; {self._flags}; Max-Age=0"

    def identities(self) -> set[str]:
        """Return the identities that still have a session."""
        return {each.identity for each in self._table.values()}

    def _secret(self, request: HttpRequest) -> str:
        # The edge joins a header that came twice by commas.
        for part in request.headers.get("cookie", "").replace(",", ";").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie:
                return value
        return ""
