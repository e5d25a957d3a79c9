"""The agent inside the guest. One command at a time, each with a bound on its time and on the size of its answer.

The channel has no framing of its own, and what an agent said too late stays in it. So a conversation begins with `guest-sync-delimited`:
everything before the 0xFF byte that the agent sends then is old. After anything unexpected the next command begins so again.
Nothing is read while nothing is awaited: a guest that talks without end is stopped by its own full channel.
"""

import asyncio
import base64
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from paddock.engine.machine import agentdata, guest
from paddock.engine.machine.errors import AgentError

PATIENCE = 5.0
# A file system with much to write takes its time to stand still.
_FREEZE_PATIENCE = 60.0
# An agent that shuts its guest down does not answer, unless it refuses.
_SHUTDOWN_PATIENCE = 2.0
_SPAWN_PATIENCE = 15.0
_FILE_PATIENCE = 30.0
_CHUNK = 1 << 16


class Agent:
    """The guest agent. Every call may raise `AgentError`."""

    def __init__(self, name: str, connect: Callable[[], socket.socket]) -> None:
        """`connect` gives a connected, non-blocking socket or raises `OSError`."""
        self._name = name
        self._connect = connect
        self._turn = asyncio.Lock()
        self._socket: socket.socket | None = None
        self._synced = False
        self._received = bytearray()
        self._numbers = itertools.count(1)
        self.open = False

    def opened(self, is_open: bool) -> None:
        """The guest's end of the channel was opened or closed."""
        self.open = is_open
        self._synced = False

    def close(self) -> None:
        """The machine ended, or Paddock does."""
        self.open = False
        if self._turn.locked() and self._socket is not None:
            # Whoever waits for an answer wakes, and drops it.
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        else:
            self._drop()

    async def ping(self) -> None:
        """It answers. Where a conversation has to begin, its beginning is answer enough: an emulated guest takes 30 ms for each."""
        await self._ask("guest-ping", beginning=True)

    async def info(self) -> guest.AgentInfo:
        return agentdata.info(await self._ask("guest-info"))

    async def os(self) -> guest.GuestOs:
        return agentdata.os(await self._ask("guest-get-osinfo"))

    async def hostname(self) -> str:
        """The guest's name for itself."""
        answer = await self._ask("guest-get-host-name")
        return agentdata.text(answer.get("host-name") if isinstance(answer, dict) else "")

    async def timezone(self) -> guest.Timezone:
        return agentdata.timezone(await self._ask("guest-get-timezone"))

    async def users(self) -> tuple[guest.GuestUser, ...]:
        """Return the users that are logged in."""
        return agentdata.users(await self._ask("guest-get-users"))

    async def filesystems(self) -> tuple[guest.GuestFilesystem, ...]:
        """Return the mounted file systems."""
        return agentdata.filesystems(await self._ask("guest-get-fsinfo", patience=15.0))

    async def load(self) -> tuple[float, ...]:
        """The load over one, five and fifteen minutes. Agents before QEMU 9.3 do not know it, and refuse."""
        return agentdata.load(await self._ask("guest-get-load"))

    async def interfaces(self) -> tuple[guest.GuestInterface, ...]:
        """Network interfaces with their addresses."""
        return agentdata.interfaces(await self._ask("guest-network-get-interfaces"))

    async def freeze(self) -> int:
        """File systems stand still until `thaw`; returns how many."""
        return agentdata.number(await self._ask("guest-fsfreeze-freeze", patience=_FREEZE_PATIENCE))

    async def thaw(self) -> int:
        return agentdata.number(await self._ask("guest-fsfreeze-thaw", patience=_FREEZE_PATIENCE))

    async def frozen(self) -> bool:
        return bool(await self._ask("guest-fsfreeze-status") == "frozen")

    async def set_time(self, seconds: float) -> None:
        """Set the guest's clocks, in seconds since the epoch."""
        await self._ask("guest-set-time", {"time": int(seconds * 1e9)})

    async def set_password(self, user: str, password: str, *, crypted: bool = False) -> None:
        """Of a user of the guest."""
        encoded = base64.b64encode(password.encode()).decode()
        await self._ask("guest-set-user-password", {"username": user, "password": encoded, "crypted": crypted}, patience=15.0)

    async def add_keys(self, user: str, keys: Sequence[str], *, reset: bool = False) -> None:
        """SSH keys that may log in as the user; `reset`: and no others."""
        await self._ask("guest-ssh-add-authorized-keys", {"username": user, "keys": list(keys), "reset": reset})

    async def keys(self, user: str) -> tuple[str, ...]:
        """SSH keys that may log in as the user."""
        return agentdata.keys(await self._ask("guest-ssh-get-authorized-keys", {"username": user}))

    async def execute(self, argv: Sequence[str], timeout: float, stdin: bytes = b"") -> guest.GuestExecResult:
        """Runs a program in the guest and waits for its end."""
        try:
            async with asyncio.timeout(timeout):
                number = await self.spawn(argv, stdin, patience=timeout)
                result = None
                while result is None:
                    result = await self.outcome(number, timeout)
                return result
        except TimeoutError:
            what = f"cannot run {agentdata.text(argv[0])} in {self._name}"
            raise AgentError(what, reason="Unanswered", why=f"it did not end within {timeout:g} s") from None

    async def spawn(self, argv: Sequence[str], stdin: bytes = b"", *, patience: float = _SPAWN_PATIENCE) -> int:
        """Start a program in the guest; return its process number there."""
        arguments: dict[str, Any] = {"path": argv[0], "arg": list(argv[1:]), "capture-output": True}
        if stdin:
            arguments["input-data"] = base64.b64encode(stdin).decode()
        started = await self._ask("guest-exec", arguments, patience=patience)
        return agentdata.number(started.get("pid")) if isinstance(started, dict) else 0

    async def outcome(self, number: int, seconds: float) -> guest.GuestExecResult | None:
        """Return the outcome of a program that `spawn` started; None: it still runs after so many seconds.

        The agent hands an outcome out once, and forgets it.
        """
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + seconds, 0.03
        while True:
            patience = max(PATIENCE, end - loop.time())
            result = agentdata.executed(await self._ask("guest-exec-status", {"pid": number}, patience=patience))
            if result is not None or loop.time() + pause > end:
                return result
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)

    async def read_file(self, path: str, offset: int, count: int) -> tuple[bytes, bool]:
        """Return bytes of a file of the guest, and whether it ends there. Each call opens the file anew, so that none stays open."""
        async with self._file(path, "rb") as handle:
            if offset:
                await self._ask("guest-file-seek", {"handle": handle, "offset": offset, "whence": "set"})
            answer = await self._ask("guest-file-read", {"handle": handle, "count": count}, patience=_FILE_PATIENCE)
            return agentdata.file_part(answer, count)

    async def write_file(self, path: str, offset: int, data: bytes) -> None:
        """Write into a file of the guest; at offset 0 it begins anew."""
        async with self._file(path, "r+b" if offset else "wb") as handle:
            if offset:
                await self._ask("guest-file-seek", {"handle": handle, "offset": offset, "whence": "set"})
            left = data
            while left:
                arguments = {"handle": handle, "buf-b64": base64.b64encode(left).decode()}
                answer = await self._ask("guest-file-write", arguments, patience=_FILE_PATIENCE)
                written = agentdata.number(answer.get("count")) if isinstance(answer, dict) else 0
                if not 0 < written <= len(left):
                    raise AgentError(f"cannot write a file of {self._name}", reason="Refused", why="the guest took none of the data")
                left = left[written:]
            await self._ask("guest-file-flush", {"handle": handle}, patience=_FILE_PATIENCE)

    @contextlib.asynccontextmanager
    async def _file(self, path: str, mode: str) -> AsyncIterator[int]:
        handle = agentdata.number(await self._ask("guest-file-open", {"path": path, "mode": mode}))
        try:
            yield handle
        finally:
            with contextlib.suppress(AgentError):
                await self._ask("guest-file-close", {"handle": handle})

    async def shutdown(self, mode: Literal["powerdown", "reboot", "halt"] = "powerdown") -> None:
        """Begins it; nothing tells that it will succeed."""
        try:
            await self._ask("guest-shutdown", {"mode": mode}, patience=_SHUTDOWN_PATIENCE)
        except AgentError as error:
            if error.reason != "Unanswered":
                raise

    async def _ask(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, patience: float = PATIENCE, beginning: bool = False
    ) -> Any:
        """Return the agent's answer; with `beginning`, None when a conversation had to begin, which it did."""
        what = f"cannot ask the agent of {self._name} for {command}"
        if not self.open:
            raise AgentError(what, reason="NotConnected", why="no agent has opened its channel", fix="install and start qemu-guest-agent")
        message: dict[str, Any] = {"execute": command}
        if arguments:
            message["arguments"] = arguments
        try:
            async with asyncio.timeout(patience), self._turn:
                try:
                    if await self._synchronise() and beginning:
                        return None
                    await self._send(msgspec.json.encode(message) + b"\n")
                    answer = agentdata.parse(await self._line())
                except BaseException:
                    # What it may still say belongs to nobody.
                    self._synced = False
                    raise
        except TimeoutError:
            raise AgentError(what, reason="Unanswered", why=f"it said nothing within {patience:g} s") from None
        except agentdata.MalformedAgentData as error:
            self._drop()
            raise AgentError(what, reason="Malformed", why=str(error)) from None
        except OSError as error:
            self._drop()
            raise AgentError(what, reason="NotConnected", why=error.strerror or "its channel is gone") from None
        if "return" in answer:
            return answer["return"]
        failure = answer.get("error")
        if not isinstance(failure, dict):
            raise AgentError(what, reason="Malformed", why="it neither answered nor refused")
        raise AgentError(what, reason="Refused", why=agentdata.text(failure.get("desc")) or "it did not say why")

    async def _synchronise(self) -> bool:
        """Synchronise with the agent; return whether that was necessary."""
        if self._socket is None:
            self._socket = self._connect()
            self._synced = False
        if self._synced:
            return False
        self._received.clear()
        number = next(self._numbers)
        # The first byte ends whatever an earlier command left half sent.
        message = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        await self._send(b"\xff" + msgspec.json.encode(message) + b"\n")
        heard, marked = 0, False
        while True:
            received = await self._receive()
            heard += len(received)
            if heard > agentdata.LONGEST:
                raise agentdata.MalformedAgentData("it talks without end")
            self._received += received
            # No JSON has this byte in it, so what stands before the last one is old, whatever it is.
            place = self._received.rfind(b"\xff")
            if place >= 0:
                marked = True
                del self._received[: place + 1]
            elif not marked:
                self._received.clear()
            line, end, rest = bytes(self._received).partition(b"\n")
            if not end or not marked:
                continue
            marked = False
            self._received = bytearray(rest)
            with contextlib.suppress(agentdata.MalformedAgentData):
                if agentdata.parse(line).get("return") == number:
                    self._synced = True
                    return True

    async def _line(self) -> bytes:
        searched = 0
        while (place := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > agentdata.LONGEST:
                raise agentdata.MalformedAgentData("its answer is too long")
            self._received += await self._receive()
        line = bytes(self._received[:place])
        del self._received[: place + 1]
        return line

    async def _receive(self) -> bytes:
        if self._socket is None:
            raise ConnectionResetError("its channel is gone")
        data = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)
        if not data:
            raise ConnectionResetError("its channel is gone")
        return data

    async def _send(self, data: bytes) -> None:
        if self._socket is None:
            raise ConnectionResetError("its channel is gone")
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    def _drop(self) -> None:
        self._synced = False
        self._received.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
