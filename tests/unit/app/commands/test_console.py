"""`paddock console`: bytes both ways, and every way in which it ends."""

import asyncio
import os
import pty
import termios
from collections.abc import Awaitable, Callable
from pathlib import Path

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

from paddock.app.commands import console
from paddock.base.errors import Terminal
from paddock.cli.console import Console
from paddock.client.access import Access, StaticCredential, bearer
from paddock.client.errors import NotFound, Unreachable
from paddock.client.http import websocket

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


def play(machine: Machine, script: Callable[[Access], Awaitable[None]]) -> None:
    """Runs a script with the address of a machine."""

    async def run() -> None:
        server = await asyncio.start_server(machine.serve, "127.0.0.1", 0)
        async with server, asyncio.timeout(20):
            port = server.sockets[0].getsockname()[1]
            await script(Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential(bearer("secret"))))

    asyncio.run(run())


def talk(machine: Machine, typed: bytes) -> bytes:
    """Return the output of a console for this input."""
    source, keyboard = os.pipe()
    screen, target = os.pipe()

    async def script(access: Access) -> None:
        async with websocket.connected(access, PATH) as socket:
            os.write(keyboard, typed)
            exchange = asyncio.create_task(console.exchange(socket, source, target))
            await exchange

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


def test_one_key_ends_it_and_what_was_typed_before_is_sent() -> None:
    heard: list[bytes] = []

    async def script(access: Access) -> None:
        source, keyboard = os.pipe()
        screen, target = os.pipe()
        async with websocket.connected(access, PATH) as socket:
            task = asyncio.create_task(console.exchange(socket, source, target))
            for typed in (b"ls\r", b"\x1d"):
                os.write(keyboard, typed)
                while typed != b"\x1d" and b"LS\r" not in b"".join(heard):
                    heard.append(await asyncio.to_thread(os.read, screen, 100))
            await task
        for each in (source, keyboard, screen, target):
            os.close(each)

    play(Machine(), script)
    assert b"".join(heard) == b"hello LS\r"


def test_a_machine_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(NotFound, match="there is no web"):
        talk(Machine(is_there=False), b"")


@pytest.mark.parametrize(("typed", "why"), [(b"C", "it broke"), (b"H", "cut off")])
def test_what_breaks_is_told(typed: bytes, why: str) -> None:
    with pytest.raises(Unreachable, match=why):
        talk(Machine(), typed)


def test_pings_are_answered() -> None:
    machine = Machine()

    async def script(access: Access) -> None:
        async with websocket.connected(access, PATH) as socket:
            await socket.send(b"P")
            assert await socket.receive() == b"hello "
            receiving = asyncio.create_task(socket.receive())
            while not machine.pongs:
                await asyncio.sleep(0)
            await socket.send(b"X")
            assert await receiving == b""

    play(machine, script)


def test_nobody_answers() -> None:
    async def script(access: Access) -> None:
        elsewhere = Access(server="http://127.0.0.1:1", credentials=StaticCredential())
        with pytest.raises(Unreachable, match="cannot connect"):
            async with websocket.connected(elsewhere, PATH):
                pass

    play(Machine(), script)


def test_a_terminal_is_put_back() -> None:
    leader, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    during = []

    def fail() -> None:
        with console.raw(terminal):
            during.append(termios.tcgetattr(terminal))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert during != [before]
    assert termios.tcgetattr(terminal) == before
    os.close(leader)
    os.close(terminal)


@pytest.mark.parametrize("name", ["a/b", "a?b", ""])
def test_names_are_names(name: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(CONFIG)
    with pytest.raises(Terminal, match="is no name"):
        console.run([name, "--kubeconfig", str(config)], Console())


CONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {token: secret}}]
"""
