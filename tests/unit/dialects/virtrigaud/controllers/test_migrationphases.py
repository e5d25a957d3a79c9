"""A migration in each of its phases: the manager or a Provider ends there, and the source stays whole until its successor is good."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import SecondsRange
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.moving import DATA, KIND, ORDER, ROOT, MovingWorld, migration, moving
from tests.unit.kubevirt.controllers.rigaudharness import RecordedDriver

AWAY_SECONDS = 180.0
# What changes a machine for good. Its power is the fence's, and a snapshot is the migration's own.
HARM = {"Delete", "Reconfigure", "SnapshotRevert", "ImportDisk", "ImageDelete", "HardwareUpgrade"}


def entering(world: MovingWorld, phase: str) -> asyncio.Event:
    """Set as soon as the status says the phase."""
    reached, send = asyncio.Event(), world.life.wire.send

    async def noted(ask: TransportRequest) -> TransportResponse:
        reply = await send(ask)
        written = ask.method == "PATCH" and "/vmmigrations/move/status" in ask.target
        if written and orjson.loads(ask.body).get("status", {}).get("phase") == phase:
            reached.set()
        return reply

    world.life.wire.send = noted  # type: ignore[method-assign]
    return reached


async def manager_ends(world: MovingWorld) -> None:
    await world.life.stop()
    await asyncio.sleep(AWAY_SECONDS)
    await world.life.start()


def provider_ends(recorder: Callable[[MovingWorld], RecordedDriver]) -> Callable[[MovingWorld], Awaitable[None]]:
    async def ends(world: MovingWorld) -> None:
        """It is away for minutes, and everything it was at work on ends with it."""
        found = recorder(world)
        found.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        found.driver.restart()
        found.driver._inventory.tasks._pending.clear()
        for each in found.driver._inventory.machines.values():
            each.busy_until = 0.0
        await asyncio.sleep(AWAY_SECONDS)
        found.down = None

    return ends


ENDS = {
    "manager": manager_ends,
    "source": provider_ends(lambda world: world.life.driver),
    "target": provider_ends(lambda world: world.other),
}


def whole(world: MovingWorld) -> bool:
    """The source exists with what it has written."""
    disks = world.disks(world.source, "web")
    return len(disks) == 2 and disks[1].data == DATA and disks[0].data.startswith((ROOT, b"vm-"))


async def watch(world: MovingWorld) -> None:
    """The source is whole until the migration is complete, and never runs beside its successor."""
    while await world.phase() != "Ready":
        assert whole(world), (await world.phase(), world.life.driver.names())
        assert not HARM & set(world.life.driver.names())
        assert not ("On" in await world.power(world.source) and "On" in await world.power(world.target))
        await asyncio.sleep(0.25)


@pytest.mark.spec("virtrigaud", 84, 90, 92)
@pytest.mark.parametrize("side", ENDS)
@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        *((each, 0.0) for each in ("Pending", *ORDER)),
        *((each, 7.0) for each in ORDER if each not in ("Transferring", "Converting", "Ready")),
    ],
)
@timeless
async def test_it_goes_on_after_an_end_in_any_phase(phase: str, seconds: float, side: str, tmp_path: Path) -> None:
    """At its beginning, and while its tasks are under way."""
    async with moving(tmp_path, task_seconds=SecondsRange(15.0, 15.0)) as world:
        watching = asyncio.create_task(watch(world))
        reached = entering(world, phase)
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}))
        if phase == "Pending":
            reached.set()
        await reached.wait()
        await asyncio.sleep(seconds)
        await ENDS[side](world)
        status = await world.until("Ready", "Failed")
        assert status["phase"] == "Ready", status
        await watching
        await world.clean()
        await world.life.gone("web")
        assert not world.source._inventory.machines and not world.target._inventory.disks
        machines = (await world.target.list_vms(m.ListVMsRequest())).vms
        assert [each.name for each in machines] == ["moved"] and await world.power(world.target) == ["On"]
        assert world.disks(world.target, "moved")[1].data == DATA
        assert world.files() == [] and await world.claim() == 404
        assert sorted(world.target._inventory.imported) == ["moved-migrated", "moved-migrated-data"]


@pytest.mark.spec("virtrigaud", 90)
@pytest.mark.parametrize("phase", ORDER[:-1])
@timeless
async def test_a_target_that_never_comes_back_leaves_the_source_as_it_was(phase: str, tmp_path: Path) -> None:
    async with moving(tmp_path) as world:
        reached = entering(world, phase)
        options = {"timeout": "30m", "cleanupPolicy": "Always"}
        await world.life.make(migration(source={"deleteAfterMigration": True}, target={"powerOn": True}, options=options))
        await reached.wait()
        world.other.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await world.until("Failed")
        assert (await world.life.said("Failed", "move", KIND))[1] == "Timeout"
        assert whole(world) and not HARM & set(world.life.driver.names())
        # What may be left at the target holds the migration, and the source waits with it: its successor may run.
        world.other.down = None
        await world.clean()
        assert (await world.life.ready())["powerState"] == "On" and whole(world)
        assert await _left(world.target) == [] and world.files() == []


async def _left(side: FakeDriver) -> list[str]:
    machines = (await side.list_vms(m.ListVMsRequest())).vms
    return [*(each.name for each in machines), *side._inventory.disks]
