"""The end of machines without an id: no create is repeated for them, and what a create without an answer made goes, too."""

import asyncio
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import RULES, ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.test_deletion import annotate
from tests.unit.drivers.fake import driving
from tests.unit.kubevirt.controllers.rigaudharness import NAMES, Rigaud, machine, rigaud


async def refused(life: Rigaud) -> None:
    """Make a machine, and wait until its create was answered."""
    await life.make(machine())
    await life.until(lambda: failed(life))


async def failed(life: Rigaud) -> bool:
    return (await life.said("Provisioning"))[0] == "False"


def unreachable(life: Rigaud) -> None:
    life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")


@pytest.mark.spec("virtrigaud", 53, 124)
@pytest.mark.parametrize("kind", list(ErrorKind))
@timeless
async def test_a_machine_whose_create_fails_goes_without_another_create(kind: ErrorKind) -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=kind, message='the network "nope" does not exist', count=0),)) as life:
        await refused(life)
        asked = life.driver.count("Create")
        await life.delete()
        await life.gone(seconds=120)
        assert life.driver.count("Create") == asked and life.driver.count("Delete") == 0


@pytest.mark.spec("virtrigaud", 124)
@timeless
async def test_a_corrected_spec_does_not_make_the_machine_that_is_deleted() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=ErrorKind.NOT_FOUND, count=1),)) as life:
        await refused(life)
        await life.delete()
        await life.gone(seconds=60)
        assert life.driver.count("Create") == 1 and await life.machines() == []


@pytest.mark.spec("virtrigaud", 125)
@pytest.mark.parametrize("kind", [ErrorKind.NOT_FOUND, ErrorKind.UNAUTHORIZED, ErrorKind.QUOTA_EXCEEDED, ErrorKind.CONFLICT])
@timeless
async def test_a_refused_create_needs_no_provider_to_go(kind: ErrorKind) -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=kind, count=0),)) as life:
        await refused(life)
        unreachable(life)
        await life.delete()
        await life.gone(seconds=60)
        # The refusal, under the code of its kind, and what may be left.
        refusal = {ErrorKind.CONFLICT: "ProviderConflict", **{each: RULES[each].reason for each in RULES if RULES[each].reason}}
        told = [reason for reason in await life.events() if reason.startswith("Provider")]
        left = [] if kind is ErrorKind.CONFLICT else ["ProviderError"]
        assert told == [refusal.get(kind, "ProviderError"), *left]


@pytest.mark.spec("virtrigaud", 125)
@timeless
async def test_a_create_that_never_reached_the_provider_needs_none_to_go() -> None:
    async with rigaud() as life:
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "cannot connect", sent=False)
        await refused(life)
        await life.delete()
        await life.gone(seconds=60)


@pytest.mark.spec("virtrigaud", 125)
@timeless
async def test_a_create_without_an_answer_waits_for_the_provider_and_says_what_to_do() -> None:
    fault = RpcFault(rpc="Create", effect="lost-answer")
    async with rigaud(faults=(fault,)) as life:
        await refused(life)
        unreachable(life)
        await life.delete()
        await asyncio.sleep(300)
        found = await life.condition("Deleting")
        assert (found["status"], found["reason"]) == ("True", "ProviderError")
        assert "connection refused" in found["message"] and "virtrigaud.io/force-delete: true" in found["message"]
        life.driver.down = None
        await life.gone(seconds=120)
        assert await life.machines() == [] and life.driver.count("Create") == 1


@timeless
async def test_a_create_without_an_answer_can_be_forced() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", effect="lost-answer"),)) as life:
        await refused(life)
        unreachable(life)
        await life.delete()
        await asyncio.sleep(5)
        await annotate(life, "virtrigaud.io/force-delete")
        await life.gone(seconds=60)
        assert "ForceDeleted" in await life.events() and len(await life.machines()) == 1


@pytest.mark.spec("virtrigaud", 125)
@pytest.mark.parametrize("seconds", [5.0, 25.0])
@timeless
async def test_a_create_that_ends_after_the_deletion_began_is_found(seconds: float) -> None:
    async with rigaud() as life:
        late: list[asyncio.Task[Any]] = []

        async def slowly(rpc: str, request: Any) -> None:
            async def work() -> None:
                await asyncio.sleep(seconds)
                await life.driver.driver.create(request)

            if rpc == "Create":
                late.append(asyncio.create_task(work()))
                raise ProviderError(ErrorKind.TIMEOUT, "no answer within 1 second")

        life.driver.script = slowly
        await refused(life)
        await life.delete()
        await life.gone(seconds=200)
        await asyncio.gather(*late)
        assert await life.machines() == []


@timeless
async def test_the_task_of_a_create_without_an_id_is_awaited() -> None:
    async with rigaud() as life:
        ended = asyncio.Event()

        async def tasks(rpc: str, request: Any) -> m.WireMessage | None:
            if rpc == "Create":
                return m.CreateResponse(task=m.TaskRef(id="making"))
            if rpc == "TaskStatus" and request.task.id == "making":
                return m.TaskStatusResponse(done=ended.is_set())
            return None

        life.driver.script = tasks
        await life.make(machine())
        await life.until(lambda: _has_task(life))
        (request,) = life.driver.of("Create")
        await life.delete()
        await asyncio.sleep(200)
        assert await life.get()
        await life.driver.driver.create(request)
        ended.set()
        await life.gone(seconds=120)
        assert await life.machines() == []


async def _has_task(life: Rigaud) -> bool:
    return "lastTaskRef" in await life.status()


# --- providers that name no owners ------------------------------------------------------------------------------------------


def _anonymous(life: Rigaud) -> None:
    """Have the provider list machines as upstream's do."""
    before = life.driver.script

    async def listed(rpc: str, request: Any) -> m.WireMessage | None:
        if rpc == "ListVMs":
            return m.ListVMsResponse(vms=tuple(msgspec.structs.replace(each, provider_raw={}) for each in await life.machines()))
        return await before(rpc, request) if before is not None else None

    life.driver.script = listed


@pytest.mark.spec("virtrigaud", 125)
@timeless
async def test_a_provider_without_owners_knows_a_machine_by_its_name() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", effect="lost-answer"),)) as life:
        _anonymous(life)
        await refused(life)
        assert len(await life.machines()) == 1
        await life.delete()
        await life.gone(seconds=120)
        assert await life.machines() == []


@pytest.mark.spec("virtrigaud", 124)
@timeless
async def test_a_refused_create_never_takes_a_machine_by_its_name() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=ErrorKind.NOT_FOUND, count=0, after=1),)) as life:
        other = m.ObjectIdentity(uid="another", namespace="elsewhere", name="web")
        await life.driver.driver.create(driving.create(owner=other))
        _anonymous(life)
        await refused(life)
        await life.delete()
        await life.gone(seconds=120)
        assert len(await life.machines()) == 1


@pytest.mark.spec("virtrigaud", 125)
@timeless
async def test_another_owners_machine_of_the_name_stays() -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", kind=ErrorKind.TIMEOUT, count=0, after=1),)) as life:
        other = m.ObjectIdentity(uid="another", namespace="elsewhere", name="web")
        await life.driver.driver.create(driving.create(owner=other))
        await refused(life)
        await life.delete()
        await life.gone(seconds=120)
        assert len(await life.machines()) == 1


# --- ends of the manager ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 124, 125)
@pytest.mark.parametrize("effect", ["error", "lost-answer"])
@pytest.mark.parametrize("number", range(9))
@timeless
async def test_the_manager_ends_before_each_write(effect: Any, number: int) -> None:
    async with rigaud(faults=(RpcFault(rpc="Create", effect=effect, kind=ErrorKind.NOT_FOUND, count=1),)) as life:
        await refused(life)
        life.wire.ends_at = life.wire.writes + number
        await life.delete()
        await asyncio.sleep(40)
        life.wire.ends_at = -1
        await life.restart()
        await life.gone(seconds=200)
        assert await life.machines() == [] and life.driver.count("Create") == 1


@pytest.mark.spec("virtrigaud", 124, 125)
@pytest.mark.parametrize("effect", ["error", "lost-answer"])
@pytest.mark.parametrize("number", range(7))
@timeless
async def test_the_manager_ends_at_each_call(effect: Any, number: int) -> None:
    """It ends when the provider has done what was asked and before the answer is written."""
    async with rigaud(faults=(RpcFault(rpc="Create", effect=effect, kind=ErrorKind.NOT_FOUND, count=1),)) as life:
        await refused(life)
        counted, restarts = 0, []

        async def ends(rpc: str, request: Any) -> m.WireMessage | None:
            nonlocal counted
            if rpc in ("Validate", "GetCapabilities", "GetFeatures"):
                return None
            counted += 1
            if counted - 1 == number:
                name = {method: attribute for attribute, method in NAMES.items()}[rpc]
                await getattr(life.driver.driver, name)(request)
                restarts.append(asyncio.create_task(life.restart()))
                await asyncio.Event().wait()
            return None

        life.driver.script = ends
        await life.delete()
        await life.gone(seconds=400)
        await asyncio.gather(*restarts)
        assert await life.machines() == [] and life.driver.count("Create") == 1
