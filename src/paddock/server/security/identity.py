"""Authentication: client certificates, bearer tokens, anonymous (docs/spec/kube-api.md section 8)."""

import base64
import binascii
import csv
import hmac
import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from paddock.base.errors import Terminal
from paddock.kubernetes.meta import failure
from paddock.server.context import User
from paddock.server.edge.http import HttpRequest

_LOG = logging.getLogger(__name__)
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
AUTHENTICATED = "system:authenticated"
_SOCKET_TOKEN = "base64url.bearer.authorization.k8s.io."


class PendingIdentity(Exception):
    """The validity of a token is known only later: wait for `settle`, and authenticate once more."""

    def __init__(self, settle: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.settle = settle


class TokenSource(Protocol):
    """Knows the users behind some tokens."""

    def user(self, token: str) -> User | None:
        """The user, or None when the token is none of this source's; raises `PendingIdentity`, or 401 for one that is, and is no good."""


class StaticTokenFile:
    """Static tokens: lines of `token,user,uid,"group1,group2"`."""

    def __init__(self, path: Path) -> None:
        self._users: dict[bytes, User] = {}
        if path.stat().st_mode & 0o077:
            _LOG.warning("token file readable by other users", extra={"file": str(path)})
        with path.open(newline="") as file:
            for number, row in enumerate(csv.reader(file), 1):
                if not row or row[0].startswith("#"):
                    continue
                if len(row) < 3:
                    raise Terminal(f"line {number} of {path} cannot be read", why="it needs a token, a user and a uid", fix="mend the line")
                groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 else ()
                self._users[row[0].strip().encode()] = _authenticated(User(row[1].strip(), groups, row[2].strip()))

    def user(self, token: str) -> User | None:
        """Compares every token in constant time, so that nothing can be learnt from how long it takes."""
        found, given = None, token.encode()
        for known, user in self._users.items():
            if hmac.compare_digest(known, given):
                found = user
        return found


class Identities:
    """All ways to say who one is."""

    def __init__(self, sources: tuple[TokenSource, ...] = (), *, anonymous: bool = True) -> None:
        self._sources = sources
        self._anonymous = anonymous

    def user(self, request: HttpRequest) -> User:
        """The user behind a request; a credential that is not accepted is a `Failure`, never nobody."""
        if request.peer.certificate:
            if not request.peer.common_name:
                raise failure.unauthorized()
            return _certified(request.peer.common_name, request.peer.organizations)
        token = bearer_token(request)
        if token is None:
            if not self._anonymous:
                raise failure.unauthorized()
            return ANONYMOUS
        return self.by_token(token)

    def by_token(self, token: str) -> User:
        """The user behind a token."""
        for source in self._sources:
            found = source.user(token)
            if found is not None:
                return _authenticated(found)
        raise failure.unauthorized()


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)


# Cached, because every request on a connection has the same certificate.
@lru_cache(maxsize=256)
def _certified(name: str, organizations: tuple[str, ...]) -> User:
    """Return the user of a certificate."""
    return _authenticated(User(name, organizations))


def bearer_token(request: HttpRequest) -> str | None:
    """The token of the Authorization header, or of a WebSocket's subprotocols, where browsers put it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    for offered in request.headers.get("sec-websocket-protocol", "").split(","):
        if offered.strip().startswith(_SOCKET_TOKEN):
            encoded = offered.strip()[len(_SOCKET_TOKEN) :]
            try:
                return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise failure.unauthorized() from None
    return None
