"""Guests are suspended to disk and resumed, with real QEMUs: what they had is there again, whatever is killed in between."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
from paddock.engine.machine import migration, suspension
from paddock.engine.machine.config import DiskConfig, MachineConfig, SharedDirectory
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.storage import records
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import played_by
from tests.host.machines import bootsector
from tests.host.machines.conftest import Place, killed_at, qemus, run, taken_over, until, until_guest_runs, until_phase
from tests.host.machines.test_renewal import EXTRA, MIB, blank, booted, echoed, echoes, says, small

pytestmark = pytest.mark.needs("qemu")


async def _resumed(machine: QemuMachine) -> None:
    await machine.start()
    await until(
        machine, lambda one: one.observed.phase in ("running", "suspended", "ended") and not one.observed.stands_still, "it goes on"
    )
    assert machine.observed.phase == "running", machine.observed


async def _small_one(place: Place, machines: Machines, **more: Any) -> QemuMachine:
    await machines.adopt()
    machine = await machines.define("a", replace(place.guest(), **more))
    await machine.start()
    await until_guest_runs(machine)
    return machine


async def _goes_on(machine: QemuMachine) -> None:
    await until(machine, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it runs")
    await echoes(machine)
    assert machine.directory.serial_tail(100_000).count(b"R") == 1, "it booted again"


def _is_clean(machine: QemuMachine, *names: str) -> bool:
    return sorted(path.name for path in machine.directory.path.glob("saved*")) == sorted(names)


@played_by(run, seconds=900)
async def test_an_operating_system_finds_all_it_had(place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int]) -> None:
    port = free_port()
    machines = place.open()
    await machines.adopt()
    machine = await _equipped(place, machines, small(place, tiny_guest, port))
    checksum, before = await says(machine, "sha256sum /tmp/random"), machine.observed
    uptime = float((await says(machine, "cat /proc/uptime")).split()[0])
    began = time.monotonic()
    await machine.suspend()
    await until_phase(machine, "suspended")
    written = time.monotonic() - began
    state = machine.observed.suspended
    assert state is not None and state.size == machine.directory.saved_state.stat().st_size > MIB
    assert qemus(place.machines) == {} and _is_clean(machine, "saved.json", "saved.state")
    disks = _digests(place.root)
    machines.close()

    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and again.observed.suspended == state
    began = time.monotonic()
    await _resumed(again)
    print(f"{state.size / 1e6:.1f} MB written in {written:.2f} s, read in {time.monotonic() - began:.2f} s")
    assert disks == _digests(place.root)
    await until(again, lambda one: one.observed.agent, "the agent is found", 120)
    assert await says(again, "sha256sum /tmp/random; cat /tmp/kept; head -c 7 /dev/vda") == f"{checksum}\nkept\nwritten"
    later = float((await says(again, "cat /proc/uptime")).split()[0])
    assert uptime < later < uptime + 60
    assert (again.observed.memory, again.observed.sockets) == (before.memory, before.sockets) == (256 * MIB, 2)
    assert again.observed.nics == before.nics and again.observed.disks == before.disks
    assert _is_clean(again)
    # Its ports of the host lead there again, devices still come and go, and it can be suspended once more.
    assert await asyncio.to_thread(echoed, port, b"through QEMU's own network") == b"through QEMU's own network"
    await again.unplug_disk("data")
    await again.plug_disk(DiskConfig("last", blank(place.root / "last.img"), bus="virtio"))
    await again.suspend()
    await until_phase(again, "suspended")
    await _resumed(again)
    assert await says(again, "cat /tmp/kept; ls /sys/block | grep -c vd") == "kept\n2"
    await again.stop(30)
    await until_phase(again, "ended")
    assert again.observed.end is not None and again.observed.end.reason == "guest-shutdown"


async def _equipped(place: Place, machines: Machines, config: MachineConfig) -> QemuMachine:
    """An operating system, with everything that may differ from the start."""
    machine = await machines.define("a", config)
    await booted(machine)
    await machine.set_sockets(2)
    await machine.plug_disk(DiskConfig("data", blank(place.root / "data.img"), bus="virtio", serial="data"))
    await machine.plug_nic(EXTRA)
    await machine.unplug_disk("old")
    await machine.set_memory(256 * MIB)
    await until(machine, lambda one: one.observed.memory == 256 * MIB, "the guest took it", 120)
    await says(machine, "echo written | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null; echo kept > /tmp/kept")
    await says(machine, "dd if=/dev/urandom of=/tmp/random bs=64k count=64 2>/dev/null")
    return machine


def _digests(root: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in root.glob("*.img")}


@pytest.mark.parametrize("wanted", ["suspended", "running"])
def test_killed_at_every_step(place: Place, wanted: str) -> None:
    """The guest runs on, or its state is whole: never both, never neither, and it never boots."""
    found: list[str] = []

    async def examine(*, start: bool = False) -> None:
        machines, machine = await taken_over(place, start=start)
        await until(
            machine, lambda one: one.observed.phase in ("suspended", "ended", "running") and not one.observed.stands_still, "it settled"
        )
        found.append(machine.observed.phase)
        assert machine.observed.phase != "ended", machine.observed
        if machine.observed.phase == "suspended":
            assert qemus(place.machines) == {} and _is_clean(machine, "saved.json", "saved.state")
        if machine.observed.phase == "suspended" and wanted == "suspended":
            await _resumed(machine)
        if machine.observed.phase == "running":
            await _goes_on(machine)
            await until(machine, _is_clean, "nothing is left of it")
            assert qemus(place.machines) == {"a": [machine.observed.pid]} and _is_clean(machine)
        if machine.observed.phase == "running" and wanted == "running":
            await machine.suspend()
            await until_phase(machine, "suspended")
        machines.close()

    run(lambda: examine(start=True), 300)
    step = 0
    while not killed_at(place, "suspending", step):
        run(examine, 300)
        step += 1
    run(examine, 300)
    reached = [each == wanted for each in found[1:]]
    # How many steps there are differs a little. A start that had no QEMU yet is carried out by the next Paddock.
    assert step > 15 and reached[-1] and not all(reached)
    if wanted == "suspended":
        assert not any(reached[: step // 3])
    print(f"{step} steps, of which {reached.count(False)} lead back")


@pytest.mark.parametrize("late", [False, True])
@played_by(run)
async def test_a_qemu_that_dies_leaves_the_state_or_nothing(place: Place, monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """Before the state is whole its end is that of the guest; while it reads the state, nothing is lost."""
    send, receive = migration.send, migration.receive

    async def dies(owner: Any, *action: Any, **more: Any) -> None:
        if not late:
            os.kill(owner.observed.pid, signal.SIGKILL)
        await (send(owner, *action, **more) if action else receive(owner))
        os.kill(owner.observed.pid, signal.SIGKILL)
        await asyncio.Event().wait()

    machine = await _small_one(place, place.open())
    if not late:
        monkeypatch.setattr(migration, "send", dies)
        # Its end is seen first, or that it does not answer.
        with pytest.raises((RequestRefused, Unanswered)):
            await machine.suspend()
        await until_phase(machine, "ended")
        assert _is_clean(machine)
        return
    await machine.suspend()
    await until_phase(machine, "suspended")
    monkeypatch.setattr(migration, "receive", dies)
    await machine.start()
    await until(machine, lambda one: one.observed.phase == "suspended" and one.observed.end is not None, "it is suspended again")
    assert machine.observed.end is not None and machine.observed.end.text
    monkeypatch.undo()
    await _resumed(machine)
    await _goes_on(machine)


@played_by(run)
async def test_a_state_does_not_run_on_disks_that_went_on(place: Place) -> None:
    machine = await _small_one(place, place.open())
    disk = place.root / "guest.img"
    await machine.suspend()
    await until_phase(machine, "suspended")
    shutil.copy2(machine.directory.path / "saved.json", place.root / "old.json")
    status = disk.stat()
    disk.write_bytes(disk.read_bytes())
    await machine.start()
    await until(machine, lambda one: one.observed.phase == "suspended" and one.observed.end is not None, "it stays suspended")
    assert machine.observed.end is not None and "guest.img was written since" in machine.observed.end.text
    assert _is_clean(machine, "saved.json", "saved.state")
    os.utime(disk, ns=(status.st_atime_ns, status.st_mtime_ns))
    await _resumed(machine)
    await _goes_on(machine)
    # What has run is gone.
    assert _is_clean(machine)


@pytest.mark.spec("kubevirt", 265)
@played_by(run)
async def test_layers_below_a_suspended_machine_are_merged(place: Place) -> None:
    """Snapshots of the volume that its disk is laid over are deleted meanwhile: its own layer stays as it is, and the guest goes on."""
    machines, volumes = place.open(), Volumes(place.root / "volumes")
    volumes.prepare()
    volumes.is_held = machines.will_open
    size = 1 << 20
    await volumes.create("a", size)
    bootsector.write(volumes.place("a") / "disk.img", size)
    for each in ("earlier", "later"):
        await volumes.snapshot("a", each)
    copy = await volumes.restore("later", "b", size)
    machine = await _small_one(place, machines, disks=(DiskConfig("root", copy.layer, boot_order=1),))
    await machine.suspend()
    await until_phase(machine, "suspended")
    before = copy.layer.path.stat()
    await volumes.delete_snapshot("earlier")
    assert len(records.read(volumes.place("a") / "volume.json").layers) == 2, "nothing was merged"  # type: ignore[union-attr]
    assert copy.layer.path.stat() == before, "the header of its layer was written"
    await _resumed(machine)
    await _goes_on(machine)
    await machine.stop(0)
    await until_phase(machine, "ended")


@played_by(run)
async def test_refusals_come_before_the_guest_stands_still(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    stops: list[str] = []

    def told(name: str, data: Mapping[str, Any]) -> bool:
        stops.append(name)
        return False

    with machine._owner.events.expect(told):
        for reason, name, value in (
            ("NoSpace", "SPARE", 1 << 60),
            ("NoSpace", "taken", lambda text: 1 << 60),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(suspension, name, value)
                with pytest.raises(RequestRefused) as caught:
                    await machine.suspend()
                assert caught.value.reason == reason
        shared = SharedDirectory("share", place.root)
        monkeypatch.setattr(
            machine._owner.files, "config", replace(machine.config, devices=replace(machine.config.devices, shared=(shared,)))
        )
        with pytest.raises(RequestRefused, match="shares directories") as caught:
            await machine.suspend()
        assert caught.value.reason == "NotSuspendable" and "STOP" not in stops
    monkeypatch.undo()
    await _goes_on(machine)


@played_by(run)
async def test_nobody_lets_it_go_on_once_its_state_is_whole(place: Place) -> None:
    machine = await _small_one(place, place.open())
    waiting = [asyncio.create_task(each) for each in (machine.suspend(), _refused(machine.resume), _refused(machine.suspend))]
    await waiting[0]
    assert machine.observed.phase in ("stopping", "suspended")
    with pytest.raises(RequestRefused):
        await machine.resume()
    await asyncio.gather(*waiting)
    await until_phase(machine, "suspended")
    assert qemus(place.machines) == {} and _is_clean(machine, "saved.json", "saved.state")
    await _resumed(machine)
    await _goes_on(machine)


async def _refused(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Asked while the state is written: refused when it is."""
    await asyncio.sleep(0)
    with contextlib.suppress(RequestRefused):
        await work()


@played_by(run)
async def test_a_failure_in_the_middle_lets_the_guest_go_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    pid = machine.observed.pid

    def full(config: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(suspension, "synchronise", full)
    with pytest.raises(RequestRefused, match="No space left"):
        await machine.suspend()
    await _goes_on(machine)
    assert machine.observed.pid == pid and _is_clean(machine)
    monkeypatch.undo()
    await machine.suspend()
    await until_phase(machine, "suspended")


@pytest.mark.spec("kubevirt", 262)
@pytest.mark.parametrize("paused", ["start", "user"])
@played_by(run)
async def test_a_paused_guest_stays_paused_after_a_failure(place: Place, monkeypatch: pytest.MonkeyPatch, paused: str) -> None:
    def full(config: Any) -> None:
        raise OSError(28, "No space left on device")

    if paused == "user":
        machine = await _small_one(place, place.open())
        await machine.pause()
    else:
        machines = place.open()
        await machines.adopt()
        machine = await machines.define("a", place.guest())
        await machine.start(paused=True)
        await until_phase(machine, "running")
    monkeypatch.setattr(suspension, "synchronise", full)
    for why in ("No space left", "anew once it ran"):
        with pytest.raises(RequestRefused, match=why):
            await machine.suspend()
        await until(machine, lambda one: not one.observed.still, "it is over")
        assert machine.observed.paused == paused
    if paused == "start":
        assert machine.directory.serial_tail(100) == b"", "the guest ran"
    await machine.resume()
    await until_guest_runs(machine)
    await _goes_on(machine)


@played_by(run)
async def test_a_pause_outlasts_it_and_a_stop_discards(place: Place) -> None:
    machine = await _small_one(place, place.open())
    await machine.pause()
    await machine.suspend()
    await until_phase(machine, "suspended")
    await machine.suspend()
    with pytest.raises(RequestRefused, match="suspended to disk"):
        await machine.screenshot()
    await machine.start()
    await until(machine, lambda one: one.observed.paused == "start", "it waits as before")
    await machine.resume()
    await _goes_on(machine)
    await machine.suspend()
    await until_phase(machine, "suspended")
    await machine.stop(0)
    assert machine.observed.phase == "ended" and machine.observed.end is not None
    assert machine.observed.end.reason == "discarded" and _is_clean(machine)
    await machine.start()
    await until_guest_runs(machine)


@played_by(run)
async def test_a_stop_overtakes_a_suspension(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = await _small_one(place, place.open())
    waits = asyncio.Event()
    send = migration.send

    async def stuck(owner: Any, action: str, *, bitmaps: bool) -> None:
        await send(owner, action, bitmaps=bitmaps)
        waits.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(migration, "send", stuck)
    task: asyncio.Task[None] = asyncio.create_task(_quietly(machine.suspend()))
    await waits.wait()
    await machine.stop(30)
    await task
    await until_phase(machine, "ended")
    assert machine.observed.end is not None and machine.observed.end.reason == "guest-shutdown" and _is_clean(machine)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with pytest.raises(RequestRefused, match="being stopped"):
        await work
