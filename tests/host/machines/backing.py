"""A Paddock that backs a disk up, and is killed at a step: `python -m tests.host.machines.backing DIRECTORY STEP`.

A step is a command to QEMU or a write of the record. `chain.json` beside the machines stands for a tracker.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from paddock.engine.machine.backupstate import BackupRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.owner import MachineOwner
from tests.host.machines.conftest import surroundings

MIB = 1 << 20
SIZE = 16 * MIB


def content(path: Path, form: str = "qcow2") -> str:
    """The SHA-256 of what a disk holds."""
    out = path.with_name("content.raw")
    subprocess.run(["qemu-img", "convert", "-U", "-f", form, "-O", "raw", str(path), str(out)], check=True)
    found = hashlib.sha256(out.read_bytes()).hexdigest()
    out.unlink()
    return found


class Tracker:
    """The backups that are complete: name and what the disk held."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "chain.json"

    def read(self) -> dict[str, Any]:
        """Return the complete ones, and what was frozen of each that was begun."""
        if not self.path.exists():
            return {"complete": [], "frozen": {}}
        return dict(json.loads(self.path.read_text()))

    def write(self, **changes: Any) -> None:
        """Replace it as a whole."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({**self.read(), **changes}))
        fresh.rename(self.path)

    def file(self, name: str) -> Path:
        """Return the file of a backup."""
        return self.root / f"{name}.qcow2"


async def written(machine: QemuMachine, chance: random.Random) -> None:
    """The guest writes at some places."""
    lines = [f"write -P {chance.randrange(1, 256)} {chance.randrange(SIZE // 4096 - 4) * 4096} 8k" for _ in range(8)]
    for line in (*lines, "flush"):
        command = f'qemu-io -d /machine/peripheral/ua-data/virtio-backend "{line}"'
        said = await machine._owner.execute("human-monitor-command", {"command-line": command})
        assert "rror" not in str(said), said


async def settled(machine: QemuMachine, tracker: Tracker) -> None:
    """What an earlier Paddock began is over; the tracker goes on from a backup that is done."""
    while machine.backup is not None and not machine.backup.ended:
        await asyncio.sleep(0.05)
    if machine.backup is None:
        return
    if machine.backup.state == "done":
        complete = tracker.read()["complete"]
        if machine.backup.name not in complete:
            tracker.write(complete=[*complete, machine.backup.name])
    names = tracker.read()["complete"][-1:]
    await machine.retain_checkpoints(names)
    await machine.cancel_backup(machine.backup.name)


async def main(root: Path, number: int) -> None:
    """Go on with what there is, then take one more backup, and die at a step of it."""
    tracker = Tracker(root.parent)
    machines = Machines(root, surroundings())
    await machines.adopt()
    machine = machines.get("a")
    assert machine is not None
    await asyncio.sleep(0.2)
    await settled(machine, tracker)
    await written(machine, random.Random(number))
    name = f"b{number}"
    held = tracker.read()
    layer = next(disk.layer for disk in machine.config.disks if disk.name == "data")
    assert layer is not None
    tracker.write(frozen={**held["frozen"], name: content(layer.path, layer.format)})
    _die_at(number)
    since = {"data": held["complete"][-1]} if held["complete"] else {}
    await machine.take_backup(BackupRequest(name, {"data": tracker.file(name)}, since, name))
    await settled(machine, tracker)
    machines.close()


def _die_at(number: int) -> None:
    """Have every command and every write of the record count, and the one with the number be the last."""
    left = number

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    execute, save = MachineOwner.execute, MachineOwner.save

    async def executed(self: MachineOwner, *words: Any, **more: Any) -> Any:
        answer = await execute(self, *words, **more)
        step()
        return answer

    def saved(self: MachineOwner, **changes: Any) -> None:
        save(self, **changes)
        step()

    MachineOwner.execute, MachineOwner.save = executed, saved  # type: ignore[method-assign]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
