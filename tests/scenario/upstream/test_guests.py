"""What is made of a guest's agent, as `tests/compute/guest_agent.go` of KubeVirt wants it."""

import asyncio

import pytest

from paddock.engine.machine import guest
from tests.fakehost import FakeHost, machine
from tests.scenario.hosts.conftest import Play
from tests.scenario.upstream.asking import condition, phase

pytestmark = pytest.mark.spec("kubevirt", 110)


def test_a_guest_is_ready_again_when_its_agent_is_back(play: Play) -> None:
    async def script(host: FakeHost) -> None:
        await host.make(machine(readinessProbe={"guestAgentPing": {}, "periodSeconds": 5}))
        ran = await host.running()
        for there in (True, False, True):
            (ran.agent.connect if there else ran.agent.disconnect)()
            await asyncio.sleep(30)
            assert condition(await host.vmi(), "Ready") == str(there)

    play(script)


def test_a_command_that_fails_ends_a_guest_that_has_to_live(play: Play) -> None:
    async def script(host: FakeHost) -> None:
        probe = {"exec": {"command": ["invalid"]}, "periodSeconds": 5, "initialDelaySeconds": 10}
        await host.make(machine(strategy="Once", livenessProbe=probe))
        ran = await host.running()
        ran.agent.connect()
        await asyncio.sleep(30)
        assert await phase(host) == "Running"
        ran.agent.run = lambda argv: guest.Executed(1, b"", b"")
        await asyncio.sleep(60)
        assert await phase(host) == "Failed"

    play(script)


def test_an_agent_that_goes_is_not_told_of_any_more(play: Play) -> None:
    async def script(host: FakeHost) -> None:
        await host.make(machine())
        ran = await host.running()
        for there in (True, False):
            (ran.agent.connect if there else ran.agent.disconnect)()
            await asyncio.sleep(30)
            assert condition(await host.vmi(), "AgentConnected") in (("True",) if there else ("", "False"))

    play(script)
