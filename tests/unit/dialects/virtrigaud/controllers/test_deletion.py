"""The end of VirtRigaud's machines (docs/spec/virtrigaud.md 2.1.9)."""

import asyncio
from typing import Any

import msgspec
import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.messages import PowerOp
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import machine, rigaud


async def annotate(life: Any, name: str) -> None:
    await life.merge("web", {"metadata": {"annotations": {name: "true"}}})


@pytest.mark.spec("virtrigaud", 54)
@timeless
async def test_the_machine_is_off_and_the_task_awaited_before_the_object_goes() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        inventory = life.driver.driver._inventory
        inventory.settings = msgspec.structs.replace(inventory.settings, task_seconds=SecondsRange(21.0, 21.0))
        await life.delete()
        seen: list[str] = []
        while await life.get():
            status = await life.status()
            seen.append(status.get("phase", ""))
            if life.driver.count("Delete") and (await life.condition("Deleting")).get("reason") == "TaskInProgress":
                assert status["lastTaskRef"]
            await asyncio.sleep(1)
        assert set(seen) <= {"Running", "Deleting"} and len(seen) > 20
        assert life.driver.names()[-2:] == ["Power", "Delete"]
        assert life.driver.of("Power")[-1].op == PowerOp.OFF
        assert await life.machines() == []


@pytest.mark.spec("virtrigaud", 53)
@timeless
async def test_an_error_keeps_the_finalizer_and_is_tried_again() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()

        async def fails(rpc: str, request: Any) -> None:
            if rpc == "Delete":
                raise ProviderError(ErrorKind.INTERNAL, "the storage is locked")

        life.driver.script = fails
        await life.delete()
        await asyncio.sleep(62)
        assert 4 <= life.driver.count("Delete") <= 6
        found = await life.condition("Deleting")
        assert (found["status"], found["reason"]) == ("True", "ProviderError") and "the storage is locked" in found["message"]
        await annotate(life, "virtrigaud.io/force-delete")
        await life.gone(seconds=30)
        assert "ForceDeleted" in await life.events()
        assert len(await life.machines()) == 1


@pytest.mark.spec("virtrigaud", 53)
@timeless
async def test_a_machine_that_is_not_found_is_released() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        await life.ready()

        async def unknown(rpc: str, request: Any) -> None:
            if rpc == "Delete":
                raise ProviderError(ErrorKind.NOT_FOUND, "no such machine")

        life.driver.script = unknown
        await life.delete()
        await life.gone(seconds=20)


@pytest.mark.spec("virtrigaud", 54)
@timeless
async def test_an_unreachable_provider_keeps_the_finalizer() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await life.delete()
        await asyncio.sleep(300)
        assert await life.said("Deleting") == ("True", "ProviderError")
        life.driver.down = None
        await life.gone(seconds=90)
        assert await life.machines() == []


@timeless
async def test_a_provider_that_is_gone_keeps_the_finalizer() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        await life.delete("lab", "Provider")
        await asyncio.sleep(5)
        found = await life.condition("Deleting", "lab", "Provider")
        assert (found["reason"], "1 machines" in found["message"]) == ("DeleteBlocked", True)
        await life.merge("lab", {"metadata": {"finalizers": None}}, "Provider")
        await life.delete()
        await asyncio.sleep(60)
        assert "there is no Provider default/lab" in (await life.condition("Deleting"))["message"]
        assert life.driver.count("Delete") == 0
        await annotate(life, "virtrigaud.io/force-delete")
        await life.gone(seconds=30)


@pytest.mark.spec("virtrigaud", 55)
@timeless
async def test_an_orphan_stays_at_the_provider() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        await life.merge("web", {"metadata": {"labels": {"virtrigaud.io/adopted": "true"}}})
        await annotate(life, "virtrigaud.io/orphan-on-delete")
        await life.delete()
        await life.gone(seconds=10)
        assert life.driver.names() == ["Create", "Power"]
        assert [each.power_state for each in await life.machines()] == ["On"]


@timeless
async def test_a_machine_whose_create_was_lost_is_found_and_deleted() -> None:
    fault = RpcFault(rpc="Create", effect="lost-answer")
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine())
        await asyncio.sleep(1)
        assert "id" not in await life.status() and len(await life.machines()) == 1
        await life.delete()
        await life.gone(seconds=90)
        assert await life.machines() == []


@timeless
async def test_a_failed_deletion_task_is_tried_again() -> None:
    fault = RpcFault(rpc="Delete", effect="task-error", message="a disk is busy")
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.delete()
        await life.gone(seconds=120)
        assert life.driver.count("Delete") == 2 and await life.machines() == []


@timeless
async def test_a_deletion_whose_task_a_restarted_provider_forgot_ends() -> None:
    async with rigaud(task_seconds=SecondsRange(22.0, 22.0)) as life:
        await life.make(machine(powerState="Off"))
        await life.ready()
        await life.delete()
        await asyncio.sleep(7)
        life.driver.driver.restart()
        await life.restart()
        await life.gone(seconds=200)
        assert await life.machines() == []


@timeless
async def test_a_machine_that_was_never_made_goes_at_once() -> None:
    async with rigaud(world=False) as life:
        await life.make(machine())
        await asyncio.sleep(2)
        await life.delete()
        await life.gone(seconds=3)


@pytest.mark.spec("virtrigaud", 53)
@pytest.mark.parametrize("rpc", ["Describe", "Power", "TaskStatus"])
@timeless
async def test_another_call_that_does_not_find_the_machine(rpc: str) -> None:
    """Only the answer to the deletion itself says that the machine is gone."""
    async with rigaud(faults=(RpcFault(rpc=rpc, kind=ErrorKind.NOT_FOUND, after=1, count=1),)) as life:
        await life.make(machine())
        await life.until(life.machines)
        await life.delete()
        await life.gone()
        assert await life.machines() == []
