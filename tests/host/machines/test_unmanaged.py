"""Machines with real QEMUs, and a `config.json` that says nothing: what is said of them, and what is never done to them."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from paddock.engine.machine.process import holders
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, bare, run, running, until, until_guest_runs, until_phase

pytestmark = pytest.mark.needs("qemu")
DAMAGES = {
    "cut": b'{"version": 1, "con',
    "empty": b"",
    "type": b"[]",
    "garbage": b"\xff\xfe\x00",
    "newer": b'{"version": 99, "config": {}}',
}


def _damage(config: Path, damage: str) -> None:
    if damage == "gone":
        config.unlink()
    elif damage == "directory":
        config.unlink()
        config.mkdir()
    else:
        config.write_bytes(DAMAGES[damage])


@pytest.mark.parametrize("damage", [*DAMAGES, "gone", "directory"])
@pytest.mark.spec("kubevirt", 139, 140)
@played_by(run)
async def test_a_machine_whose_config_says_nothing_is_left_alone(place: Place, damage: str) -> None:
    machines = place.open()
    machine = await running(machines)
    machines.close()
    pid, user, config = machine.observed.pid, machine._owner.record.user, machine.directory.path / "config.json"
    kept = config.read_bytes()
    _damage(config, damage)

    machines = place.open()
    await machines.adopt()
    left = machines.unmanaged("a")
    assert machines.get("a") is None and left is not None
    assert left.observed.phase == "running" and left.observed.fault is not None and str(config) in left.observed.fault.message
    assert machines.holds_disks("a") and list(machines.living()) == ["a"]
    machines.discard("a")
    assert machines.leftovers() == {"a"} and holders(machine.directory.path / "lock") == [pid]
    # Nobody else becomes its user.
    other = await machines.define("b", bare("ns_other"))
    assert not user or machines.user_for(other._owner) != user

    assert await machines.recover("a") is None
    shutil.rmtree(config) if config.is_dir() else config.unlink(missing_ok=True)
    config.write_bytes(kept)
    again = await machines.recover("a")
    assert again is not None and machines.get("a") is again and machines.unmanaged("a") is None
    assert (again.observed.phase, again.observed.pid) == ("running", pid)
    await again.stop(0)
    await until_phase(again, "ended")


@pytest.mark.spec("kubevirt", 139)
@played_by(run)
async def test_the_end_of_an_unmanaged_machine_is_said_as_far_as_it_is_known(place: Place) -> None:
    machines = place.open()
    machine = await running(machines)
    machines.close()
    (machine.directory.path / "config.json").write_bytes(b"{")
    machines = place.open()
    await machines.adopt()
    left = machines.unmanaged("a")
    assert left is not None and holders(left.directory.path / "lock") == [machine.observed.pid]
    os.kill(machine.observed.pid, signal.SIGKILL)
    while left.lives:
        pass
    end = left.observed.end
    assert left.observed.phase == "ended" and end is not None
    assert end.reason == "crashed" and end.text.startswith("nobody saw how it ended") and "config.json" in end.text
    machines.discard("a")
    assert not machine.directory.path.exists() and machines.unmanaged("a") is None


@pytest.mark.parametrize("damage", ["garbage", "gone"])
@played_by(run)
async def test_a_suspended_machine_gets_its_config_from_its_saved_state(place: Place, damage: str) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest())
    await machine.start()
    await until_guest_runs(machine)
    await machine.suspend()
    await until_phase(machine, "suspended")
    machines.close()
    config = machine.directory.path / "config.json"
    _damage(config, damage)

    machines = place.open()
    await machines.adopt()
    again = machines.get("a")
    assert again is not None and (again.config, again.observed.phase) == (machine.config, "suspended")
    assert damage == "gone" or config.with_suffix(".json.damaged").read_bytes() == DAMAGES[damage]
    await again.start()
    await until(again, lambda one: one.observed.phase == "running" and not one.observed.paused, "it goes on")
    assert again.directory.serial_tail(100_000).count(b"R") == 1, "it booted again"
    machines.close()
    machines = place.open()
    await machines.adopt()
    assert machines.get("a") is not None
    machines.close()
