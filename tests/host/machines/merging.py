"""A Paddock that merges the layers of a disk, and is killed at a step: `python -m tests.host.machines.merging DIRECTORY STEP`."""

import asyncio
import os
import sys
from pathlib import Path

from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import surroundings
from tests.host.machines.renewing import Steps
from tests.host.machines.test_merges import overlay
from tests.host.machines.test_mirrors import layer_of


async def main(root: Path, number: int) -> None:
    machines = Machines(root, surroundings())
    await machines.adopt()
    machine = machines.get("a")
    assert machine is not None
    while machine.observed.phase != "running" or machine.observed.stands_still:
        await asyncio.sleep(0.01)
    base = layer_of(machine)
    top = overlay(base, root.parent / f"top{number}.qcow2")
    await machine.overlay_disks({"data": top})
    Steps(number).begin(((os, "fsync"),))
    await machine.commit_disk("data", base.path)
    machines.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
