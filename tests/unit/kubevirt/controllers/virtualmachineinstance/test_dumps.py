"""Memory that is written to a claim."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.errors import Unanswered
from tests.coroutines import played
from tests.kit.engine.enginefakes import FakeMachine
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import Host
from tests.unit.kubevirt.controllers.virtualmachineinstance.test_changes import spec
from tests.unit.kubevirt.controllers.virtualmachineinstance.test_waiting import claim

DUMP: dict[str, Any] = {"name": "disk", "memoryDump": {"claimName": "disk", "hotpluggable": True}}


async def dumped(host: Host) -> dict[str, Any]:
    """Return the status of the dump."""
    await asyncio.sleep(1)
    return next(iter((await host.status()).get("volumeStatus") or ()), {})


async def again(host: Host) -> None:
    await spec(host, {"volumes": None})
    assert await dumped(host) == {}
    await spec(host, {"volumes": [DUMP]})


def kept(host: Host, uid: str) -> list[Path]:
    """The files on the claim."""
    return sorted(host.engine.volumes.claim(uid).iterdir())


@played
async def test_memory_is_written_once_and_again_when_asked_again(host: Host, /) -> None:
    await host.running()
    uid = await claim(host)
    await spec(host, {"volumes": [DUMP]})
    said = await dumped(host)
    info = said["memoryDumpVolume"]
    assert (said["phase"], info["claimName"]) == ("MemoryDumpCompleted", "disk") and info["endTimestamp"]
    (first,) = kept(host, uid)
    assert first.name == info["targetFileName"] and first.name.startswith("web-disk-") and first.read_bytes()[1:4] == b"ELF"
    await host.again()
    assert (await dumped(host))["memoryDumpVolume"] == info and kept(host, uid) == [first], "it is there already"
    await again(host)
    assert (await dumped(host))["phase"] == "MemoryDumpCompleted"
    (second,) = kept(host, uid)
    assert second.name != first.name, "the one before has gone"


@played
async def test_a_dump_that_fails_says_why_and_keeps_the_one_before(host: Host, /, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: FakeMachine, path: Path) -> None:
        path.write_bytes(b"half")
        raise Unanswered("cannot write the memory", why="the disk is full")

    await host.running()
    uid = await claim(host)
    await spec(host, {"volumes": [DUMP]})
    assert (await dumped(host))["phase"] == "MemoryDumpCompleted"
    before = kept(host, uid)
    monkeypatch.setattr(FakeMachine, "dump_memory", broken)
    await again(host)
    said = await dumped(host)
    assert said["phase"] == "MemoryDumpFailed" and "the disk is full" in said["message"]
    assert kept(host, uid) == before
    await asyncio.sleep(60)
    assert await dumped(host) == said, "it is not tried until it is asked for again"


@played
async def test_an_interrupted_dump_begins_anew(host: Host, /, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FakeMachine.dump_memory

    async def slow(self: FakeMachine, path: Path) -> None:
        path.write_bytes(b"half")
        await asyncio.sleep(3600)

    await host.running()
    uid = await claim(host)
    monkeypatch.setattr(FakeMachine, "dump_memory", slow)
    await spec(host, {"volumes": [DUMP]})
    assert (await dumped(host))["phase"] == "MemoryDumpInProgress"
    monkeypatch.setattr(FakeMachine, "dump_memory", whole)
    await host.again()
    assert (await dumped(host))["phase"] == "MemoryDumpCompleted"
    assert len([each for each in kept(host, uid) if each.suffix == ".dump"]) == 1
