"""QEMU's monitor protocol: lines of JSON over a UNIX socket. One connection, one owner.

Why not the `qemu.qmp` package (0.0.3 was measured): it would do, but a connection takes 20 KiB there and 2 KiB here, a command 105 µs of
CPU there and 42 µs here, it has no bound on how long a command waits, and what is left for a dependency to do is small.

Everything happens in the loop's reader callback: an answer wakes its waiter, an event goes to its listeners at once. There is no task.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from paddock.engine.machine.errors import QemuRefused, Unanswered

# No answer of QEMU comes near; what is longer is not QEMU.
_LONGEST = 8 * 2**20
_CHUNK = 2**16
# An ordinary command takes a millisecond; a busy host may need far longer.
PATIENCE = 10.0
# It cannot be taken back: QEMU reads it when it goes on.
UNKNOWN = "whether it is done is not known, and it may be done later: look at the machine before you ask again"


def open_socket(folder: Path, name: str) -> socket.socket:
    """Connects to a socket in a folder, however long the folder's path is. Raises `OSError`."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(f"/proc/self/fd/{handle}/{name}")
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(handle)
    return connection


class Qmp:
    """A connection to QEMU's monitor."""

    def __init__(self, connection: socket.socket, tell: Callable[[str, Mapping[str, Any]], None], lost: Callable[[], None]) -> None:
        """`tell` gets an event's name and data; `lost` is called once, when QEMU is gone or talks nonsense. Neither may raise."""
        self._socket = connection
        self._tell = tell
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._unsent: list[tuple[bytes, Sequence[int], asyncio.Future[Any]]] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._greeting: asyncio.Future[Any] = self._loop.create_future()
        self.closed = False
        self._loop.add_reader(connection, self._readable)

    @classmethod
    async def connect(
        cls,
        connection: socket.socket,
        tell: Callable[[str, Mapping[str, Any]], None],
        lost: Callable[[], None],
        patience: float = PATIENCE,
    ) -> "Qmp":
        """Greets QEMU and agrees on what both can do."""
        qmp = cls(connection, tell, lost)
        try:
            async with asyncio.timeout(patience):
                await qmp._greeting
            await qmp.execute("qmp_capabilities", patience=patience)
        except TimeoutError:
            qmp.close()
            raise Unanswered("cannot talk to QEMU", why=f"its monitor did not greet within {patience:g} s") from None
        except BaseException:
            qmp.close()
            raise
        return qmp

    async def execute(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, fds: Sequence[int] = (), patience: float | None = PATIENCE
    ) -> Any:
        """Return QEMU's answer. Raises `QemuRefused`, or `Unanswered` after `patience` seconds (None: never) or when QEMU goes."""
        if self.closed:
            raise Unanswered(f"cannot tell QEMU {command}", why="it is gone")
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"execute": command, "id": number}
        if arguments:
            message["arguments"] = arguments
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[number] = answer
        try:
            self._send(msgspec.json.encode(message) + b"\n", fds, answer)
            async with asyncio.timeout(patience):
                result = await answer
        except TimeoutError:
            raise Unanswered(f"QEMU did not answer {command}", why=f"nothing came within {patience:g} s", fix=UNKNOWN) from None
        finally:
            self._waiting.pop(number, None)
        if isinstance(result, Unanswered):
            raise Unanswered(f"QEMU did not answer {command}", why=result.what)
        if (error := result.get("error")) is not None:
            raise QemuRefused(f"QEMU refused {command}", kind=str(error.get("class", "")), description=str(error.get("desc", "")))
        return result.get("return")

    def close(self) -> None:
        """End the connection; whoever waits gets an error. `lost` is not called."""
        self._end("the connection was closed")

    def _send(self, data: bytes, fds: Sequence[int], answer: "asyncio.Future[Any]") -> None:
        self._unsent.append((data, fds, answer))
        if len(self._unsent) == 1:
            self._writable()

    def _writable(self) -> None:
        while self._unsent:
            data, fds, answer = self._unsent[0]
            if answer.done():
                # Given up before a byte of it went out.
                self._unsent.pop(0)
                continue
            try:
                sent = socket.send_fds(self._socket, [data], list(fds)) if fds else self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._socket, self._writable)
                return
            except OSError as error:
                self._fail(error.strerror or "it is gone")
                return
            if sent == len(data):
                self._unsent.pop(0)
            else:
                # The rest must follow, whether somebody still waits for the answer or not.
                self._unsent[0] = (data[sent:], (), self._loop.create_future())
        self._loop.remove_writer(self._socket)

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error.strerror or "it is gone")
            return
        if not data:
            self._fail("it is gone")
            return
        self._received += data
        if len(self._received) > _LONGEST:
            self._fail("its answer is too long")
            return
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            if self.closed:
                return
            if line.strip():
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            message = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            self._fail("what it says is not QMP")
            return
        if "event" in message:
            data = message.get("data")
            self._tell(str(message["event"]), data if isinstance(data, dict) else {})
        elif "QMP" in message:
            if not self._greeting.done():
                self._greeting.set_result(message["QMP"])
        else:
            waiting = self._waiting.get(message.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

    def _fail(self, why: str) -> None:
        if not self.closed:
            self._end(why)
            self._lost()

    def _end(self, why: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        with contextlib.suppress(OSError):
            self._socket.close()
        gone = Unanswered(why)
        if not self._greeting.done():
            self._greeting.set_exception(Unanswered("cannot talk to QEMU", why=why))
            # Nobody may be waiting for it.
            self._greeting.exception()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(gone)
