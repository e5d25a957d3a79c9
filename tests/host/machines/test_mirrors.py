"""Disks of a guest that move into other files while it runs, with a real QEMU; and what is there when something dies in between."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from paddock.base.errors import PaddockError
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.mirrors import DiskMirrors
from paddock.engine.machine.owner import MachineOwner
from tests.coroutines import played_by
from tests.host.machines import bootsector
from tests.host.machines.conftest import Place, killed_at, run, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")

MIB = 1 << 20
SIZE = 64 * MIB
# The guest writes 64 KiB there whenever it is told to.
MARK = bootsector.marker(1)


def blank(path: Path, size: int = SIZE) -> DiskLayer:
    path.write_bytes(b"")
    os.truncate(path, size)
    return DiskLayer(path, "raw")


def old_disk(place: Place) -> DiskLayer:
    """A layer over another one, both with data; the guest writes into the upper one."""
    below = blank(place.root / "below.img")
    with below.path.open("r+b") as file:
        for at in range(0, SIZE, 4 * MIB):
            file.seek(at + 2 * MIB)
            file.write(os.urandom(64 << 10))
    path = place.root / "old.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(below.path), str(path)], check=True)
    return DiskLayer(path, "qcow2", below)


async def started(place: Place, *names: str, count: int = 1) -> QemuMachine:
    """A machine whose guest writes to its second disk, `data`; further ones are `more1`, ..."""
    machines = place.open()
    await machines.adopt()
    machine = machines.get("a")
    if machine is None:
        more = [DiskConfig(f"more{number}", blank(place.root / f"more{number}.img", MIB)) for number in range(1, count)]
        config = place.guest(disks=(DiskConfig("data", old_disk(place), boot_order=2), *more))
        (place.root / "guest.img").write_bytes(MARK.ljust(MIB, b"\x00"))
        machine = await machines.define("a", config)
        await machine.start()
        await until_guest_runs(machine)
    return machine


async def writes(machine: QemuMachine) -> None:
    """The guest writes the next 64 KiB to its disk."""
    said = machine.directory.serial_log().count(b"w")
    console = machine.console()
    await console.write(b"w")
    await until(machine, lambda one: one.directory.serial_log().count(b"w") > said, "the guest wrote", 30)
    console.close()


async def ready(machine: QemuMachine, *names: str) -> None:
    wanted = names or ("data",)
    await until(machine, lambda one: all(one.observed.jobs[name].state != "running" for name in wanted), "the copies are ready", 60)


def content(layer: DiskLayer) -> bytes:
    out = layer.path.with_suffix(".raw")
    subprocess.run(["qemu-img", "convert", "-U", "-f", layer.format, "-O", "raw", str(layer.path), str(out)], check=True)
    data = out.read_bytes()
    out.unlink()
    return data


def marks(layer: DiskLayer) -> int:
    """Return how often the guest wrote to its disk."""
    held = content(layer)
    return sum(held[at : at + len(MARK)] == MARK for at in range(0, len(held), 64 << 10))


def layer_of(machine: QemuMachine, name: str = "data") -> DiskLayer:
    found = next(disk.layer for disk in machine.config.disks if disk.name == name)
    assert found is not None
    return found


async def stopped(machine: QemuMachine) -> None:
    await machine.stop(0)
    await until_phase(machine, "ended")


def nodes(machine: QemuMachine) -> Awaitable[list[str]]:
    async def ask() -> list[str]:
        return sorted(str(node["node-name"]) for node in await machine._owner.execute("query-named-block-nodes", {"flat": True}))

    return ask()


@pytest.mark.spec("kubevirt", 231)
@pytest.mark.parametrize("form", ["raw", "qcow2"])
@played_by(run)
async def test_a_disk_moves_with_all_its_layers_while_the_guest_writes(place: Place, form: str) -> None:
    machine = await started(place)
    old = layer_of(machine)
    before = await nodes(machine)
    await writes(machine)
    target = blank(place.root / "new.img")
    if form == "qcow2":
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(target.path), str(SIZE)], check=True)
        target = DiskLayer(target.path, "qcow2")
    else:
        # What it held goes.
        target.path.write_bytes(os.urandom(MIB).ljust(SIZE, b"\xff"))
    await machine.move_disks({"data": target})
    await writes(machine)
    await ready(machine)
    await writes(machine)
    assert machine.observed.jobs["data"].state == "ready" and layer_of(machine) == old
    for refused in (
        machine.resize_disk("data", 2 * SIZE),
        machine.overlay_disks({"root": layer_of(machine, "root")}),
        machine.commit_disk("data", old.path),
        machine.renew(),
        machine.suspend(),
    ):
        with pytest.raises(RequestRefused) as caught:
            await refused
        assert caught.value.reason == "Busy"
    await machine.change_over()
    assert layer_of(machine) == target and not machine.observed.paused and not machine.observed.jobs
    left = content(old)
    await machine.resize_disk("data", SIZE + MIB)
    await writes(machine)
    assert content(old) == left, "the old files are written no more"
    after = await nodes(machine)
    assert len(after) < len(before) and not any("old" in name for name in after)
    await stopped(machine)
    moved = content(target)
    assert moved[: 3 * 64 << 10][64 << 10 :] == left[: 3 * 64 << 10][64 << 10 :] and moved[2 * MIB : SIZE] == left[2 * MIB :]
    assert moved != left, "the last write is in the new file alone"
    await machine.start()
    await until_guest_runs(machine)
    await machine.resize_disk("data", 2 * SIZE)
    await stopped(machine)


@played_by(run)
async def test_disks_that_cannot_move_and_copies_that_are_called_off(place: Place) -> None:
    machine = await started(place, count=2)
    old, before = layer_of(machine), await nodes(machine)
    with pytest.raises(RequestRefused, match="none of that name"):
        await machine.move_disks({"other": blank(place.root / "n0.img")})
    with pytest.raises(RequestRefused, match="bytes, and its new file has"):
        await machine.move_disks({"data": blank(place.root / "n1.img", 2 * SIZE)})
    assert await nodes(machine) == before and machine._owner.record.moving is None
    targets = {"data": blank(place.root / "n2.img"), "more1": blank(place.root / "n3.img", MIB)}
    await machine.move_disks(targets, MIB)
    await machine.move_disks(targets, MIB)
    await until(machine, lambda one: one.observed.jobs["data"].done > 0, "there is progress")
    assert machine.observed.jobs["data"].total >= SIZE
    with pytest.raises(RequestRefused, match="being moved"):
        await machine.move_disks({"data": blank(place.root / "n4.img")})
    await machine.keep_disks()
    assert layer_of(machine) == old and await nodes(machine) == before and not machine.observed.jobs
    # A stop is not in the way of anything.
    await machine.move_disks(targets, MIB)
    await stopped(machine)
    assert layer_of(machine) == old and machine._owner.record.moving is None


@pytest.mark.spec("kubevirt", 231)
@pytest.mark.needs("root")
@played_by(run)
async def test_a_full_disk_ends_all_copies_and_leaves_the_guest_alone(place: Place) -> None:
    # QEMU sees what is mounted when it starts.
    full = place.root / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(full)], check=True)
    try:
        full.chmod(0o711)
        machine = await started(place, count=2)
        old, before = layer_of(machine), await nodes(machine)
        await machine.move_disks({"more1": blank(place.root / "n3.img", MIB), "data": blank(full / "new.img")})
        await until(machine, lambda one: {job.state for job in one.observed.jobs.values()} == {"failed"}, "both copies failed")
        assert "No space left" in machine.observed.jobs["data"].error
        assert layer_of(machine) == old and await nodes(machine) == before
        await writes(machine)
        await stopped(machine)
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


@pytest.mark.spec("kubevirt", 231)
@played_by(run)
async def test_two_disks_change_over_together_or_not_at_all(place: Place) -> None:
    machine = await started(place, count=2)
    targets = {"data": blank(place.root / "n1.img"), "more1": blank(place.root / "n2.img", MIB)}
    await machine.move_disks(targets)
    await ready(machine, *targets)
    # One of them goes before the guest stands still.
    execute = machine._owner.execute

    async def lost(command: str, arguments: object = None, **more: object) -> object:
        if command == "job-complete" and "more1" in str(arguments):
            return await execute("block-job-cancel", {"device": arguments["id"], "force": True})  # type: ignore[index]
        return await execute(command, arguments, **more)  # type: ignore[arg-type]

    machine._owner.execute = lost  # type: ignore[method-assign]
    with pytest.raises(Exception, match="cannot move disk more1"):
        await machine.change_over()
    machine._owner.execute = execute  # type: ignore[method-assign]
    assert layer_of(machine).format == "qcow2" and layer_of(machine, "more1") != targets["more1"]
    assert {job.state for job in machine.observed.jobs.values()} == {"failed"} and not machine.observed.paused
    await writes(machine)
    await machine.move_disks(targets)
    await ready(machine, *targets)
    await machine.change_over()
    assert [layer_of(machine, name) for name in targets] == list(targets.values())
    await writes(machine)
    await stopped(machine)


@pytest.mark.spec("kubevirt", 232)
@played_by(run)
async def test_a_stop_does_not_come_between_qemu_and_the_config(place: Place) -> None:
    machine = await started(place)
    target = blank(place.root / "n1.img")
    await machine.move_disks({"data": target})
    await ready(machine)
    land = DiskMirrors._land

    async def slowly(self: DiskMirrors, moving: object) -> None:
        await machine.stop(20)
        await asyncio.sleep(0.5)
        await land(self, moving)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiskMirrors, "_land", slowly)
        with pytest.raises(RequestRefused):
            await machine.change_over()
        await until_phase(machine, "ended")
    assert layer_of(machine) == target
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown"


# --- whoever dies ------------------------------------------------------------------------------------------------------------


async def steps(machine: QemuMachine, target: DiskLayer, at: Callable[[int], Awaitable[None]]) -> None:
    """Move a disk; `at` is called with the number of each step before it."""
    count, execute, reconfigure = 0, MachineOwner.execute, MachineOwner.reconfigure

    async def step() -> None:
        nonlocal count
        count += 1
        await at(count)

    async def counted(self: MachineOwner, command: str, *arguments: object, **more: object) -> object:
        if not command.startswith("query"):
            await step()
        return await execute(self, command, *arguments, **more)  # type: ignore[arg-type]

    async def written(self: MachineOwner, change: object) -> None:
        await step()
        await reconfigure(self, change)  # type: ignore[arg-type]
        await step()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MachineOwner, "execute", counted)
        patch.setattr(MachineOwner, "reconfigure", written)
        await machine.move_disks({"data": target})
        await ready(machine)
        await step()
        await machine.change_over()
        await step()


@pytest.mark.spec("kubevirt", 232)
@pytest.mark.long
@played_by(run, seconds=300)
async def test_qemu_is_killed_at_each_step(place: Place) -> None:
    """The config names a file with everything that the guest wrote, and the machine starts from it."""
    machine = await started(place)
    await writes(machine)
    number, killed = 0, True
    while killed:
        number, killed = number + 1, False

        async def kill(step: int, last: int = number) -> None:
            nonlocal killed
            if step == last:
                killed = True
                os.kill(machine.observed.pid, signal.SIGKILL)
                await until_phase(machine, "ended")

        try:
            await steps(machine, blank(place.root / f"new{number}.img"), kill)
        except PaddockError:
            assert machine.observed.phase == "ended"
        assert machine._owner.record.moving is None
        assert marks(layer_of(machine)) == 1, f"step {number}"
        if killed:
            await machine.start()
            await until_phase(machine, "running")
    assert number > 8
    await stopped(machine)


@pytest.mark.spec("kubevirt", 232)
@pytest.mark.long
def test_paddock_is_killed_at_each_step(place: Place) -> None:
    """Another Paddock finds the guest running, and the disk where QEMU has it; a repeated move ends well."""

    async def begin() -> None:
        machine = await started(place)
        await writes(machine)

    run(begin)
    step = 1
    while not killed_at(place, "mirroring", step):

        async def look(step: int = step) -> None:
            machine = await started(place)
            await until(machine, lambda one: not one.observed.stands_still, f"the guest goes on after step {step}")
            await until(machine, lambda one: one._owner.record.moving is None or bool(one.observed.jobs), "it was looked at")
            if machine._owner.record.moving is not None:
                await ready(machine)
            await asyncio.sleep(0.3)
            tops = {block["qdev"].split("/")[3]: block["inserted"]["file"] for block in await machine._owner.execute("query-block")}
            assert str(layer_of(machine).path.name) in tops["ua-data"], f"step {step}: QEMU has {tops}"
            await writes(machine)

        run(look)
        step += 1
    assert step > 8

    async def end() -> None:
        machine = await started(place)
        assert layer_of(machine).format == "raw" and machine._owner.record.moving is None
        await writes(machine)
        assert marks(layer_of(machine)) == step + 1
        await stopped(machine)

    run(end)
