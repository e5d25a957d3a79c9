"""Fake drivers that break a promise about the provider, machines or power."""

import asyncio
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.machines import OFF
from tests.unit.contract.conformance.broken import breaks, done, inside, replace

# --- the provider ---------------------------------------------------------------------------------------------------------


@breaks("validate")
def validate_is_not_ok(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ValidateResponse:
        return m.ValidateResponse(ok=False, message="down")

    replace(driver, "validate", answer)


@breaks("capabilities")
def capabilities_contradict_themselves(driver: FakeDriver) -> None:
    inside(driver).capabilities = msgspec.structs.replace(inside(driver).capabilities, supported_export_formats=())


@breaks("list")
def list_has_a_machine_twice(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ListVMsResponse:
        found = (await original(request)).vms
        return m.ListVMsResponse(vms=(*found, *found))

    replace(driver, "list_vms", answer)


@breaks("list")
def list_is_empty(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ListVMsResponse:
        return m.ListVMsResponse()

    replace(driver, "list_vms", answer)


@breaks("task-empty")
def an_empty_task_runs_forever(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskStatusResponse:
        known = request.task is not None and request.task.id
        return await original(request) if known else m.TaskStatusResponse()

    replace(driver, "task_status", answer)


@breaks("task-unknown")
def an_unknown_task_runs_forever(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskStatusResponse:
        status = await original(request)
        return m.TaskStatusResponse() if "unknown" in status.error else status

    replace(driver, "task_status", answer)


@breaks("answers-while-busy")
def a_create_holds_up_everything(driver: FakeDriver) -> None:
    turn = asyncio.Lock()

    async def slow(original: Any, request: Any) -> Any:
        async with turn:
            await asyncio.sleep(10)
            return await original(request)

    async def waiting(original: Any, request: Any) -> Any:
        async with turn:
            return await original(request)

    replace(driver, "create", slow)
    replace(driver, "list_vms", waiting)


# --- machines -------------------------------------------------------------------------------------------------------------


@breaks("create-same-owner")
def create_makes_another_machine(driver: FakeDriver) -> None:
    driver._lifecycle._existing = lambda request: None  # type: ignore[method-assign]


@breaks("create-same-owner-at-once")
def create_looks_and_then_waits(driver: FakeDriver) -> None:
    existing = driver._lifecycle._existing

    async def late(original: Any, request: Any) -> m.CreateResponse:
        found = existing(request)
        await asyncio.sleep(0.01)
        driver._lifecycle._existing = lambda request: found  # type: ignore[method-assign]
        answered: m.CreateResponse = await original(request)
        return answered

    replace(driver, "create", late)


@breaks("create-conflict")
def create_takes_over_another_owners_machine(driver: FakeDriver) -> None:
    driver._lifecycle._existing = lambda request: inside(driver).named(request.name)  # type: ignore[method-assign]


@breaks("create")
def create_does_not_end(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        return m.CreateResponse(id=(await original(request)).id, task=m.TaskRef(id="stuck"))

    async def status(original: Any, request: Any) -> m.TaskStatusResponse:
        stuck = request.task is not None and request.task.id == "stuck"
        return m.TaskStatusResponse() if stuck else await original(request)

    replace(driver, "create", answer)
    replace(driver, "task_status", status)


@breaks("create")
def create_has_no_id(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        return m.CreateResponse(task=(await original(request)).task)

    replace(driver, "create", answer)


@breaks("create")
def create_ignores_the_class(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        machine = inside(driver).machines[(await original(request)).id]
        machine.hardware.memory_mib = 4096
        return m.CreateResponse(id=machine.id)

    replace(driver, "create", answer)


@breaks("create-disks")
def create_ignores_the_disks(driver: FakeDriver) -> None:
    driver._lifecycle._extra = lambda machine, spec: []  # type: ignore[method-assign]


@breaks("describe-raw")
def the_raw_object_has_numbers(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, provider_raw_json='{"cpu":1}')

    replace(driver, "describe", answer)


@breaks("describe-raw")
def the_raw_object_has_the_user_data(driver: FakeDriver) -> None:
    given: dict[str, str] = {}

    async def create(original: Any, request: Any) -> m.CreateResponse:
        response: m.CreateResponse = await original(request)
        given[response.id] = request.user_data.decode()
        return response

    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        raw = msgspec.json.encode({"userData": given.get(request.id, "")}).decode()
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, provider_raw_json=raw)

    replace(driver, "create", create)
    replace(driver, "describe", answer)


@breaks("describe-missing")
def describe_of_a_missing_machine_is_an_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        found: m.DescribeResponse = await original(request)
        if not found.exists:
            raise ProviderError(ErrorKind.NOT_FOUND, "no such machine")
        return found

    replace(driver, "describe", answer)


@breaks("create")
def describe_denies_every_machine(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        return m.DescribeResponse()

    replace(driver, "describe", answer)


@breaks("create")
def describe_does_not_answer(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        await asyncio.sleep(1e9)
        return m.DescribeResponse()

    replace(driver, "describe", answer)


@breaks("create")
def describe_has_raw_words(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, power_state="poweredOff")

    replace(driver, "describe", answer)


@breaks("delete")
def delete_leaves_the_machine(driver: FakeDriver) -> None:
    replace(driver, "delete", done)


@breaks("delete-running")
def delete_refuses_a_running_machine(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        if machine is not None and machine.power != OFF:
            raise ProviderError(ErrorKind.INTERNAL, "the machine is running")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "delete", answer)


@breaks("delete-missing")
def delete_of_a_missing_machine_is_an_internal_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        if request.id not in inside(driver).machines:
            raise ProviderError(ErrorKind.INTERNAL, "no such domain")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "delete", answer)


@breaks("unknown-machine")
def power_of_a_missing_machine_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        return await original(request) if request.id in inside(driver).machines else m.TaskResponse()

    replace(driver, "power", answer)


# --- power ----------------------------------------------------------------------------------------------------------------


def ignores(driver: FakeDriver, *operations: m.PowerOp) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        return m.TaskResponse() if request.op in operations else await original(request)

    replace(driver, "power", answer)


@breaks("power-on")
def power_on_is_ignored(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.ON)


@breaks("power-off")
def power_off_is_ignored(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.OFF)


@breaks("power-graceful")
def a_graceful_shutdown_returns_at_once(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.SHUTDOWN_GRACEFUL)


@breaks("power-unspecified")
def an_unspecified_operation_succeeds(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.UNSPECIFIED)


@breaks("power-graceful-forced")
def a_hanging_guest_is_never_forced_off(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        hangs = machine is not None and machine.name.endswith("-hang") and request.op is m.PowerOp.SHUTDOWN_GRACEFUL
        return m.TaskResponse() if hangs else await original(request)

    replace(driver, "power", answer)


@breaks("power-on")
def a_second_on_is_an_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        if machine is not None and machine.power == "On" and request.op is m.PowerOp.ON:
            raise ProviderError(ErrorKind.INTERNAL, "already running")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "power", answer)


@breaks("power-reboot")
def a_reboot_leaves_the_machine_off(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        off = msgspec.structs.replace(request, op=m.PowerOp.OFF) if request.op is m.PowerOp.REBOOT else request
        response: m.TaskResponse = await original(off)
        return response

    replace(driver, "power", answer)
