"""Snapshots with memory, with real QEMUs: the guest runs on, and another run of its machine goes on where it was."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.base.images.build import tiny
from paddock.engine.machine import memorysnapshots, migration, rehosting, suspension
from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import DiskLayer, MachineConfig, SharedDirectory, Tpm
from paddock.engine.machine.errors import QemuRefused, RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.memorysnapshots import MemoryRequest
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.memorystates import MemoryState, MemoryStates
from paddock.engine.storage import files, overlays
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, killed_at, qemus, run, taken_over, until, until_guest_runs, until_phase
from tests.host.machines.test_renewal import _OVMF, MIB, booted, echoed, echoes, says, small

pytestmark = pytest.mark.needs("qemu")


def overlaid(config: MachineConfig, root: Path, name: str) -> dict[str, DiskLayer]:
    """Return an empty layer over each disk."""
    found = {}
    for disk in config.disks:
        assert disk.layer is not None
        path = root / f"{disk.name}-{name}.qcow2"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            files.make_layer(path, disk.layer, size_of(disk.layer))
        found[disk.name] = DiskLayer(path, "qcow2", disk.layer)
    return found


def size_of(layer: DiskLayer) -> int:
    while layer.backing is not None:
        layer = layer.backing
    return max(512, layer.path.stat().st_size)


def memories(place: Place) -> MemoryStates:
    found = MemoryStates(place.root / "memory")
    found.prepare()
    return found


async def kept(machine: QemuMachine, states: MemoryStates, root: Path, name: str = "s") -> MemoryState:
    request = MemoryRequest(overlaid(machine.config, root, name), frozenset(), states.draft(name))
    return states.keep(name, await machine.take_memory(request))


def fresh_of(before: MachineConfig, root: Path, name: str) -> MachineConfig:
    """Return a machine on layers of its own over the disks of a snapshot."""
    below = tuple(replace(disk, layer=disk.layer and (disk.layer.backing or disk.layer)) for disk in before.disks)
    layers = overlaid(replace(before, disks=below), root, name)
    return replace(before, label=f"ns_{name}", disks=tuple(replace(disk, layer=layers[disk.name]) for disk in before.disks))


async def continued(
    place: Place, machines: Machines, states: MemoryStates, state: MemoryState, name: str = "s", label: str = "ns_b"
) -> QemuMachine:
    """Another machine goes on from a memory; one with the label of the first is another run of that."""
    fresh = replace(fresh_of(state.record.saved.config, place.root, "b"), label=label)
    machine = await machines.define("b", fresh)
    assert rehosting.differences(state.record.saved, fresh) == ()
    await machine.begin_suspended(rehosting.rehosted(state.record.saved, fresh), states.filler(name))
    assert _phase(machine) == "suspended"
    await machine.start()
    await until(
        machine, lambda one: one.observed.phase in ("running", "suspended", "ended") and not one.observed.stands_still, "it goes on"
    )
    assert _phase(machine) == "running", machine.observed
    return machine


def _phase(machine: QemuMachine) -> str:
    return machine.observed.phase


_COUNT = "(i=0; while :; do i=$((i+1)); echo $i > /tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done) >/dev/null 2>&1 &"
_WRITES = "(while :; do dd if=/tmp/count of=/dev/vda conv=notrunc,fsync bs=512; done) </dev/null >/dev/null 2>&1 &"
# A connection within the guest, to its echo.
_TALK = (
    "(i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done | nc 127.0.0.1 7 > /tmp/heard; echo over > /tmp/broken) "
    "</dev/null >/dev/null 2>&1 &"
)


@pytest.mark.spec("kubevirt", 209)
@pytest.mark.spec("kubevirt", 212)
@played_by(run, seconds=900)
async def test_an_operating_system_goes_on(place: Place, tiny_guest: tiny.TinyImage, free_port: Callable[[], int]) -> None:
    port = free_port()
    machines, states = place.open(), memories(place)
    await machines.adopt()
    config = small(place, tiny_guest, port)
    config = replace(config, disks=config.disks[:1])
    machine = await machines.define("a", config)
    await booted(machine)
    await says(machine, f"dd if=/dev/urandom of=/tmp/random bs=64k count=64 2>/dev/null; {_COUNT}")
    await says(machine, f"sleep 1; {_WRITES} {_TALK} sleep 1")
    checksum = await says(machine, "sha256sum /tmp/random")
    assert int(await says(machine, "wc -l < /tmp/heard")) > 0
    await says(machine, "date -s @1000000000")
    pid = machine.observed.pid
    state = await kept(machine, states, place.root)
    print(f"pause {state.record.pause * 1000:.0f} ms, {state.size / MIB:.1f} MiB")
    counted = int(await says(machine, "cat /tmp/count"))
    # The guest runs on in the same process, and writes into its new layer.
    assert machine.observed.pid == pid and machine.config.disks[0].layer == DiskLayer(
        place.root / "root-s.qcow2", "qcow2", config.disks[0].layer
    )
    await says(machine, "sleep 1")
    assert int(await says(machine, "cat /tmp/count")) > counted and not machine.observed.paused
    await machine.stop(0)
    await until_phase(machine, "ended")
    frozen = (place.root / "root.img").read_bytes()
    await states.pack("s")
    packed = states.get("s")
    assert packed is not None and packed.packed and packed.stored < state.stored

    again = await continued(place, machines, states, state, label=config.label)
    await until(again, lambda one: one.observed.agent, "the agent is found", 120)
    assert await says(again, "sha256sum /tmp/random; cat /tmp/broken 2>/dev/null || true") == checksum
    # Its agent gets the time.
    assert abs(int(await says(again, "sleep 1; date +%s")) - time.time()) < 30
    later = int(await says(again, "cat /tmp/count"))
    heard = int(await says(again, "wc -l < /tmp/heard"))
    await says(again, "sleep 2")
    assert int(await says(again, "cat /tmp/count")) > later and int(await says(again, "wc -l < /tmp/heard")) > heard
    assert later < counted + 400
    assert await asyncio.to_thread(echoed, port, b"through QEMU's own network") == b"through QEMU's own network"
    assert (place.root / "root.img").read_bytes() == frozen
    # Its disk is of the same moment: no more and no less than one write apart from what memory says of it.
    on_disk = int(frozen[:512].split(b"\n")[0])
    assert abs(on_disk - counted) < 200


async def _small_one(place: Place) -> tuple[QemuMachine, Machines, MemoryStates]:
    machines, states = place.open(), memories(place)
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_guest_runs(machine)
    return machine, machines, states


async def _goes_on(machine: QemuMachine, boots: int = 1) -> None:
    await until(machine, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it runs")
    await echoes(machine)
    assert machine.directory.serial_tail(100_000).count(b"R") == boots, "it booted again"


def _is_clean(place: Place) -> bool:
    found = [path.parent for path in (place.root / "memory").glob("*/state*")]
    return all((folder / "memory.json").exists() for folder in found) and not list(place.machines.glob("*/saved*"))


@pytest.mark.spec("kubevirt", 215)
def test_killed_at_every_step_of_taking(place: Place) -> None:
    """The guest runs on in its one process, and a memory is whole or is not there."""
    found: list[int] = []

    async def examine(*, start: bool = False) -> None:
        machines, machine = await taken_over(place, start=start)
        await until(machine, lambda one: one.observed.phase in ("ended", "running") and not one.observed.stands_still, "it settled")
        await _goes_on(machine)
        states = memories(place)
        assert qemus(place.machines) == {"a": [machine.observed.pid]} and _is_clean(place)
        found.append(len([path for path in (place.root / "memory").iterdir() if states.get(path.name) is not None]))
        machines.close()

    run(lambda: examine(start=True), 300)
    step = 0
    while not killed_at(place, "remembering", step):
        run(examine, 300)
        step += 1
    run(examine, 300)
    assert step > 15 and found[-1] > 0 and found[step // 2] == 0
    print(f"{step} steps, {found[-1]} memories")


@pytest.mark.spec("kubevirt", 215)
@pytest.mark.spec("kubevirt", 249)
@pytest.mark.parametrize("packed", [False, True])
def test_killed_at_every_step_of_going_on(place: Place, packed: bool) -> None:
    """The guest of a memory never boots, and never runs twice."""

    async def remember() -> None:
        machine, _, states = await _small_one(place)
        await kept(machine, states, place.root, "kept")
        if packed:
            await states.pack("kept")
        await machine.stop(0)
        await until_phase(machine, "ended")

    async def examine() -> None:
        machines, states = place.open(), memories(place)
        await machines.adopt()
        state, machine = states.get("kept"), machines.get("b")
        assert state is not None and state.packed == packed and len(qemus(place.machines).get("b", [])) <= 1
        if machine is None or machine.observed.phase == "defined":
            assert overlays.is_empty(place.root / "root-b.qcow2")
            machine = await continued(place, machines, states, state, "kept")
        await until(
            machine, lambda one: one.observed.phase in ("suspended", "ended", "running") and not one.observed.stands_still, "it settled"
        )
        if machine.observed.phase == "suspended":
            assert qemus(place.machines) == {}
            await machine.start()
        await _goes_on(machine, boots=0)
        assert qemus(place.machines) == {"b": [machine.observed.pid]}
        await until(machine, lambda one: _is_clean(place), "nothing is left")
        await machine.stop(0)
        await until_phase(machine, "ended")
        await machine.forget()
        (place.root / "root-b.qcow2").unlink()

    run(remember, 300)
    step = 0
    while not killed_at(place, "remembering", step):
        run(examine, 300)
        step += 1
    run(examine, 300)
    assert step > 15


@pytest.mark.spec("kubevirt", 215)
@pytest.mark.parametrize("late", [False, True])
@played_by(run)
async def test_a_qemu_that_dies_leaves_no_memory(place: Place, monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """Its end is that of the guest; while another reads the memory, nothing is lost."""
    send, receive = migration.send, migration.receive

    async def dies(owner: Any, action: str, switchover: Any) -> None:
        async def dying() -> None:
            os.kill(owner.observed.pid, signal.SIGKILL)
            await switchover()

        await send(owner, action, dying)

    async def dies_late(owner: Any) -> None:
        os.kill(owner.observed.pid, signal.SIGKILL)
        await receive(owner)

    machine, machines, states = await _small_one(place)
    if not late:
        monkeypatch.setattr(migration, "send", dies)
        with pytest.raises((RequestRefused, Unanswered)):
            await kept(machine, states, place.root)
        await until_phase(machine, "ended")
        states.prepare()
        assert _is_clean(place) and states.get("s") is None
        return
    state = await kept(machine, states, place.root)
    monkeypatch.setattr(migration, "receive", dies_late)
    with pytest.raises(AssertionError):
        await continued(place, machines, states, state)
    monkeypatch.undo()
    again = machines.get("b")
    assert again is not None and again.observed.phase == "suspended" and overlays.is_empty(place.root / "root-b.qcow2")
    await machine.stop(0)
    await until_phase(machine, "ended")
    await again.start()
    await _goes_on(again, boots=0)


@played_by(run)
async def test_refusals_come_before_the_guest_stands_still(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _, states = await _small_one(place)
    events: list[str] = []

    def told(name: str, data: Mapping[str, Any]) -> bool:
        events.append(name)
        return False

    config, disk = machine.config, machine.config.disks[0]
    changed: dict[str, MachineConfig] = {
        "shares directories": replace(config, devices=replace(config.devices, shared=(SharedDirectory("share", place.root),))),
        "its memory is a file": replace(config, memory=replace(config.memory, file=place.root / "memory.img")),
        "plugged or unplugged": replace(config, disks=(disk, replace(disk, name="more"))),
    }
    with machine._owner.events.expect(told):
        for why, other in changed.items():
            with monkeypatch.context() as patched:
                patched.setattr(machine._owner.files, "started" if why != "plugged or unplugged" else "config", other)
                with pytest.raises(RequestRefused, match=why) as caught:
                    await kept(machine, states, place.root)
                assert caught.value.reason == "MemoryNotPossible" and "without memory" in caught.value.fix
        with pytest.raises(RequestRefused, match="disk root is not in the snapshot"):
            await machine.take_memory(MemoryRequest({}, frozenset(), states.draft("s")))
        monkeypatch.setattr(suspension, "SPARE", 1 << 60)
        with pytest.raises(RequestRefused, match="room for") as caught:
            await kept(machine, states, place.root)
        assert caught.value.reason == "MemoryNotPossible" and "STOP" not in events
    await _goes_on(machine)


@played_by(run)
async def test_a_full_disk_leaves_the_guest_as_it_was(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _, states = await _small_one(place)
    before = machine.config

    async def full(*_: Any) -> None:
        raise RequestRefused("no", reason="MigrationFailed", why="No space left on device")

    monkeypatch.setattr(migration, "send", full)
    with pytest.raises(RequestRefused, match="No space left"):
        await kept(machine, states, place.root)
    assert machine.config == before
    monkeypatch.undo()
    await _goes_on(machine)
    state = await kept(machine, states, place.root, "again")
    assert state.size > 0 and machine.config != before
    await _goes_on(machine)


@played_by(run)
async def test_a_guest_that_writes_too_fast_is_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _, states = await _small_one(place)
    monkeypatch.setattr(memorysnapshots, "FORCE_SECONDS", 0.0)
    state = await kept(machine, states, place.root)
    await _goes_on(machine)
    assert not machine.observed.paused and state.record.pause > 0


@pytest.mark.spec("kubevirt", 263)
@pytest.mark.spec("kubevirt", 264)
@played_by(run)
async def test_a_guest_goes_on_that_qemu_does_not_let_go_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a moment after the end of a migration QEMU is in `finish-migrate`, and refuses to let the guest go on."""
    execute, late, seen = MachineOwner.execute, 3, set[tuple[str, bool]]()

    async def slow(self: MachineOwner, command: str, *more: Any, **named: Any) -> Any:
        nonlocal late
        seen.add((self.observed.paused, self.observed.still))
        if command in ("query-status", "cont") and late and (await execute(self, "query-status"))["status"] == "postmigrate":
            late -= 1
            if command == "cont":
                raise QemuRefused("QEMU refused cont", kind="GenericError", description="Migration is not finalized yet")
            return {"status": "finish-migrate"}
        return await execute(self, command, *more, **named)

    machine, _, states = await _small_one(place)
    monkeypatch.setattr(MachineOwner, "execute", slow)
    await kept(machine, states, place.root)
    await until(machine, lambda one: not one.observed.still, "it goes on")
    await _goes_on(machine)
    assert not late and ("", True) in seen and {paused for paused, _ in seen} == {""}


@pytest.mark.needs("ovmf", "swtpm")
@pytest.mark.spec("kubevirt", 266)
@played_by(run)
async def test_a_tpm_and_variables_that_are_kept_are_of_the_same_moment(place: Place) -> None:
    """A later run of the machine wrote others, or lost them: those of the snapshot are there again."""
    efi = EfiFiles(_OVMF / "OVMF_CODE_4M.fd", _OVMF / "OVMF_VARS_4M.fd")
    machines, states = place.open(efi=efi), memories(place)
    await machines.adopt()
    files = [place.root / "vars.fd", place.root / "tpm" / "tpm2-00.permall"]
    config = place.guest()
    firmware = replace(config.firmware, kind="efi", variables=files[0])
    config = replace(config, firmware=firmware, devices=replace(config.devices, tpm=Tpm(files[1].parent)))
    machine = await machines.define("a", config)
    await machine.start()
    await until_phase(machine, "running")
    await until(machine, lambda one: files[1].exists() and files[1].stat().st_size > 0, "the TPM has a state")
    before = [each.read_bytes() for each in files]
    state = await kept(machine, states, place.root)
    await until(machine, lambda one: not one.observed.stands_still, "it goes on")
    await machine.stop(0)
    await until_phase(machine, "ended")
    files[0].write_bytes(bytes(len(before[0])))
    files[1].unlink()
    again = await continued(place, machines, states, state)
    await until(again, lambda one: [each.read_bytes() for each in files] == before, "they are as they were")
    await again.suspend()
    await until_phase(again, "suspended")
    assert [each.read_bytes() for each in files] == before
    await again.start()
    await until(again, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it goes on once more")
    await again.stop(0)
    await until_phase(again, "ended")
    assert [each.read_bytes() for each in files] == before


@played_by(run)
async def test_a_pause_outlasts_it(place: Place) -> None:
    machine, _, states = await _small_one(place)
    await machine.pause()
    state = await kept(machine, states, place.root)
    assert machine.observed.paused == "user" and state.record.saved.paused
    await machine.resume()
    await _goes_on(machine)
    # A suspension afterwards does not wait for a word.
    await machine.suspend()
    await until_phase(machine, "suspended")


@pytest.mark.spec("kubevirt", 209)
@played_by(run)
async def test_the_disks_go_on_while_the_guest_stands_still(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _, states = await _small_one(place)
    owner, seen = machine._owner, list[str]()
    execute = owner.execute

    async def spied(command: str, *more: Any, **named: Any) -> Any:
        if command == "transaction":
            seen.append(str((await execute("query-status"))["status"]))
            seen.append(str((await execute("query-migrate"))["status"]))
        if command in ("migrate", "transaction", "migrate-continue", "cont"):
            seen.append(command)
        return await execute(command, *more, **named)

    monkeypatch.setattr(owner, "execute", spied)
    await kept(machine, states, place.root)
    assert seen == ["migrate", "finish-migrate", "pre-switchover", "transaction", "migrate-continue", "cont"]
