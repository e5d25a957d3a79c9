"""A machine with a data disk at one Provider, and another Provider that it moves to."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.dialects.virtrigaud.controllers.migrations.reconciler import NetworkChecks
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.machines import FakeDisk
from paddock_drivers.fake.settings import FakeSettings, RpcFault
from tests import virtualtime
from tests.unit.kubevirt.controllers.rigaudharness import API, RecordedDriver, Rigaud, machine, provider, rigaud

ROOT, DATA = b"the root disk", b"the data disk"
CLAIM = "/api/v1/namespaces/default/persistentvolumeclaims/move-storage"
KIND = "VMMigration"
ORDER = ["Validating", "Snapshotting", "Exporting", "Transferring", "Converting", "Importing", "Creating", "Validating-Target", "Ready"]


def migration(*, source: Data | None = None, target: Data | None = None, **spec: Any) -> Data:
    """A migration of the machine `web` to the Provider `other`."""
    given = {
        "source": {"vmRef": {"name": "web"}, **(source or {})},
        "target": {"name": "moved", "providerRef": {"name": "other"}, "classRef": {"name": "small"}, **(target or {})},
        **spec,
    }
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": "move"}, "spec": given}


class MovingWorld:
    """The world of one test, with what a test asks of both sides."""

    def __init__(self, life: Rigaud, other: RecordedDriver, directory: Path) -> None:
        self.life, self.other, self.directory = life, other, directory
        # every phase that was written, in order
        self.phases: list[str] = []
        # how often the migration was written
        self.writes = 0
        send = life.wire.send

        async def noted(ask: TransportRequest) -> TransportResponse:
            self.writes += ask.method != "GET" and "/vmmigrations/move" in ask.target
            if ask.method == "PATCH" and "/vmmigrations/move/status" in ask.target:
                phase = orjson.loads(ask.body).get("status", {}).get("phase")
                self.phases += [phase] if phase else []
            return await send(ask)

        life.wire.send = noted  # type: ignore[method-assign]

    @property
    def source(self) -> FakeDriver:
        return self.life.driver.driver

    @property
    def target(self) -> FakeDriver:
        return self.other.driver

    async def phase(self) -> str:
        return str((await self.life.status("move", KIND)).get("phase", ""))

    async def until(self, *phases: str, seconds: float = 30000.0) -> Data:
        """Wait for a phase; return the status."""

        async def holds() -> bool:
            return await self.phase() in phases

        try:
            await self.life.until(holds, seconds)
        except TimeoutError:
            raise AssertionError(f"not in {phases}: {await self.life.status('move', KIND)}") from None
        return await self.life.status("move", KIND)

    async def clean(self, reason: str = "CleanedUp") -> None:
        """Wait until nothing is left to do."""

        async def holds() -> bool:
            return (await self.life.said("CleanedUp", "move", KIND))[1] == reason

        try:
            await self.life.until(holds)
        except TimeoutError:
            raise AssertionError(f"not clean: {await self.life.status('move', KIND)}") from None

    async def gone(self) -> None:
        """Wait until the migration is gone."""

        async def holds() -> bool:
            return not await self.life.get("move", KIND)

        await self.life.until(holds)

    def files(self) -> list[str]:
        """The names of the exports in the staging storage."""
        return sorted(each.name for each in self.directory.rglob("*") if each.is_file() and not each.name.startswith("."))

    def disks(self, side: FakeDriver, name: str) -> list[FakeDisk]:
        """The disks of a machine by its name."""
        return next((each.disks for each in side._inventory.machines.values() if each.name == name), [])

    async def power(self, side: FakeDriver) -> list[str]:
        return [each.power_state for each in (await side.list_vms(m.ListVMsRequest())).vms]

    async def claim(self) -> int:
        """The status of a request for the migration's claim; one that only waits for its protection is gone."""
        found = await self.life.api.get(CLAIM)
        return 404 if found.status == 200 and "deletionTimestamp" in found.data["metadata"] else found.status


def recorded(settings: FakeSettings) -> RecordedDriver:
    """A driver with the clock of the test."""
    return RecordedDriver(FakeDriver(settings, virtualtime.Clock(), random.Random(11)))


@asynccontextmanager
async def moving(
    tmp_path: Path,
    *,
    faults: tuple[RpcFault, ...] = (),
    source: Data | None = None,
    settings: VirtrigaudSettings = VirtrigaudSettings(),  # noqa: B008 - frozen
    checks: NetworkChecks = NetworkChecks(),  # noqa: B008 - frozen
    **members: Any,
) -> AsyncIterator[MovingWorld]:
    """A machine `web` that runs, with marks on both disks. `faults` are those of the target; `members` those of both drivers."""
    fake = FakeSettings(directory=str(tmp_path), **members)
    async with rigaud(msgspec.structs.replace(fake, **(source or {})), settings=settings) as life:
        other = life.others["other"] = recorded(msgspec.structs.replace(fake, faults=faults, seed=3))
        life.checks = checks
        await life.restart()
        await life.make(provider("other"), machine("web", disks=[{"name": "data", "sizeGiB": 3}]))
        await life.ready()
        world = MovingWorld(life, other, tmp_path)
        world.disks(world.source, "web")[0].data = ROOT
        world.disks(world.source, "web")[1].data = DATA
        yield world
