"""A Paddock that is killed while a guest is suspended, or resumed: it adopts the machine `a`, begins, and ends itself at a step.

python -m tests.host.machines.suspending ROOT STEP
"""

import asyncio
import os
import sys
from pathlib import Path

from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import surroundings
from tests.host.machines.renewing import Steps


async def main(root: Path, step: int) -> None:
    machines = Machines(root, surroundings())
    await machines.adopt()
    machine = machines.get("a")
    assert machine is not None
    suspended = machine.observed.phase == "suspended"
    while not suspended and (machine.observed.phase != "running" or machine.observed.stands_still):
        await asyncio.sleep(0.01)
    Steps(step).begin(((os, "fsync"), (Path, "unlink")))
    goal = "running" if suspended else "suspended"
    await (machine.start() if suspended else machine.suspend())
    while machine.observed.phase != goal:
        assert machine.observed.phase != "ended", machine.observed
        await asyncio.sleep(0.01)
    print(goal, flush=True)
    machines.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
