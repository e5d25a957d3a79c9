"""The agent of a machine that runs: what its instance tells of it, and when."""

import asyncio

import pytest

from paddock.engine.machine.guest import AgentInfo
from paddock.kubevirt.controllers.virtualmachineinstance.guest import SILENT_SECONDS
from tests.coroutines import played
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import Host


@played
async def test_the_agent_is_asked_at_once_when_it_comes(host: Host, /) -> None:
    machine = await host.running()
    await asyncio.sleep(60.7)
    assert not (await host.status()).get("guestOSInfo", {}).get("name")
    machine.agent.connect()
    await asyncio.sleep(0.1)
    assert (await host.status())["guestOSInfo"]["name"]
    machine.agent.disconnect()
    await asyncio.sleep(60.7)
    machine.agent.is_frozen = True
    machine.agent.connect()
    await asyncio.sleep(0.1)
    assert (await host.status())["fsFreezeStatus"] == "frozen"


@pytest.mark.spec("kubevirt", 200)
@played
async def test_a_freeze_shows_at_once(host: Host, /) -> None:
    machine = await host.running()
    machine.agent.connect()
    await asyncio.sleep(600)
    for ask, status in ((machine.agent.freeze, "frozen"), (machine.agent.thaw, None)):
        await ask()
        machine.guest_changed()
        await asyncio.sleep(1)
        assert (await host.status()).get("fsFreezeStatus") == status


@played
async def test_a_guest_that_was_left_frozen_is_thawed(host: Host, /) -> None:
    machine = await host.running()
    machine.agent.connect()
    await asyncio.sleep(5)
    await host.end()
    machine.agent.is_frozen = True
    await host.begin()
    await asyncio.sleep(5)
    assert not machine.agent.is_frozen
    assert "fsFreezeStatus" not in await host.status()
    # Later ones are somebody's wish.
    await machine.agent.freeze()
    await asyncio.sleep(60)
    assert (await host.status())["fsFreezeStatus"] == "frozen"


@pytest.mark.spec("kubevirt", 198)
@played
async def test_an_agent_that_lacks_commands_is_told_until_another_comes(host: Host, /) -> None:
    machine = await host.running()
    whole = machine.agent.told_info
    machine.agent.told_info = AgentInfo(whole.version, tuple((name, name != "guest-shutdown") for name, _ in whole.commands))
    machine.agent.connect()
    await asyncio.sleep(5)
    told = ("True", "This guest agent doesn't support required basic commands")
    assert (await host.conditions())["AgentVersionNotSupported"] == told
    await host.end()
    await host.begin()
    assert (await host.conditions())["AgentVersionNotSupported"] == told
    machine.agent.disconnect()
    await asyncio.sleep(5)
    assert "AgentVersionNotSupported" not in await host.conditions()
    machine.agent.told_info = whole
    machine.agent.connect()
    await asyncio.sleep(5)
    assert (await host.conditions()).keys() >= {"AgentConnected"} and "AgentVersionNotSupported" not in await host.conditions()


@pytest.mark.spec("kubevirt", 114)
@played
async def test_a_guest_whose_agent_is_silent_for_a_minute_hangs(host: Host, /) -> None:
    machine = await host.running()
    machine.agent.connect()
    await asyncio.sleep(600)
    assert (await host.conditions())["AgentConnected"] == ("True", None)
    machine.agent.hangs = True
    await asyncio.sleep(SILENT_SECONDS - 1)
    # It may only be slow.
    assert (await host.conditions())["Ready"] == ("True", None)
    await asyncio.sleep(35)
    assert (await host.conditions())["Ready"] == ("False", "GuestNotResponding")
    assert (await host.conditions())["AgentConnected"] == ("False", "AgentNotResponding")
    assert (await host.events())[-1][0] == "GuestNotResponding"
    machine.agent.hangs = False
    await asyncio.sleep(5)
    assert (await host.conditions())["Ready"] == ("True", None)
    machine.agent.hangs = True
    await asyncio.sleep(200)
    assert (await host.conditions())["Ready"] == ("False", "GuestNotResponding")
    # An agent that was ended says so: that is no guest that hangs.
    machine.agent.disconnect()
    await asyncio.sleep(5)
    assert (await host.conditions())["Ready"] == ("True", None) and "AgentConnected" not in await host.conditions()
