"""The isolation of a QEMU: namespaces, a /proc that shows nothing of others, and a control group outside of Paddock's unit."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.machine import limits
from paddock.engine.machine.config import FirmwareConfig, Nic, UserNetwork
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.process import apart
from tests.coroutines import played_by
from tests.host.machines.conftest import Place, run, until_phase

pytestmark = pytest.mark.needs("qemu", "root")
UNIT = "paddock-test.service"


async def started(place: Place, machines: object, name: str) -> QemuMachine:
    machine: QemuMachine = await machines.define(name, place.guest(name))  # type: ignore[attr-defined]
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    return machine


def inside(machine: QemuMachine, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a program with the rights and the mounts of a QEMU."""
    pid = machine.observed.pid
    user = os.stat(f"/proc/{pid}").st_uid
    words = [
        "nsenter",
        "--target",
        str(pid),
        "--mount",
        # Otherwise its root is that of the mounts, which is none of a chroot.
        "--root",
        "--",
        "setpriv",
        "--reuid",
        str(user),
        "--regid",
        str(user),
        "--clear-groups",
        "--",
    ]
    return subprocess.run([*words, *command], capture_output=True, text=True, check=False)


@contextmanager
def in_unit() -> Iterator[None]:
    """This process is in a unit, as systemd's services are."""
    mount = next((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"), "")
    own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
    if not mount or not os.access(mount, os.W_OK):
        pytest.skip("needs cgroups: no control groups of version 2 here")
    unit = Path(mount) / own.lstrip("/") / UNIT
    unit.mkdir()
    try:
        (unit / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        (unit.parent / "cgroup.procs").write_text(str(os.getpid()))
        unit.rmdir()


def groups(pid: int) -> str:
    return Path(f"/proc/{pid}/cgroup").read_text()


@pytest.mark.spec("kubevirt", 121)
@played_by(run)
async def test_a_machine_sees_nothing_of_other_processes(place: Place) -> None:
    if why := apart(offline=False)[1]:
        pytest.skip(f"needs apart: {why}")
    machines = place.open()
    await machines.adopt()
    one, two = await started(place, machines, "one"), await started(place, machines, "two")
    for kind in ("mnt", "ipc", "net"):
        spaces = {os.readlink(f"/proc/{pid}/ns/{kind}") for pid in (os.getpid(), one.observed.pid, two.observed.pid)}
        assert len(spaces) == 3, kind
    said = inside(one, "ls", "/proc").stdout.split()
    seen = {int(word) for word in said if word.isdigit()}
    assert one.observed.pid in seen and not {two.observed.pid, os.getpid(), 1} & seen
    assert inside(one, "cat", f"/proc/{one.observed.pid}/cmdline").returncode == 0
    assert inside(one, "cat", f"/proc/{two.observed.pid}/cmdline").returncode != 0
    # Another Paddock finds them, and one moves into a new QEMU.
    machines.close()
    machines = place.open()
    await machines.adopt()
    again = machines.get("one")
    assert again is not None and again.observed.pid == one.observed.pid
    await again.renew()
    assert os.readlink(f"/proc/{again.observed.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    for each in machines:
        await each.stop(0)
        await until_phase(each, "ended")


@pytest.mark.spec("kubevirt", 148)
@played_by(run)
async def test_a_qemu_reaches_no_service_of_the_host(place: Place) -> None:
    if why := apart(offline=True)[1]:
        pytest.skip(f"needs apart: {why}")

    def reaches(machine: QemuMachine, port: int) -> bool:
        command = [sys.executable, "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)"]
        entered = ["nsenter", f"--net=/proc/{machine.observed.pid}/ns/net", *command]
        return subprocess.run(entered, capture_output=True, check=False).returncode == 0

    machines = place.open()
    await machines.adopt()
    offline = await started(place, machines, "offline")
    network = UserNetwork("10.0.2.0/24", "10.0.2.1", "10.0.2.2", "10.0.2.3")
    config = replace(place.guest("online"), nics=(Nic("default", "02:00:00:00:00:01", network),))
    online = await machines.define("online", config)
    await online.start()
    await until_phase(online, "running")
    with socket.create_server(("127.0.0.1", 0)) as service:
        port = service.getsockname()[1]
        assert (reaches(offline, port), reaches(online, port)) == (False, True)
    with pytest.raises(RequestRefused, match="restart the machine"):
        await offline.plug_nic(Nic("late", "02:00:00:00:00:02", network))
    for each in machines:
        await each.stop(0)
        await until_phase(each, "ended")


@played_by(run)
async def test_what_the_host_mounts_later_is_seen(place: Place) -> None:
    if why := apart(offline=False)[1]:
        pytest.skip(f"needs apart: {why}")
    machines = place.open()
    await machines.adopt()
    (later := place.root / "later").mkdir()
    # Most hosts share their mounts; not every test's host does.
    subprocess.run(["mount", "--bind", str(later), str(later)], check=True)
    subprocess.run(["mount", "--make-shared", str(later)], check=True)
    machine = await started(place, machines, "one")
    subprocess.run(["mount", "-t", "tmpfs", "later", str(later)], check=True)
    try:
        (later / "disk").write_text("here")
        assert inside(machine, "cat", str(later / "disk")).stdout == "here"
    finally:
        subprocess.run(["umount", "--recursive", str(later)], check=True)
    assert inside(machine, "cat", str(later / "disk")).returncode != 0, "what the host takes away is gone inside, too"
    await machine.stop(0)
    await until_phase(machine, "ended")


@pytest.mark.spec("kubevirt", 121)
@played_by(run)
async def test_a_machine_has_a_group_outside_of_the_unit_that_paddock_is(place: Place) -> None:
    with in_unit():
        machines = place.open()
        await machines.adopt()
        machine = await started(place, machines, "group-test")
        pid, found = machine.observed.pid, limits.on_this_host()
        assert UNIT in groups(os.getpid()) and UNIT not in groups(pid)
        assert f"/paddock/{machines.shares.group(machine.id, machine.config)}" in groups(pid)
        # An earlier version left it in its own.
        assert found.second is not None
        (found.second / "cgroup.procs").write_text(str(pid))
        assert "0::/\n" in groups(pid) + "\n"
        machines.close()
        machines = place.open()
        await machines.adopt()
        adopted = machines.get("group-test")
        assert adopted is not None and f"0::/paddock/{machines.shares.group(machine.id, machine.config)}" in groups(pid)
        machine = adopted
        await machine.renew()
        assert machine.observed.pid != pid and f"/paddock/{machines.shares.group(machine.id, machine.config)}" in groups(
            machine.observed.pid
        )
        pids = found.of("pids")
        if pids is not None:
            assert int((pids[0] / "paddock" / machines.shares.group(machine.id, machine.config) / "pids.max").read_text()) >= 1024
        memory = found.of("memory")
        if memory is not None and memory[1]:
            assert (memory[0] / "paddock" / machines.shares.group(machine.id, machine.config) / "memory.high").read_text() != "max"
            assert (memory[0] / "paddock" / machines.shares.group(machine.id, machine.config) / "memory.max").read_text() == "max\n", (
                "nothing kills a guest"
            )
        await machine.stop(0)
        await until_phase(machine, "ended")
        assert not (found.second / "paddock" / machines.shares.group(machine.id, machine.config)).exists()


@pytest.mark.spec("kubevirt", 183)
@played_by(run)
async def test_a_qemu_reads_the_tables_and_the_files_of_its_firmware(place: Place) -> None:
    # A server's own folder, which the user of a QEMU cannot pass through.
    place.root.chmod(0o700)
    (place.root / "engine").mkdir()
    engine = Place(place.root / "engine")
    table, ignition = engine.root / "slic.acpi", engine.root / "ignition.json"
    table.write_bytes(b"SLIC\x24\0\0\0\x01\x49CRASH ME" + bytes(8) + b"\x88\x04\0\0qemu" + bytes(4))
    ignition.write_bytes(b"{}")
    for each in (table, ignition):
        each.chmod(0o600)
    firmware = FirmwareConfig(acpi_tables=(table,), files=(("opt/com.coreos/config", ignition),))
    machine = await engine.open().define("guest", engine.guest("guest", firmware=firmware))
    await machine.start()
    await until_phase(machine, "running", "ended")
    assert machine.observed.end is None, machine.observed.end
    assert os.stat(f"/proc/{machine.observed.pid}").st_uid == table.stat().st_uid != 0
    assert table.stat().st_mode & 0o077 == 0
    await machine.stop(0)
    await until_phase(machine, "ended")
