"""Consoles, displays and USB devices over a real server on loopback, with machines in memory."""

import asyncio
import base64
from pathlib import Path

import pytest

from paddock.app.subresources import streams
from paddock.server.edge import websocket
from tests.coroutines import run_by, scripted, timeless
from tests.kit.engine.enginefakes import PNG
from tests.kit.servers.apiharness import GuardedHarness
from tests.kit.servers.websockets import PLAIN, Rejected, connected
from tests.unit.app.subresources.wire import forward, paired, served, until
from tests.unit.app.subresources.world import World, hardware, path

CONSOLE, VNC = path("vmi", "vm", "console"), path("vmi", "vm", "vnc")


# --- the handshake --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "answered"),
    [
        ((PLAIN,), PLAIN),
        ((), None),
        (("binary", PLAIN), PLAIN),
        (("binary",), "binary"),
        ((PLAIN, "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"root").decode().rstrip("=")), PLAIN),
        (("base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"root").decode().rstrip("="),), None),
    ],
)
@scripted
async def test_subprotocols(offered: tuple[str, ...], answered: str | None) -> None:
    async with World() as world, served(world) as port:
        await world.running()
        async with connected(port, CONSOLE, subprotocols=offered) as socket:
            assert socket.subprotocol == answered


@pytest.mark.parametrize("target", [CONSOLE, VNC, forward(80), path("vmi", "vm", "usbredir")])
@scripted
async def test_a_stream_wants_a_websocket(target: str) -> None:
    async with World() as world:
        await world.running(spec=hardware(devices={"clientPassthrough": {}}))
        reply = await world.api.get(target)
        assert (reply.status, "websocket" in reply.data["message"]) == (400, True)
        assert not world.networks.dialled


# --- the console ----------------------------------------------------------------------------------------------------------


@scripted
async def test_bytes_go_both_ways_and_the_end_is_an_end() -> None:
    async with World() as world, served(world) as port:
        machine = await world.running()
        async with connected(port, CONSOLE) as socket:
            await socket.send(b"root\r")
            # Text is taken, too, though clients send bytes.
            await socket.send("\x03")
            await until(lambda: bool(machine.consoles) and machine.consoles[0].written == b"root\r\x03")
            machine.consoles[0].say(b"\x1b[2J\x00\xffpassword: ")
            assert await socket.receive() == b"\x1b[2J\x00\xffpassword: "
            machine.crash()
            assert await socket.closed() == 1000


@pytest.mark.spec("kubevirt", 197)
@pytest.mark.parametrize(
    ("target", "first"),
    [
        pytest.param(CONSOLE, b"now", id="programs read the answer to what they typed"),
        pytest.param(f"{CONSOLE}?screen=false", b"now", id="not wished"),
        pytest.param(f"{CONSOLE}?screen=true", b"old\r\nlogin: ", id="people read on"),
    ],
)
@scripted
async def test_a_console_says_what_stands_there_to_whoever_asks(target: str, first: bytes) -> None:
    async with World() as world, served(world) as port:
        machine = await world.running()
        machine.directory.serial = b"old\r\nlogin: "
        async with connected(port, target) as socket:
            await until(lambda: bool(machine.consoles))
            machine.consoles[0].say(b"now")
            assert await socket.receive() == first


@scripted
async def test_a_connection_stays_until_the_client_has_agreed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "FAREWELL_SECONDS", 0.5)
    async with World() as world, served(world) as port:
        machine = await world.running()
        for agrees in (True, False):
            async with connected(port, CONSOLE) as socket:
                socket.is_slow = True
                await until(lambda: bool(machine.consoles) and not machine.consoles[-1].closed)
                machine.consoles[-1].close()
                assert await socket.closed() == 1000
                ended = asyncio.create_task(socket.ended())
                await asyncio.wait((ended,), timeout=0.1)
                assert not ended.done()
                if agrees:
                    socket.agree()
                # Whoever does not agree is not waited for very long.
                await ended


@scripted
async def test_a_second_console_takes_the_place_of_the_first() -> None:
    async with World() as world, served(world) as port:
        machine = await world.running()
        async with connected(port, CONSOLE) as first:
            await until(lambda: len(machine.consoles) == 1)
            async with connected(port, CONSOLE) as second:
                assert await first.closed() == 1000
                machine.consoles[1].say(b"login: ")
                assert await second.receive() == b"login: "
            await until(lambda: machine.consoles[1].closed)


@pytest.mark.parametrize(
    ("phase", "devices", "code", "words"),
    [
        ("Scheduled", {}, 400, "VMI is not running"),
        ("Succeeded", {}, 400, "VMI is not running"),
        ("Failed", {}, 409, "VMI is in failed status"),
        ("Running", {"autoattachSerialConsole": False}, 400, "No serial consoles are present."),
    ],
)
@scripted
async def test_consoles_that_are_not_there(phase: str, devices: dict[str, bool], code: int, words: str) -> None:
    async with World() as world, served(world) as port:
        with pytest.raises(Rejected) as absent:
            async with connected(port, CONSOLE):
                pass
        assert absent.value.status == 404
        await world.instance(phase=phase, spec=hardware(devices=devices))
        with pytest.raises(Rejected) as refused:
            async with connected(port, CONSOLE):
                pass
        assert (refused.value.status, words.encode() in refused.value.body) == (code, True)


@scripted
async def test_a_console_waits_by_being_refused_until_the_machine_runs() -> None:
    async with World() as world, served(world) as port:
        uid = await world.instance(phase="Running")
        machine = await world.machines.define(uid, (await world.running("other")).config)
        world.machines.hold(uid)
        await machine.start()
        await until(lambda: machine.observed.phase == "starting")
        with pytest.raises(Rejected) as early:
            async with connected(port, CONSOLE):
                pass
        assert early.value.status == 400
        world.machines.release(uid)
        async with connected(port, CONSOLE):
            await until(lambda: len(machine.consoles) == 1)


@scripted
async def test_whoever_does_not_read_a_console_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CONSOLE_PATIENCE_SECONDS", 0.2)
    async with World() as world, served(world) as port:
        machine = await world.running()
        async with connected(port, CONSOLE):
            await until(lambda: len(machine.consoles) == 1)
            pipe = machine.consoles[0]
            for _ in range(512):
                pipe.say(bytes(65536))
            await until(lambda: pipe.closed)


@scripted
async def test_an_idle_stream_is_pinged(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 10 <= websocket.PING_SECONDS <= 20
    monkeypatch.setattr(websocket, "PING_SECONDS", 0.01)
    async with World() as world, served(world) as port:
        machine = await world.running()
        async with connected(port, CONSOLE) as socket:
            taken = asyncio.create_task(socket.receive())
            await until(lambda: len(socket.pings) >= 3)
            machine.consoles[0].say(b"still here")
            assert await taken == b"still here"


@pytest.mark.spec("kubevirt", 41)
@pytest.mark.parametrize("what", ["console", "vnc", "usbredir"])
@timeless
async def test_a_stream_survives_thirty_idle_minutes(what: str) -> None:
    """Nothing is said but the server's pings: no time of a request, of an answer or of an idle connection ends it."""
    async with World() as world:
        machine = await world.running(spec=hardware(devices={"clientPassthrough": {}}))
        pipes = {"console": machine.consoles, "vnc": machine.displays, "usbredir": machine.usb_devices}[what]
        async with paired(world, path("vmi", "vm", what)) as socket:
            taken = asyncio.create_task(socket.receive())
            await asyncio.sleep(30 * 60)
            assert len(socket.pings) == pytest.approx(30 * 60 / websocket.PING_SECONDS, abs=1)
            assert socket.code is None and not taken.done()
            pipes[0].say(b"still here")
            assert await taken == b"still here"
            await socket.send(b"and so am I")
            await asyncio.sleep(1)
            assert pipes[0].written == b"and so am I"


@scripted
async def test_a_server_that_goes_ends_its_consoles_properly() -> None:
    async with World() as world:
        await world.running()
        async with served(world) as port:
            reader = connected(port, CONSOLE)
            socket = await reader.__aenter__()
            closing = asyncio.create_task(socket.closed())
        assert await closing == 1000
        await reader.__aexit__(None, None, None)


# --- the display ----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 42)
@scripted
async def test_the_display_and_who_may_have_it() -> None:
    async with World() as world, served(world) as port:
        machine = await world.running()
        async with connected(port, f"{VNC}?preserveSession=true") as first:
            await until(lambda: len(machine.displays) == 1)
            machine.displays[0].say(b"RFB 003.008\n")
            assert await first.receive() == b"RFB 003.008\n"
            with pytest.raises(Rejected) as refused:
                async with connected(port, f"{VNC}?preserveSession=true"):
                    pass
            assert (refused.value.status, b"Active VNC connection. Request denied." in refused.value.body) == (503, True)
            async with connected(port, VNC) as second:
                assert await first.closed() == 1000
                machine.displays[1].say(b"RFB")
                assert await second.receive() == b"RFB"
        await until(lambda: machine.displays[1].closed)
        async with connected(port, f"{VNC}?preserveSession=true"):
            await until(lambda: len(machine.displays) == 3)


@pytest.mark.parametrize("target", [VNC, path("vmi", "vm", "vnc/screenshot")])
@scripted
async def test_displays_that_are_not_there(target: str) -> None:
    async with World() as world:
        assert (await world.api.get(target)).status == 404
        await world.instance(phase="Scheduled")
        assert (await world.api.get(target)).data["message"] == "VMI is not running"
        await world.instance("bare", spec=hardware(devices={"autoattachGraphicsDevice": False}))
        reply = await world.api.get(target.replace("/vm/", "/bare/"))
        assert (reply.status, reply.data["message"]) == (400, "No graphics devices are present.")


@pytest.mark.parametrize("query", ["", "?moveCursor=true"])
@scripted
async def test_a_screenshot_is_a_picture(query: str) -> None:
    async with World() as world:
        await world.running()
        reply = await world.api.get(path("vmi", "vm", f"vnc/screenshot{query}"))
        assert (reply.status, reply.headers["content-type"], reply.raw) == (200, "image/png", PNG)


# --- USB and VSOCK --------------------------------------------------------------------------------------------------------


@scripted
async def test_usb_devices_have_four_slots() -> None:
    async with World() as world, served(world) as port:
        await world.running("bare")
        reply = await world.get("vmi", "bare", "usbredir")
        assert (reply.status, "Not configured with USB Redirection" in reply.data["message"]) == (409, True)
        machine = await world.running(spec=hardware(devices={"clientPassthrough": {}}))
        target = path("vmi", "vm", "usbredir")
        ends = [connected(port, target) for _ in range(4)]
        sockets = [await end.__aenter__() for end in ends]
        machine.usb_devices[3].say(b"hello")
        assert await sockets[3].receive() == b"hello"
        with pytest.raises(Rejected) as full:
            async with connected(port, target):
                pass
        assert full.value.status == 503
        for end in ends:
            await end.__aexit__(None, None, None)
        await until(lambda: machine.usb_devices[0].closed)


@scripted
async def test_vsock_is_refused_with_the_reason() -> None:
    async with World() as world:
        await world.running()
        assert (await world.get("vmi", "vm", "vsock?port=22")).data["message"] == "'VSOCK' feature gate is not enabled"


# --- rights ---------------------------------------------------------------------------------------------------------------


@run_by(asyncio.run)
async def test_a_browsers_token_opens_a_console_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    async with World(GuardedHarness(tmp_path)) as world, served(world) as port:
        await world.running()

        def offered(token: str) -> tuple[str, ...]:
            return PLAIN, "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")

        async with connected(port, CONSOLE, subprotocols=offered("root")) as socket:
            assert socket.subprotocol == PLAIN
        for token, code in (("not-good", 401), ("ada", 403)):
            with pytest.raises(Rejected) as refused:
                async with connected(port, CONSOLE, subprotocols=offered(token)):
                    pass
            assert refused.value.status == code
