"""consolelog: the output of guests on their serial consoles, of this run and of the one before."""

import pytest

from tests.coroutines import scripted
from tests.unit.app.subresources.world import World, hardware

HEADER = "x-paddock-console-log"


@scripted
async def test_the_log_of_a_guest_that_runs() -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        machine.directory.serial = b"line one\nline two\n"
        for kind in ("vm", "vmi"):
            reply = await world.get(kind, "vm", "consolelog")
            assert (reply.status, reply.raw, reply.headers[HEADER]) == (200, b"line one\nline two\n", "running 18")
        later = await world.get("vm", "vm", "consolelog?offset=9")
        assert (later.raw, later.headers[HEADER]) == (b"line two\n", "running 18")


@scripted
async def test_the_log_of_the_run_before() -> None:
    async with World() as world:
        uid = (await world.machine())["metadata"]["uid"]
        missing = await world.get("vm", "vm", "consolelog")
        assert (missing.status, "no run of it has ended" in missing.data["message"]) == (404, True)
        world.consoles.logs[uid] = b"the last words\n"
        stopped = await world.get("vm", "vm", "consolelog")
        assert (stopped.raw, stopped.headers[HEADER]) == (b"the last words\n", "ended 15")
        (await world.running()).directory.serial = b"new\n"
        assert (await world.get("vm", "vm", "consolelog")).raw == b"new\n"
        assert (await world.get("vm", "vm", "consolelog?previous=true")).raw == b"the last words\n"


@scripted
async def test_a_machine_that_keeps_no_log() -> None:
    async with World() as world:
        await world.running(spec=hardware(devices={"logSerialConsole": False}))
        reply = await world.get("vmi", "vm", "consolelog")
        assert (reply.status, "logSerialConsole is false" in reply.data["message"]) == (404, True)


@pytest.mark.parametrize("offset", ["-1", "x", "1" * 16, "\u0663"])
@scripted
async def test_offsets_that_are_none(offset: str) -> None:
    async with World() as world:
        (await world.running()).directory.serial = b"line\n"
        assert (await world.get("vmi", "vm", f"consolelog?offset={offset}")).status == 400
