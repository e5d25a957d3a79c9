"""Layers of a disk that are merged while the guest runs, with a real QEMU: it stands still for a moment only, whoever dies or stops it."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.blockjobs import BlockJobs
from paddock.engine.machine.config import DiskLayer
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, killed_at, run, until, until_phase
from tests.host.machines.test_mirrors import layer_of, marks, started, stopped, writes

pytestmark = pytest.mark.needs("qemu")


def overlay(base: DiskLayer, path: Path) -> DiskLayer:
    """Return an empty layer over another one."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", base.format, "-b", str(base.path), str(path)], check=True)
    return DiskLayer(path, "qcow2", base)


async def overlaid(place: Place) -> tuple[QemuMachine, DiskLayer]:
    """Return a machine that has written into a new layer of its disk, and the layer below."""
    machine = await started(place)
    base = layer_of(machine)
    await machine.overlay_disks({"data": overlay(base, place.root / "top.qcow2")})
    await writes(machine)
    return machine, base


@pytest.mark.spec("kubevirt", 259)
@played_by(run)
async def test_a_stop_does_not_leave_the_guest_standing_still(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shuts down by its power button, and its disk is where QEMU had it."""
    land, found = BlockJobs._on_base, list[QemuMachine]()

    async def slowly(self: BlockJobs, name: str, base: Path) -> None:
        await found[0].stop(20)
        await asyncio.sleep(0.5)
        await land(self, name, base)

    machine, base = await overlaid(place)
    found.append(machine)
    monkeypatch.setattr(BlockJobs, "_on_base", slowly)
    await machine.commit_disk("data", base.path)
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"
    assert layer_of(machine) == base and marks(base) == 1


@pytest.mark.spec("kubevirt", 260)
@pytest.mark.long
def test_paddock_is_killed_at_each_step(place: Place) -> None:
    """Another Paddock lets the guest go on, and ends the merge."""

    async def begin() -> None:
        await writes(await started(place))

    async def look() -> None:
        machine = await started(place)
        await until(machine, lambda one: one._owner.run.qmp is not None and not one._owner.record.commits, "the merge is over", 60)
        await until(machine, lambda one: not one.observed.stands_still, "the guest goes on")
        await writes(machine)
        tops = {block["qdev"].split("/")[3]: block["inserted"]["file"] for block in await machine._owner.execute("query-block")}
        assert layer_of(machine).path.name in tops["ua-data"], f"step {step}: QEMU has {tops}"
        halts.append(machine._owner.record.halted)

    run(begin)
    step, halts = 0, list[bool]()
    while not killed_at(place, "merging", step):
        run(look)
        step += 1
    assert step > 8 and not any(halts)

    async def end() -> None:
        machine = await started(place)
        await stopped(machine)
        assert marks(layer_of(machine)) == step + 1, "a write of the guest is lost"

    run(end)


@pytest.mark.spec("kubevirt", 261)
@played_by(run)
async def test_a_full_disk_keeps_the_guest_still_until_its_layer_is_written_down(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that went on would lose its writes with the next start, from the layer that the config names."""
    write, full = Directory.write_config, True

    def refuses(self: Directory, config: Any) -> None:
        if full:
            raise OSError(28, "No space left on device", str(self.path))
        write(self, config)

    machine, base = await overlaid(place)
    monkeypatch.setattr(Directory, "write_config", refuses)
    task = asyncio.create_task(machine.commit_disk("data", base.path))
    await until(machine, lambda one: "No space left" in one.observed.detail, "it says so")
    assert machine.observed.still and not machine.observed.paused and layer_of(machine) != base
    full = False
    await task
    await until(machine, lambda one: not one.observed.still, "the guest goes on")
    assert layer_of(machine) == base and not machine.observed.detail
    await writes(machine)
    await stopped(machine)


@pytest.mark.spec("kubevirt", 259)
@played_by(run)
async def test_a_guest_that_a_user_paused_stays_paused(place: Place) -> None:
    machine, base = await overlaid(place)
    await machine.pause()
    await machine.commit_disk("data", base.path)
    assert layer_of(machine) == base and machine.observed.paused == "user"
    with pytest.raises(RequestRefused, match="paused"):
        await machine.renew()
    await machine.resume()
    await writes(machine)
    await stopped(machine)
