"""Two tenants on one processor of a real host: each has its share, whatever the other runs, and no group outlives its machines."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine import limits
from paddock.engine.machine.config import CpuConfig, DeviceConfig, DiskConfig, DiskLayer, MachineConfig
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.coroutines import played_by
from tests.host.conftest import wait_until
from tests.host.machines.conftest import SMALL, Place, run, until_phase

pytestmark = [pytest.mark.needs("qemu", "root"), pytest.mark.spec("kubevirt", 256)]
# `jmp $`: the guest never sleeps.
_BUSY = b"\xeb\xfe".ljust(510, b"\x00") + b"\x55\xaa"
_CROWD, _SECONDS = 5, 6.0
_TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(autouse=True)
def _groups() -> None:
    found = limits.on_this_host().of("cpu")
    if found is None or not os.access(found[0], os.W_OK):
        pytest.skip("needs cgroups: no control groups for cpu that may be written")


def busy(place: Place, namespace: str, name: str) -> MachineConfig:
    disk = place.root / f"{name}.img"
    disk.write_bytes(_BUSY.ljust(1 << 20, b"\x00"))
    devices = DeviceConfig(graphics=False, balloon=False, agent=False)
    disks = (DiskConfig("root", DiskLayer(disk, "raw"), boot_order=1),)
    return MachineConfig(f"{namespace}_{name}", CpuConfig(model="qemu64"), SMALL, disks=disks, devices=devices, hotplug=False)


async def started(machines: Machines, name: str, config: MachineConfig) -> QemuMachine:
    machine = await machines.define(name, config)
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    return machine


def confine(pid: int, cpu: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def used(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def ratio(lone: QemuMachine, crowd: list[QemuMachine]) -> float:
    """Return the processor time of one machine as a part of that of all others together."""
    pids = [each.observed.pid for each in (lone, *crowd)]
    before = [used(pid) for pid in pids]
    await asyncio.sleep(_SECONDS)
    spent = [used(pid) - start for pid, start in zip(pids, before, strict=True)]
    assert sum(spent) > 0.5, "this host is too busy to measure anything"
    return spent[0] / sum(spent[1:])


@played_by(run)
async def test_a_lone_guest_has_as_much_of_a_processor_as_a_crowd_of_another_tenant(place: Place) -> None:
    machines = place.open(_CROWD + 1)
    await machines.adopt()
    crowd = [await started(machines, f"c{number}", busy(place, "crowd", f"c{number}")) for number in range(_CROWD)]
    lone = await started(machines, "lone", busy(place, "lone", "lone"))
    cpu = min(os.sched_getaffinity(0))
    for each in (*crowd, lone):
        confine(each.observed.pid, cpu)
    equal = await ratio(lone, crowd)
    machines.shares.weigh({"lone": 300})
    thrice = await ratio(lone, crowd)
    machines.shares.weigh({})
    again = await ratio(lone, crowd)
    print(f"a guest against {_CROWD} of another tenant: {equal:.2f}, with three times the share {thrice:.2f}, then {again:.2f}")
    assert 0.75 < equal < 1.33 and 2.2 < thrice < 4.0 and 0.75 < again < 1.33
    for each in (*crowd, lone):
        await each.stop(0)
        await until_phase(each, "ended")
    assert not left(machines)


def left(machines: Machines) -> list[str]:
    """Return the groups of a directory's namespaces."""
    suffix = machines.shares.namespace_group("").lstrip(".")
    found = limits.on_this_host()
    places = {*found.first.values(), *filter(None, [found.second])}
    return [str(each) for place in places for each in (place / "paddock").glob(f"*.{suffix}")]


@played_by(run)
async def test_groups_of_guests_that_were_killed_while_nobody_looked_are_removed(place: Place) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await started(machines, "one", busy(place, "acme", "one"))
    pid = machine.observed.pid
    assert machines.shares.holds("one", machine.config, pid) and left(machines)
    machines.close()
    os.kill(pid, signal.SIGKILL)
    wait_until("the process went", lambda: not Path(f"/proc/{pid}/exe").exists(), 10)
    groups = left(machines)
    assert groups, "nobody was there to remove them"
    procs = [each for group in groups for each in Path(group).rglob("cgroup.procs")]
    wait_until("the kernel let the process go", lambda: not any(each.read_text() for each in procs), 10)
    machines = place.open()
    await machines.adopt()
    assert not left(machines)


@played_by(run)
async def test_a_guest_of_an_earlier_version_is_moved_into_its_namespace(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    machines = place.open()
    await machines.adopt()
    machine = await started(machines, "old", busy(place, "acme", "old"))
    pid, config = machine.observed.pid, machine.config
    machines.close()
    # Groups lay side by side.
    found = limits.on_this_host()
    assert limits.enclose(found, "old", [pid], limits.usual(replace(config)))
    assert not machines.shares.holds("old", config, pid)
    machines = place.open()
    with caplog.at_level("INFO"):
        await machines.adopt()
    adopted = machines.get("old")
    assert adopted is not None and adopted.observed.phase == "running" and adopted.observed.pid == pid
    assert machines.shares.holds("old", config, pid)
    assert "adopted machine moved into the control group of its namespace" in caplog.messages
    assert not limits.exists(found, "old")
    await adopted.stop(0)
    await until_phase(adopted, "ended")
    assert not left(machines)
