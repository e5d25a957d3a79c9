"""The monitor's protocol against a scripted QEMU."""

import array
import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.errors import QemuRefused, Unanswered
from paddock.engine.machine.qmp import Qmp, open_socket
from tests.coroutines import run_by

GREETING = {"QMP": {"version": {"qemu": {"major": 7}}, "capabilities": []}}


class Qemu:
    """A monitor that answers as it is told: `answers` by command, or silence."""

    def __init__(self, *, greets: bool = True) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.setblocking(False)
        self.answers: dict[str, Any] = {"qmp_capabilities": {}}
        self.heard: list[dict[str, Any]] = []
        self.files: list[int] = []
        self.greets = greets
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self.greets:
            self.say(GREETING)
        asyncio.get_running_loop().add_reader(self.theirs, self._read)

    def say(self, *messages: Any) -> None:
        self.theirs.send(b"".join(json.dumps(one).encode() + b"\r\n" for one in messages))

    def _read(self) -> None:
        data, control, _, _ = self.theirs.recvmsg(65536, socket.CMSG_SPACE(64))
        for _, _, payload in control:
            numbers = array.array("i")
            numbers.frombytes(payload)
            self.files += numbers
        if not data:
            asyncio.get_running_loop().remove_reader(self.theirs)
            return
        for line in data.splitlines():
            message = json.loads(line)
            self.heard.append(message)
            answer = self.answers.get(message["execute"])
            if answer is not None:
                key = "error" if "class" in answer else "return"
                self.say({key: answer, "id": message["id"]})

    def hang_up(self) -> None:
        if self.theirs.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self.theirs)
        self.theirs.close()

    def close(self) -> None:
        self.hang_up()
        self.ours.close()
        for number in self.files:
            os.close(number)


Told = list[tuple[str, Mapping[str, Any]]]


@asynccontextmanager
async def connected(qemu: Qemu) -> AsyncIterator[tuple[Qmp, Told]]:
    """Connect to a scripted QEMU, and note what it tells."""
    told: Told = []
    qemu.begin()
    qmp = await Qmp.connect(qemu.ours, lambda name, data: told.append((name, data)), lambda: told.append(("lost", {})), 1.0)
    try:
        yield qmp, told
    finally:
        qmp.close()
        qemu.close()


@run_by(asyncio.run)
async def test_answers_refusals_and_events() -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, told):
        qemu.answers |= {"query-status": {"status": "running"}, "cont": {"class": "GenericError", "desc": "no"}}
        first, second = await asyncio.gather(qmp.execute("query-status"), qmp.execute("query-status"))
        assert first == second == {"status": "running"}
        with pytest.raises(QemuRefused, match="QEMU refused cont: no") as caught:
            await qmp.execute("cont", {"a": 1})
        assert caught.value.kind == "GenericError" and qemu.heard[-1]["arguments"] == {"a": 1}
        qemu.say({"event": "STOP", "timestamp": {}}, {"event": "RESET", "data": {"guest": True}})
        await asyncio.sleep(0.01)
        assert told == [("STOP", {}), ("RESET", {"guest": True})]


@run_by(asyncio.run)
async def test_silence_and_late_answers() -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, told):
        with pytest.raises(Unanswered, match=r"nothing came within 0\.02 s"):
            await qmp.execute("stop", patience=0.02)
        qemu.say({"return": "late", "id": qemu.heard[-1]["id"]})
        qemu.answers["query-status"] = {"status": "paused"}
        assert await qmp.execute("query-status") == {"status": "paused"}
        assert not told


@run_by(asyncio.run)
async def test_a_qemu_that_goes_wakes_who_waits_and_is_told_once() -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, told):
        waiting = asyncio.create_task(qmp.execute("stop"))
        await asyncio.sleep(0.01)
        qemu.hang_up()
        with pytest.raises(Unanswered, match="it is gone"):
            await waiting
        assert told == [("lost", {})] and qmp.closed
        with pytest.raises(Unanswered):
            await qmp.execute("stop")


@pytest.mark.parametrize("nonsense", [b"nonsense\n", b"[]\n", b'{"return":1', b"\xff\xfe\n"])
@run_by(asyncio.run)
async def test_nonsense_ends_the_connection(nonsense: bytes) -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, told):
        waiting = asyncio.create_task(qmp.execute("stop", patience=5))
        await asyncio.sleep(0)
        qemu.theirs.send(nonsense)
        if b"\n" not in nonsense:
            qemu.theirs.send(b"\n")
        with pytest.raises(Unanswered, match="not QMP"):
            await waiting
        assert told == [("lost", {})]


@run_by(asyncio.run)
async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.engine.machine.qmp._LONGEST", 100_000)

    qemu = Qemu()
    async with connected(qemu) as (qmp, _):
        waiting = asyncio.create_task(qmp.execute("stop", patience=5))
        with contextlib.suppress(BrokenPipeError):
            for _ in range(20):
                qemu.theirs.send(b"x" * 10_000)
                await asyncio.sleep(0)
        with pytest.raises(Unanswered, match="too long"):
            await waiting


@run_by(asyncio.run)
async def test_files_go_with_their_command() -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, _):
        qemu.answers["getfd"] = {}
        read, write = os.pipe()
        await qmp.execute("getfd", {"fdname": "a"}, fds=[write])
        os.close(write)
        (received,) = qemu.files
        os.write(received, b"through")
        assert os.read(read, 10) == b"through"
        os.close(read)


@run_by(asyncio.run)
async def test_commands_wait_for_room_and_keep_their_order() -> None:
    qemu = Qemu()
    async with connected(qemu) as (qmp, _):
        loop = asyncio.get_running_loop()
        loop.remove_reader(qemu.theirs)
        waiting = [asyncio.create_task(qmp.execute("big", {"a": "x" * 200_000, "n": n}, patience=5)) for n in range(5)]
        await asyncio.sleep(0.01)
        received = b""
        while received.count(b"\n") < 5:
            await asyncio.sleep(0)
            try:
                received += qemu.theirs.recv(1 << 20)
            except BlockingIOError:
                continue
        messages = [json.loads(line) for line in received.splitlines()]
        assert [one["arguments"]["n"] for one in messages] == [0, 1, 2, 3, 4]
        loop.add_reader(qemu.theirs, qemu._read)
        qemu.say(*({"return": one["arguments"]["n"], "id": one["id"]} for one in messages))
        assert await asyncio.gather(*waiting) == [0, 1, 2, 3, 4]


@run_by(asyncio.run)
async def test_a_monitor_that_does_not_greet() -> None:
    qemu = Qemu(greets=False)
    qemu.begin()
    with pytest.raises(Unanswered, match="did not greet"):
        await Qmp.connect(qemu.ours, lambda name, data: None, lambda: None, 0.02)
    qemu.close()


def test_sockets_below_long_paths(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(folder)
        server.bind("qmp.sock")
        os.chdir(before)
        server.listen(1)
        open_socket(folder, "qmp.sock").close()
    with pytest.raises(FileNotFoundError):
        open_socket(folder, "other.sock")
