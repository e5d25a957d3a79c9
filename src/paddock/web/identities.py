"""Identities: the clients and live sets of those who act. All sessions of one identity share them."""

import asyncio
import hashlib
from collections.abc import Collection

import msgspec

from paddock.base.clock import Clock
from paddock.kubernetes.client.access import Access, StaticCredential, bearer
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import BadRequest, Forbidden, NotFound, Unauthorized
from paddock.kubernetes.client.http.https import Https
from paddock.web.live.watches import WatchedSet
from paddock.web.rights import RightsReview
from paddock.web.routes import WebRefusal
from paddock.web.session import WebHost, WebSession

KUBECONFIG = "kubeconfig"
_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_MANAGER = "paddock-console"
_ANONYMOUS = "system:anonymous"
_LONGEST_TOKEN = 16 * 1024
_AT_ONCE = 4


class _Review(msgspec.Struct, frozen=True):
    """The part of a SelfSubjectReview that says who one is."""

    class _Status(msgspec.Struct, frozen=True, rename="camel"):
        class _User(msgspec.Struct, frozen=True):
            username: str = ""

        user_info: _User = _User()

    status: _Status = _Status()


class IdentityPool:
    """Opens sessions. What an identity needs is made with its first session and closed after its last."""

    def __init__(self, access: Access, clock: Clock, host: WebHost) -> None:
        self._access = access
        self._clock = clock
        self._host = host
        self._judging = asyncio.Semaphore(_AT_ONCE)
        self._sessions: dict[str, tuple[WebSession, WatchedSet]] = {}

    def of_kubeconfig(self) -> WebSession:
        """Return the session of the user whose kubeconfig the console was started with."""
        return self._open(KUBECONFIG, "", self._access)

    async def of_token(self, token: str) -> WebSession:
        """Return the session of a token: of a ServiceAccount, or an OIDC ID token. Raises `WebRefusal` for one that the server rejects."""
        if not token.isascii() or not token.isprintable() or not 0 < len(token) <= _LONGEST_TOKEN:
            raise WebRefusal(401, "this is no token", fix="paste the token as one line")
        # Nothing of the console's own credentials is in this access.
        access = msgspec.structs.replace(self._access, credentials=StaticCredential(bearer(token)))
        # Judging costs a connection of its own, and anybody who reaches the console may ask for it.
        async with self._judging, Client(Https(access)) as client:
            try:
                user = await username(client)
            except Unauthorized as error:
                fix = "make a new one, such as `kubectl create token NAME`"
                raise WebRefusal(401, "the API server does not accept the token", why=str(error), fix=fix) from error
        if user == _ANONYMOUS:
            raise WebRefusal(401, "the API server does not accept the token", why="it takes the request for an anonymous one")
        return self._open(hashlib.sha256(token.encode()).hexdigest(), user, access)

    async def keep(self, identities: Collection[str]) -> None:
        """Close what belongs to other identities than these."""
        for name in [name for name in self._sessions if name not in identities]:
            session, live = self._sessions.pop(name)
            await session.work.close()
            await live.close()
            await session.client.close()

    def _open(self, identity: str, user: str, access: Access) -> WebSession:
        if identity not in self._sessions:
            client = Client(Https(access), ClientSettings(manager=_MANAGER, warnings=False))
            live = WatchedSet(client, access.namespace, self._clock, self._host.images)
            session = WebSession(
                identity=identity,
                user=user,
                access=access,
                client=client,
                namespace=access.namespace,
                clock=self._clock,
                live=live,
                host=self._host,
                rights=RightsReview(client, self._clock),
            )
            self._sessions[identity] = session, live
        return self._sessions[identity][0]

    async def close(self) -> None:
        await self.keep(())


async def username(client: Client) -> str:
    """Return the name that the API server gives the user; empty for a server before Kubernetes 1.28. Raises `Unauthorized`."""
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    try:
        answer = await client.request("POST", _REVIEW, body=body)
    except (NotFound, Forbidden, BadRequest):
        # It judged the token all the same.
        return ""
    return msgspec.json.decode(answer, type=_Review).status.user_info.username
