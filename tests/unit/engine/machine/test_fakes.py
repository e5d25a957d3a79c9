"""The machines in memory that controllers are tested with."""

import asyncio

import pytest

from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.errors import AgentError, RequestRefused
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.enginefakes import FakeMachine, FakeMachines

CONFIG = MachineConfig("ns_vm", CpuConfig(), MemoryConfig(2**28, 2**28))


async def _settle() -> None:
    await asyncio.sleep(0.001)


def _phase(machine: FakeMachine) -> str:
    return machine.observed.phase


@run_by(virtualtime.run)
async def test_a_machine_lives() -> None:
    machines = FakeMachines(virtualtime.Clock())
    told: list[str] = []
    machines.listen(told.append)
    machine = await machines.define("a", CONFIG)
    await machine.start()
    assert _phase(machine) == "queued"
    await _settle()
    assert _phase(machine) == "running" and told == ["a", "a", "a"]
    with pytest.raises(AgentError):
        await machine.agent.ping()
    machine.agent.connect()
    await machine.agent.ping()
    console = machine.console()
    console.say(b"login: ")
    assert await console.read() == b"login: "
    newer = machine.console()
    assert await console.read() == b"" and not newer.closed
    await machine.stop(30)
    await _settle()
    end = machine.observed.end
    assert end is not None and end.reason == "guest-shutdown" and end.asked
    await machine.forget()
    assert machines.get("a") is None
    assert asyncio.get_running_loop().time() < 1


@run_by(virtualtime.run)
async def test_the_deaf_are_killed_in_time_and_a_shorter_grace_shortens() -> None:
    machines = FakeMachines(virtualtime.Clock())
    machine = await machines.define("a", CONFIG)
    await machine.start()
    await _settle()
    machine.deaf = True
    await machine.stop(100)
    await asyncio.sleep(10)
    await machine.stop(5)
    await asyncio.sleep(4.9)
    assert _phase(machine) == "stopping"
    await asyncio.sleep(0.2)
    assert machine.observed.end is not None and machine.observed.end.reason == "killed"
    assert asyncio.get_running_loop().time() < 16


@run_by(virtualtime.run)
async def test_what_a_test_can_make_of_a_start() -> None:
    machines = FakeMachines(virtualtime.Clock())
    machine = await machines.define("a", CONFIG)
    machines.hold("a")
    await machine.start()
    await _settle()
    assert _phase(machine) == "starting"
    with pytest.raises(RequestRefused, match="start"):
        await machine.pause()
    machines.release("a")
    assert _phase(machine) == "running"
    machine.crash("gone")
    machines.fail("a", "no such file")
    await machine.start()
    await _settle()
    assert machine.observed.end is not None and machine.observed.end.reason == "never-started" and machine.observed.run == 2
