"""Backups of disks while a guest runs, with a real QEMU: whole ones, increments, and what an increment must survive."""

import asyncio
import io
import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.app.directory import shutdown
from paddock.cli.console import Console
from paddock.engine.machine.backupstate import BackupRequest
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from tests.coroutines import played_by
from tests.host.machines import backing
from tests.host.machines.backupchain import CLUSTER, MIB, SIZE, Chain, content, new_disk, overlay, read_bytes
from tests.host.machines.conftest import Place, killed_at, run, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")


@pytest.mark.spec("kubevirt", 294)
@pytest.mark.parametrize("form", ["raw", "qcow2"])
@played_by(run)
async def test_a_chain_of_backups_is_each_time_the_disk_of_its_moment(place: Place, form: str) -> None:
    chain = Chain(place, form=form)
    await chain.start()
    await chain.write(100)
    await chain.back_up("full", wait=False)
    # What the guest overwrites while it is copied is in the backup as it was.
    await chain.write(100)
    await chain.done("full")
    for number in range(4):
        await chain.write(200)
        await chain.back_up(f"inc{number}", wait=False)
        await chain.write(25)
        await chain.done(f"inc{number}")
    chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 295)
@played_by(run)
async def test_an_increment_holds_what_changed_and_no_more(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    places = chain.random.sample(range(SIZE // CLUSTER), 300)
    for at in places:
        await chain.command(f"write -P 7 {at * CLUSTER + 512 * chain.random.randrange(120)} 4096")
    await chain.command("flush")
    before = read_bytes(chain.machine)
    path = await chain.back_up("inc")
    read = read_bytes(chain.machine) - before
    held = sum(each["length"] for each in mapped(path) if each["present"])
    changed = len(set(places) | {place + 1 for place in places}) * CLUSTER
    assert len(set(places)) * CLUSTER <= held <= changed
    assert held <= read <= 1.05 * held, (read, held)
    again = await chain.back_up("none")
    assert not any(each["present"] for each in mapped(again))
    chain.verify()
    await chain.stop()


def mapped(path: Path) -> list[dict[str, int]]:
    said = subprocess.run(["qemu-img", "map", "-f", "qcow2", "--output=json", str(path)], check=True, capture_output=True).stdout
    return list(json.loads(said))


@pytest.mark.spec("kubevirt", 296)
@pytest.mark.parametrize("form", ["raw", "qcow2"])
@played_by(run)
async def test_a_checkpoint_survives_a_restart_of_the_guest(place: Place, form: str) -> None:
    chain = Chain(place, form=form)
    await chain.start()
    await chain.back_up("full")
    await chain.write(50)
    for number in range(2):
        await chain.stop()
        assert (chain.layer.path.parent / "changed-blocks.json").exists()
        await chain.start()
        assert not list(chain.layer.path.parent.glob("changed-blocks*")), "nothing of it counts while the guest runs"
        assert (await chain.machine.checkpoints())["data"] == {chain.checkpoint}
        await chain.write(20)
        await chain.back_up(f"inc{number}")
    chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 296)
@played_by(run)
async def test_a_checkpoint_survives_a_shutdown_of_the_host(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    await chain.write(50)
    assert chain.machines is not None
    chain.machines.close()
    chain.machines = None
    await shutdown.shut_down_all([place.root], 60, Console(io.BytesIO(), io.BytesIO()))
    assert (chain.layer.path.parent / "changed-blocks.json").exists()
    await chain.start()
    assert (await chain.machine.checkpoints())["data"] == {chain.checkpoint}
    await chain.write(20)
    await chain.back_up("inc")
    chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 297)
@played_by(run)
async def test_after_a_kill_of_qemu_an_increment_is_refused(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    # There is a whole file of bitmaps from an earlier end, and the guest wrote since.
    await chain.stop()
    await chain.start()
    await chain.write(10)
    os.kill(chain.machine.observed.pid, signal.SIGKILL)
    await until_phase(chain.machine, "ended")
    await chain.start()
    assert (await chain.machine.checkpoints())["data"] == frozenset()
    with pytest.raises(RequestRefused) as caught:
        await chain.back_up("inc")
    assert caught.value.reason == "NoCheckpoint"
    assert chain.machine.backup is None
    chain.checkpoint = ""
    await chain.back_up("again")
    await chain.write(10)
    await chain.back_up("inc2")
    chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 297)
@pytest.mark.parametrize("what", ["write", "note", "map", "grow", "revert"])
@played_by(run)
async def test_bitmaps_of_a_disk_that_was_changed_at_rest_do_not_count(place: Place, what: str) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    await chain.stop()
    folder = chain.layer.path.parent
    match what:
        case "write":
            with chain.layer.path.open("r+b") as file:
                file.write(b"x")
        case "note":
            (folder / "changed-blocks.json").write_bytes(b"{")
        case "map":
            (folder / "changed-blocks.qcow2").write_bytes(b"no image")
        case "grow":
            os.truncate(chain.layer.path, 2 * SIZE)
        case "revert":
            machine, machines = chain.machine, chain.machines
            assert machines is not None
            layer = overlay(chain.layer, "reverted")
            disks = tuple(replace(each, layer=layer) if each.name == "data" else each for each in machine.config.disks)
            await machine.forget()
            await machines.define("a", replace(machine.config, disks=disks))
    await chain.start()
    assert (await chain.machine.checkpoints())["data"] == frozenset()
    assert not list(folder.glob("changed-blocks*"))
    await chain.stop()


@pytest.mark.spec("kubevirt", 296)
@pytest.mark.parametrize("step", ["snapshot", "merge", "move", "renew", "suspend", "paddock", "grow"])
@played_by(run)
async def test_an_increment_survives(place: Place, step: str) -> None:
    chain = Chain(place, form="qcow2" if step == "merge" else "raw")
    await chain.start()
    await chain.write(20)
    await chain.back_up("full")
    await chain.write(50)
    machine = chain.machine
    match step:
        case "snapshot":
            await machine.overlay_disks({"data": overlay(chain.layer, "over1")})
            await chain.write(20)
            await machine.overlay_disks({"data": overlay(chain.layer, "over2")})
        case "merge":
            await machine.overlay_disks({"data": overlay(chain.layer, "over1")})
            await chain.write(20)
            await machine.commit_disk("data", chain.layer.backing.path if chain.layer.backing else Path())
        case "move":
            target = DiskLayer(place.root / "moved.img", "raw")
            target.path.write_bytes(b"")
            os.truncate(target.path, SIZE)
            await machine.move_disks({"data": target})
            await chain.write(20)
            await until(machine, lambda one: one.observed.jobs["data"].state == "ready", "the copy is ready")
            await machine.change_over()
        case "renew":
            await machine.renew()
        case "suspend":
            await machine.suspend()
            await until_phase(machine, "suspended")
            await chain.machine.start()
            await until_phase(machine, "running")
        case "paddock":
            assert chain.machines is not None
            chain.machines.close()
            chain.machines = None
            await chain.start()
        case "grow":
            await machine.resize_disk("data", SIZE + MIB)
    assert (await chain.machine.checkpoints())["data"] == {chain.checkpoint}, step
    await chain.write(50)
    await chain.back_up("inc")
    if step != "suspend":
        await chain.stop()
        await chain.start()
        await chain.write(10)
        await chain.back_up("inc2")
    chain.verify()
    await chain.stop()


async def written_to_plugged(chain: Chain, line: str) -> None:
    said = await chain.machine._owner.execute("human-monitor-command", {"command-line": f'qemu-io -d ua-more "{line}"'})
    assert "rror" not in str(said), said


async def taken_with_plugged(chain: Chain, name: str, since: str) -> str:
    """Back both disks up; return what the plugged one held."""
    machine, root = chain.machine, chain.place.root
    await written_to_plugged(chain, "flush")
    now = content(DiskLayer(root / "plugged" / "disk.img", "raw"))
    targets = {each: root / f"{name}-{each}.qcow2" for each in ("data", "more")}
    await machine.take_backup(BackupRequest(name, targets, dict.fromkeys(targets, since) if since else {}, name))
    await until(machine, lambda one: one.backup is not None and one.backup.ended, "it ends", 60)
    assert machine.backup is not None and machine.backup.state == "done", machine.backup
    await machine.retain_checkpoints([name])
    return now


@pytest.mark.spec("kubevirt", 296)
@played_by(run)
async def test_a_disk_that_is_plugged_in_takes_its_checkpoints_along(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    machine = chain.machine
    folder = place.root / "plugged"
    folder.mkdir()
    disk = DiskConfig("more", new_disk(folder, "raw"), bus="scsi", tracked=True)
    await machine.plug_disk(disk)

    first = await taken_with_plugged(chain, "one", "")
    await written_to_plugged(chain, "write -P 9 3M 64k")
    await machine.unplug_disk("more")
    assert "more" not in await machine.checkpoints() and (folder / "changed-blocks.json").exists()
    await machine.plug_disk(disk)
    assert not list(folder.glob("changed-blocks*"))
    assert (await machine.checkpoints())["more"] == {"one"}
    await written_to_plugged(chain, "write -P 7 5M 64k")
    await chain.stop()
    await chain.start()
    second = await taken_with_plugged(chain, "two", "one")
    paths = [place.root / f"{name}-more.qcow2" for name in ("one", "two")]
    subprocess.run(["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", str(paths[0]), str(paths[1])], check=True)
    assert [content(DiskLayer(each, "qcow2")) for each in paths] == [first, second]
    await chain.stop()


@played_by(run)
async def test_what_changes_disks_waits_for_a_backup(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    machine = chain.machine
    await chain.back_up("full", wait=False, speed=MIB)
    await until(machine, lambda one: one.observed.jobs["data"].total >= SIZE, "there is progress")
    other = BackupRequest("other", {"data": place.root / "other.qcow2"})
    for change in (
        lambda: machine.resize_disk("data", 2 * SIZE),
        lambda: machine.overlay_disks({"data": DiskLayer(Path("x"), "qcow2", chain.layer)}),
        lambda: machine.commit_disk("data", chain.layer.path),
        machine.renew,
        machine.suspend,
        lambda: machine.move_disks({"data": chain.layer}),
        lambda: machine.take_backup(other),
        lambda: machine.retain_checkpoints(["other"]),
    ):
        with pytest.raises(RequestRefused) as caught:
            await change()
        assert caught.value.reason == "Busy"
    assert not other.targets["data"].exists()
    # The same one goes on, whoever asks again.
    await machine.take_backup(BackupRequest("full", {"data": place.root / "full.qcow2"}, {}, "c-full"))
    assert (await machine.checkpoints())["data"] == {"c-full"}
    await machine.cancel_backup("full")
    assert not await nodes(machine) and not machine.observed.jobs
    await chain.stop()


@pytest.mark.spec("kubevirt", 298)
@pytest.mark.parametrize("end", ["kill", "stop", "shutdown"])
@played_by(run)
async def test_a_backup_that_ends_with_the_guest_has_failed_and_its_checkpoint_does_not_count(place: Place, end: str) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    await chain.write(10)
    before, files, frozen = chain.checkpoint, list(chain.files), list(chain.frozen)
    await chain.back_up("broken", wait=False, speed=64 << 10)
    match end:
        case "kill":
            os.kill(chain.machine.observed.pid, signal.SIGKILL)
            await until_phase(chain.machine, "ended")
        case "stop":
            await chain.machine.stop(0)
            await until_phase(chain.machine, "ended")
        case "shutdown":
            await chain.stop()
    state = chain.machine.backup
    assert state is not None and state.state == "failed" and state.error
    await chain.start()
    assert (await chain.machine.checkpoints())["data"] == ({before} if end == "shutdown" else frozenset())
    if end == "shutdown":
        chain.files, chain.frozen = files, frozen
        await chain.back_up("inc")
        chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 298)
@pytest.mark.parametrize("when", ["running", "done", "quiet"])
@played_by(run)
async def test_a_paddock_that_comes_later_goes_on_with_a_backup(place: Place, when: str) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    await chain.write(40)
    await chain.back_up("inc", wait=False, speed=0 if when == "done" else MIB)
    assert chain.machines is not None
    if when == "quiet":
        chain.machine._parts.backups._save(quiet=True)
    chain.machines.close()
    chain.machines = None
    if when == "done":
        await asyncio.sleep(1)
    await chain.start()
    await chain.write(10)
    await chain.done("inc")
    await chain.back_up("inc2")
    chain.verify()
    await chain.stop()


@pytest.mark.spec("kubevirt", 298)
@played_by(run)
async def test_a_paddock_that_died_before_the_transaction_leaves_nothing(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    request = BackupRequest("inc", {"data": place.root / "inc.qcow2"}, {"data": chain.checkpoint}, "c-inc")
    await chain.machine._parts.backups._prepare(request)
    assert chain.machines is not None and await nodes(chain.machine)
    chain.machines.close()
    chain.machines = None
    await chain.start()
    await until(chain.machine, lambda one: one.backup is None, "it is dropped")
    assert await nodes(chain.machine) == [] and await chain.machine._owner.execute("query-fdsets") == []
    await chain.write(20)
    await chain.back_up("inc")
    chain.verify()
    await chain.stop()


async def nodes(machine: QemuMachine) -> list[str]:
    """The nodes that a backup has besides the disk's own."""
    found = [str(node["node-name"]) for node in await machine._owner.execute("query-named-block-nodes", {"flat": True})]
    return [each for each in found if each.startswith(("t-", "ft-", "c-"))]


@pytest.mark.spec("kubevirt", 298)
@played_by(run)
async def test_a_backup_that_is_called_off_costs_nothing(place: Place) -> None:
    chain = Chain(place)
    await chain.start()
    await chain.back_up("full")
    await chain.write(30)
    files, frozen = list(chain.files), list(chain.frozen)
    await chain.back_up("off", wait=False, speed=64 << 10)
    await chain.machine.cancel_backup("off")
    assert chain.machine.backup is None
    chain.files, chain.frozen = files, frozen
    assert (await chain.machine.checkpoints())["data"] == {chain.checkpoint}
    await chain.write(30)
    await chain.back_up("inc")
    chain.verify()
    assert await nodes(chain.machine) == [] and await chain.machine._owner.execute("query-fdsets") == []
    await chain.stop()


@pytest.mark.spec("kubevirt", 298)
@pytest.mark.needs("root")
@played_by(run)
async def test_a_target_without_room_is_refused_and_one_that_becomes_full_leaves_the_guest_alone(place: Place) -> None:
    full = place.root / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(full)], check=True)
    try:
        chain = Chain(place)
        await chain.start()
        await chain.write(100)
        with pytest.raises(RequestRefused) as caught:
            await chain.machine.take_backup(BackupRequest("small", {"data": full / "x.qcow2"}, {}, "c"))
        assert caught.value.reason == "NoSpace" and chain.machine.backup is None
        await chain.back_up("full")
        await chain.command(f"write -P 9 0 {MIB}")
        await chain.machine.take_backup(BackupRequest("late", {"data": full / "y.qcow2"}, {"data": chain.checkpoint}, "c"))
        await until(chain.machine, lambda one: one.backup is not None and one.backup.ended, "it ends")
        await chain.machine.cancel_backup("late")
        await chain.write(20)
        assert not chain.machine.observed.paused
        await chain.stop()
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


async def begun(place: Place) -> None:
    """A machine runs with a small disk that is followed."""
    machines = place.open()
    await machines.adopt()
    folder = place.root / "volume"
    folder.mkdir()
    folder.chmod(0o711)
    path = folder / "disk.img"
    path.write_bytes(b"")
    os.truncate(path, backing.SIZE)
    disk = DiskConfig("data", DiskLayer(path, "raw"), boot_order=2, tracked=True)
    machine = await machines.define("a", place.guest(disks=(disk,)))
    await machine.start()
    await until_guest_runs(machine)


@pytest.mark.spec("kubevirt", 298)
def test_a_paddock_that_is_killed_at_any_step_of_a_backup_leaves_a_chain_that_is_right(place: Place) -> None:
    run(partial(begun, place))
    # Each kill is one step later than the last; at the end nothing is left to be killed in.
    for step in range(100):
        if killed_at(place, "backing", step):
            break
    else:
        pytest.fail("it has no end")
    assert step > 20, "there were steps to be killed in"
    tracker = backing.Tracker(place.root)
    found, below = tracker.read(), None
    assert len(found["complete"]) > 1
    for name in found["complete"]:
        path = tracker.file(name)
        if below is not None:
            command = ["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", str(below), str(path)]
            subprocess.run(command, check=True)
        assert backing.content(path) == found["frozen"][name], name
        below = path
