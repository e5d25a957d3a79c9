"""A Paddock that moves the disk of a machine, and is killed at a step: `python -m tests.host.machines.mirroring DIRECTORY STEP`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import surroundings
from tests.host.machines.test_mirrors import blank, layer_of, steps


async def main(root: Path, number: int) -> None:
    machines = Machines(root, surroundings())
    await machines.adopt()
    machine = machines.get("a")
    assert machine is not None

    async def at(step: int) -> None:
        if step == number:
            os.kill(os.getpid(), signal.SIGKILL)

    # An earlier move that changed over does so first, and copies that go on are called off.
    while (moving := machine._owner.record.moving) is not None:
        if not moving.changes_over and machine.observed.jobs:
            await machine.keep_disks()
        await asyncio.sleep(0.05)
    name = "two" if layer_of(machine).path.stem == "one" else "one"
    await steps(machine, blank(root.parent / f"{name}.img"), at)
    machines.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
