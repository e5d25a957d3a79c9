"""VMClones: one machine, whatever fails on the way, and nothing that is left behind (docs/spec/virtrigaud.md 2.6)."""

import asyncio
from itertools import product
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.cloning import failure, names, settled, sourced, until_gone, vmclone
from tests.unit.kubevirt.controllers.rigaudharness import NAMES, Rigaud, rigaud

# --- waiting, failing, trying again -----------------------------------------------------------------------------------------


@timeless
async def test_a_clone_waits_for_its_source() -> None:
    async with rigaud() as life:
        await life.make(vmclone())
        await asyncio.sleep(60)
        assert await life.said("Ready", "copy", "VMClone") == ("False", "SourceNotFound")
        assert (await life.status("copy", "VMClone"))["phase"] == "Pending" and life.driver.names() == []
        await sourced(life)
        assert (await settled(life))["phase"] == "Ready"


@pytest.mark.spec("virtrigaud", 82)
@timeless
async def test_a_failed_clone_is_tried_again_as_its_policy_says() -> None:
    faults = (RpcFault(rpc="Clone", effect="task-error", message="no space left", count=3),)
    policy = {"maxRetries": 2, "retryDelay": "1m", "backoffMultiplier": 3}
    async with rigaud(faults=faults) as life:
        await sourced(life)
        began = life.clock.seconds()
        times = []

        async def asked(rpc: str, request: Any) -> None:
            if rpc == "Clone":
                times.append(life.clock.seconds() - began)

        life.driver.script = asked
        await life.make(vmclone(options={"retryPolicy": policy}))
        reason, message = await failure(life)
        assert reason == "ProviderError" and "no space left" in message
        status = await life.status("copy", "VMClone")
        assert status["retryCount"] == 2 and status["lastRetryTime"] and status["completionTime"]
        assert len(times) == 3 and 60 <= times[1] - times[0] < 90 and 180 <= times[2] - times[1] < 210
        assert await names(life) == ["web"] and not await life.get("twin")


@pytest.mark.spec("virtrigaud", 82)
@timeless
async def test_without_a_policy_a_failed_clone_stays_failed_until_it_is_changed() -> None:
    async with rigaud(faults=(RpcFault(rpc="Clone", effect="task-error"),)) as life:
        await sourced(life)
        await life.make(vmclone())
        assert (await failure(life))[0] == "ProviderError"
        await asyncio.sleep(3600)
        assert life.driver.count("Clone") == 1
        await life.merge("copy", {"spec": {"options": {"powerOn": True}}}, "VMClone")
        assert (await settled(life))["phase"] == "Ready"
        assert await names(life) == ["twin", "web"]


@pytest.mark.spec("virtrigaud", 82)
@timeless
async def test_a_clone_that_takes_too_long_is_removed() -> None:
    async with rigaud() as life:
        await sourced(life)
        inventory = life.driver.driver._inventory
        inventory.settings = msgspec.structs.replace(inventory.settings, task_seconds=SecondsRange(200.0, 200.0))
        await life.make(vmclone(options={"timeout": "1m", "retryPolicy": {"maxRetries": 3}}))
        assert (await failure(life))[0] == "Timeout"
        await asyncio.sleep(300)
        assert await names(life) == ["web"] and life.driver.count("Clone") == 1


@timeless
async def test_a_change_of_the_spec_begins_anew() -> None:
    async with rigaud(task_seconds=SecondsRange(21.0, 21.0)) as life:
        await sourced(life)
        await life.make(vmclone())
        await asyncio.sleep(10)
        assert (await life.status("copy", "VMClone"))["phase"] == "Cloning"
        await life.merge("copy", {"spec": {"target": {"name": "other"}}}, "VMClone")
        assert (await settled(life))["phase"] == "Ready"
        assert await names(life) == ["other", "web"] and not await life.get("twin")


@timeless
async def test_a_target_that_is_deleted_too_early_is_not_made_again() -> None:
    async with rigaud() as life:
        await sourced(life)

        async def never(rpc: str, request: Any) -> m.WireMessage | None:
            return m.DescribeResponse(exists=True, power_state="Unknown") if rpc == "Describe" else None

        await life.make(vmclone(options={"powerOn": True}))
        await life.until(lambda: life.get("twin"))
        life.driver.script = never
        await life.delete("twin")
        life.driver.script = None
        await settled(life)
        assert life.driver.count("Clone") == 1


# --- deletion ---------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 83)
@timeless
async def test_the_target_outlives_its_clone() -> None:
    async with rigaud() as life:
        await sourced(life)
        await life.make(vmclone(options={"powerOn": True}))
        await settled(life)
        await life.delete("copy", "VMClone")
        await until_gone(life)
        await life.delete()
        await life.gone()
        await asyncio.sleep(600)
        assert (await life.ready("twin"))["powerState"] == "On" and await names(life) == ["twin"]


@timeless
async def test_a_target_that_is_deleted_before_its_controller_has_seen_it_takes_its_machine_along() -> None:
    async with rigaud() as life:
        await sourced(life)
        life.wire.late = {"virtualmachines": 30.0}
        await life.restart()
        await asyncio.sleep(100)
        await life.make(vmclone())

        async def bound() -> bool:
            return bool((await life.status("twin")).get("id"))

        await life.until(bound)
        await life.delete("twin")
        await life.gone("twin")
        assert await names(life) == ["web"]


@pytest.mark.parametrize("seconds", [0.2, 3.0, 9.0, 16.0, 25.0])
@timeless
async def test_what_is_unfinished_goes_with_its_clone(seconds: float) -> None:
    async with rigaud() as life:
        await sourced(life)
        inventory = life.driver.driver._inventory
        inventory.settings = msgspec.structs.replace(inventory.settings, task_seconds=SecondsRange(11.0, 11.0))
        await life.make(vmclone(options={"powerOn": True}))
        await asyncio.sleep(seconds)
        finished = bool((await life.status("copy", "VMClone")).get("targetRef"))
        await life.delete("copy", "VMClone")
        await until_gone(life)
        await asyncio.sleep(60)
        assert await names(life) == (["twin", "web"] if finished else ["web"])
        assert bool(await life.get("twin")) is finished


@timeless
async def test_a_clone_whose_answer_was_lost_is_removed_after_its_source_is_gone() -> None:
    async with rigaud(faults=(RpcFault(rpc="Clone", effect="lost-answer", count=1),)) as life:
        await sourced(life)
        lost = asyncio.Event()

        async def asked(rpc: str, request: Any) -> None:
            if rpc == "Clone":
                lost.set()

        life.driver.script = asked
        await life.make(vmclone())
        await lost.wait()
        await asyncio.sleep(0.5)
        assert sorted(await names(life)) == ["twin", "web"]
        await life.delete()
        await life.gone()
        await life.delete("copy", "VMClone")
        await until_gone(life)
        assert await names(life) == []


@timeless
async def test_a_clone_whose_answer_was_lost_is_found_and_removed() -> None:
    async with rigaud(faults=(RpcFault(rpc="Clone", effect="lost-answer", count=1),)) as life:
        await sourced(life)
        await life.make(vmclone())
        await asyncio.sleep(1)
        assert "targetVMID" not in await life.status("copy", "VMClone") and await names(life) == ["twin", "web"]
        await life.delete("copy", "VMClone")
        await until_gone(life)
        assert await names(life) == ["web"]


@pytest.mark.spec("virtrigaud", 169)
@pytest.mark.parametrize("kind", [ErrorKind.UNAVAILABLE, ErrorKind.UNAUTHORIZED, ErrorKind.RATE_LIMIT])
@timeless
async def test_the_deletion_of_a_clone_that_was_certainly_not_made_makes_none(kind: ErrorKind) -> None:
    """The provider is away, or refuses the caller, until the VMClone is deleted."""
    async with rigaud() as life:
        await sourced(life)
        problem = ProviderError(kind, "not now")
        problem.sent = kind is not ErrorKind.UNAVAILABLE

        async def refuses(rpc: str, request: Any) -> None:
            if rpc == "Clone":
                raise problem

        life.driver.script = refuses
        await life.make(vmclone())
        await asyncio.sleep(1)
        asked = life.driver.count("Clone")
        assert asked and await names(life) == ["web"]
        life.driver.script = None
        await life.delete("copy", "VMClone")
        await until_gone(life)
        assert life.driver.count("Clone") == asked and await names(life) == ["web"]


@timeless
async def test_an_unreachable_provider_holds_an_unfinished_clone() -> None:
    async with rigaud(task_seconds=SecondsRange(30.0, 30.0)) as life:
        await sourced(life)
        await life.make(vmclone())
        await asyncio.sleep(8)
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await life.delete("copy", "VMClone")
        await asyncio.sleep(200)
        assert await life.said("Ready", "copy", "VMClone") == ("False", "ProviderError")
        await life.merge("copy", {"metadata": {"annotations": {"virtrigaud.io/force-delete": "true"}}}, "VMClone")
        await until_gone(life)


# --- exactly once -----------------------------------------------------------------------------------------------------------

CLONING = ("Clone", "TaskStatus", "Describe", "Reconfigure", "Power")


async def cloned(life: Rigaud) -> None:
    """A clone with everything, made in a world where something fails once."""
    target = {"disks": [{"name": "data", "sizeGiB": 3}]}
    await life.make(vmclone(target=target, options={"powerOn": True, "retryPolicy": {"maxRetries": 5, "retryDelay": "10s"}}))
    for number in range(3):
        if (await settled(life, seconds=2500))["phase"] == "Ready":
            break
        await life.merge("copy", {"spec": {"metadata": {"project": f"nudge-{number}"}}}, "VMClone")
    status = await settled(life)
    assert status["phase"] == "Ready", status
    twin = await life.ready("twin")
    there = {each.name: each for each in await life.machines()}
    assert sorted(there) == ["twin", "web"] and len(await life.machines()) == 2
    assert twin["id"] == status["targetVMID"] == there["twin"].id
    assert (there["twin"].power_state, [each.size_gib for each in there["twin"].disks]) == ("On", [10, 3])


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize("kind", list(ErrorKind))
@pytest.mark.parametrize("rpc", CLONING)
@timeless
async def test_an_error_of_each_kind(rpc: str, kind: ErrorKind) -> None:
    async with rigaud() as life:
        await sourced(life)
        hit = False

        async def fails(name: str, request: Any) -> None:
            nonlocal hit
            if name == rpc and not hit and (rpc != "Describe" or getattr(request, "id", "") != "vm-1"):
                hit = True
                raise ProviderError(kind, "a fault")

        life.driver.script = fails
        await cloned(life)
        assert hit


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize(
    ("rpc", "effect"),
    [
        *product(("Clone", "Reconfigure", "TaskStatus"), ("lost-answer", "restart")),
        *product(("Clone", "Reconfigure"), ("task-error",)),
        ("Clone", "task-hang"),
    ],
)
@timeless
async def test_another_fault(rpc: str, effect: Any) -> None:
    faults = (RpcFault(rpc=rpc, effect=effect, after=2 if rpc == "TaskStatus" else 0),)
    async with rigaud(faults=faults) as life:
        await sourced(life)
        await cloned(life)


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize("number", range(14))
@timeless
async def test_the_manager_ends_before_each_write(number: int) -> None:
    async with rigaud() as life:
        await sourced(life)
        life.wire.ends_at = life.wire.writes + number
        cloning = asyncio.create_task(cloned(life))
        await asyncio.sleep(60)
        life.wire.ends_at = -1
        await life.restart()
        await cloning
        assert life.driver.count("Clone") <= 2


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize("number", range(12))
@timeless
async def test_the_manager_ends_at_each_call(number: int) -> None:
    """It ends when the provider has done what was asked and before the answer is written."""
    async with rigaud() as life:
        await sourced(life)
        ended, counted = asyncio.Event(), 0

        async def ends(rpc: str, request: Any) -> m.WireMessage | None:
            nonlocal counted
            if rpc in ("Validate", "GetCapabilities"):
                return None
            counted += 1
            if counted - 1 == number and not ended.is_set():
                await getattr(life.driver.driver, {method: attribute for attribute, method in NAMES.items()}[rpc])(request)
                ended.set()
                await asyncio.Event().wait()
            return None

        life.driver.script = ends
        cloning = asyncio.create_task(cloned(life))
        await ended.wait()
        await life.restart()
        await cloning


@pytest.mark.spec("virtrigaud", 83)
@pytest.mark.parametrize(
    "kind",
    [ErrorKind.INVALID_SPEC, ErrorKind.NOT_SUPPORTED, ErrorKind.CONFLICT, ErrorKind.QUOTA_EXCEEDED, ErrorKind.NOT_FOUND],
)
@timeless
async def test_one_refusal_does_not_prove_that_nothing_was_made(kind: ErrorKind) -> None:
    """The answer to a clone is lost, and a provider in trouble refuses the same request once while what it made is looked for."""
    async with rigaud(faults=(RpcFault(rpc="Clone", effect="lost-answer", count=1),)) as life:
        await sourced(life)
        await life.make(vmclone())
        await asyncio.sleep(1)
        assert await names(life) == ["twin", "web"]
        refused = False

        async def refuses(rpc: str, request: Any) -> None:
            nonlocal refused
            if rpc == "Clone" and not refused:
                refused = True
                raise ProviderError(kind, "a fault")

        life.driver.script = refuses
        await life.delete("copy", "VMClone")
        await until_gone(life)
        assert refused and await names(life) == ["web"]


@timeless
async def test_a_provider_that_keeps_refusing_has_nothing() -> None:
    async with rigaud(faults=(RpcFault(rpc="Clone", effect="error", count=1),)) as life:
        await sourced(life)
        await life.make(vmclone())
        await asyncio.sleep(1)

        async def refuses(rpc: str, request: Any) -> None:
            if rpc == "Clone":
                raise ProviderError(ErrorKind.INVALID_SPEC, "a fault")

        life.driver.script = refuses
        asked = life.driver.count("Clone")
        await life.delete("copy", "VMClone")
        await until_gone(life)
        assert life.driver.count("Clone") == asked + 3
