"""Power: on, off, a shutdown that a guest obeys or not, a restart."""

import asyncio

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played
from tests.kit.engine.fakehost import machine
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, Target


async def state(target: Target, vm_id: str) -> str:
    return (await target.seen(vm_id)).power_state


async def run_of(target: Target) -> str:
    return str((await target.host.vmi())["metadata"]["uid"])


@played
async def test_on_and_off_are_done_once(target: Target, /) -> None:
    vm_id = await target.made()
    first = await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.ON))
    assert first.task is not None and await state(target, vm_id) == "Off"
    # While it starts, another wish is the same task.
    assert await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.ON)) == first
    assert await target.ends(first.task) == "" and await state(target, vm_id) == "On"
    run = await run_of(target)
    assert await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.ON)) == m.TaskResponse()
    assert await run_of(target) == run
    seen = await target.seen(vm_id)
    assert seen.ips and seen.console_url == (
        "wss://here:6443/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web/vnc"
    )
    assert await target.power(vm_id, m.PowerOp.OFF) == "" and await state(target, vm_id) == "Off"
    assert await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.OFF)) == m.TaskResponse()
    assert await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.SHUTDOWN_GRACEFUL)) == m.TaskResponse()


@pytest.mark.parametrize(("seconds", "least"), [(30, 30), (90, 90), (0, 60), (-1, 60)])
@played
async def test_a_guest_that_does_not_listen_is_cut_off_after_its_time(target: Target, /, seconds: int, least: int) -> None:
    vm_id = await target.running()
    (await target.host.running()).deaf = True
    began = asyncio.get_running_loop().time()
    assert await target.power(vm_id, m.PowerOp.SHUTDOWN_GRACEFUL, seconds) == ""
    took = asyncio.get_running_loop().time() - began
    assert least <= took < least + 10 and await state(target, vm_id) == "Off"


@played
async def test_off_does_not_wait_for_the_guest(target: Target, /) -> None:
    vm_id = await target.running()
    (await target.host.running()).deaf = True
    slow = await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=300))
    await asyncio.sleep(5)
    began = asyncio.get_running_loop().time()
    assert await target.power(vm_id, m.PowerOp.OFF) == "" and await target.ends(slow.task) == ""
    assert asyncio.get_running_loop().time() - began < 10
    # What asks for more time than is left changes nothing.
    assert await target.power(vm_id, m.PowerOp.SHUTDOWN_GRACEFUL, 300) == ""


@played
async def test_a_restart_is_another_run(target: Target, /) -> None:
    vm_id = await target.running()
    run = await run_of(target)
    answer = await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.REBOOT))
    # Asked twice it restarts once.
    again = await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.REBOOT))
    assert again == answer
    assert await target.ends(answer.task) == ""
    after = await run_of(target)
    assert after != run and await state(target, vm_id) == "On"
    await asyncio.sleep(60)
    assert await run_of(target) == after


@played
async def test_a_machine_that_is_off_is_not_restarted(target: Target, /) -> None:
    vm_id = await target.made()
    with pytest.raises(ProviderError, match="it is off; power it on") as error:
        await target.driver.power(m.PowerRequest(id=vm_id, op=m.PowerOp.REBOOT))
    assert error.value.kind is ErrorKind.CONFLICT


@played
async def test_a_paused_machine_is_suspended_and_goes_on(target: Target, /) -> None:
    vm_id = await target.running()
    await target.host.verb("web", "pause", kind="VirtualMachineInstance")
    await asyncio.sleep(5)
    assert await state(target, vm_id) == "Suspended"
    assert await target.power(vm_id, m.PowerOp.ON) == ""
    await asyncio.sleep(5)
    assert await state(target, vm_id) == "On"


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure", "Always", "Halted"])
@played
async def test_foreign_machines_keep_their_run_strategy_where_they_can(target: Target, /, strategy: str) -> None:
    await target.host.make(machine(strategy=strategy))
    await asyncio.sleep(10)
    vm_id = f"web/{(await target.host.vm())['metadata']['uid']}"
    for op, now in (
        (m.PowerOp.ON, "On"),
        (m.PowerOp.OFF, "Off"),
        (m.PowerOp.ON, "On"),
        (m.PowerOp.REBOOT, "On"),
        (m.PowerOp.OFF, "Off"),
    ):
        assert await target.power(vm_id, op) == "" and await state(target, vm_id) == now
        await asyncio.sleep(20)
        assert await state(target, vm_id) == now
    if strategy in ("Manual", "RerunOnFailure"):
        assert (await target.host.vm())["spec"]["runStrategy"] == strategy


@played
async def test_a_machine_that_cannot_start_says_why(target: Target, /) -> None:
    body = machine(strategy="Halted", volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "gone"}}])
    await target.host.make(body)
    vm_id = f"web/{(await target.host.vm())['metadata']['uid']}"
    error = await target.power(vm_id, m.PowerOp.ON)
    assert "machine web does not start: ErrorPvcNotFound" in error
    assert (await target.details(vm_id))["problem"].startswith("ErrorPvcNotFound")


@played
async def test_no_operation_and_no_machine_are_refused(target: Target, /) -> None:
    vm_id = await target.made()
    for request, kind in (
        (m.PowerRequest(id=vm_id), ErrorKind.INVALID_SPEC),
        (m.PowerRequest(id="web/gone", op=m.PowerOp.ON), ErrorKind.NOT_FOUND),
        (m.PowerRequest(id="", op=m.PowerOp.ON), ErrorKind.NOT_FOUND),
    ):
        with pytest.raises(ProviderError) as error:
            await target.driver.power(request)
        assert error.value.kind is kind
    assert (await target.names(EVERYTHING[1])) == {"virtualmachineinstances": []}
