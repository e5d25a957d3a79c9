"""Two hosts in virtual time, and a person who moves machines between them. A channel in memory carries the disks."""

import asyncio
import base64
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from paddock.app.uploads import wiring as uploads
from paddock.fleet.machines import finding
from paddock.fleet.moves import preflight, sides, undoing
from paddock.fleet.moves.mover import MachineMover, MoveOptions
from paddock.fleet.moves.plan.moveplan import MovePlan
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.moves.undoing import MoveUndoer
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from paddock.kubevirt.disklinks import DiskLink
from tests import virtualtime
from tests.kit.engine.fakehost import FakeHost

NAMES = ("here", "there")


class Killed(BaseException):
    """The command is killed."""


class Fuse:
    """Kills the command at its n-th request, before the request reaches the server or after it did."""

    def __init__(self, left: int = -1, *, after: bool = False) -> None:
        self.left = left
        self.after = after
        self.count = 0

    def burn(self, *, after: bool) -> None:
        """Count a request."""
        if not after:
            self.count += 1
        if self.left >= 0 and self.after is after and self.count > self.left:
            raise Killed


class FusedTransport:
    """A transport with a fuse. It answers for the authorizer, which these servers lack: the user may all but `refused`.

    A server that passes for a cluster has the version of one.
    """

    def __init__(self, inner: Transport, fuse: Fuse, refused: set[str], *, is_cluster: bool) -> None:
        self._inner = inner
        self._fuse = fuse
        self._refused = refused
        self._is_cluster = is_cluster

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if ask.target.endswith("/selfsubjectaccessreviews"):
            wanted = json.loads(ask.body)["spec"]["resourceAttributes"]
            path = "/".join(filter(None, (wanted["resource"], wanted.get("subresource"))))
            is_allowed = not self._refused & {path, f"{wanted['verb']} {path}"}
            return TransportResponse(201, {}, json.dumps({"status": {"allowed": is_allowed}}).encode())
        if self._is_cluster and ask.target == "/version":
            return TransportResponse(200, {}, json.dumps({"gitVersion": "v1.36.0"}).encode())
        self._fuse.burn(after=False)
        answer = await self._inner.send(ask)
        self._fuse.burn(after=True)
        return answer

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        return await self._inner.stream(ask)

    async def close(self) -> None:
        await self._inner.close()


class MemoryChannel:
    """Carries disks between the hosts. The content of a disk is what its claim was given, or its name."""

    def __init__(self, hosts: "TwoHosts") -> None:
        self._hosts = hosts
        self.sent: list[bytes] = []
        # what the source says of a disk's length
        self.said: int | None = None
        self.fail: Callable[[], None] = lambda: None

    async def length(self, link: DiskLink) -> int | None:
        return self.said

    async def receive(self, link: DiskLink) -> AsyncIterator[bytes]:
        claim = urlsplit(link.url).path.split("/")[-2]
        assert link.packed
        data = gzip.compress(self._hosts.content(claim), mtime=0)
        for start in range(0, len(data), 1000):
            self.fail()
            yield data[start : start + 1000]

    async def send(self, link: DiskLink, chunks: AsyncIterator[bytes], length: int | None, seconds: float = 0.0) -> None:
        assert length is None
        text = link.token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        receiving = self._hosts.receiver()

        async def raw() -> AsyncIterator[bytes]:
            unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
            async for chunk in chunks:
                yield unpacker.decompress(chunk)
            assert unpacker.eof

        await receiving.receive(Key(claims["namespace"], claims["name"]), claims["uid"], raw(), None)
        self.sent.append(claims["name"])


class TwoHosts:
    """Two hosts, and what runs on them. `twice` has every moment at which a machine ran on both."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.hosts: dict[str, FakeHost] = {}
        self.fuse = Fuse()
        # resources that the user may not touch; `VERB RESOURCE` for a single verb
        self.refused: set[str] = set()
        # the hosts that pass for clusters
        self.clusters: set[str] = set()
        self.channel = MemoryChannel(self)
        self.lines: list[str] = []
        self.options: dict[str, Any] = {}
        self.disks: dict[str, bytes] = {}
        self.twice: list[str] = []
        self.target = "there"

    async def __aenter__(self) -> "TwoHosts":
        for name in NAMES:
            (self._root / name).mkdir(exist_ok=True)
            host = await FakeHost(self._root / name).__aenter__()
            self.hosts[name] = host
            assert host.control.storage is not None
            uploads.install(host.api.api, host.api.parts, host.control.storage.receiving)
            system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
            assert (await host.api.post("/api/v1/namespaces", system)).status in (201, 409)
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
        for host in self.hosts.values():
            await host.__aexit__(kind, error, trace)

    async def _watch(self) -> None:
        """Look ten times a second, in virtual time, at what runs on both."""
        while True:
            running = [{name for name in ("web", "node") if await self.guest(each, name)} for each in NAMES]
            self.twice += sorted(running[0] & running[1])
            await asyncio.sleep(0.1)

    async def guest(self, where: str, name: str) -> bool:
        """Return True if the engine of a host runs the guest."""
        vmi = await self.hosts[where].vmi(name)
        found = self.hosts[where].engine.machines.get(vmi["metadata"]["uid"]) if vmi else None
        return found is not None and found.observed.holds_disks

    def content(self, claim: str) -> bytes:
        """Return what a claim holds."""
        return self.disks.get(claim, claim.encode() * 1000)

    def receiver(self) -> Any:
        """Return the uploads of the target."""
        storage = self.hosts[self.target].control.storage
        assert storage is not None
        return storage.receiving

    def client(self, where: str) -> Client:
        """Return a client with the fuse."""
        inner = self.hosts[where].api.client()._transport
        return Client(FusedTransport(inner, self.fuse, self.refused, is_cluster=where in self.clusters))

    async def side(self, where: str) -> MoveSide:
        """Return a side."""
        access = Access(server=f"https://{where}", credentials=StaticCredential())
        found = await sides.side(ServerSession(self.client(where), access, "default", virtualtime.Clock()), "default")
        # The hosts of a test draw the same UIDs.
        return msgspec.structs.replace(found, uid=where)

    def _options(self) -> MoveOptions:
        return MoveOptions(**{"seconds": 300.0, **self.options})

    async def plan(self, name: str = "web", source: str = "here", target: str = "there") -> MovePlan:
        """The plan of a move."""
        one, two = await self.side(source), await self.side(target)
        return await preflight.MovePreflight(one, two, self._options()).plan(await finding.find(one.client, name, "default"))

    async def move(self, name: str = "web", source: str = "here", target: str = "there") -> str:
        """Plan, and move."""
        self.target = target
        planned = await self.plan(name, source, target)
        assert not planned.obstacles, planned.obstacles
        one, two = await self.side(source), await self.side(target)
        machine = await finding.find(one.client, name, "default")
        if self.options.get("replace") and (earlier := await preflight.earlier_source(two, machine)) is not None:
            await undoing.remove(two, earlier, self.lines.append)
        mover = MachineMover((one, two), self.channel, self._options(), self.lines.append, lambda *_: None)
        return await mover.move(machine)

    async def undo(self, name: str = "web") -> str:
        """Take it back."""
        one, two = await self.side("here"), await self.side("there")
        return await MoveUndoer(one, two, 300.0, self.lines.append).undo(await finding.find(one.client, name, "default"))

    async def delete_source(self, name: str = "web") -> str:
        """Delete the source."""
        one, two = await self.side("here"), await self.side("there")
        return await undoing.delete_source(one, two, await finding.find(one.client, name, "default"), self.lines.append)
