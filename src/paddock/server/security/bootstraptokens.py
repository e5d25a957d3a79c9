"""Bootstrap tokens: `abcdef.0123456789abcdef`, kept in Secrets of kube-system, for whoever has nothing better yet."""

import base64
import binascii
import hmac
import re
from datetime import datetime
from typing import Any

from paddock.base.clock import Clock
from paddock.server.context import User
from paddock.server.resources.strategy import ObjectView

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})\Z")
_TYPE = "bootstrap.kubernetes.io/token"
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\Z")
_BOOTSTRAPPERS = "system:bootstrappers"


class BootstrapTokens:
    """Knows the users behind bootstrap tokens."""

    def __init__(self, view: ObjectView, clock: Clock) -> None:
        self._view = view
        self._clock = clock

    def user(self, token: str) -> User | None:
        """The user, or None when the token is none, or no good."""
        parts = _TOKEN.match(token)
        if parts is None:
            return None
        secret = self._view.get("secrets", "kube-system", f"bootstrap-token-{parts[1]}")
        if secret is None or secret.get("type") != _TYPE or secret["metadata"].get("deletionTimestamp"):
            return None
        said = {key: _text(value) for key, value in (secret.get("data") or {}).items()}
        is_same = hmac.compare_digest(said.get("token-secret", "").encode(), parts[2].encode())
        if not is_same or said.get("token-id") != parts[1] or said.get("usage-bootstrap-authentication") != "true":
            return None
        groups = _groups(said.get("auth-extra-groups", ""))
        if groups is None or self._is_over(said.get("expiration", "")):
            return None
        return User(f"system:bootstrap:{parts[1]}", groups)

    def _is_over(self, expiration: str) -> bool:
        """Return whether a token has expired; an unreadable time counts as expired."""
        if not expiration:
            return False
        try:
            end = datetime.fromisoformat(expiration)
        except ValueError:
            return True
        return end.tzinfo is None or end.timestamp() <= self._clock.seconds()


def _text(value: Any) -> str:
    try:
        return base64.b64decode(value or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _groups(said: str) -> tuple[str, ...] | None:
    """The groups of a token; None when one is not for such tokens."""
    more = [group.strip() for group in said.split(",") if group.strip()]
    if any(not _GROUP.match(group) for group in more):
        return None
    return (_BOOTSTRAPPERS, *dict.fromkeys(more))
