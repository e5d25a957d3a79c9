"""A Paddock that is killed: run as a program, it starts and stops machines until somebody kills it.

python -m tests.host.machines.crashing ROOT SEED COUNT
"""

import asyncio
import random
import sys
from pathlib import Path

from paddock.base.errors import PaddockError
from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import bare, surroundings


async def main(root: Path, seed: int, count: int) -> None:
    chance = random.Random(seed)
    machines = Machines(root, surroundings(4))
    await machines.adopt()
    print("adopted", flush=True)
    while True:
        name = f"m{chance.randrange(count)}"
        machine = machines.get(name) or await machines.define(name, bare())
        try:
            match chance.randrange(6):
                case 0 | 1 | 2:
                    await machine.start(paused=chance.random() < 0.3)
                case 3:
                    await machine.stop(chance.choice([0, 0.2, 30]))
                case 4:
                    await machine.pause()
                case 5 if chance.random() < 0.2:
                    await machine.forget()
        except PaddockError:
            pass
        await asyncio.sleep(chance.random() * 0.02)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
