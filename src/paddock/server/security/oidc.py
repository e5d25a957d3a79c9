"""Users of an OpenID Connect provider: their ID tokens are checked with the keys that the provider publishes.

The keys are fetched when the first token comes, when a token is signed with a key that is not known (providers change theirs), and
once in a while. A request that needs keys waits for them. Names and groups that begin with `system:` are Kubernetes' own: a provider
cannot give them.
"""

import asyncio
import http.client
import logging
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from paddock.base.certificates import trusting
from paddock.base.clock import Clock
from paddock.base.errors import Terminal, Transient
from paddock.kubernetes.meta import failure
from paddock.server.context import User
from paddock.server.security import jose
from paddock.server.security.identity import PendingIdentity
from paddock.server.security.oidcsettings import OidcSettings

_LOG = logging.getLogger(__name__)
_SECONDS, _LARGEST = 10.0, 1024 * 1024
# Keys are not asked for more often, whatever tokens come, and not trusted for longer.
_LEAST_PAUSE, _LONGEST_TRUST = 10.0, 3600.0
# Clocks differ.
_LEEWAY = 300
_RESERVED = "system:"
Fetch = Callable[[str], Awaitable[Any]]


class ProviderUnreachable(Transient):
    """The provider does not say what it should."""


class OidcAuthenticator:
    """Knows the users behind ID tokens."""

    def __init__(self, settings: OidcSettings, fetch: Fetch, clock: Clock) -> None:
        self._settings = settings
        self._fetch = fetch
        self._clock = clock
        self._keys: list[jose.PublicKey] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    def user(self, token: str) -> User | None:
        """The user; None when the token is another issuer's. Raises `PendingIdentity` when keys are needed first, and 401."""
        said = jose.claims_unchecked(token)
        if said is None or said.get("iss") != self._settings.issuer:
            return None
        claims = jose.claims_of(token, self._keys, self._settings.algorithms) if self._keys else None
        now = self._clock.seconds()
        is_coming = self._fetching is not None and not self._fetching.done()
        is_wanted = claims is None or now - self._fetched > _LONGEST_TRUST
        if is_wanted and (is_coming or now - self._tried >= _LEAST_PAUSE):
            raise PendingIdentity(self.refresh)
        if claims is None or now - self._fetched > 2 * _LONGEST_TRUST:
            raise failure.unauthorized()
        return self._user(claims, now)

    async def refresh(self) -> None:
        """Fetch the keys; requests that want them at the same time wait for the same answer."""
        if self._fetching is None or self._fetching.done():
            self._tried = self._clock.seconds()
            self._fetching = asyncio.create_task(self._refresh())
        await asyncio.shield(self._fetching)

    async def _refresh(self) -> None:
        try:
            said = await self._fetch(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if said.get("issuer") != self._settings.issuer:
                raise ProviderUnreachable(f"{self._settings.issuer} says that it is another issuer")
            published = await self._fetch(said["jwks_uri"])
            keys = [key for key in map(jose.from_published, published["keys"]) if key is not None]
        except (Transient, Terminal, KeyError, TypeError, AttributeError) as error:
            _LOG.warning("OIDC issuer keys unavailable", extra={"error": str(error), "issuer": self._settings.issuer})
            return
        self._keys = keys
        self._fetched = self._clock.seconds()

    def _user(self, claims: jose.Claims, now: float) -> User:
        settings = self._settings
        audience = claims.get("aud")
        end, begin = claims.get("exp"), claims.get("nbf", 0)
        if not isinstance(end, int | float) or now >= end or not isinstance(begin, int | float) or begin > now + _LEEWAY:
            raise failure.unauthorized()
        if settings.client not in (audience if isinstance(audience, list) else [audience]):
            raise failure.unauthorized()
        if any(claims.get(name) != value for name, value in settings.required.items()):
            raise failure.unauthorized()
        name = claims.get(settings.name_claim)
        if not isinstance(name, str) or not name or (settings.name_claim == "email" and claims.get("email_verified", True) is not True):
            raise failure.unauthorized()
        found = User(settings.prefix + name, self._groups(claims))
        if found.name.startswith(_RESERVED):
            raise failure.unauthorized()
        return found

    def _groups(self, claims: jose.Claims) -> tuple[str, ...]:
        said = claims.get(self._settings.groups_claim) if self._settings.groups_claim else None
        given = [said] if isinstance(said, str) else said if isinstance(said, list) else []
        groups = [f"{self._settings.groups_prefix}{group}" for group in given if isinstance(group, str)]
        return tuple(group for group in groups if not group.startswith(_RESERVED))


def fetcher(authority: Path | None) -> Fetch:
    """Gets a JSON document over HTTPS, in a thread; follows nothing elsewhere."""
    try:
        context = trusting(file=authority)
    except (OSError, ssl.SSLError) as error:
        raise Terminal(f"cannot read the authority of the OIDC issuer in {authority}", why=str(error)) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    async def fetch(url: str) -> Any:
        return await asyncio.to_thread(_get, url, context)

    return fetch


def _get(url: str, context: ssl.SSLContext) -> Any:
    place = urlsplit(url)
    if place.scheme != "https" or not place.hostname:
        raise ProviderUnreachable(f"{url} is no https address")
    connection = http.client.HTTPSConnection(place.hostname, place.port or 443, timeout=_SECONDS, context=context)
    try:
        connection.request("GET", place.path + (f"?{place.query}" if place.query else ""), headers={"accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(_LARGEST + 1)
        if answer.status != 200 or len(body) > _LARGEST:
            raise ProviderUnreachable(f"{url} answers {answer.status}")
        return orjson.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ProviderUnreachable(f"cannot get {url}", why=str(error) or type(error).__name__) from None
    finally:
        connection.close()
