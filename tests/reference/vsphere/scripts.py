"""What the tests of machines share: a driver to play with, requests, and a look at the simulator's machines."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from pyVmomi import vim

from paddock.base.clock import Clock
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.driver import Driver
from paddock.contract.errors import ProviderError
from paddock.contract.payloads import (
    ClassPayload,
    ImagePayload,
)
from paddock_drivers.vsphere import factory
from paddock_drivers.vsphere.inventory import VSphereInventory
from tests.reference.vsphere.vcenter import Simulator

OWNER = m.ObjectIdentity(uid="5f0c7f0e-4d2e-4d5e-9a0b-1f2e3d4c5b6a", namespace="default", name="web-server")
SMALL = ClassPayload(cpu=2, memory_mib=4096)
Script = Callable[[Driver], Awaitable[None]]


@asynccontextmanager
async def driven(simulator: Simulator, clock: Clock | None = None, **variables: str) -> AsyncIterator[Driver]:
    """Start a driver."""
    async with factory.make(simulator.context(clock, **variables)) as driver:
        yield driver


def play(simulator: Simulator, script: Script, clock: Clock | None = None, **variables: str) -> None:
    """Carry out a script with a driver that was just started."""

    async def whole() -> None:
        async with driven(simulator, clock, **variables) as driver:
            await script(driver)

    asyncio.run(whole())


async def ended(driver: Driver, task: m.TaskRef | None) -> str:
    """Wait for a task, and return its error."""
    async with asyncio.timeout(30):
        while True:
            status = await driver.task_status(m.TaskStatusRequest(task=task))
            if status.done or status.error:
                return status.error
            await asyncio.sleep(0.05)


def request(name: str = "web-server", **changes: Any) -> m.CreateRequest:
    plain = m.CreateRequest(
        name=name, class_json=payloads.encode(SMALL), image_json=payloads.encode(ImagePayload(template_name="tmpl")), owner=OWNER
    )
    return msgspec.structs.replace(plain, **changes)


async def created(driver: Driver, wanted: m.CreateRequest | None = None) -> str:
    made = await driver.create(wanted or request())
    assert await ended(driver, made.task) == ""
    return made.id


def machines(simulator: Simulator, name: str = "web-server") -> list[Any]:
    rows = VSphereInventory(simulator.connection()).every(vim.VirtualMachine, ("name",))
    return [each.ref for each in rows if each.name == name]


def settings(machine: Any) -> dict[str, str]:
    return {each.key: str(each.value) for each in machine.config.extraConfig}


async def refused(call: Awaitable[Any]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await call
    return caught.value
