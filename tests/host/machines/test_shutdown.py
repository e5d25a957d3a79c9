"""Guests that shut down with their host, while no Paddock runs."""

import asyncio
import io
from collections.abc import Mapping
from typing import Any

import pytest

from paddock.app.directory import shutdown
from paddock.cli.console import Console
from paddock.engine.machine.argv import names
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.qmp import Qmp, open_socket
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, bare, run, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")


@played_by(run)
async def test_guests_shut_down_by_priority_and_the_host_is_the_reason(place: Place) -> None:
    out, err = io.BytesIO(), io.BytesIO()
    first = place.open(count=4)
    await first.adopt()
    machines: dict[str, QemuMachine] = {}
    # Firmware that finds nothing to boot hears no button. The last one never runs its guest, so there is nothing to save.
    for name, priority, grace in (("high", 7, 30.0), ("low", -1, 30.0), ("paused", 3, 30.0), ("deaf", 5, 2.0), ("unborn", 9, 30.0)):
        machines[name] = machine = await first.define(name, bare("ns_deaf") if name == "deaf" else place.guest(name))
        await machine.start(paused=name == "unborn", priority=priority, grace=grace)
        await until_phase(machine, "running", "ended")
        if name not in ("deaf", "unborn"):
            await until_guest_runs(machine)
    await machines["paused"].pause()
    first.close()
    await shutdown.shut_down_all([place.root], 120, Console(out, err))
    second = place.open()
    await second.adopt()
    for name in machines:
        again = second.get(name)
        assert again is not None and again.observed.end is not None, name
        assert again.observed.end.reason == "host-reboot", name
    assert [line.split()[0] for line in out.getvalue().decode().splitlines()] == ["ns/low", "ns/paused", "ns/high"]
    ended = err.getvalue().decode().splitlines()
    assert [line.split()[2] for line in ended] == ["ns/deaf", "ns/unborn"]
    assert "did not shut down within 2 s" in ended[0] and "has not run" in ended[1]


@played_by(run)
async def test_a_guest_that_was_down_already_keeps_its_own_reason(place: Place) -> None:
    out = io.BytesIO()
    first = place.open()
    await first.adopt()
    machine = await first.define("a", place.guest())
    await machine.start()
    await until_phase(machine, "running", "ended")
    await until_guest_runs(machine)
    first.close()
    down = asyncio.Event()

    def tell(name: str, _: Mapping[str, Any]) -> None:
        if name == "SHUTDOWN":
            down.set()

    # Nobody reads the monitor when the guest powers itself off.
    monitor = await Qmp.connect(open_socket(machine.directory.run, names.QMP), tell, down.set)
    with open_socket(machine.directory.run, names.SERIAL) as console:
        console.send(b"p")
        async with asyncio.timeout(60):
            await down.wait()
    monitor.close()
    await shutdown.shut_down_all([place.root], 60, Console(out, io.BytesIO()))
    second = place.open()
    await second.adopt()
    again = second.get("a")
    assert again is not None and again.observed.end is not None and again.observed.end.reason == "guest-shutdown"
    assert "ns/guest shut down" in out.getvalue().decode()
