"""The client of one VMM's API: HTTP over its unix socket.

Each call opens a connection of its own. A request that does not fit the facts of the API is an error of the driver and is never sent.
"""

import asyncio
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.firecracker import apifacts

_MOST_ANSWER = 4 << 20
_SECONDS = 30.0
_MOST_TEXT = 300
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class ApiCall(msgspec.Struct, frozen=True):
    """A call with its body. The body may hold a guest's data and appears in no representation."""

    method: str
    path: str
    body: Any = None

    def __repr__(self) -> str:
        return f"ApiCall({self.method} {self.path})"


class VmmRefusal(ProviderError):
    """The VMM refused a call."""


class VmmApi:
    """The API of one VMM. A VMM can put anything in the place of its socket, so only an answer of its process counts."""

    def __init__(self, path: Path, pid: int, seconds: float = _SECONDS) -> None:
        self._place = path
        self._pid = pid
        self._seconds = seconds

    async def get(self, path: str) -> Any:
        """Return what the VMM says of itself."""
        return await self.send(ApiCall("GET", path))

    async def state(self) -> str:
        """Return the VMM's state: Not started, Running or Paused."""
        found = await self.get("/")
        return str(found.get("state", "")) if isinstance(found, dict) else ""

    async def send(self, call: ApiCall) -> Any:
        """Make a call and return its answer, None for an empty one. Raises `ProviderError`."""
        known = apifacts.find(call.method, call.path)
        assert known is not None, f"the API has no {call.method} {call.path}"
        problem = apifacts.problem(*known, call.body)
        assert not problem, f"{call.method} {call.path}: {problem}"
        content = b"" if call.body is None else msgspec.json.encode(call.body)
        try:
            async with asyncio.timeout(self._seconds):
                status, answer = await self._exchange(call, content)
        except TimeoutError:
            raise ProviderError(ErrorKind.TIMEOUT, f"Firecracker does not answer {call.method} {call.path}") from None
        except (OSError, EOFError, ValueError) as error:
            why = getattr(error, "strerror", "") or type(error).__name__
            raise ProviderError(ErrorKind.UNAVAILABLE, "Firecracker's API socket cannot be reached", why=why) from error
        if status >= 300:
            # The text may repeat what was sent of a guest's data; of the document's calls only MMDS and boot arguments hold some.
            raise VmmRefusal(ErrorKind.CONFLICT, f"Firecracker refused {call.method} {call.path}", why=_fault(call, answer))
        return msgspec.json.decode(answer) if answer.strip() else None

    async def _exchange(self, call: ApiCall, content: bytes) -> tuple[int, bytes]:
        # A path of a socket has 107 bytes at most, and a directory's may be longer.
        folder = os.open(self._place.parent, _DIRECTORY)
        try:
            reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{folder}/{self._place.name}", limit=_MOST_ANSWER)
        finally:
            os.close(folder)
        try:
            _check_peer(writer, self._pid)
            head = f"{call.method} {call.path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
            if content:
                head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
            writer.write(f"{head}\r\n".encode() + content)
            await writer.drain()
            return await _answer(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


def _check_peer(writer: asyncio.StreamWriter, pid: int) -> None:
    found = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    if struct.unpack("3i", found)[0] != pid:
        raise ValueError("another process has the socket")


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ")[1])
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    size = int(fields.get("content-length", "0"))
    if size > _MOST_ANSWER:
        raise ValueError("the answer is too large")
    return status, await reader.readexactly(size) if size else b""


def _fault(call: ApiCall, answer: bytes) -> str:
    if call.path in ("/mmds", "/boot-source"):
        return "the VMM's log says why"
    with suppress(msgspec.DecodeError):
        found = msgspec.json.decode(answer)
        if isinstance(found, dict) and isinstance(text := found.get("fault_message"), str):
            return " ".join(text.split())[:_MOST_TEXT]
    return "no reason given"
