"""A driver that ends between any two calls of vSphere: the next one completes what it has left, and nothing is there twice or left over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pyVmomi import vim

from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock_drivers.vsphere import factory
from paddock_drivers.vsphere.inventory import VSphereInventory
from paddock_drivers.vsphere.stub import RenewingStub
from tests.reference.vsphere.scripts import OWNER, created, ended, machines, play, request, settings
from tests.reference.vsphere.vcenter import Simulator

pytestmark = pytest.mark.reference

Attempt = Callable[[Driver], Awaitable[m.TaskRef | None]]
_MOST_ATTEMPTS = 5
# A create without a network makes some twenty calls.
_MOST_CALLS = 100
_SESSION = ("RetrieveServiceContent", "Login", "Logout")


class Killed(BaseException):
    """The end of a driver."""


async def create(driver: Driver) -> m.TaskRef | None:
    return (await driver.create(request())).task


def cloning(source: str) -> Attempt:
    async def clone(driver: Driver) -> m.TaskRef | None:
        wanted = m.ObjectIdentity(namespace="default", name="web-server", uid=OWNER.uid)
        return (await driver.clone(m.CloneRequest(source_vm_id=source, target_name="web-server", target_vm=wanted))).task

    return clone


def killed_at(number: int, simulator: Simulator, attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Attempt something with a driver that ends after this many calls. Returns whether it came so far."""
    calls = [0]
    invoked = RenewingStub.InvokeMethod

    def counted(self: Any, mo: Any, info: Any, *given: Any) -> Any:
        if info.wsdlName in _SESSION:
            # A session changes nothing, and a test leaves no connection open.
            return invoked(self, mo, info, *given)
        if calls[0] >= number:
            raise Killed
        answer = invoked(self, mo, info, *given)
        calls[0] += 1
        if calls[0] >= number:
            raise Killed
        return answer

    async def whole() -> None:
        async with factory.make(simulator.context()) as driver:
            await ended(driver, await attempt(driver))

    with monkeypatch.context() as patch:
        patch.setattr(RenewingStub, "InvokeMethod", counted)
        try:
            asyncio.run(whole())
        except Killed:
            return True
    return False


def repeated(simulator: Simulator, attempt: Attempt) -> None:
    """Repeat an attempt until it succeeds, as the manager does."""

    async def script(driver: Driver) -> None:
        for _ in range(_MOST_ATTEMPTS):
            if await ended(driver, await attempt(driver)) == "":
                return
        raise AssertionError("it does not succeed")

    play(simulator, script)


def removed(simulator: Simulator, own: str) -> None:
    async def script(driver: Driver) -> None:
        await driver.delete(m.DeleteRequest(id=own))

    play(simulator, script)


def names(simulator: Simulator) -> list[str]:
    return sorted(each.name for each in VSphereInventory(simulator.connection()).every(vim.VirtualMachine, ("name",)))


def survived(simulator: Simulator, attempt: Attempt, monkeypatch: pytest.MonkeyPatch) -> int:
    """End the driver after each call in turn, and look at what the next one makes of it. Returns how many calls there are."""
    before = names(simulator)
    for number in range(1, _MOST_CALLS):
        was_killed = killed_at(number, simulator, attempt, monkeypatch)
        repeated(simulator, attempt)
        assert names(simulator) == sorted([*before, "web-server"]), f"after {number} calls"
        (machine,) = machines(simulator)
        assert not settings(machine).get("paddock.pending"), f"after {number} calls"
        removed(simulator, machine.config.instanceUuid)
        assert names(simulator) == before, f"after {number} calls"
        if not was_killed:
            return number
    raise AssertionError("the attempt does not end")


@pytest.mark.spec("virtrigaud", 26, 155)
@pytest.mark.parametrize("slow", [0, 150], ids=["at-once", "slow"])
def test_a_create_is_completed_wherever_its_driver_ended(either: Simulator, slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    either.tell(works={"CloneVm": slow, "ReconfigVm": slow})
    assert survived(either, create, monkeypatch) > 10


def test_a_clone_is_completed_wherever_its_driver_ended(either: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    ids: list[str] = []

    async def source(driver: Driver) -> None:
        other = m.ObjectIdentity(uid="6f0c7f0e-4d2e-4d5e-9a0b-1f2e3d4c5b6a", namespace="default", name="source")
        ids.append(await created(driver, request("source", owner=other)))

    play(either, source)
    assert survived(either, cloning(ids[0]), monkeypatch) > 5
