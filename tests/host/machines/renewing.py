"""A Paddock that is killed while a guest moves: it adopts the machine `a`, begins to renew it, and ends itself at a step.

python -m tests.host.machines.renewing ROOT STEP

A step is whatever can be seen from outside: a word to a QEMU, a write of the record, a change of files, a process that starts.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from paddock.engine.machine import startup
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.qmp import Qmp
from tests.host.machines.conftest import surroundings


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Steps:
    """Counts down, and kills this process, or does something else, before the step at which nothing is left."""

    def __init__(self, left: int, act: Callable[[], object] = _die) -> None:
        self._left = left
        self._act = act
        self.taken = 0

    def begin(self, more: Iterable[tuple[Any, str]] = ()) -> None:
        for owner, name in (
            *((Directory, name) for name in ("write_record", "promote", "drop_beside", "open_log")),
            (Qmp, "execute"),
            *((startup, name) for name in ("spawn", "hand_over")),
            *((os, name) for name in ("rename", "link")),
            *more,
        ):
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            self.taken += 1
            if self.taken == self._left + 1:
                self._act()
            return work(*args, **more)

        return counted


async def renew_and_die(machines: Machines, step: int) -> None:
    """Adopt the machine `a`, renew it, and end this process at the step, if the renewal has so many."""
    await machines.adopt()
    machine = machines.get("a")
    assert machine is not None
    while machine.observed.phase != "running" or machine.observed.stands_still:
        await asyncio.sleep(0.01)
    Steps(step).begin()
    await machine.renew()
    print("renewed", flush=True)
    machines.close()


async def main(root: Path, step: int) -> None:
    await renew_and_die(Machines(root, surroundings()), step)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
