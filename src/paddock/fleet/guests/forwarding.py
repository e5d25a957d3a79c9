"""Ports of this host that lead to ports of a guest, over the server's port-forward subresource. No route to the guest is needed."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Literal, cast

import msgspec

from paddock.base.descriptors import write_all
from paddock.base.errors import PaddockError, Terminal
from paddock.fleet.guests.guest import GuestAccess
from paddock.kubernetes.client.errors import ApiError, Unreachable
from paddock.kubernetes.client.http.websocket import WebSocket

_CHUNK = 64 << 10
_UDP_IDLE_SECONDS = 60.0
_MOST_FLOWS = 256
# After the end of the input, a guest that says nothing for so long has no more to say.
_LAST_WORDS_SECONDS = 5.0
Say = Callable[[str], None]


class BadPort(Terminal):
    """A port cannot be understood, or cannot be had."""


class PortForward(msgspec.Struct, frozen=True):
    """A port of this host (0: any) that leads to one of the guest."""

    address: str
    outside: int
    inside: int
    protocol: Literal["tcp", "udp"] = "tcp"


def parse(text: str, address: str = "127.0.0.1") -> PortForward:
    """Return what `[[ADDRESS:]HOST:]GUEST[/udp]` means. `PORT` alone is the same port on both sides, `:PORT` any free port here."""
    ports, _, protocol = text.partition("/")
    rest, _, inside = ports.rpartition(":")
    given, _, outside = rest.rpartition(":")
    if given.startswith("[") and given.endswith("]"):
        given = given[1:-1]
    if protocol not in ("", "tcp", "udp"):
        raise BadPort(f'"{text}" is no port to forward', why=f'"{protocol}" is neither tcp nor udp')
    if ":" not in ports:
        outside = inside
    return PortForward(given or address, _number(text, outside or "0", 0), _number(text, inside, 1), "udp" if protocol == "udp" else "tcp")


def _number(text: str, word: str, least: int) -> int:
    if not word.isascii() or not word.isdecimal() or not least <= int(word) <= 65535:
        raise BadPort(
            f'"{text}" is no port to forward', why=f'"{word}" is no port', fix="write [[ADDRESS:]HOST:]GUEST[/udp], such as 8080:80"
        )
    return int(word)


@contextlib.asynccontextmanager
async def listening(guest: GuestAccess, forwards: Sequence[PortForward], say: Say) -> AsyncIterator[list[PortForward]]:
    """Listen on all the ports; yield them with the ports that were taken. `say` gets the failure of a connection; the others go on."""
    async with contextlib.AsyncExitStack() as stack:
        taken = []
        for each in forwards:
            try:
                opened = _udp(guest, each, say) if each.protocol == "udp" else _tcp(guest, each, say)
                taken.append(msgspec.structs.replace(each, outside=await stack.enter_async_context(opened)))
            except OSError as error:
                fix = "choose another port, or :PORT for any that is free"
                what = f"cannot listen on {each.address} port {each.outside}"
                raise BadPort(what, why=error.strerror or str(error), fix=fix) from error
        yield taken


@contextlib.asynccontextmanager
async def _tcp(guest: GuestAccess, forward: PortForward, say: Say) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with guest.stream(f"portforward/{forward.inside}/tcp") as stream:
                await exchange(stream, reader, writing(writer))
        except PaddockError as error:
            say(f"port {forward.inside} of {guest.name}: {_words(error)}")
        except OSError:
            # The client went.
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, forward.address, forward.outside)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


def writing(writer: asyncio.StreamWriter) -> Callable[[bytes], Awaitable[None]]:
    """Return the function that writes to a stream, and waits for room."""

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    return write


async def exchange(stream: WebSocket, reader: asyncio.StreamReader, write: Callable[[bytes], Awaitable[None]]) -> None:
    """Bytes both ways, until the guest ends it, or the input has ended and the guest says no more."""
    heard = asyncio.Event()

    async def there() -> None:
        while data := await reader.read(_CHUNK):
            await stream.send(data)
        while heard.is_set():
            heard.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await heard.wait()

    async def back() -> None:
        while data := await stream.receive():
            heard.set()
            await write(data)

    heard.set()
    await first(there(), back())


async def first(*works: Coroutine[None, None, None]) -> None:
    """Run works until one ends; raise what it raised. The others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- UDP --------------------------------------------------------------------------------------------------------------------


class _Datagrams(asyncio.DatagramProtocol):
    """Datagrams of clients; each client has a flow of its own to the guest."""

    def __init__(self, carry: Callable[["_Flow"], Coroutine[None, None, None]]) -> None:
        self.flows: dict[tuple[str, int], _Flow] = {}
        self._carry = carry
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The loop's class is none by name.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        flow = self.flows.get(address)
        if flow is None and len(self.flows) < _MOST_FLOWS:
            flow = self.flows[address] = _Flow(address)
            flow.task = asyncio.ensure_future(self._carry(flow))
            flow.task.add_done_callback(lambda _: self.flows.pop(address, None))
        if flow is not None and data and flow.waiting.qsize() < _MOST_FLOWS:
            flow.waiting.put_nowait(data)

    def answer(self, data: bytes, address: tuple[str, int]) -> None:
        """Send a datagram to a client."""
        if self._transport is not None:
            self._transport.sendto(data, address)


class _Flow:
    """The datagrams of one client."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self.task: asyncio.Future[None] | None = None


@contextlib.asynccontextmanager
async def _udp(guest: GuestAccess, forward: PortForward, say: Say) -> AsyncIterator[int]:
    async def carry(flow: _Flow) -> None:
        try:
            async with guest.stream(f"portforward/{forward.inside}/udp") as stream:
                await first(_out(stream, flow), _in(stream, flow))
        except (PaddockError, OSError) as error:
            say(f"port {forward.inside}/udp of {guest.name}: {_words(error)}")

    async def _out(stream: WebSocket, flow: _Flow) -> None:
        with contextlib.suppress(TimeoutError):
            while True:
                async with asyncio.timeout(_UDP_IDLE_SECONDS):
                    data = await flow.waiting.get()
                await stream.send(data)

    async def _in(stream: WebSocket, flow: _Flow) -> None:
        while data := await stream.receive():
            protocol.answer(data, flow.address)

    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(
        lambda: _Datagrams(carry), local_addr=(forward.address, forward.outside), family=socket.AF_UNSPEC
    )
    try:
        yield int(transport.get_extra_info("sockname")[1])
    finally:
        transport.close()
        tasks = [flow.task for flow in protocol.flows.values() if flow.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- standard input and output ----------------------------------------------------------------------------------------------


async def stdio(guest: GuestAccess, port: int) -> None:
    """Connect standard input and output with a port of the guest."""

    async def write(data: bytes) -> None:
        await asyncio.to_thread(write_all, sys.stdout.fileno(), data)

    async with guest.stream(f"portforward/{port}/tcp") as stream:
        reader = asyncio.StreamReader()
        feeding = None
        try:
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        except (ValueError, PermissionError):
            feeding = asyncio.create_task(_feed(reader))
        try:
            await exchange(stream, reader, write)
        finally:
            if feeding is not None:
                feeding.cancel()


async def _feed(reader: asyncio.StreamReader) -> None:
    """Read a file, which is no pipe that could be waited for."""
    while data := await asyncio.to_thread(os.read, sys.stdin.fileno(), _CHUNK):
        reader.feed_data(data)
    reader.feed_eof()


async def banner(guest: GuestAccess, port: int, seconds: float) -> bytes:
    """Return the first bytes that a port of the guest says by itself; none if nobody listens there or speaks in time."""
    try:
        async with asyncio.timeout(seconds), guest.stream(f"portforward/{port}/tcp") as stream:
            return await stream.receive()
    except (TimeoutError, Unreachable):
        return b""
    except ApiError as error:
        if "refused" in str(error) or "cannot reach" in str(error):
            return b""
        raise


def _words(error: Exception) -> str:
    return str(error).removeprefix("Internal error occurred: ")
