"""A guest goes to another host while it runs, with real QEMUs: two directories that know nothing of each other."""

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from paddock.base.images.build import tiny
from paddock.engine.machine.config import DiskConfig
from paddock.engine.machine.errors import RequestRefused, StartFailed, Unanswered
from paddock.engine.machine.livetarget import ReceiveRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.owner import MachineOwner
from tests.coroutines import played_by
from tests.host.machines import migrating
from tests.host.machines.conftest import Place, qemus, run, until, until_phase
from tests.host.machines.test_renewal import booted, says, small

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

SLOW = migrating.MIB


class Answers:
    """A target that answers as a test wants, or else as it is."""

    def __init__(self, machine: QemuMachine, **more: Callable[[str], Any]) -> None:
        self._machine, self._more = machine, more

    async def arrived(self, migration: str) -> None:
        await self._more.get("arrived", self._machine.arrived)(migration)

    async def take(self, migration: str) -> bool:
        return bool(await self._more.get("take", self._machine.take)(migration))


async def is_as_before(source: QemuMachine, place: Place, written: int) -> None:
    """It runs, with what it had, and nothing of a migration is left."""
    await until(source, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it runs on")
    await migrating.writes(source)
    assert migrating.marks(source) == source.directory.serial_log().count(b"w") == written + 1
    assert source.directory.serial_log().count(b"R") == 1 and qemus(place.machines) == {"a": [source.observed.pid]}
    assert not source.observed.jobs and source._owner.record.sending == "" and not source.directory.path.joinpath("handed.json").exists()
    nodes = [str(node["node-name"]) for node in await source._owner.execute("query-named-block-nodes", {"flat": True})]
    assert not [node for node in nodes if node.startswith("migrate")]
    await source.pause()
    await source.resume()


@pytest.mark.spec("kubevirt", 287)
@played_by(run)
async def test_a_guest_goes_on_at_the_other_host(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)
    await migrating.writes(source)
    assert await source.send(send_request, target)
    await until_phase(target, "running")
    await until_phase(source, "ended")
    assert source.observed.end is not None and source.observed.end.reason == "saved"
    assert qemus(place.machines) == {} and list(qemus(there.machines)) == ["a"]
    await migrating.writes(target)
    assert migrating.marks(target) == migrating.marks(source) + 1 == 2
    with pytest.raises(RequestRefused) as caught:
        await source.start()
    assert caught.value.reason == "Moved"
    assert await source.send(send_request, target), "asked again, it says the same"
    assert not await target.drop_arrival(send_request.migration), "too late"
    # It is a machine like any other there: it is renewed, suspended, and goes on to a third host.
    await target.renew()
    await target.suspend()
    await until_phase(target, "suspended")
    await target.start()
    await until_phase(target, "running")
    third = migrating.beside(place, "third")
    last, again = await migrating.expects(third, target, "m2")
    assert await target.send(again, last)
    await until_phase(last, "running")
    await migrating.writes(last)
    assert migrating.marks(last) == 3
    await source.forget()
    assert source._registry.migrations.state("source", send_request.migration) == "sent"
    await target.forget()
    assert target._registry.migrations.state("target", send_request.migration) == "taken"


@pytest.mark.parametrize("whose", ["target", "source"])
@played_by(run)
async def test_a_side_that_is_not_the_expected_one_gets_nothing(place: Place, whose: str) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    others, mine = migrating.credentials(place.root / "others")
    target, send_request = await migrating.expects(there, source, theirs=others if whose == "target" else None)
    if whose == "source":
        send_request = structs.replace(send_request, credentials=mine)
    with pytest.raises(RequestRefused, match=r"certificate|Cannot read|handshake|TLS") as caught:
        await source.send(send_request, target)
    print(caught.value)
    assert await target.drop_arrival(send_request.migration)
    await until_phase(target, "ended")
    await is_as_before(source, place, 0)


async def _recorded(port: int, heard: list[bytes]) -> asyncio.Server:
    """Both directions of what goes to a port."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                heard.append(data)
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(migrating.ADDRESS, port)
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
        for each in (writer, there[1]):
            each.close()
            with contextlib.suppress(OSError):
                await each.wait_closed()

    return await asyncio.start_server(serve, migrating.ADDRESS)


@played_by(run)
async def test_nothing_is_read_on_the_way_and_no_key_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    execute, modes, heard = MachineOwner.execute, set[str](), list[bytes]()

    async def looked_at(owner: MachineOwner, command: str, arguments: Any = None, **more: Any) -> Any:
        if command == "object-add":
            folder = owner.directory.run / arguments["dir"]
            modes.update(f"{path.name} {stat.S_IMODE(path.stat().st_mode):o}" for path in (folder, *folder.iterdir()))
            assert "PRIVATE" not in str(arguments)
        return await execute(owner, command, arguments, **more)

    monkeypatch.setattr(MachineOwner, "execute", looked_at)
    source, there = await migrating.started(place), migrating.beside(place)
    await migrating.writes(source)
    target, send_request = await migrating.expects(there, source)
    receiver_address = send_request.receiver_address
    servers = [await _recorded(port, heard) for port in (receiver_address.disks_port, receiver_address.memory_port)]
    ports = [int(server.sockets[0].getsockname()[1]) for server in servers]
    receiver_address = structs.replace(receiver_address, disks_port=ports[0], memory_port=ports[1])
    assert await source.send(structs.replace(send_request, receiver_address=receiver_address), target)
    await until_phase(target, "running")
    await migrating.writes(target)
    for server in servers:
        server.close()
    assert modes == {
        "live 700",
        *(f"{name}.pem 600" for name in ("ca-cert", *(f"{e}-{k}" for e in ("client", "server") for k in ("cert", "key")))),
    }
    said = b"".join(heard)
    # The guest's code is on its disk and in its memory; QEVM begins QEMU's stream; the server names TLS 1.3 as the version it chose.
    assert len(said) > migrating.MIB and migrating.MARK[:64] not in said and b"QEVM" not in said
    assert said.count(b"\x00\x2b\x00\x02\x03\x04") == 3
    for folder in (source.directory.path, target.directory.path):
        for path in folder.rglob("*"):
            assert "pem" not in path.name and not (path.is_file() and b"PRIVATE KEY" in path.read_bytes())
    assert b"PRIVATE" not in Path(f"/proc/{target.observed.pid}/cmdline").read_bytes()


@played_by(run)
async def test_it_is_called_off_and_nothing_else_is_done_meanwhile(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)
    sending = asyncio.create_task(source.send(structs.replace(send_request, bandwidth=SLOW), target))
    await until(source, lambda one: any(job.done for job in one.observed.jobs.values()), "disks are copied")
    assert {name: job.kind for name, job in source.observed.jobs.items()} == {"root": "migrate", "data": "migrate"}
    for refused in (source.pause(), source.renew(), source.suspend(), source.resize_disk("data", 2 * migrating.SIZE)):
        with pytest.raises(RequestRefused) as caught:
            await refused
        assert caught.value.reason == "Busy"
    await migrating.writes(source)
    source.keep_guest()
    with pytest.raises(RequestRefused) as caught:
        await sending
    assert caught.value.reason == "Cancelled"
    assert await target.drop_arrival(send_request.migration)
    await until_phase(target, "ended")
    with pytest.raises(Unanswered, match="knows nothing of it"):
        await target.take("other")
    assert not await target.take(send_request.migration), "never again"
    await is_as_before(source, place, 1)
    # Time that is over is the same.
    await target.forget()
    assert target._registry.migrations.state("target", send_request.migration) == "dropped"
    target, send_request = await migrating.expects(there, source, "m2")
    with pytest.raises(RequestRefused) as caught:
        await source.send(structs.replace(send_request, bandwidth=SLOW, seconds=1.0), target)
    assert caught.value.reason == "TooSlow"
    await is_as_before(source, place, 2)
    # A stop is not in the way of anything.
    assert await target.drop_arrival("m2")
    await until_phase(target, "ended")
    await target.forget()
    target, send_request = await migrating.expects(there, source, "m3")
    sending = asyncio.create_task(source.send(structs.replace(send_request, bandwidth=SLOW), target))
    await until(source, lambda one: any(job.done for job in one.observed.jobs.values()), "disks are copied")
    await source.stop(30)
    with pytest.raises(RequestRefused, match="stopped"):
        await sending
    await until_phase(source, "ended")
    assert source.observed.end is not None and source.observed.end.reason == "guest-shutdown"
    assert await target.drop_arrival("m3")


@played_by(run)
async def test_the_guest_comes_back_if_the_target_does_not_take_it(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)

    async def refuses(migration: str) -> bool:
        assert source.observed.handed == "offered" and source.observed.phase == "stopping"
        assert await target.drop_arrival(migration)
        return await target.take(migration)

    assert not await source.send(send_request, Answers(target, take=refuses))
    await is_as_before(source, place, 0)
    await until_phase(target, "ended")


@played_by(run)
async def test_it_stands_still_until_the_target_answers(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)

    async def is_silent(_: str) -> bool:
        raise ConnectionResetError("the line was cut")

    with pytest.raises(Unanswered, match="the line was cut"):
        await source.send(send_request, Answers(target, take=is_silent))
    with pytest.raises(Unanswered):
        await source.settle(Answers(target, take=is_silent))
    for refused in (source.resume(), source.start(), source.stop(0), source.forget(), source.pause()):
        with pytest.raises(RequestRefused) as caught:
            await refused
        assert caught.value.reason == "Offered"
    with pytest.raises(RequestRefused, match="handed over"):
        await source._owner.execute("cont")
    assert source.observed.pid and target.observed.phase == "starting"
    # A lost monitor changes nothing.
    assert source._owner.run.qmp is not None
    source._owner.run.qmp.close()
    source._owner.silent()
    await until(source, lambda one: one._owner.run.qmp is not None and not one._owner.run.qmp.closed, "it is found again")
    assert (await source._owner.execute("query-status"))["status"] == "postmigrate"
    assert await source.settle(target)
    await until_phase(source, "ended")
    await until_phase(target, "running")
    await migrating.writes(target)


@pytest.mark.parametrize("silent", ["disks_port", "memory_port"])
@played_by(run)
async def test_a_target_that_hangs_holds_nobody_up(place: Place, silent: str) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)
    # Its kernel takes connections, and nobody says anything.
    hung = socket.create_server((migrating.ADDRESS, 0))
    receiver_address = structs.replace(send_request.receiver_address, **{silent: int(hung.getsockname()[1])})
    sending = asyncio.create_task(source.send(structs.replace(send_request, receiver_address=receiver_address), target))
    if silent == "memory_port":
        await until(source, lambda one: [job.state for job in one.observed.jobs.values()] == ["ready", "ready"], "copied")
        # The guest works meanwhile, and so does its monitor.
        await migrating.writes(source)
        assert (await source._owner.execute("query-status", patience=2))["status"] == "running" and not sending.done()
    with pytest.raises(Unanswered):
        await sending
    hung.close()
    await is_as_before(source, place, int(silent == "memory_port"))
    assert await target.drop_arrival(send_request.migration)


@played_by(run)
async def test_no_write_is_lost_on_the_way(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    target, send_request = await migrating.expects(there, source)
    writing = True

    async def busily() -> None:
        console = source.console()
        while writing and source.observed.phase == "running":
            with contextlib.suppress(Exception):
                await console.write(b"w")
            await asyncio.sleep(0.02)

    task = asyncio.create_task(busily())
    await asyncio.sleep(0.5)
    assert await source.send(structs.replace(send_request, bandwidth=16 * migrating.MIB), target)
    writing = False
    await task
    await until_phase(target, "running")
    await migrating.writes(target)
    said, before = (0, 0), None
    # What is still in its serial port is written, too.
    while said != before:
        before = said
        await asyncio.sleep(1)
        said = source.directory.serial_log().count(b"w"), target.directory.serial_log().count(b"w")
    print(f"written before and after: {said}")
    assert migrating.marks(target) == sum(said) and said[0] > 5


@played_by(run)
async def test_what_the_target_lacks_is_said_before_anything_happens(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    theirs, _ = migrating.credentials(place.root / "credentials")
    machines = there.open()
    await machines.adopt()
    wanted = migrating.sends_to(source.config, there.root)
    seed = DiskConfig("seed", migrating.blank(there.root / "seed.img", 4096), readonly=True)
    memory = structs.replace(wanted.memory, size=32 * migrating.MIB, max_size=32 * migrating.MIB)
    target = await machines.define("a", structs.replace(wanted, memory=memory, disks=(*wanted.disks, seed)))
    receive_request = ReceiveRequest("m1", await source.describe_leaving(), theirs, migrating.ADDRESS)
    with pytest.raises(RequestRefused, match=r"disks, memory \(max_size, size\) differ; disk seed is only read") as caught:
        await target.receive(receive_request)
    assert caught.value.reason == "NotReceivable" and target.observed.phase == "defined"
    # So is a disk of another size.
    target = await machines.define("a", wanted)
    layer = wanted.disks[1].layer
    assert layer is not None
    os.truncate(layer.path, 2 * migrating.SIZE)
    with pytest.raises(RequestRefused, match=r"disk data has .* bytes, and that of the target has"):
        await target.receive(receive_request)
    assert target.observed.phase == "defined"


@played_by(run)
async def test_a_target_that_does_not_start_says_why(place: Place) -> None:
    source, there = await migrating.started(place), migrating.beside(place)
    theirs, _ = migrating.credentials(place.root / "credentials")
    machines = there.open()
    await machines.adopt()
    wanted = migrating.sends_to(source.config, there.root)
    (there.root / "data.img").unlink()
    target = await machines.define("a", wanted)
    with pytest.raises(StartFailed, match=r"data\.img"):
        await target.receive(ReceiveRequest("m1", await source.describe_leaving(), theirs, migrating.ADDRESS))
    assert not await target.take("m1")


@played_by(run, seconds=300)
async def test_an_operating_system_notices_nothing(place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int]) -> None:
    machines, there = place.open(), migrating.beside(place)
    await machines.adopt()
    config = small(place, tiny_guest, free_port())
    card = structs.replace(config.nics[0], backend=structs.replace(config.nics[0].backend, forwards=()))
    source = await machines.define("a", structs.replace(config, nics=(card,)))
    await booted(source)
    stood: list[float] = []
    busy = "(i=0; while :; do i=$((i+1)); echo $i | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; done) >/dev/null 2>&1 &"
    await says(source, f"head -c 20000000 /dev/urandom > /tmp/kept; {busy} sync")
    kept, up = await says(source, "sha256sum /tmp/kept"), float((await says(source, "cat /proc/uptime")).split()[0])
    target, send_request = await migrating.expects(there, source)
    loop, began = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    with source._owner.events.expect(lambda name, _: name == "STOP") as stops:
        stops.add_done_callback(lambda _: stood.append(loop.time()))
        assert await source.send(send_request, target)
        await until_phase(target, "running")
    print(f"stood still for {(loop.time() - stood[0]) * 1000:.0f} ms of {loop.time() - began:.2f} s")
    await until(target, lambda one: one.observed.agent, "the agent is found", 60)
    assert await says(target, "sha256sum /tmp/kept") == kept
    assert float((await says(target, "cat /proc/uptime")).split()[0]) > up
    await says(target, "kill %1 2>/dev/null; sleep 1; sync; echo 3 > /proc/sys/vm/drop_caches; cat /dev/vda > /dev/null")
    await until_phase(source, "ended")
    await target.stop(30)
    await until_phase(target, "ended")
    assert target.observed.end is not None and target.observed.end.reason == "guest-shutdown"
