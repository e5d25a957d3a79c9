"""`paddock console`: bytes both ways, and every way in which it ends."""

import asyncio
import contextlib
import os
import pty
import termios
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from paddock.fleet.guests import consoles
from paddock.fleet.guests.consoles import ConsoleTaken, ConsoleWish
from paddock.fleet.guests.guest import NotRunning
from paddock.kubernetes.client.access import Access, StaticCredential, bearer
from paddock.kubernetes.client.errors import NotFound, Unreachable
from paddock.kubernetes.client.http import websocket
from tests.coroutines import played_by, run_by, scripted
from tests.unit.app.subresources.world import World
from tests.unit.fleet.guests.local import reached

VMI = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/vm"
PATH = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web/console"


class Machine:
    """A console that repeats what it hears in capitals; `X` ends it, `C` with a complaint, `P` pings, and `H` hangs up."""

    def __init__(self, *, is_there: bool = True) -> None:
        self._is_there = is_there
        self.asked: list[Request] = []
        self.pongs = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        protocol = WSConnection(ConnectionType.SERVER)
        while data := await reader.read(65536):
            protocol.receive_data(data)
            for event in protocol.events():
                for answer in self._answers(event):
                    writer.write(protocol.send(answer))
                if isinstance(event, BytesMessage) and event.data == b"H":
                    writer.close()
                    return
        writer.close()

    def _answers(self, event: object) -> list[Event]:
        if isinstance(event, Request):
            self.asked.append(event)
            if self._is_there:
                return [AcceptConnection(subprotocol="plain.kubevirt.io"), TextMessage(data="hello ")]
            body = b'{"kind": "Status", "reason": "NotFound", "message": "there is no web", "code": 404}'
            return [RejectConnection(status_code=404, has_body=True), RejectData(data=body)]
        if isinstance(event, BytesMessage):
            ends: dict[bytes, list[Event]] = {
                b"X": [CloseConnection(code=1000)],
                b"C": [CloseConnection(code=1011, reason="it broke")],
                b"P": [Ping(payload=b"1")],
                b"H": [],
            }
            return ends.get(bytes(event.data), [BytesMessage(data=bytes(event.data).upper())])
        self.pongs += type(event).__name__ == "Pong"
        return []


@asynccontextmanager
async def served(machine: Machine) -> AsyncIterator[Access]:
    """Give the address of a machine."""
    server = await asyncio.start_server(machine.serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(20):
        port = server.sockets[0].getsockname()[1]
        yield Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential(bearer("secret")))


def play(machine: Machine, script: Callable[[Access], Awaitable[None]]) -> None:
    """Runs a script with the address of a machine."""

    async def run() -> None:
        async with served(machine) as access:
            await script(access)

    asyncio.run(run())


def talk(machine: Machine, typed: bytes) -> bytes:
    """Return the output of a console for this input."""
    source, keyboard = os.pipe()
    screen, target = os.pipe()

    async def script(access: Access) -> None:
        async with websocket.connected(access, PATH) as socket:
            os.write(keyboard, typed)
            keys = consoles.Keyboard(source)
            keys.open()
            await consoles.exchange(socket, keys, target)
            keys.close()

    try:
        play(machine, script)
        os.close(target)
        target = -1
        return os.read(screen, 1000)
    finally:
        for each in (source, keyboard, screen, target):
            if each >= 0:
                os.close(each)


def test_the_end_of_the_console_ends_it() -> None:
    machine = Machine()
    assert talk(machine, b"X") == b"hello "
    (asked,) = machine.asked
    assert (asked.target, asked.subprotocols) == (PATH, ["plain.kubevirt.io"])
    assert (b"authorization", b"Bearer secret") in asked.extra_headers


@run_by(asyncio.run)
async def test_one_key_ends_it_and_what_was_typed_before_is_sent() -> None:
    heard: list[bytes] = []

    async with served(Machine()) as access:
        source, keyboard = os.pipe()
        screen, target = os.pipe()
        async with websocket.connected(access, PATH) as socket:
            keys = consoles.Keyboard(source)
            keys.open()
            task = asyncio.create_task(consoles.exchange(socket, keys, target))
            for typed in (b"ls\r", b"\x1d"):
                os.write(keyboard, typed)
                while typed != b"\x1d" and b"LS\r" not in b"".join(heard):
                    heard.append(await asyncio.to_thread(os.read, screen, 100))
            assert await task == "left"
            keys.close()
        for each in (source, keyboard, screen, target):
            os.close(each)
    assert b"".join(heard) == b"hello LS\r"


def test_a_machine_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(NotFound, match="there is no web"):
        talk(Machine(is_there=False), b"")


@pytest.mark.parametrize(("typed", "why"), [(b"C", "it broke"), (b"H", "cut off")])
def test_what_breaks_is_told(typed: bytes, why: str) -> None:
    with pytest.raises(Unreachable, match=why):
        talk(Machine(), typed)


@run_by(asyncio.run)
async def test_pings_are_answered() -> None:
    machine = Machine()

    async with served(machine) as access, websocket.connected(access, PATH) as socket:
        await socket.send(b"P")
        assert await socket.receive() == b"hello "
        receiving = asyncio.create_task(socket.receive())
        while not machine.pongs:
            await asyncio.sleep(0)
        await socket.send(b"X")
        assert await receiving == b""


@played_by(play, Machine())
async def test_nobody_answers(access: Access, /) -> None:
    elsewhere = Access(server="http://127.0.0.1:1", credentials=StaticCredential())
    with pytest.raises(Unreachable, match="cannot connect"):
        async with websocket.connected(elsewhere, PATH):
            pass


def test_a_terminal_is_put_back() -> None:
    leader, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    during = []

    def fail() -> None:
        with consoles.raw(terminal):
            during.append(termios.tcgetattr(terminal))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert during != [before]
    assert termios.tcgetattr(terminal) == before
    os.close(leader)
    os.close(terminal)


# --- over restarts --------------------------------------------------------------------------------------------------------------


class Session:
    """`consoles.attach` at a machine of a world, with a keyboard and a screen."""

    def __init__(self) -> None:
        self._source, self._typing = os.pipe()
        self._screen, self._target = os.pipe()
        os.set_blocking(self._screen, False)
        self.shown = b""

    async def attach(self, world: World, *, wait: bool = False, replay: bool = False) -> None:
        keys = consoles.Keyboard(self._source)
        keys.open()
        try:
            async with reached(world) as guest:
                await consoles.attach(guest, keys, self._target, ConsoleWish(wait, replay))
        finally:
            keys.close()

    def type(self, data: bytes) -> None:
        os.write(self._typing, data)

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(30):
            while text not in self.shown:
                with contextlib.suppress(BlockingIOError):
                    self.shown += os.read(self._screen, 4096)
                await asyncio.sleep(0.01)

    def close(self) -> None:
        for each in (self._source, self._typing, self._screen, self._target):
            os.close(each)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(consoles, "_PAUSE_SECONDS", 0.01)
    made = Session()
    yield made
    made.close()


@scripted
async def test_a_session_outlives_a_restart(session: Session) -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        machine.directory.serial = b"the boot\r\n"
        task = asyncio.create_task(session.attach(world, replay=True))
        await session.until(b"the boot")
        machine.consoles[-1].say(b"first")
        await session.until(b"first")
        await world.api.call("PATCH", VMI, {"metadata": {"finalizers": None}}, content_type="application/merge-patch+json")
        assert (await world.api.call("DELETE", VMI)).status == 200
        machine.power_off()
        machine.consoles[-1].close()
        await asyncio.sleep(0.05)
        again = await world.running()
        async with asyncio.timeout(30):
            while not again.consoles:
                await asyncio.sleep(0.01)
        again.consoles[-1].say(b"second")
        await session.until(b"second")
        session.type(consoles.LEAVE)
        await task
        # The log comes first, and once.
        assert session.shown == b"the boot\r\nfirstsecond"


@pytest.mark.spec("kubevirt", 197)
@scripted
async def test_a_session_begins_with_the_last_screen(session: Session) -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        machine.directory.serial = b"the boot\r\nlogin: "
        task = asyncio.create_task(session.attach(world))
        await session.until(b"login: ")
        session.type(consoles.LEAVE)
        await task
        assert session.shown == b"the boot\r\nlogin: "


@scripted
async def test_a_session_that_is_taken_does_not_fight_for_it(session: Session) -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        task = asyncio.create_task(session.attach(world))
        async with asyncio.timeout(30):
            while not machine.consoles:
                await asyncio.sleep(0.01)
        machine.consoles[-1].close()
        with pytest.raises(ConsoleTaken, match="another session took it"):
            await task


@scripted
async def test_a_machine_that_is_stopped_is_waited_for_on_request(session: Session) -> None:
    async with World() as world:
        await world.machine()
        with pytest.raises(NotRunning, match="--wait"):
            await session.attach(world)
        task = asyncio.create_task(session.attach(world, wait=True))
        await asyncio.sleep(0.05)
        machine = await world.running()
        async with asyncio.timeout(30):
            while not machine.consoles:
                await asyncio.sleep(0.01)
        machine.consoles[-1].say(b"hello")
        await session.until(b"hello")
        session.type(b"last" + consoles.LEAVE)
        await task
        assert machine.consoles[-1].written == b"last"
