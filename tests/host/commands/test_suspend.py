"""`paddock suspend` and `resume` with a real guest: its memory outlives Paddock and its QEMU."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.host.commands.test_power import paddock, row
from tests.host.runs.conftest import PROMPT, VMIS, VMS, Host, Talk, condition, machine

pytestmark = pytest.mark.needs("qemu")
T = TypeVar("T")
# Counts in memory alone.
_COUNT = "(i=0; while :; do i=$((i+1)); echo $i > /dev/shm/next; mv /dev/shm/next /dev/shm/count; sleep 0.1; done) >/dev/null 2>&1 & true"
_MEMORY = "mkdir -p /dev/shm; mount -t tmpfs none /dev/shm 2>/dev/null; dd if=/dev/urandom of=/dev/shm/random bs=64k count=64 2>/dev/null"


def _with(host: Host, script: Callable[[Talk], Awaitable[T]]) -> T:
    """Each start of the host has an address of its own."""

    async def inside() -> T:
        async with asyncio.timeout(300), host.client() as client:
            return await script(Talk(host, client))

    return asyncio.run(inside())


async def _in_guest(talk: Talk, *commands: str) -> list[str]:
    async with talk.console("web") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        return [(await console.shell(each)).strip() for each in commands]


async def _until_no_process(host: Host) -> None:
    """A process that has ended may be seen for a moment."""
    async with asyncio.timeout(60):
        while host.qemus():
            await asyncio.sleep(0.05)


def _disks(host: Host) -> dict[str, str]:
    found = (each for each in host.root.glob("engine/**/*.img") if each.is_file())
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}


def test_a_guest_goes_on_where_it_was(host: Host, tiny_disk_image: str) -> None:
    volumes = ({"name": "more", "emptyDisk": {"capacity": "8Mi"}},)

    async def suspended(talk: Talk) -> tuple[str, float, int]:
        made = machine("web", tiny_disk_image, domain={"memory": {"guest": "256Mi"}}, volumes=volumes, terminationGracePeriodSeconds=0)
        await talk.make(VMS, made)
        await talk.running("web")
        await _in_guest(talk, _MEMORY, _COUNT)
        sums, uptime, count = await _in_guest(talk, "sha256sum /dev/shm/random", "cat /proc/uptime", "sleep 2; cat /dev/shm/count")
        began = time.monotonic()
        assert await paddock(talk, "suspend", "web") == "vm/web suspended\n"
        print(f"suspended after {time.monotonic() - began:.2f} s")
        assert (await row(talk, "web"))["status"] == "Suspended"
        await _until_no_process(talk.host)
        found = condition(await talk.get(f"{VMIS}/web"), "Suspended")
        print(found["message"])
        assert "paddock resume web" in await paddock(talk, "why", "web", code=1)
        return sums, float(uptime.split()[0]), int(count)

    async def resumed(talk: Talk) -> None:
        assert (await row(talk, "web"))["status"] == "Suspended"
        assert await paddock(talk, "stop", "web", code=2) == ""
        began = time.monotonic()
        assert await paddock(talk, "resume", "web") == "vm/web resumed\n"
        print(f"resumed after {time.monotonic() - began:.2f} s")
        now = await _in_guest(talk, "sha256sum /dev/shm/random", "cat /proc/uptime", "sleep 2; cat /dev/shm/count")
        later = float(now[1].split()[0])
        assert now[0] == before[0] and int(now[2]) > before[2]
        assert before[1] < later < before[1] + (time.monotonic() - began) + 60
        # Its command is as good, and a discard lets it boot.
        assert await paddock(talk, "suspend", "web") == "vm/web suspended\n"
        assert await paddock(talk, "start", "web") == "vm/web resumed\n"
        assert await paddock(talk, "suspend", "web") == "vm/web suspended\n"
        first = (await talk.get(f"{VMIS}/web"))["metadata"]["uid"]
        assert await paddock(talk, "suspend", "web", "--discard") == "vm/web saved state discarded\n"
        await talk.until(f"{VMIS}/web", lambda vmi: vmi and vmi["metadata"]["uid"] != first and vmi["status"].get("phase") == "Running")
        assert await _in_guest(talk, "cat /dev/shm/count 2>/dev/null") == [""]
        assert not list(host.root.glob("engine/machines/*/saved*"))

    host.start()
    before = _with(host, suspended)
    disks = _disks(host)
    host.kill()
    host.start()
    assert disks and host.qemus() == {} and _disks(host) == disks
    states = list(Path(host.root).glob("engine/machines/*/saved.state"))
    assert len(states) == 1 and states[0].stat().st_size < 256 << 20
    print(f"{states[0].stat().st_size / 1e6:.1f} MB on disk")
    _with(host, resumed)
