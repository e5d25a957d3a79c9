"""A Paddock that is killed while it takes a snapshot with memory of the machine `a`, or while `b` goes on from one.

python -m tests.host.machines.remembering ROOT STEP

Without a memory `kept` it takes one, named after the step. With it, `b` begins as a suspended machine, and is started.
"""

import asyncio
import os
import shutil
import sys
from pathlib import Path

from paddock.engine import memorystates
from paddock.engine.machine import rehosting
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.memorysnapshots import MemoryRequest
from paddock.engine.memorystates import MemoryStates
from paddock.engine.storage import files
from tests.host.machines.conftest import surroundings
from tests.host.machines.renewing import Steps
from tests.host.machines.test_memory import fresh_of, overlaid


async def main(root: Path, step: int) -> None:
    machines, states = Machines(root, surroundings()), MemoryStates(root.parent / "memory")
    states.prepare()
    await machines.adopt()
    steps, kept = Steps(step), states.get("kept")
    more = ((os, "fsync"), (Path, "unlink"), (shutil, "rmtree"), (files, "write_whole"), (memorystates, "_unpack"))
    if kept is None:
        machine, name = machines.get("a"), f"s{step}"
        assert machine is not None
        while machine.observed.phase != "running" or machine.observed.stands_still:
            await asyncio.sleep(0.01)
        layers = overlaid(machine.config, root.parent, name)
        steps.begin(more)
        states.keep(name, await machine.take_memory(MemoryRequest(layers, frozenset(), states.draft(name))))
    else:
        fresh = fresh_of(kept.record.saved.config, root.parent, "b")
        steps.begin(more)
        machine = await machines.define("b", fresh)
        await machine.begin_suspended(rehosting.rehosted(kept.record.saved, fresh), states.filler("kept"))
        await machine.start()
        while machine.observed.phase != "running" or machine.observed.stands_still:
            assert machine.observed.phase != "ended", machine.observed
            await asyncio.sleep(0.01)
    print("done", flush=True)
    machines.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
