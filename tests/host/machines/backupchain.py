"""A machine whose disk is followed, and the chain of its backups."""

import hashlib
import os
import random
import subprocess
from pathlib import Path

from paddock.engine.machine.backupstate import BackupRequest
from paddock.engine.machine.config import DiskConfig, DiskLayer
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import Place, until, until_guest_runs, until_phase

MIB = 1 << 20
SIZE = 64 * MIB
CLUSTER = 64 << 10


class Chain:
    """A machine with a disk that is followed, and the backups of it, as a user of the engine takes them."""

    def __init__(self, place: Place, *, form: str = "raw", seed: int = 1) -> None:
        self.place = place
        self.form = form
        self.random = random.Random(seed)
        self.files: list[Path] = []
        self.frozen: list[str] = []
        self.machine: QemuMachine
        self.machines: Machines | None = None
        self.checkpoint = ""
        self.written = set[int]()

    async def start(self) -> None:
        if self.machines is None:
            self.machines = self.place.open()
            await self.machines.adopt()
        machines = self.machines
        machine = machines.get("a")
        if machine is None:
            folder = self.place.root / "volume"
            folder.mkdir()
            disk = DiskConfig("data", new_disk(folder, self.form), boot_order=2, tracked=True)
            machine = await machines.define("a", self.place.guest(disks=(disk,)))
        if machine.observed.phase in ("defined", "ended"):
            await machine.start()
        await until_phase(machine, "running")
        await until_guest_runs(machine)
        self.machine = machine

    @property
    def layer(self) -> DiskLayer:
        found = next(disk.layer for disk in self.machine.config.disks if disk.name == "data")
        assert found is not None
        return found

    async def write(self, count: int, most: int = CLUSTER) -> None:
        """Write at random places of the disk, as the guest does; some of it zeros, and some is discarded."""
        for _ in range(count):
            length = self.random.randrange(512, most + 1, 512)
            at = self.random.randrange(0, SIZE - length, 512)
            kind = self.random.choice((f"write -P {self.random.randrange(1, 256)}", "write -z", "write -z -u", "discard"))
            await self.command(f"{kind if self.random.random() < 0.2 else kind.split(' -z')[0]} {at} {length}")
            self.written |= set(range(at // CLUSTER, -(-(at + length) // CLUSTER)))

    async def command(self, line: str) -> None:
        where = "-d /machine/peripheral/ua-data/virtio-backend"
        said = await self.machine._owner.execute("human-monitor-command", {"command-line": f'qemu-io {where} "{line}"'})
        assert "rror" not in str(said) and "ailed" not in str(said), said

    async def back_up(self, name: str, *, full: bool = False, wait: bool = True, speed: int = 0) -> Path:
        """A backup that is whole, or since the last checkpoint."""
        target = self.place.root / f"{name}.qcow2"
        since = {"data": self.checkpoint} if self.checkpoint and not full else {}
        await self.command("flush")
        now = content(self.layer)
        await self.machine.take_backup(BackupRequest(name, {"data": target}, since, f"c-{name}", speed=speed))
        if not full and not since:
            assert not self.checkpoint
        self.files = [*(self.files if since else ()), target]
        self.frozen = [*(self.frozen if since else ()), now]
        if wait:
            await self.done(name)
        return target

    async def done(self, name: str) -> None:
        await until(self.machine, lambda one: one.backup is not None and one.backup.ended, "the backup ends", 60)
        state = self.machine.backup
        assert state is not None and state.name == name and state.state == "done", state
        self.checkpoint = f"c-{name}"
        await self.machine.retain_checkpoints([self.checkpoint])
        await self.machine.cancel_backup(name)
        assert self.machine.backup is None
        self.written.clear()

    def verify(self) -> None:
        """Each backup, over those before it, is the disk of its moment."""
        below: Path | None = None
        for path, wanted in zip(self.files, self.frozen, strict=True):
            subprocess.run(["qemu-img", "check", "-q", str(path)], check=True)
            if below is not None:
                command = ["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", str(below), str(path)]
                subprocess.run(command, check=True)
            assert content(DiskLayer(path, "qcow2")) == wanted
            below = path

    async def stop(self) -> None:
        """The guest shuts down."""
        await self.machine.stop(20)
        await until_phase(self.machine, "ended")
        assert self.machine.observed.end is not None and self.machine.observed.end.reason == "guest-shutdown"


def new_disk(folder: Path, form: str) -> DiskLayer:
    folder.chmod(0o711)
    below = folder / "disk.img"
    below.write_bytes(b"")
    os.truncate(below, SIZE)
    with below.open("r+b") as file:
        for at in range(0, SIZE, 4 * MIB):
            file.seek(at + 2 * MIB)
            file.write(os.urandom(CLUSTER))
    if form == "raw":
        return DiskLayer(below, "raw")
    return overlay(DiskLayer(below, "raw"), "first")


def overlay(below: DiskLayer, name: str) -> DiskLayer:
    path = below.path.with_name(f"{name}.qcow2")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", below.format, "-b", str(below.path), str(path)], check=True)
    return DiskLayer(path, "qcow2", below)


def content(layer: DiskLayer) -> str:
    """The SHA-256 of what a disk holds."""
    out = layer.path.with_name("content.raw")
    subprocess.run(["qemu-img", "convert", "-U", "-f", layer.format, "-O", "raw", str(layer.path), str(out)], check=True)
    with out.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    out.unlink()
    return found


def read_bytes(machine: QemuMachine) -> int:
    """The bytes that QEMU has read up to now, from whatever."""
    lines = Path(f"/proc/{machine.observed.pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))
