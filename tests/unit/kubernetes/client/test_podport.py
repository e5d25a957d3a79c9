"""A port of a pod through an API server: the kubelet's channels, in whole messages and in parts."""

import asyncio

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Request

from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.http.websocket import WebSocket, connected, pod_port
from tests.coroutines import played_by
from tests.unit.kubernetes.client.talking import listening, play
from tests.unit.kubernetes.client.test_proxy import Proxy

# Each channel begins with the number of its port.
HEADS = (BytesMessage(data=b"\x00\xfb\x20"), BytesMessage(data=b"\x01\xfb\x20"))


class Kubelet:
    """It answers the first message with events of its own."""

    def __init__(self, *answers: Event) -> None:
        self._answers = answers
        self.target = ""
        self.protocols: list[str] = []
        self.heard: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = WSConnection(ConnectionType.SERVER)
        while data := await reader.read(65536):
            protocol.receive_data(data)
            for event in protocol.events():
                if isinstance(event, Request):
                    self.target, self.protocols = event.target, event.subprotocols
                    writer.write(protocol.send(AcceptConnection(subprotocol=event.subprotocols[0])))
                elif isinstance(event, BytesMessage):
                    self.heard.append(bytes(event.data))
                    for answer in self._answers:
                        # Piece by piece, as a network may bring it.
                        for byte in protocol.send(answer):
                            writer.write(bytes([byte]))
                            await writer.drain()


async def all_of(stream: WebSocket) -> bytes:
    data = b""
    while piece := await stream.receive():
        data += piece
    return data


@played_by(play)
async def test_bytes_pass_without_their_channels() -> None:
    halves = (BytesMessage(data=b"\x00hel", message_finished=False), BytesMessage(data=b"lo"))
    kubelet = Kubelet(*HEADS, *halves, BytesMessage(data=b"\x00 world"), CloseConnection(code=1000))
    async with listening(kubelet) as port:
        access = Access(server=f"http://127.0.0.1:{port}/prefix", credentials=StaticCredential())
        async with pod_port(access, "cdi", "proxy-1", 8443) as stream:
            await stream.send(b"hi")
            assert await all_of(stream) == b"hello world"
    assert kubelet.target == "/prefix/api/v1/namespaces/cdi/pods/proxy-1/portforward?ports=8443"
    assert kubelet.protocols == ["v4.channel.k8s.io"] and kubelet.heard[-1] == b"\x00hi"


@played_by(play)
async def test_what_a_server_says_at_once_is_received_at_once() -> None:
    """Its answer and its first words may come in one piece, and nothing after them."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = WSConnection(ConnectionType.SERVER)
        protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
        (request,) = protocol.events()
        assert isinstance(request, Request)
        accepted = protocol.send(AcceptConnection(subprotocol=request.subprotocols[0]))
        writer.write(accepted + protocol.send(BytesMessage(data=b"SSH-2.0")))
        await reader.read()

    async with listening(greet) as port:
        access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())
        async with connected(access, "/portforward/22/tcp") as stream, asyncio.timeout(60):
            assert await stream.receive() == b"SSH-2.0"


@pytest.mark.parametrize("answer", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 101 Fine\r\n\r\n", b""])
@played_by(play)
async def test_a_server_that_speaks_no_websocket_is_named(answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with listening(say) as port:
        access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())
        with pytest.raises(Unreachable):
            async with connected(access, "/console"):
                pass


@played_by(play)
async def test_a_proxy_leads_to_the_api_server() -> None:
    kubelet, through = Kubelet(*HEADS, BytesMessage(data=b"\x00hello"), CloseConnection(code=1000)), Proxy()
    async with listening(kubelet) as port, listening(through.http) as way:
        access = Access(server=f"http://kube.test:{port}", proxy=f"http://127.0.0.1:{way}", credentials=StaticCredential())
        async with pod_port(access, "default", "export", 8443) as stream:
            await stream.send(b"hi")
            assert await all_of(stream) == b"hello"
        assert through.asked[-1] == f"CONNECT kube.test:{port} HTTP/1.1"


@played_by(play)
async def test_what_the_kubelet_cannot_do_is_an_error() -> None:
    kubelet = Kubelet(*HEADS, BytesMessage(data=b"\x01connection refused"))
    async with listening(kubelet) as port:
        access = Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential())
        async with pod_port(access, "default", "export", 8443) as stream:
            await stream.send(b"hi")
            with pytest.raises(Unreachable, match="connection refused"):
                await stream.receive()
