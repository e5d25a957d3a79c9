"""The small parts of a machine: its queue of requests, its turn to start, its sessions, and what it reads from QEMU."""

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine import probe, statistics
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.events import Events
from paddock.engine.machine.inbox import Inbox
from paddock.engine.machine.observation import DiskStatistics
from paddock.engine.machine.pipes import SessionSlot, last_screen
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.startslots import StartSlots
from paddock.engine.machine.users import NoUser, UserRange
from tests import virtualtime
from tests.coroutines import run_by

LAYER = DiskLayer(Path("/over"), "qcow2", DiskLayer(Path("/below"), "raw"))
CONFIG = MachineConfig(
    "ns_vm", CpuConfig(), MemoryConfig(1, 1), disks=(DiskConfig("root", LAYER), DiskConfig("data", DiskLayer(Path("/d"), "raw")))
)


@run_by(virtualtime.run)
async def test_requests_are_done_one_at_a_time_and_in_order_also_when_nobody_waits() -> None:
    done: list[str] = []

    async def work(name: str) -> str:
        done.append(f"{name} begins")
        await asyncio.sleep(1)
        done.append(f"{name} ends")
        return name

    inbox = Inbox("a")
    first, second, third = (asyncio.create_task(inbox.offer(lambda name=name: work(name))) for name in "abc")  # type: ignore[misc]
    await asyncio.sleep(0.5)
    second.cancel()
    assert await first == "a" and await third == "c"
    assert done == ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]
    assert asyncio.get_running_loop().time() == 3


@run_by(virtualtime.run)
async def test_an_error_is_the_asker_s_and_the_next_request_is_done() -> None:
    async def broken() -> None:
        raise ValueError("no")

    async def fine() -> int:
        return 1

    inbox = Inbox("a")
    with pytest.raises(ValueError, match="no"):
        await inbox.offer(broken)
    assert await inbox.offer(fine) == 1


@pytest.mark.parametrize(("ended", "reason"), [(False, "Stopping"), (True, "NotRunning")])
@run_by(virtualtime.run)
async def test_a_stop_overtakes_what_is_done_and_what_waits(ended: bool, reason: str) -> None:
    inbox = Inbox("a")
    undone: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            undone.append("long")

    tasks = [asyncio.create_task(inbox.offer(long)) for _ in range(3)]
    await asyncio.sleep(1)
    inbox.overtake(ended=ended)
    for task in tasks:
        with pytest.raises(RequestRefused) as caught:
            await task
        assert caught.value.reason == reason
    assert undone == ["long"]
    assert asyncio.get_running_loop().time() == 1


@run_by(virtualtime.run)
async def test_few_start_at_a_time_and_a_place_comes_free_when_its_guest_is_quiet() -> None:
    loop = asyncio.get_running_loop()
    busy_until = {"a": 5.0, "b": 100.0, "c": 0.0, "d": 0.0}
    turns = StartSlots(StartQueue(2, 60.0), lambda id: min(loop.time(), busy_until[id]))
    began: dict[str, float] = {}

    async def start(id: str) -> None:
        await turns.take(id)
        began[id] = loop.time()

    tasks = [asyncio.create_task(start(name)) for name in "abcd"]
    await asyncio.sleep(0.1)
    assert sorted(began) == ["a", "b"]
    tasks[3].cancel()
    await asyncio.sleep(10)
    assert sorted(began) == ["a", "b", "c"] and 5 < began["c"] < 9
    turns.give_back("b")
    await turns.take("e")
    turns.close()


@run_by(virtualtime.run)
async def test_an_event_is_waited_for_from_before_its_cause() -> None:
    events = Events()
    with events.expect(lambda name, data: name == "DEVICE_DELETED" and data.get("device") == "a") as event:
        events.handle("DEVICE_DELETED", {"device": "b"})
        assert not event.done()
        events.handle("DEVICE_DELETED", {"device": "a"})
        events.handle("DEVICE_DELETED", {"device": "a"})
        assert await event == ("DEVICE_DELETED", {"device": "a"})
    events.handle("DEVICE_DELETED", {"device": "a"})


@run_by(asyncio.run)
async def test_a_new_session_ends_the_old_and_its_reader_sees_the_end() -> None:
    ends: list[socket.socket] = []

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        ends.append(theirs)
        return ours

    place = SessionSlot()
    first = place.give(connect, lambda: b"before")
    assert (await first.read(), place.taken) == (b"before", True)
    reading = asyncio.create_task(first.read())
    await asyncio.sleep(0)
    second = place.give(connect)
    assert await reading == b"" and await first.read() == b""
    await first.write(b"into nothing")
    await second.write(b"hello")
    assert ends[1].recv(10) == b"hello"
    ends[1].close()
    assert (await second.read(), place.taken) == (b"", False)
    ends[0].close()


@pytest.mark.parametrize(
    ("logged", "sent", "heard"),
    [
        # QEMU accepts late, and sends nothing of what is in the log by then.
        (b"boot\nR", b"", b"boot\nR"),
        # It accepted in between.
        (b"boot\nR", b"R", b"boot\nR"),
        # It sends first and logs then.
        (b"boot\nR", b"Rmore", b"boot\nRmore"),
        (b"boot\n", b"t\nRmore", b"boot\nRmore"),
        (b"boot\n", b"R", b"boot\nR"),
    ],
)
@run_by(asyncio.run)
async def test_a_session_misses_nothing_of_a_guest_that_boots(logged: bytes, sent: bytes, heard: bytes) -> None:
    ours, theirs = socket.socketpair()
    log = b"boo"
    session = SessionSlot().give(lambda: ours, lambda: log)
    assert await session.read() == b"boo"
    log = logged
    theirs.send(sent)
    found = b"boo" + await session.read()
    assert found == heard
    theirs.send(b"later")
    assert await session.read() == b"later"
    theirs.close()
    assert await session.read() == b""


@run_by(asyncio.run)
async def test_a_guest_that_floods_its_console_is_caught_up_with() -> None:
    """QEMU accepts the connection in the middle of it. To compare every size would keep the loop busy for ten seconds."""
    flood = random.Random(0).randbytes(1 << 20)
    ours, theirs = socket.socketpair()
    log = b"old"
    session = SessionSlot().give(lambda: ours, lambda: log)
    assert await session.read() == b"old"
    log += flood[:700_000]
    theirs.sendall(flood[690_000:700_000])
    sending = asyncio.create_task(asyncio.to_thread(theirs.sendall, flood[700_000:]))
    found = b""
    while len(found) < len(flood):
        found += await session.read()
    assert found == flood
    await sending
    theirs.close()
    assert await session.read() == b""


@pytest.mark.parametrize(
    ("log", "screen"),
    [
        (b"", b""),
        (b"login: ", b"login: "),
        (b"\n".join(b"%d" % n for n in range(100)), b"\n".join(b"%d" % n for n in range(76, 100))),
        (b"x" * 5000 + b"\nlast", b"last"),
        ("ä".encode() * 3000, "ä".encode() * 2048),
        (b"y" + "ä".encode() * 3000 + b"z", ("ä" * 2047).encode() + b"z"),
    ],
)
def test_the_last_screen(log: bytes, screen: bytes) -> None:
    assert last_screen(log) == screen


@pytest.mark.spec("kubevirt", 197)
@run_by(asyncio.run)
async def test_a_session_without_the_screen_begins_with_what_comes() -> None:
    ours, qemu = socket.socketpair()
    logged = [b"old\r\n"]
    pipe = SessionSlot().give(lambda: ours, lambda: b"".join(logged), screen=False)
    # QEMU has not accepted the connection, and sends nothing of this.
    logged.append(b"booting\r\n")
    assert await pipe.read() == b"booting\r\n"
    qemu.sendall(b"$ ")
    assert await pipe.read() == b"$ "
    qemu.close()
    pipe.close()


@pytest.mark.parametrize(
    ("before", "first", "between"),
    [
        pytest.param(b"", b"", b"", id="nothing"),
        pytest.param(b"", b"$ ls\r\n", b"", id="all of it was sent"),
        pytest.param(b"booting\r\n", b"$ ", b"", id="some came before QEMU accepted the connection"),
        pytest.param(b"", b"$ ls\r\n", b"a b\r\n", id="the guest goes on while the log is read"),
        pytest.param(b"booting\r\n", b"$ ls\r\n", b"a b\r\n$ ls\r\n", id="it says the same again"),
        pytest.param(b"booting\r\n", b"", b"$ ", id="it says something at the last moment"),
    ],
)
@run_by(asyncio.run)
async def test_a_session_has_each_byte_once(before: bytes, first: bytes, between: bytes) -> None:
    ours, qemu = socket.socketpair()
    logged = [b"old\r\n"]

    def log() -> bytes:
        if len(logged) > 1:
            # QEMU sends, and then it logs.
            qemu.sendall(between)
            logged.append(between)
        return b"".join(logged)

    pipe = SessionSlot().give(lambda: ours, log)
    assert await pipe.read() == b"old\r\n"
    logged.append(before + first)
    if first:
        qemu.sendall(first)
    wanted, found = before + first + between + b"end", b""
    asyncio.get_running_loop().call_later(1, qemu.sendall, b"end")
    while not found.endswith(b"end"):
        found += await pipe.read()
    assert found == wanted
    qemu.close()
    pipe.close()


def _qdev(name: str) -> str:
    return f"/machine/peripheral/{names.device(name)}/virtio-backend"


def test_sizes_and_counters_by_the_names_of_disks() -> None:
    blocks: list[dict[str, Any]] = [
        {"qdev": _qdev("root"), "inserted": {"image": {"virtual-size": 7}}},
        {"qdev": names.device("data"), "inserted": {"image": {"virtual-size": 8}}},
        {"qdev": "floppy", "io-status": "failed"},
    ]
    assert probe.disk_errors(CONFIG, blocks) == {}
    assert probe.disk_errors(CONFIG, [{**blocks[0], "io-status": "nospace"}, {**blocks[1], "io-status": "ok"}]) == {"root": "enospc"}
    assert probe.disk_sizes(blocks) == {names.device("root"): 7, names.device("data"): 8}
    stats = {"rd_operations": 1, "wr_bytes": 2, "flush_total_time_ns": 3_000_000_000}
    found = statistics.disks(CONFIG, [{"qdev": _qdev("root"), "stats": stats}, {"stats": {}}])
    assert found == {"root": DiskStatistics(reads=1, written_bytes=2, flush_seconds=3.0)}


def test_the_disk_that_qemu_means() -> None:
    below = names.file_node("root", Path("/below"))
    assert probe.disk_of(CONFIG, "", _qdev("data"), "") == "data"
    assert probe.disk_of(CONFIG, below, "", "") == "root"
    assert probe.disk_of(CONFIG, "", "", names.device("root")) == "root"
    assert probe.disk_of(CONFIG, "other", "/machine/unattached/device[1]", "") == ""


def test_a_guest_s_word_about_its_memory_is_taken_if_it_is_plausible() -> None:
    told = {"stat-free-memory": 5, "stat-disk-caches": 2**64 - 1, "stat-swap-in": -1, "stat-swap-out": "x", "stat-htlb": 1}
    assert statistics.guest_memory(told) == {"unused": 5}


def test_room_is_judged_by_the_disks_that_failed(tmp_path: Path) -> None:
    layer = DiskLayer(tmp_path / "disk", "raw")
    layer.path.write_bytes(b"")
    config = MachineConfig(
        "ns_vm", CpuConfig(), MemoryConfig(1, 1), disks=(DiskConfig("root", layer), DiskConfig("gone", DiskLayer(tmp_path / "no", "raw")))
    )
    assert probe.has_room(config, ["root"])
    assert not probe.has_room(config, ["gone"]) and not probe.has_room(config, [])


def test_users() -> None:
    users = UserRange(first=1000, count=3)
    assert users.choose([]) == 1000 and users.choose([1000, 1002]) == 1001 and users.shared == 1003
    with pytest.raises(NoUser):
        users.choose([1000, 1001, 1002])
    assert UserRange().choose([5]) == 0
