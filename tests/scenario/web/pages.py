"""A page of the console on a whole host in virtual time: requests go to the handlers, with JSON as the page sends and gets it.

async with FakeHost(tmp_path) as host, Page(host) as page:
    detail = await page.get("machines/vm/default/web")
    await page.post("machines/vm/default/web/actions/stop")
"""

from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec

from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client
from paddock.web import problems
from paddock.web.identities import KUBECONFIG
from paddock.web.live.watches import WatchedSet
from paddock.web.rights import RightsReview
from paddock.web.routes import WebBytes, WebRequest
from paddock.web.session import WebHost, WebSession
from paddock.web.table import table
from tests import virtualtime
from tests.kit.engine.fakehost import FakeHost


class Refused(Exception):
    """An answer with an error."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body)
        self.code: int = body["code"]
        self.message: str = body["message"]
        self.why: str = body["why"]
        self.fix: str = body["fix"]


class Page:
    """One page, signed in as the user of the kubeconfig."""

    def __init__(
        self, host: FakeHost | None = None, *, about: WebHost | None = None, identity: str = KUBECONFIG, client: Client | None = None
    ) -> None:
        self._about = about or WebHost()
        self._identity = identity
        found = client or (host.api.client() if host is not None else None)
        assert found is not None, "a page needs a host or a client"
        self.client = found
        self._routes = table()

    async def __aenter__(self) -> "Page":
        clock = virtualtime.Clock()
        self.session = WebSession(
            identity=self._identity,
            user="",
            access=Access(server="https://fake", credentials=StaticCredential()),
            client=self.client,
            namespace="default",
            clock=clock,
            live=WatchedSet(self.client, "default", clock),
            host=self._about,
            rights=RightsReview(self.client, clock),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.work.close()
        await self.session.live.close()
        await self.client.close()

    async def get(self, path: str) -> Any:
        """Read JSON."""
        return await self._json("GET", path)

    async def post(self, path: str, body: Any = None) -> Any:
        """Send JSON and read JSON."""
        return await self._json("POST", path, msgspec.json.encode({} if body is None else body))

    async def delete(self, path: str) -> Any:
        """Delete."""
        return await self._json("DELETE", path)

    async def read(self, path: str) -> WebBytes:
        """Read what is no JSON."""
        answer = await self._ask("GET", path, b"")
        assert isinstance(answer, WebBytes)
        return answer

    async def _json(self, method: str, path: str, body: bytes = b"") -> Any:
        answer = await self._ask(method, path, body)
        assert not isinstance(answer, WebBytes)
        return msgspec.json.decode(msgspec.json.encode(answer))

    async def _ask(self, method: str, path: str, body: bytes) -> Any:
        below, _, query = path.partition("?")
        try:
            route, parts = self._routes.find(method, quote(below))
            request = WebRequest(session=self.session, method=method, path=below, parts=parts, query=dict(parse_qsl(query)), body=body)
            return await route.handler(request)
        except Exception as error:
            told = problems.body_of(error)
            if told.code == 500:
                raise
            raise Refused(msgspec.to_builtins(told)) from error
