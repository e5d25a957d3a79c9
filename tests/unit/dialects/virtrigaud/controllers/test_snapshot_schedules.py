"""Snapshots that are made by a schedule and go by themselves (docs/spec/virtrigaud.md 2.5)."""

import asyncio
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.snapshots import KIND, end, kept, names, phase, snapshot, state
from tests.unit.kubevirt.controllers.rigaudharness import API, Rigaud, machine, rigaud

HOUR = 3600.0
SCHEDULED_AT = "virtrigaud.io/scheduled-at"


def schedule(cron: str, **members: Any) -> Data:
    return {"enabled": True, "cronSpec": cron, **members}


async def off(life: Rigaud) -> None:
    # Hours pass in these tests: health is no matter of theirs.
    await life.merge("lab", {"spec": {"healthCheck": {"interval": "1h"}}}, "Provider")
    await life.make(machine(powerState="Off"))
    await life.ready()


async def children(life: Rigaud) -> list[Data]:
    """The snapshots that the schedule has made, the oldest first."""
    found = await life.api.get(f"/apis/{API}/namespaces/default/vmsnapshots")
    made = [each for each in found.data["items"] if each["metadata"].get("ownerReferences")]
    return sorted(made, key=lambda each: str(each["metadata"]["annotations"][SCHEDULED_AT]))


async def times(life: Rigaud) -> list[str]:
    return [each["metadata"]["annotations"][SCHEDULED_AT] for each in await children(life)]


@pytest.mark.spec("virtrigaud", 77)
@timeless
async def test_a_schedule_makes_snapshots_at_its_times() -> None:
    # The clock begins on 2027-01-15 at 08:00 UTC.
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("daily", schedule=schedule("30 11,12 * * *", timezone="Europe/Oslo", successfulJobsHistoryLimit=10)))
        await asyncio.sleep(10)
        assert await life.said("Scheduled", "daily", KIND) == ("True", "Scheduled")
        assert "the next VMSnapshot is due at 2027-01-15T10:30:00Z" in (await state(life, "daily"))["message"]
        assert await life.said("Ready", "daily", KIND) == ("True", "Scheduled") and (await state(life, "daily"))["phase"] == "Pending"
        assert await children(life) == []
        await asyncio.sleep(4 * HOUR)
        assert await times(life) == ["2027-01-15T10:30:00Z", "2027-01-15T11:30:00Z"]
        at = datetime.fromisoformat((await times(life))[0].replace("Z", "+00:00")).astimezone(ZoneInfo("Europe/Oslo"))
        assert (at.hour, at.minute) == (11, 30)
        for child in await children(life):
            assert child["status"]["phase"] == "Ready" and "schedule" not in child["spec"]
            (owner,) = child["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("VMSnapshot", "daily", True)
        assert len(kept(life)) == len((await life.status())["snapshots"]) == 2
        assert "SnapshotScheduled" in await life.events("daily")


@pytest.mark.spec("virtrigaud", 77)
@timeless
async def test_suspend_stops_and_makes_up_for_nothing() -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("hourly", schedule=schedule("@hourly", suspend=True)))
        await asyncio.sleep(2 * HOUR)
        assert await children(life) == [] and await life.said("Scheduled", "hourly", KIND) == ("False", "Suspended")
        await life.merge("hourly", {"spec": {"schedule": {"suspend": False}}}, KIND)
        await asyncio.sleep(60)
        assert await children(life) == []
        await asyncio.sleep(HOUR)
        assert len(await children(life)) == 1
        await life.merge("hourly", {"spec": {"schedule": {"suspend": True}}}, KIND)
        await asyncio.sleep(2 * HOUR)
        assert len(await children(life)) == 1


@pytest.mark.spec("virtrigaud", 77)
@timeless
async def test_history_limits_keep_the_newest() -> None:
    async with rigaud() as life:
        await off(life)
        limits = {"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1}
        await life.make(snapshot("often", schedule=schedule("*/10 * * * *", **limits)))
        await asyncio.sleep(HOUR + 60)
        assert len(kept(life)) == 2
        good = await times(life)
        assert len(good) == 2

        async def refuses(rpc: str, request: Any) -> m.TaskStatusResponse | None:
            return m.TaskStatusResponse(done=True, error="no space") if rpc == "TaskStatus" else None

        life.driver.script = refuses
        config = {"encryption": {"enabled": True}}
        await life.merge("often", {"spec": {"snapshotConfig": config}}, KIND)
        life.driver.script = None
        await asyncio.sleep(HOUR)
        found = await children(life)
        assert [each["status"]["phase"] for each in found] == ["Ready", "Ready", "Failed"]
        assert [each["metadata"]["annotations"][SCHEDULED_AT] for each in found][:2] == good


@pytest.mark.spec("virtrigaud", 77)
@pytest.mark.parametrize(("policy", "count"), [("Forbid", 1), ("Replace", 1), ("Allow", 4)])
@timeless
async def test_what_becomes_of_one_that_is_still_taken(policy: str, count: int) -> None:
    async with rigaud() as life:
        await off(life)

        async def hangs(rpc: str, request: Any) -> m.TaskStatusResponse | None:
            return m.TaskStatusResponse() if rpc == "TaskStatus" and request.task.id in creating else None

        creating: set[str] = set()
        original = life.driver.driver.snapshot_create

        async def create(request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
            answer = await original(request)
            creating.add(answer.task.id if answer.task is not None else "")
            return answer

        life.driver.driver.snapshot_create = create  # type: ignore[method-assign]
        life.driver.script = hangs
        await life.make(snapshot("often", schedule=schedule("0 * * * *", concurrencyPolicy=policy)))
        await asyncio.sleep(4 * HOUR + 60)
        found = await times(life)
        assert len(found) == count, found
        assert found[-1] == ("2027-01-15T09:00:00Z" if policy == "Forbid" else "2027-01-15T12:00:00Z")
        wanted = {"Forbid": "SnapshotSkipped", "Replace": "SnapshotReplaced", "Allow": "SnapshotScheduled"}
        assert wanted[policy] in await life.events("often")


@pytest.mark.spec("virtrigaud", 77)
@timeless
async def test_a_time_that_passed_while_nothing_ran_is_made_up_for_once() -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("hourly", schedule=schedule("@every 1h", successfulJobsHistoryLimit=10)))
        await asyncio.sleep(60)
        await life.stop()
        await asyncio.sleep(5.5 * HOUR)
        await life.start()
        await asyncio.sleep(60)
        assert len(await times(life)) == 1
        await asyncio.sleep(HOUR)
        assert len(await times(life)) == 2


@pytest.mark.spec("virtrigaud", 77)
@pytest.mark.parametrize("number", range(8))
@timeless
async def test_the_manager_ends_before_each_write(number: int) -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("hourly", schedule=schedule("0 * * * *", successfulJobsHistoryLimit=10)))
        await asyncio.sleep(HOUR - 10)
        life.wire.ends_at = life.wire.writes + number
        await asyncio.sleep(60)
        life.wire.ends_at = -1
        await life.restart()
        await asyncio.sleep(60)
        assert len(await times(life)) == len(kept(life)) == 1


@pytest.mark.parametrize(
    ("members", "text"), [({"timezone": "Mars/Olympus"}, "no time zone"), ({"cronSpec": "@reboot"}, "@reboot has no time")]
)
@timeless
async def test_a_schedule_without_times_says_so(members: Data, text: str) -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("never", schedule={**schedule("@daily"), **members}))
        await asyncio.sleep(5)
        assert await life.said("Scheduled", "never", KIND) == ("False", "ValidationError")
        assert text in (await state(life, "never"))["message"]


@pytest.mark.spec("virtrigaud", 77)
@timeless
async def test_the_snapshots_of_a_schedule_go_with_its_machine() -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot("hourly", schedule=schedule("@hourly")))
        await asyncio.sleep(2 * HOUR)
        assert len(await children(life)) == 2
        await life.delete()
        await life.gone()
        assert await names(life) == []


# --- retention --------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 76)
@timeless
async def test_age_expires_a_snapshot_and_the_grace_period_keeps_it() -> None:
    async with rigaud() as life:
        await off(life)
        policy = {"maxAge": "3h", "gracePeriod": "1h"}
        await life.make(snapshot(retentionPolicy=policy))
        await life.make(snapshot("pinned", retentionPolicy=policy, metadata={"pinned": True}))
        free = {**policy, "preservePinned": False}
        await life.make(snapshot("free", retentionPolicy=free, metadata={"pinned": True}))
        status = await phase(life, "Ready")
        begun, expiry = (datetime.fromisoformat(status[each].replace("Z", "+00:00")) for each in ("creationTime", "expiryTime"))
        assert (expiry - begun).total_seconds() == 3 * HOUR
        await asyncio.sleep(3 * HOUR - 60)
        assert (await state(life))["phase"] == "Ready"
        await asyncio.sleep(120)
        assert (await state(life))["phase"] == "Expired" and await life.said("Expired", "s", KIND) == ("True", "Expired")
        assert (await life.said("Ready", "s", KIND)) == ("False", "Expired") and len(kept(life)) == 3
        assert "expiryTime" not in await state(life, "pinned")
        await asyncio.sleep(HOUR)
        await end(life)
        await end(life, "free")
        assert "SnapshotExpired" in await life.events("s") and len(kept(life)) == 1
        await asyncio.sleep(6 * HOUR)
        assert (await state(life, "pinned"))["phase"] == "Ready"


@timeless
async def test_a_pin_saves_a_snapshot_that_has_expired() -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(snapshot(retentionPolicy={"maxAge": "1h", "gracePeriod": "1h"}))
        await phase(life, "Expired", seconds=2 * HOUR)
        await life.merge("s", {"spec": {"metadata": {"pinned": True}}}, KIND)
        await phase(life, "Ready")
        assert await life.said("Expired", "s", KIND) == ("False", "ReconcileSuccess")
        await asyncio.sleep(3 * HOUR)
        assert (await state(life))["phase"] == "Ready"


@pytest.mark.spec("virtrigaud", 76)
@pytest.mark.parametrize("preserve", [True, False])
@timeless
async def test_number_prunes_the_oldest(preserve: bool) -> None:
    async with rigaud() as life:
        await off(life)
        await life.make(machine("other", powerState="Off"))
        await life.ready("other")
        policy = {"maxCount": 2, "preservePinned": preserve}
        await life.make(snapshot("foreign", "other", retentionPolicy=policy), snapshot("plain"))
        await phase(life, "Ready", "foreign")
        for number in range(5):
            await life.make(snapshot(f"n{number}", retentionPolicy=policy, metadata={"pinned": number == 0}))
            await phase(life, "Ready", f"n{number}")
            await asyncio.sleep(2)
        await asyncio.sleep(30)
        assert await names(life) == ["foreign", *(["n0"] if preserve else []), "n3", "n4", "plain"]
        assert len(kept(life)) == 4 + preserve


@pytest.mark.spec("virtrigaud", 76)
@timeless
async def test_number_counts_each_schedule_by_itself() -> None:
    async with rigaud() as life:
        await off(life)
        policy = {"maxCount": 2}
        await life.make(snapshot("by-hand", retentionPolicy=policy))
        await phase(life, "Ready", "by-hand")
        await life.make(snapshot("hourly", retentionPolicy=policy, schedule=schedule("@hourly", successfulJobsHistoryLimit=9)))
        await asyncio.sleep(5 * HOUR)
        assert await times(life) == ["2027-01-15T12:00:00Z", "2027-01-15T13:00:00Z"]
        assert (await state(life, "by-hand"))["phase"] == "Ready"


@timeless
async def test_the_snapshot_that_a_machine_goes_back_to_is_kept() -> None:
    async with rigaud() as life:
        await off(life)
        policy = {"maxCount": 1}
        await life.make(snapshot("first", retentionPolicy=policy))
        await phase(life, "Ready", "first")
        await life.merge("web", {"spec": {"snapshot": {"revertToRef": {"name": "first"}}}})
        await life.ready()
        await life.make(snapshot("second", retentionPolicy=policy))
        await phase(life, "Ready", "second")
        await asyncio.sleep(30)
        assert await names(life) == ["first", "second"]
        assert (await state(life, "second"))["parent"]["name"] == "first"
