"""A Paddock that is killed while it renews the bare guest under KVM: it adopts the machine `a`, begins, and ends itself at a step.

python -m tests.host.underkvm.renewing ROOT STEP
"""

import asyncio
import sys
from pathlib import Path

from paddock.engine.machine.machines import Machines
from tests.host.machines.renewing import renew_and_die
from tests.host.underkvm import bareguest


async def main(root: Path, step: int) -> None:
    """Renew the machine, and die."""
    await renew_and_die(Machines(root / "machines", bareguest.environment(root)), step)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
