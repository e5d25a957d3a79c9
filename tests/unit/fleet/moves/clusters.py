"""A small cluster on loopback: an API server that has objects by path, and ports of pods that lead to servers of the test."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Request

from paddock.base.clock import SystemClock
from paddock.fleet.moves.sides import MoveSide
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https
from tests.unit.kubernetes.client.talking import listening

Data = dict[str, Any]
_CHUNK = 1 << 16


class FakeCluster:
    """The API server. A path that it does not have is not found, one of `forbidden` is refused."""

    def __init__(self) -> None:
        self.objects: dict[str, Data] = {}
        self.forbidden: set[str] = set()
        # the rights that the user lacks, as `VERB RESOURCE`
        self.refused: set[str] = set()
        # pod and its port -> port of this host
        self.ports: dict[str, int] = {}
        # after so many bytes the pod is gone
        self.lives_for = 1 << 40
        self.asked: list[str] = []

    def pods(self, namespace: str, **ready: bool) -> None:
        """Set the pods of a namespace, in their order."""
        ports = [{"name": "https", "containerPort": 8443}]
        self.objects[f"/api/v1/namespaces/{namespace}/pods"] = {
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": name.replace("_", "-"), "namespace": namespace},
                    "spec": {"containers": [{"ports": ports}]},
                    "status": {"conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]},
                }
                for name, is_ready in ready.items()
            ],
        }

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.decode().split(" ", 2)
            path = target.partition("?")[0]
            self.asked.append(f"{method} {target}")
            if b"upgrade: websocket" in head.lower() and path not in self.forbidden:
                await self._forward(head, target, reader, writer)
                return
            size = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0)
            sent = await reader.readexactly(size)
            if path.endswith("/selfsubjectaccessreviews"):
                self.objects[path] = {"status": {"allowed": self._may(json.loads(sent)["spec"]["resourceAttributes"])}}
            status = 403 if path in self.forbidden else 200 if path in self.objects else 404
            reason = {403: "Forbidden", 404: "NotFound"}.get(status, "")
            refusal = {"kind": "Status", "apiVersion": "v1", "code": status, "reason": reason, "message": f"no {path}"}
            body = json.dumps(self.objects.get(path, {}) if status == 200 else refusal).encode()
            writer.write(b"HTTP/1.1 %d x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body))
            await writer.drain()

    def _may(self, wanted: Data) -> bool:
        path = "/".join(filter(None, (wanted["resource"], wanted["subresource"])))
        return f"{wanted['verb']} {path}" not in self.refused

    async def _forward(self, head: bytes, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer as a kubelet does: a message begins with its channel, and each channel with the number of the port."""
        protocol = WSConnection(ConnectionType.SERVER)
        protocol.receive_data(head)
        (request,) = protocol.events()
        assert isinstance(request, Request)
        writer.write(protocol.send(AcceptConnection(subprotocol=request.subprotocols[0])))
        place, _, number = target.partition("/portforward?ports=")
        port = self.ports[f"{place.rpartition('/')[2]}:{number}"]
        for channel in (b"\x00", b"\x01"):
            writer.write(protocol.send(BytesMessage(data=channel + int(number).to_bytes(2, "little"))))
        pod_reader, pod_writer = await asyncio.open_connection("127.0.0.1", port)
        back = asyncio.create_task(self._back(protocol, pod_reader, writer))
        is_first = True
        try:
            while data := await reader.read(_CHUNK):
                protocol.receive_data(data)
                for event in protocol.events():
                    if isinstance(event, BytesMessage):
                        # Only the beginning of a message has its channel.
                        pod_writer.write(bytes(event.data)[1 if is_first else 0 :])
                        is_first = event.message_finished
        finally:
            back.cancel()
            pod_writer.close()

    async def _back(self, protocol: WSConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            self.lives_for -= len(data)
            if self.lives_for < 0:
                break
            writer.write(protocol.send(BytesMessage(data=b"\x00" + data)))
            await writer.drain()
        writer.close()

    @asynccontextmanager
    async def side(self) -> AsyncIterator[MoveSide]:
        """The cluster as one side of a move."""
        async with listening(self) as port:
            access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())
            async with Client(Https(access), ClientSettings()) as client:
                yield MoveSide(session=ServerSession(client, access, "default", SystemClock()), uid="u", namespace="default")
