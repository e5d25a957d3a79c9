"""A machine's life with a real QEMU."""

import asyncio
import itertools
import os
import signal
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine import startup
from paddock.engine.machine.config import CpuConfig
from paddock.engine.machine.host import Timeouts
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines.conftest import TIMES, Place, bare, closed, run, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")


def _paused(machine: QemuMachine) -> str:
    return machine.observed.paused


@played_by(run)
async def test_it_starts_runs_and_is_stopped_by_its_button(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.accelerator == "tcg" and machine.observed.disks["root"].size == 1 << 20
    await until_guest_runs(machine)
    await machine.stop(30)
    await until_phase(machine, "ended")
    end = machine.observed.end
    assert end is not None and end.reason == "guest-shutdown" and end.asked
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.run == 2
    await machine.stop(0)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "killed"
    await machine.forget()
    assert list(place.machines.iterdir()) == []


@played_by(run)
async def test_adopted_it_goes_on(place: Place) -> None:
    first = place.open()
    await first.adopt()
    machine = await first.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    seen = machine.observed
    first.close()
    second = place.open()
    await second.adopt()
    again = second.get("a")
    assert again is not None and again.observed == seen
    os.kill(seen.pid, signal.SIGKILL)
    await until_phase(again, "ended")
    end = again.observed.end
    assert end is not None and end.reason == "crashed"


@pytest.mark.parametrize("closes_first", [False, True])
@played_by(run)
async def test_what_qemu_says_when_it_ends_at_once_is_told(place: Place, monkeypatch: pytest.MonkeyPatch, closes_first: bool) -> None:
    if closes_first:
        monkeypatch.setattr(startup, "reach", closed)
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", replace(place.guest(), cpu=CpuConfig(model="nonsense")))
    await machine.start()
    await until_phase(machine, "ended")
    end = machine.observed.end
    assert end is not None and end.reason == "never-started" and "'nonsense'" in end.text, end


@played_by(run)
async def test_a_qemu_that_refuses_says_why(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    config = place.guest()
    machine = await machines.define("a", config)
    (place.root / "guest.img").unlink()
    await machine.start()
    await until_phase(machine, "ended")
    end = machine.observed.end
    assert end is not None and end.reason == "never-started" and "guest.img" in end.text, end
    other = await machines.define("b", bare())
    await other.start(paused=True)
    await until_phase(other, "running", "ended")
    assert _paused(other) == "start"
    await other.resume()
    assert _paused(other) == ""
    await asyncio.gather(other.pause(), other.pause())
    assert _paused(other) == "user"
    await other.stop(0)
    await until_phase(other, "ended")


@played_by(run)
async def test_a_soft_reboot_presses_the_button_and_goes_on_in_the_same_process(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    await until_guest_runs(machine)
    pid = machine.observed.pid
    for count in (1, 2):
        await machine.soft_reboot()
        await until(machine, lambda one: one.directory.serial_tail(100).count(b"R") == count + 1, "the guest runs again")  # noqa: B023
        assert (machine.observed.phase, _paused(machine), machine.observed.pid) == ("running", "", pid)
    # A shutdown of its own is one.
    console = machine.console()
    await console.write(b"p")
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"


@played_by(run)
async def test_a_stop_overtakes_a_reboot(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    await until_guest_runs(machine)
    await machine.soft_reboot()
    await machine.stop(30)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"


@pytest.mark.spec("kubevirt", 22)
@played_by(run)
async def test_the_button_is_pressed_at_once_and_again_until_the_time_is_over(place: Place) -> None:
    assert Timeouts().press == 5.0
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_guest_runs(machine)
    console = machine.console()
    # It becomes deaf, and does not say so.
    await console.write(b"xd")
    await until(machine, lambda one: one.directory.serial_tail(100).endswith(b"x"), "the guest listens")
    await asyncio.sleep(0.2)
    presses: list[float] = []
    loop = asyncio.get_running_loop()

    def pressed(name: str, data: Mapping[str, Any]) -> bool:
        if name == "POWERDOWN":
            presses.append(loop.time())
        return False

    with machine._owner.events.expect(pressed):
        asked = loop.time()
        await machine.stop(2.0)
        await until_phase(machine, "ended")
        end = machine.observed.end
        assert end is not None and end.reason == "killed" and end.asked
        # At 0.0, 0.3, ... 1.8: every 0.3 s here, every 5 s else. A busy host may be late, never early.
        assert 3 <= len(presses) <= 7 and presses[0] - asked < TIMES.press
        assert all(after - before > TIMES.press * 0.5 for before, after in itertools.pairwise(presses))
        await machine.start()
        await until_phase(machine, "running", "ended")
        presses.clear()
        await machine.stop(0)
        await until_phase(machine, "ended")
        assert presses == [] and machine.observed.end is not None and machine.observed.end.reason == "killed"
