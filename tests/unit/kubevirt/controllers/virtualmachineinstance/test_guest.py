"""Credentials in the guest of a machine that runs."""

import asyncio
from types import SimpleNamespace
from typing import Any

from paddock.kubevirt.controllers.virtualmachineinstance.guest import GuestMonitor
from paddock.kubevirt.controllers.virtualmachineinstance.reader import GuestCredentials
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from tests.coroutines import scripted


class SlowAgent:
    """An agent that sets a password only when it may."""

    def __init__(self) -> None:
        self.passwords: list[str] = []
        self.may = asyncio.Event()

    async def set_password(self, user: str, password: str) -> None:
        self.passwords.append(password)
        await self.may.wait()


@scripted
async def test_credentials_that_change_while_others_are_brought_are_brought_too() -> None:
    agent = SlowAgent()
    machine: Any = SimpleNamespace(id="vm", agent=agent, observed=SimpleNamespace(run=1, agent=True))
    target: Any = None
    monitor = GuestMonitor(VirtualMachineInstance(), machine, target, lambda: None)
    monitor.keep(GuestCredentials({}, {"tiny": "first"}))
    keeping = asyncio.create_task(monitor._keep())
    while agent.passwords != ["first"]:
        await asyncio.sleep(0)
    monitor.keep(GuestCredentials({}, {"tiny": "second"}))
    agent.may.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert agent.passwords == ["first", "second"]
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
