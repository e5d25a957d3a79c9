"""Layers that several machines read: each QEMU opens those below its own disks, and no other one, with the users of real processes."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.claims import FIRST
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.errors import RequestRefused, Unanswered
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.qmp import Qmp
from paddock.engine.machine.users import UserRange
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until_phase

pytestmark = pytest.mark.needs("qemu", "root")
MIB = 1 << 20


def volume(place: Place, name: str, below: DiskLayer | None = None) -> DiskLayer:
    """A disk in a directory of its own, as volumes are."""
    folder = place.root / name
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    path = folder / "disk.img"
    under = ("-F", below.format, "-b", str(below.path)) if below is not None else ()
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *under, str(path), str(4 * MIB)], check=True)
    path.chmod(0o600)
    return DiskLayer(path, "qcow2", below)


def reads(machine: QemuMachine, path: Path) -> bool:
    """Return True if a process with the rights of the machine's QEMU can open a file."""
    status = Path(f"/proc/{machine.observed.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    user, groups = fields["Uid"].split()[0], fields["Groups"].split()
    listed = ["--groups", ",".join(groups)] if groups else ["--clear-groups"]
    command = ["setpriv", "--reuid", user, "--regid", user, *listed, "--", "head", "-c", "4", str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def started(place: Place, machines: object, name: str, layer: DiskLayer | None = None) -> QemuMachine:
    disks = (DiskConfig("data", layer),) if layer is not None else ()
    machine: QemuMachine = await machines.define(name, place.guest(name, disks=disks, hotplug=True))  # type: ignore[attr-defined]
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    return machine


@pytest.mark.spec("kubevirt", 120)
@played_by(run)
async def test_a_frozen_layer_is_read_by_its_machines_alone(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    source = volume(place, "source")
    owner = await started(place, machines, "owner", source)
    # A snapshot while it runs, and two clones of that.
    top = volume(place, "next", source)
    top = DiskLayer(source.path.with_name("after.img"), "qcow2", source)
    (place.root / "next" / "disk.img").rename(top.path)
    await owner.overlay_disks({"data": top})
    clones = [await started(place, machines, name, volume(place, f"v{name}", source)) for name in ("one", "two")]
    stranger = await started(place, machines, "stranger", volume(place, "own"))
    assert [reads(each, source.path) for each in (*clones, owner, stranger)] == [True, True, True, False]
    assert source.path.stat().st_mode & 0o007 == 0
    assert not reads(clones[0], top.path) and not reads(clones[0], clones[1].config.disks[-1].layer.path)  # type: ignore[union-attr]
    # The same after a restart of the machine, and of Paddock.
    machines.close()
    machines = place.open()
    await machines.adopt()
    one = machines.get("one")
    assert one is not None
    await one.stop(0)
    await until_phase(one, "ended")
    await one.start()
    await until_phase(one, "running", "ended")
    assert one.observed.end is None and reads(one, source.path)
    owner = machines.get("owner")  # type: ignore[assignment]
    # Who wrote it once goes on in further layers, and merges his own.
    last = DiskLayer(source.path.with_name("last.img"), "qcow2", top)
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(top.path), str(last.path), str(4 * MIB)], check=True
    )
    await owner.overlay_disks({"data": last})
    await owner.commit_disk("data", top.path)
    assert owner.config.disks[-1].layer == top
    for each in machines:
        await each.stop(0)
        await until_phase(each, "ended")


@pytest.mark.spec("kubevirt", 120)
@played_by(run, seconds=240)
async def test_a_layer_below_a_disk_that_is_plugged_while_the_machine_runs(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await started(place, machines, "late")
    source = volume(place, "source")
    clone = volume(place, "clone", source)
    await machine.plug_disk(DiskConfig("data", clone, bus="scsi", serial="data"))
    assert not reads(machine, source.path), "its QEMU was handed the file, and no right to it"
    await machine.plug_disk(DiskConfig("more", replace(volume(place, "ro", source)), bus="scsi", serial="more", readonly=True))
    # It goes on in a new layer, and back.
    top = DiskLayer(clone.path.with_name("after.img"), "qcow2", clone)
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(clone.path), str(top.path), str(4 * MIB)], check=True
    )
    await machine.overlay_disks({"data": top})
    await machine.commit_disk("data", clone.path)
    await machine.unplug_disk("more")
    await machine.renew()
    assert machine.observed.disks["data"].size == 4 * MIB
    await machine.stop(0)
    await until_phase(machine, "ended")
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None and reads(machine, source.path)
    await machine.stop(0)
    await until_phase(machine, "ended")


def test_groups_of_layers_are_given_once(tmp_path: Path) -> None:
    users = UserRange(FIRST, 10, tmp_path / "counter")
    given = [users.next_group() for _ in range(5)] + [UserRange(FIRST, 10, tmp_path / "counter").next_group() for _ in range(5)]
    assert len(set(given)) == 10 and all(each in users.layer_groups and each not in users for each in given)


@pytest.mark.spec("kubevirt", 267)
@pytest.mark.parametrize("is_done", [True, False], ids=["QEMU did it", "QEMU never heard of it"])
@played_by(run)
async def test_a_change_over_without_an_answer_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch, is_done: bool) -> None:
    """Paddock may be stopped while QEMU changes over to a new layer."""
    execute = Qmp.execute

    async def silent(qmp: Qmp, command: str, *words: Any, **more: Any) -> Any:
        if command != "transaction":
            return await execute(qmp, command, *words, **more)
        if is_done:
            await execute(qmp, command, *words, **more)
        raise Unanswered("cannot tell QEMU", why="the connection is gone")

    def layer(machines: Machines) -> DiskLayer | None:
        machine = machines.get("owner")
        assert machine is not None
        return machine.config.disks[-1].layer

    machines = place.open()
    await machines.adopt()
    source = volume(place, "source")
    owner = await started(place, machines, "owner", source)
    volume(place, "next", source)
    top = DiskLayer(place.root / "next" / "disk.img", "qcow2", source)
    with monkeypatch.context() as patch:
        patch.setattr(Qmp, "execute", silent)
        with pytest.raises(Unanswered):
            await owner.overlay_disks({"data": top})
    assert layer(machines) == top, "what the guest writes into it would be lost"
    if not is_done:
        with pytest.raises(Unanswered, match="still on the layer below"):
            await owner.overlay_disks({"data": top})
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("owner")
    assert again is not None
    async with asyncio.timeout(20):
        while True:
            try:
                await again.overlay_disks({"data": top})
                break
            except (Unanswered, RequestRefused):
                await asyncio.sleep(0.05)
    assert layer(machines) == top
    await again.stop(0)
    await until_phase(again, "ended")
