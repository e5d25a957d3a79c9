"""Stops of guests that do not listen, and stores that are full."""

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coroutines import played
from tests.host.guests import Registry
from tests.host.machines import bootsector
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, condition, machine, phase

pytestmark = pytest.mark.needs("qemu")


@pytest.fixture
def image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk, with room to write to."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img", 64 << 20)})


@pytest.mark.spec("kubevirt", 22)
@played
async def test_a_guest_that_hangs_is_killed_at_once_when_that_is_asked_for(talk: Talk, /, image: str) -> None:
    for name in ("polite", "deaf", "patient"):
        grace = 3 if name == "patient" else 300
        await talk.make(VMS, machine(name, image, terminationGracePeriodSeconds=grace))
    runs = {name: (await talk.running(name))["metadata"]["uid"] for name in ("polite", "deaf", "patient")}
    for name in ("deaf", "patient"):
        async with talk.console(name) as console:
            await console.until(b"R")
            # It does not say that it has become deaf.
            await console.write(b"xd")
            await console.until(b"x")
            await asyncio.sleep(0.2)
    async with talk.console("polite") as console:
        await console.until(b"R")
    # A stop that waits for ever, as it seems, is cut short by another one.
    await talk.verb("deaf", "stop")
    await talk.until(f"{VMIS}/deaf", lambda found: found["metadata"].get("deletionTimestamp"), "it is going")
    assert len(talk.host.qemus()[runs["deaf"]]) == 1
    before = time.monotonic()
    with contextlib.suppress(Exception):
        await talk.verb("deaf", "stop", gracePeriod=0)
    await talk.until(f"{VMS}/deaf", lambda found: found["status"]["printableStatus"] == "Stopped", "it is down", 2)
    assert time.monotonic() - before < 2 and runs["deaf"] not in talk.host.qemus()
    await talk.verb("polite", "stop")
    await talk.verb("patient", "stop")
    for name, end in (("polite", "Succeeded"), ("patient", "Failed")):
        seen = set()
        while found := await talk.get(f"{VMIS}/{name}"):
            seen.add(phase(found))
            await asyncio.sleep(0.002)
        assert runs[name] not in talk.host.qemus() and seen <= {"Running", end}


@pytest.fixture
def small_store(host: Host) -> Iterator[Path]:
    """The disks of the host's machines are on a file system of 2 MiB."""
    store = host.root / "engine" / "scratch"
    store.mkdir(parents=True)
    store.parent.chmod(0o711)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=711", "none", store], check=True)
    yield store
    host.end()
    subprocess.run(["umount", "-l", store], check=True)


@pytest.mark.needs("root")
@pytest.mark.spec("kubevirt", 29)
@played
async def test_a_full_store_pauses_a_machine_until_there_is_room(talk: Talk, /, image: str, small_store: Path) -> None:
    await talk.make(VMS, machine("web", image, terminationGracePeriodSeconds=0))
    first = await talk.running("web")
    # What somebody else put there.
    other = small_store / ".other"
    other.write_bytes(bytes(1 << 20))
    async with talk.console("web") as console:
        # What it said when it began may have been said before anybody listened.
        paused = asyncio.create_task(
            talk.until(f"{VMIS}/web", lambda found: condition(found, "Paused").get("reason") == "PausedIOError", "it is paused")
        )
        while not paused.done():
            await console.write(b"w")
            await asyncio.sleep(0.2)
        await paused
        await talk.until(f"{VMS}/web", lambda found: found["status"]["printableStatus"] == "Paused", "the machine says so")
        other.unlink()
        await talk.until(f"{VMIS}/web", lambda found: not condition(found, "Paused"), "it goes on by itself")
        ready = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
        assert ready["metadata"]["uid"] == first["metadata"]["uid"]
    await talk.until(f"{VMS}/web", lambda found: found["status"]["printableStatus"] == "Running", "the machine says so, too")
