"""The API server in a test, without sockets: requests go straight into the road, answers come back decoded.

async with Harness() as api:
    made = await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
    assert made.status == 201
    async with api.watch("/api/v1/configmaps?watch=true") as events:
        assert (await events.next())["type"] == "ADDED"
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from paddock.app import localtransport
from paddock.app.server import served
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.meta import ages
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.admission import views
from paddock.server.api import Api
from paddock.server.builtin import namespaces, trust
from paddock.server.builtin.services import Network
from paddock.server.context import ServerParts, User
from paddock.server.custom import assembly
from paddock.server.edge.http import Answer, ConnectionPeer, HttpRequest, HttpResponse, StreamResponse
from paddock.server.objects.encoding import stamp
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource
from paddock.server.routing import RequestRoute
from paddock.server.security.guard import Guard
from paddock.server.security.identity import Identities
from paddock.server.security.rbac import Rbac
from paddock.server.security.reviewing import Reviews
from paddock.server.security.tokens import AccountTokens, own_keyring
from paddock.server.store.contract import Store, StoreKey
from paddock.server.store.memory import MemoryStore

ADMIN = User("admin", ("system:masters", "system:authenticated"))


class Clock:
    """Time that stands still until it is moved; identities that repeat."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0
        self._count = 0
        self._chance = random.Random(0)

    def seconds(self) -> float:
        return self.time

    def now(self) -> str:
        return ages.timestamp(self.time)

    def uid(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-8000-{self._count:012d}"

    def random(self, count: int) -> bytes:
        return self._chance.randbytes(count)


class OpenDoor:
    """Everybody is the administrator, except for whoever comes from inside under another name."""

    def identify(self, request: HttpRequest) -> User:
        return User(request.peer.common_name, request.peer.organizations) if request.peer.common_name else ADMIN

    def check(self, request: HttpRequest, place: RequestRoute, user: User) -> None: ...


class NoJournal:
    """Nothing is noted."""

    def begin(self, request: HttpRequest, place: RequestRoute) -> "NoEntry":
        return NoEntry()

    def identified(self, entry: "NoEntry", user: User) -> None: ...

    def end(self, entry: "NoEntry", answer: Answer | None, *, panic: bool = False) -> None: ...


class NoEntry:
    """No record."""

    def __init__(self) -> None:
        self.audit_id = "audit"
        self.made = ""
        self.notes: dict[str, str] = {}


class Reply:
    """An answer, decoded."""

    def __init__(self, response: HttpResponse) -> None:
        self.status = response.status
        self.headers: dict[str, str] = {}
        self.warnings = [value for name, value in response.headers if name == "warning"]
        self.headers.update(response.headers)
        self.raw = response.body

    @property
    def data(self) -> Any:
        """The JSON body."""
        return orjson.loads(self.raw)

    @property
    def reason(self) -> str:
        """The reason of a Status."""
        return str(self.data.get("reason", ""))

    @property
    def causes(self) -> dict[str, str]:
        """The causes of a Status by field."""
        return {cause.get("field", ""): cause["message"] for cause in self.data["details"].get("causes", [])}


class Events:
    """The lines of a watch."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._rest = b""
        self._gone = asyncio.Event()
        self.backlog = 0
        self.ended = asyncio.Event()

    @property
    def closed(self) -> bool:
        return self._gone.is_set()

    def write(self, data: bytes) -> None:
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._lines.put_nowait(line)

    async def drained(self) -> None:
        await asyncio.sleep(0)

    async def gone(self) -> None:
        await self._gone.wait()

    def leave(self) -> None:
        """Be gone."""
        self._gone.set()

    async def next(self, seconds: float = 5.0) -> dict[str, Any]:
        """The next event; fails the test when none comes."""
        async with asyncio.timeout(seconds):
            event: dict[str, Any] = orjson.loads(await self._lines.get())
        return event

    async def take(self, count: int) -> list[dict[str, Any]]:
        """Several events."""
        return [await self.next() for _ in range(count)]

    async def quiet(self) -> bool:
        """Return whether no more events come from committed writes."""
        for _ in range(20):
            await asyncio.sleep(0)
        return self._lines.empty()


class Harness:
    """A server in memory with all declared kinds and the namespace `default`."""

    def __init__(
        self,
        *,
        store: Store | None = None,
        resources: Iterable[ServedResource] = (),
        settings: AdmissionSettings | None = None,
        networks: Iterable[Network] = (),
    ) -> None:
        self.store = store or MemoryStore()
        self.clock = Clock()
        self.registry = ResourceRegistry()
        self.rbac = Rbac(self.store)
        self.registry.add(*served.resources(settings or AdmissionSettings(), self.rbac, *networks), *resources)
        self._views = views.VIEWS if (settings or AdmissionSettings()).controllers else ()
        self._door = OpenDoor()
        # by target, with the revision of the store before the request
        self._answers: dict[str, tuple[int, Reply]] = {}

    async def __aenter__(self) -> "Harness":
        self.parts = ServerParts(self.store, self.registry, clock=self.clock, judge=self.rbac.answers, views=self._views)
        ending = assembly.install(self.parts)
        await ending.begin()
        self._ending = asyncio.create_task(ending.run())
        self.api = Api(self.parts, self._door, NoJournal())
        self.api.subresources["", "namespaces", "finalize", "update"] = lambda call: namespaces.finalize(self.parts, call)
        await self.namespace("default")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending.cancel()
        await asyncio.gather(self._ending, return_exceptions=True)
        await self.parts.following.close()
        await self.store.close()

    async def namespace(self, name: str) -> None:
        """Make a namespace, past the API."""
        key = StoreKey("namespaces", "", name)
        if self.store.get(key) is None:
            data = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "uid": self.clock.uid(), "creationTimestamp": self.clock.now()},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }
            await self.store.put(key, 0, lambda revision: stamp(data, revision)).committed()

    def client(self, user: str = trust.CONTROLLER) -> Client:
        """A client in this process, by default that of a controller."""
        return Client(LocalTransport(localtransport.door(self.api, user, trust.CONTROLLER_GROUPS)))

    async def answer(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """The answer of the road; header names may be written with underscores."""
        sent = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        if content:
            sent.setdefault("content-type", "application/json")
        return await self.api(HttpRequest(method, target, sent, content, ConnectionPeer("127.0.0.1")))

    async def call(self, method: str, target: str, body: Any = None, **headers: str) -> Reply:
        """A complete answer."""
        answer = await self.answer(method, target, body, **headers)
        assert isinstance(answer, HttpResponse), answer
        return Reply(answer)

    async def get(self, target: str, **headers: str) -> Reply:
        return await self.call("GET", target, **headers)

    async def current(self, target: str) -> Reply:
        """Return an object, asked for again only after a write: tests that wait look often, and nothing else changes the answer."""
        revision = self.store.revision
        if target not in self._answers or self._answers[target][0] != revision:
            self._answers[target] = revision, await self.get(target)
        return self._answers[target][1]

    async def post(self, target: str, body: Any, **headers: str) -> Reply:
        return await self.call("POST", target, body, **headers)

    async def put(self, target: str, body: Any, **headers: str) -> Reply:
        return await self.call("PUT", target, body, **headers)

    async def delete(self, target: str, body: Any = None, **headers: str) -> Reply:
        return await self.call("DELETE", target, body, **headers)

    async def merge(self, target: str, body: Any) -> Reply:
        """A merge patch."""
        return await self.call("PATCH", target, body, content_type="application/merge-patch+json")

    async def apply(self, target: str, body: Any, manager: str = "tester", *, force: bool = False) -> Reply:
        """A server-side apply."""
        mark = "&" if "?" in target else "?"
        target = f"{target}{mark}fieldManager={manager}&force={'true' if force else 'false'}"
        return await self.call("PATCH", target, body, content_type="application/apply-patch+yaml")

    @asynccontextmanager
    async def watch(self, target: str, **headers: str) -> AsyncIterator[Events]:
        """An open watch."""
        answer = await self.answer("GET", target, **headers)
        assert isinstance(answer, StreamResponse), answer
        events = Events()

        async def run() -> None:
            await answer.run(events)
            events.ended.set()

        task = asyncio.create_task(run())
        try:
            yield events
        finally:
            events.leave()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class NamedUsers:
    """Tokens that are names: `Bearer ada` is the user ada; `Bearer root` may do everything."""

    def user(self, token: str) -> User | None:
        if token == "root":
            return User("root", ("system:masters",))
        return User(token) if token.isalpha() else None


class GuardedHarness(Harness):
    """A server whose door is shut: tokens, rights, reviews. Requests without credentials are anonymous."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    async def __aenter__(self) -> "GuardedHarness":
        await super().__aenter__()
        self.tokens = AccountTokens(own_keyring(self._folder), self.parts.view, self.clock)
        identities = Identities((NamedUsers(), self.tokens))
        subresources = self.api.subresources
        self.api = Api(self.parts, Guard(identities, self.rbac), NoJournal())
        self.api.subresources.update(subresources)
        self.api.subresources.update(Reviews(self.parts, identities, self.rbac, self.tokens).handlers())
        return self
