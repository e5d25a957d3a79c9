"""The simulator on a loopback port, over HTTPS or HTTP, with faults that a test scripts.

    async with ProxmoxServer(Simulator(("pve1", "pve2"))) as server:
        token = server.simulator.access.add_token("paddock@pve", "driver", separated=False)
        server.faults.append(Fault(r"POST /nodes/pve1/qemu", "lost-answer"))

`python -m tests.kit.proxmox --help` starts one for a person.
"""

import asyncio
import contextlib
import re
import socket
import ssl
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kit.providers import providertls
from tests.kit.proxmox.errors import ApiError
from tests.kit.proxmox.simulator import BASE, Request, Response, Simulator

# What the real server reads.
_MOST_HEADERS, _MOST_HEADER_BYTES, _MOST_POST = 64, 8 << 10, 512 << 10
_MOST_HEAD = 64 << 10
EFFECTS = ("delay", "lost-answer", "error", "late-error", "reset", "hang", "cut")


@dataclass
class Fault:
    """What happens to calls whose "METHOD /path" the pattern matches as a whole.

    delay: the answer waits for `seconds`. lost-answer: the work is done, and the connection closes. error: nothing is done, and `status`
    is the answer; late-error: the work is done before it. reset: the connection is reset before anything is done. hang: no answer comes
    until the client gives up. cut: half of the answer comes.
    """

    call: str
    effect: str
    # Calls that are spared first, and those that are hit; 0 means all.
    after: int = 0
    count: int = 1
    seconds: float = 0.1
    status: int = 500
    reason: str = "got timeout"

    def __post_init__(self) -> None:
        assert self.effect in EFFECTS, self.effect


class ProxmoxServer:
    """A server of the API. `entry` is the node that it is; while that node is offline, nobody answers.

    `name` stands in its certificate and its URL.
    """

    def __init__(self, simulator: Simulator | None = None, *, tls: bool = True, entry: str = "", name: str = "localhost") -> None:
        self.simulator = simulator or Simulator()
        if entry:
            self.simulator.park.entry = entry
        self.faults: list[Fault] = []
        # How long every answer takes.
        self.answer_seconds = 0.0
        self.authority = providertls.Authority() if tls else None
        self.url = ""
        self._name = name
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def ca_pem(self) -> bytes:
        """The authority that a client must trust."""
        assert self.authority is not None
        return self.authority.pem

    async def __aenter__(self) -> "ProxmoxServer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen; after `stop` on the same port again, as a node that comes back."""
        context = _context(self.authority, self._name) if self.authority else None
        port = port or int(self.url.rpartition(":")[2] or 0)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=context, limit=_MOST_HEAD)
        host = self._name if self.authority else "127.0.0.1"
        self.url = f"{'https' if self.authority else 'http'}://{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        """Close the port and all connections, as a node that goes away."""
        if self._server is not None:
            self._server.close()
            for task in list(self._open):
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._open.discard(task)
            with contextlib.suppress(RuntimeError):
                writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False when the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if "transfer-encoding" in headers:
            await _write(writer, Response(501, "chunked transfer encoding not supported", b"", "text/plain"), close=True)
            return False
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if refusal := _too_large(head, body, headers):
            await _write(writer, refusal, close=True)
            return False
        request = Request(method, target, headers, body)
        if not self.simulator.cluster.nodes[self.simulator.park.entry].online:
            _reset(writer)
            return False
        return await self._answer(request, writer)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        fault = self._fault(request)
        effect = fault.effect if fault else ""
        if self.answer_seconds or effect == "delay":
            await asyncio.sleep(self.answer_seconds + (fault.seconds if fault and effect == "delay" else 0.0))
        if effect == "reset":
            _reset(writer)
            return False
        if effect == "hang":
            await asyncio.Event().wait()
        response = self.simulator.handle(request) if effect != "error" else _error(fault)
        if effect == "lost-answer":
            return False
        if effect == "late-error":
            response = _error(fault)
        close = request.headers.get("connection", "").lower() == "close"
        await _write(writer, response, close=close, cut=effect == "cut")
        return not close and effect != "cut"

    def _fault(self, request: Request) -> Fault | None:
        call = f"{request.method} {request.target.partition('?')[0].removeprefix(BASE)}"
        for fault in self.faults:
            if not re.fullmatch(fault.call, call):
                continue
            if fault.after:
                fault.after -= 1
                continue
            if fault.count == 1:
                self.faults.remove(fault)
            elif fault.count:
                fault.count -= 1
            return fault
        return None


def _too_large(head: str, body: bytes, headers: Mapping[str, str]) -> Response | None:
    if head.count("\r\n") > _MOST_HEADERS or len(head) > _MOST_HEADER_BYTES:
        return Response(506, "unable to parse request header", b"", "text/plain")
    if len(body) > _MOST_POST and not headers.get("content-type", "").startswith("multipart/"):
        return Response(501, "for data too large", b"", "text/plain")
    return None


def _reset(writer: asyncio.StreamWriter) -> None:
    # Closed with nothing to wait for, a socket sends RST instead of FIN.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _error(fault: Fault | None) -> Response:
    error = ApiError(fault.status, fault.reason) if fault else ApiError(500, "fault")
    return Response(error.status, error.reason, b'{"data":null}')


async def _write(writer: asyncio.StreamWriter, response: Response, *, close: bool = False, cut: bool = False) -> None:
    lines = [
        f"HTTP/1.1 {response.status} {response.reason}",
        "Server: pve-api-daemon/3.0",
        "Cache-Control: max-age=0",
        f"Connection: {'close' if close else 'Keep-Alive'}",
        f"Content-Type: {response.type}",
        f"Content-Length: {len(response.body)}",
    ]
    data = "\r\n".join(lines).encode("utf-8", "replace") + b"\r\n\r\n" + response.body
    writer.write(data[: len(data) // 2] if cut else data)
    await writer.drain()


def _context(authority: providertls.Authority, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        place = providertls.write(Path(folder), authority.issue(name, common=name))
        context.load_cert_chain(place / "tls.crt", place / "tls.key")
    return context
