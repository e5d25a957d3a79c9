"""A terminal at the serial console of a guest, also while the guest is stopped and started again."""

import asyncio
import contextlib
import os
import termios
import tty
from collections.abc import Iterator
from typing import Literal, NamedTuple

from paddock.base.descriptors import write_all
from paddock.base.errors import Terminal
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.guests.guest import CONSOLE, GuestAccess, NotRunning
from paddock.fleet.machines.finding import MachineView, find
from paddock.kubernetes.client.errors import BadRequest, NotFound, Unreachable
from paddock.kubernetes.client.http.websocket import WebSocket

LEAVE = b"\x1d"
_CHUNK = 4096
_PAUSE_SECONDS = 0.5
# A machine that stops and is started again has a new instance within this time.
_RESTART_SECONDS = 30.0
End = Literal["left", "ended"]


class ConsoleWish(NamedTuple):
    """The session that a user wants: `wait` for a machine that is starting, `replay` the log first, go on over `restarts`."""

    wait: bool = False
    replay: bool = False
    restarts: bool = True


class ConsoleTaken(Terminal):
    """Another session has the console now."""


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Every key goes to the machine, ctrl+C too. Whatever happens, the terminal is put back."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Keyboard:
    """The typed bytes. A reading thread could not be stopped, so the loop watches the descriptor."""

    def __init__(self, source: int) -> None:
        self._source = source
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()

    def open(self) -> None:
        """Begin to read; an empty piece is the end."""
        try:
            asyncio.get_running_loop().add_reader(self._source, self._read)
        except PermissionError:
            # A file: it is all there already.
            while data := os.read(self._source, _CHUNK):
                self.pieces.put_nowait(data)
            self.pieces.put_nowait(b"")

    def close(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            asyncio.get_running_loop().remove_reader(self._source)

    def _read(self) -> None:
        try:
            data = os.read(self._source, _CHUNK)
        except OSError:
            # The terminal is gone.
            data = b""
        self.pieces.put_nowait(data)
        if not data:
            self.close()


async def exchange(stream: WebSocket, keyboard: Keyboard, target: int) -> End:
    """Bytes both ways, until ctrl+], the end of what is typed, or the end of the console."""

    async def typed() -> End:
        while data := await keyboard.pieces.get():
            before, leaves, _ = data.partition(LEAVE)
            if before:
                await stream.send(before)
            if leaves:
                return "left"
        return "left"

    async def said() -> End:
        while data := await stream.receive():
            await asyncio.to_thread(write_all, target, data)
        return "ended"

    tasks = [asyncio.create_task(typed()), asyncio.create_task(said())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ends = [await task for task in done]
        return "left" if "left" in ends else "ended"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def left(keyboard: Keyboard) -> None:
    """Return when the user leaves; what else is typed goes nowhere."""
    while data := await keyboard.pieces.get():
        if LEAVE in data:
            return


# --- over restarts --------------------------------------------------------------------------------------------------------------


async def attach(guest: GuestAccess, keyboard: Keyboard, target: int, wish: ConsoleWish) -> None:
    """Stay at the console until the user leaves, the machine is stopped for good, or another session takes the console."""
    connected = False
    while True:
        uid = guest.uid
        replays = wish.replay and not connected
        try:
            # The log has the last screen, too.
            async with guest.stream("console" if replays else CONSOLE) as stream:
                if replays:
                    write_all(target, await _replayed(guest))
                connected = True
                if await exchange(stream, keyboard, target) == "left":
                    return
        except (BadRequest, NotFound) as error:
            # The guest is not there yet, or no longer.
            if not connected and not wish.wait:
                fix = f"wait for it with --wait, or start it: `paddock start {guest.name}`"
                raise NotRunning(f"cannot open the console of {guest.name}", why=str(error), fix=fix) from error
        except Unreachable:
            if not connected:
                raise
        if connected and not wish.restarts:
            return
        leaving = asyncio.ensure_future(left(keyboard))
        following = asyncio.ensure_future(_follow(guest, uid if connected else "", None if wish.wait else _RESTART_SECONDS))
        try:
            await asyncio.wait((leaving, following), return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return
            guest = await following
        finally:
            for task in (leaving, following):
                task.cancel()
            await asyncio.gather(leaving, following, return_exceptions=True)


async def _replayed(guest: GuestAccess) -> bytes:
    """What the console said in this run."""
    with contextlib.suppress(NotFound):
        return await guest.console_log()
    return b""


async def _follow(guest: GuestAccess, before: str, seconds: float | None) -> GuestAccess:
    """Wait for a running guest that is another run than `before`. Raises `ConsoleTaken` if the run goes on without this session."""
    server, same = guest.server, 0
    begun = server.clock.seconds()
    while True:
        await asyncio.sleep(_PAUSE_SECONDS)
        machine = await _again(guest)
        now = GuestAccess(server, machine, guest.key)
        phase = texts(machine.vmi, "status", "phase") if machine.vmi is not None else ""
        if phase == "Running" and now.uid != before:
            return now
        # A guest that is just going still says that it runs, for a moment.
        same = same + 1 if phase == "Running" and not texts(machine.vmi, "metadata", "deletionTimestamp") else 0
        if before and same >= 6:
            fix = "attach again to take it back; one session at a time has it"
            raise ConsoleTaken(f"the console of {guest.name} ended", why="another session took it", fix=fix)
        if seconds is not None and server.clock.seconds() - begun > seconds:
            raise NotRunning(f"the console of {guest.name} ended", why="the machine is stopped", fix="--wait waits for its next start")


async def _again(guest: GuestAccess) -> MachineView:
    """Look at the machine anew; a server that restarts is waited for."""
    try:
        return await find(guest.client, str(guest.machine), guest.machine.namespace)
    except Unreachable:
        return guest.machine
