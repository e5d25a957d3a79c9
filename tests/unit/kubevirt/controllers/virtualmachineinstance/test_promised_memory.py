"""The memory of the machines that live: it is always their sum, and only what has changed is counted again."""

import random
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from paddock.engine.engine import Engine
from paddock.engine.host import capacity
from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.kubevirt.controllers.virtualmachineinstance.scheduler import PromisedMemory
from tests.coroutines import timeless
from tests.kit.engine.fakehost import FakeEngine

MIB = 1 << 20
STEPS = 200


def config(name: str, size: int) -> MachineConfig:
    return MachineConfig(name, CpuConfig(), MemoryConfig(size, 4 * size))


def summed(engine: FakeEngine) -> int:
    return sum(capacity.needed(each, "tcg") for each in engine.machines.living().values())


@timeless
async def test_it_is_the_sum_whatever_happens(tmp_path: Path) -> None:
    engine, chance = FakeEngine(tmp_path), random.Random(1)
    memory = PromisedMemory(cast(Engine, engine))
    for step in range(STEPS):
        machine = await engine.machines.define(f"m{step}", config(f"m{step}", 64 * MIB))
        await machine.start()
        one = chance.choice(list(engine.machines))
        if one.observed.phase == "running":
            what = chance.choice(("end", "grow", "nothing", "lose"))
            if what == "end":
                one.power_off()
            elif what == "grow":
                await one.set_memory(one.config.memory.size * 2 if one.config.memory.size < 256 * MIB else 256 * MIB)
            elif what == "lose" and not step % 10:
                engine.machines.lose(one.id)
        for lost in engine.machines.leftovers() if not step % 7 else ():
            engine.machines.mend(lost)
            await engine.machines.recover(lost)
        assert memory.given == summed(engine)
        assert sum(memory.by_machine.values()) == memory.given
    assert set(memory.by_machine) == set(engine.machines.living())


@timeless
async def test_machines_that_stay_as_they_are_are_not_asked(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path)
    memory, asked = PromisedMemory(cast(Engine, engine)), list[str]()
    needed = memory.needed

    def note(machine: str, config: MachineConfig) -> int:
        asked.append(machine)
        return needed(machine, config)

    cast(Any, memory).needed = note
    for number in range(20):
        machine = await engine.machines.define(f"m{number}", config(f"m{number}", 64 * MIB))
        await machine.start()
        assert memory.given == summed(engine)
    assert len(asked) <= 20
    machine.config = replace(machine.config, memory=replace(machine.config.memory, size=128 * MIB))
    machine.observe(memory=128 * MIB)
    assert memory.given == summed(engine)
