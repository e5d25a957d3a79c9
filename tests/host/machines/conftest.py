"""Machines with real QEMUs, which do little: a guest of 512 bytes, or none."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.claims import HostReservations
from paddock.engine.machine.argv.view import EfiFiles, FileView, HostView
from paddock.engine.machine.config import CpuConfig, DeviceConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.host import MachineEnvironment, Timeouts
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.process import holders
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.users import on_this_host
from tests.host.machines import bootsector

SMALL = MemoryConfig(16 << 20, 16 << 20)
ROOT = Path(__file__).resolve().parents[3]
TIMES = Timeouts(press=0.3, poll=0.2, unplug=1.0)


def look(config: MachineConfig) -> HostView:
    qemu = shutil.which("qemu-system-x86_64")
    assert qemu
    files = {disk.layer.path: FileView(direct=False) for disk in config.disks if disk.layer}
    swtpm = shutil.which("swtpm")
    return HostView(Path(qemu), "tcg", swtpm=Path(swtpm) if swtpm else None, files=files)


def surroundings(count: int = 2) -> MachineEnvironment:
    counter = Path(os.environ["PADDOCK_HOST_DIR"], "layer-group")
    return MachineEnvironment(look, StartQueue(count), on_this_host(lambda: HostReservations().users(Path(__file__)), counter), times=TIMES)


def bare(label: str = "ns_bare") -> MachineConfig:
    """Nothing that could be booted from."""
    return MachineConfig(
        label, CpuConfig(model="qemu64"), SMALL, devices=DeviceConfig(graphics=False, balloon=False, agent=False), hotplug=False
    )


# closed when the script of a test is over, while its loop still is
_open: list[Machines] = []


class Place:
    """A directory for machines, and `Machines` over it as often as a test wants."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machines = root / "machines"
        root.chmod(0o711)

    def guest(self, name: str = "guest", **more: Any) -> MachineConfig:
        """The small guest, with a disk of its own."""
        disk = DiskConfig("root", DiskLayer(bootsector.write(self.root / f"{name}.img"), "raw"), boot_order=1)
        devices = DeviceConfig(balloon=False)
        return MachineConfig(f"ns_{name}", CpuConfig(model="qemu64"), SMALL, disks=(disk, *more.pop("disks", ())), devices=devices, **more)

    def over(self, disk: Path) -> Path:
        """A layer of this test's own over a disk."""
        path = self.root / "over.qcow2"
        command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(disk), "-F", "qcow2", str(path)]
        subprocess.run(command, check=True)
        return path

    def open(self, count: int = 2, patience: float = TIMES.start, efi: EfiFiles | None = None) -> Machines:
        around = replace(
            surroundings(count),
            times=replace(TIMES, start=patience),
            host_view=lambda config: replace(look(config), efi=efi, secure_efi=efi, root=self.root),
        )
        return keep_open(Machines(self.machines, around))


def keep_open(machines: Machines) -> Machines:
    """Close them when the script of a test is over."""
    _open.append(machines)
    return machines


@pytest.fixture
def place() -> Iterator[Place]:
    """Every QEMU that holds a lock below it is ended afterwards."""
    root = Path(tempfile.mkdtemp(prefix="pdkm-", dir="/tmp"))
    yield Place(root)
    for lock in root.glob("**/machines/*/lock"):
        for pid in holders(lock):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)


def qemus(root: Path) -> dict[str, list[int]]:
    """Machine -> the processes that work in its directory; helpers are none here."""
    found: dict[str, list[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            folder = os.readlink(f"/proc/{entry}/cwd")
            program = os.readlink(f"/proc/{entry}/exe")
        except OSError:
            continue
        # In a chroot, something stands before the path of a process with mounts of its own.
        _, is_below, rest = folder.partition(f"{root}/")
        if is_below and "qemu-system" in program:
            found.setdefault(rest.split("/")[0], []).append(int(entry))
    return found


Play = Callable[[Callable[[], Awaitable[None]]], None]


def run(script: Callable[[], Awaitable[None]], seconds: float = 120) -> None:
    async def bounded() -> None:
        try:
            async with asyncio.timeout(seconds):
                await script()
        finally:
            while _open:
                _open.pop().close()

    asyncio.run(bounded())


def killed_at(place: Place, program: str, step: int) -> bool:
    """Another Paddock works on the machine, as a program of this folder says, and is killed at a step; True: it was done before."""
    command = [sys.executable, "-m", f"tests.host.machines.{program}", str(place.machines), str(step)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == 0


async def until(machine: QemuMachine, holds: Callable[[QemuMachine], bool], what: str, seconds: float = 30) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not holds(machine):
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"not within {seconds:g} s: {what}; {machine.observed}; {machine.directory.log_tail()}")


async def until_phase(machine: QemuMachine, *phases: str) -> None:
    await until(machine, lambda one: one.observed.phase in phases, " or ".join(phases))


async def running(machines: Machines) -> QemuMachine:
    """A machine that runs, with nothing that it could be booted from."""
    await machines.adopt()
    machine = await machines.define("a", bare())
    await machine.start()
    await until_phase(machine, "running")
    return machine


async def taken_over(place: "Place", *, start: bool) -> tuple[Machines, QemuMachine]:
    """Paddock at the place, and the machine that runs there from a former one, or that it starts."""
    machines = place.open()
    await machines.adopt()
    machine = await machines.define("a", place.guest()) if start else machines.get("a")
    assert machine is not None
    if start:
        await machine.start()
        await until_guest_runs(machine)
    return machines, machine


async def closed(*_: object) -> socket.socket:
    """The monitor of a QEMU that is ending."""
    raise Unanswered("cannot talk to QEMU", why="Connection reset by peer")


async def until_guest_runs(machine: QemuMachine) -> None:
    """The small guest says so itself."""
    await until(machine, lambda one: one.directory.serial_tail(100).endswith(b"R"), "the guest runs", 60)
