"""Something dies in the middle of a live migration, at any step: there is one copy of the guest afterwards, with all that it wrote.

`LIVE_FAULTS=1000` plays so many seeded faults instead of a few, and `LIVE_SEED=7` others (part of `make soak`).
"""

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.livelinks import ReceiverAddress
from paddock.engine.machine.livesource import SendRequest
from paddock.engine.machine.livetarget import ReceiveRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.machines import Machines
from tests.coroutines import played_by
from tests.host.machines import leaving, migrating
from tests.host.machines.conftest import ROOT, Place, qemus, run, until, until_guest_runs

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.long]

FAULTS = ("source", "target", "both", "source-qemu", "target-qemu", "link")
# More than a migration has of them, as seen: the last ones come when all is over.
STEPS = {"source": 43, "target": 50, "both": 82, "source-qemu": 82, "target-qemu": 82, "link": 82}
COUNT, SEED = int(os.environ.get("LIVE_FAULTS", "24")), int(os.environ.get("LIVE_SEED", "1"))
MIGRATION = "m1"


def cases() -> list[tuple[str, int]]:
    chance = random.Random(SEED)
    return [(fault, chance.randrange(STEPS[fault])) for fault in FAULTS for _ in range(COUNT // len(FAULTS))]


class Sides:
    """Two hosts, whose Paddocks are here or elsewhere."""

    def __init__(self, place: Place) -> None:
        self.place, self.there = place, migrating.beside(place)
        self._machines: dict[str, Machines] = {}

    async def open(self, place: Place) -> QemuMachine:
        self.close(place)
        machines = self._machines[place.root.name] = place.open()
        await machines.adopt()
        machine = machines.get(leaving.ID)
        assert machine is not None
        return machine

    def close(self, place: Place) -> None:
        if (machines := self._machines.pop(place.root.name, None)) is not None:
            machines.close()

    async def prepare(self) -> tuple[ReceiveRequest, SendRequest]:
        """The guest runs at one of them, and has written; what the other has to know is in files."""
        source = await migrating.started(self.place)
        await migrating.writes(source)
        theirs, ours = migrating.credentials(self.place.root / "credentials")
        machines = self.there.open()
        await machines.adopt()
        await machines.define(leaving.ID, migrating.sends_to(source.config, self.there.root))
        receive_request = ReceiveRequest(MIGRATION, await source.describe_leaving(), theirs, migrating.ADDRESS)
        send_request = SendRequest(MIGRATION, ReceiverAddress(migrating.ADDRESS, 0, 0, ""), ours)
        leaving.note(self.there.root / "receive_request", receive_request)
        leaving.note(self.place.root / "send_request", send_request)
        machines.close()
        for machine in (source,):
            machine.close()
        return receive_request, send_request


@contextlib.asynccontextmanager
async def paddock(fault: str, step: int, folder: Path, before: tuple[str, ...] = ()) -> AsyncIterator[asyncio.subprocess.Process]:
    command = [*before, sys.executable, "-m", "tests.host.machines.leaving", fault, str(step), str(folder)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        out, error = await process.communicate()
        # The source alone tells of an error by ending with it.
        assert b"Traceback" not in error or fault == "source", error.decode()
        print(fault, step, process.returncode, out.decode().strip(), error.decode()[-300:] if process.returncode != -signal.SIGKILL else "")


async def _play(sides: Sides, fault: str, step: int, netns: str) -> None:
    receive_request, send_request = await sides.prepare()
    folder = sides.place.root
    socket = folder / "target.sock"
    if fault == "source":
        target = await sides.open(sides.there)
        receiver_address = await target.receive(receive_request)
        leaving.note(folder / "send_request", structs.replace(send_request, receiver_address=receiver_address))
        async with await leaving.serve(target, socket), paddock(fault, step, folder) as process:
            await process.wait()
    elif fault == "target":
        source = await sides.open(sides.place)
        async with paddock(fault, step, folder) as process:
            remote = leaving.RemoteTarget(socket)
            while process.returncode is None:
                await asyncio.sleep(0.02)
                with contextlib.suppress(OSError):
                    send_request = structs.replace(send_request, receiver_address=await remote.receiver_address())
                    break
            with contextlib.suppress(PaddockError):
                await source.send(send_request, remote)
    else:
        async with paddock(fault, step, folder, ("ip", "netns", "exec", netns) if fault == "link" else ()) as process:
            await process.wait()


async def owner_of(source: QemuMachine, target: QemuMachine) -> QemuMachine:
    """Ask the two as their servers do, and return who has the guest."""
    if source.observed.handed == "offered":
        return target if await source.settle(target) else source
    if source.observed.handed == "decided":
        return target
    with contextlib.suppress(Unanswered):
        assert await target.drop_arrival(MIGRATION), "both have it"
    return source


def logs(*machines: QemuMachine) -> bytes:
    return b"".join(machine.directory.serial_log() for machine in machines)


async def _is_whole(sides: Sides, fault: str) -> None:
    source, target = await sides.open(sides.place), await sides.open(sides.there)
    owner = await owner_of(source, target)
    other = source if owner is target else target
    await until(other, lambda one: not one.observed.live, "the other one has ended")
    if fault.endswith("-qemu"):
        # Who was killed may have had it: it starts again, on the disks that it had.
        await until(owner, lambda one: one.observed.phase in ("running", "ended"), "it has an end, or runs")
        if owner.observed.phase == "ended":
            written = migrating.marks(owner)
            await owner.start()
            await until_guest_runs(owner)
            assert written == 1
            return
    await until(owner, lambda one: one.observed.phase == "running" and not one.observed.stands_still, "it runs")
    assert logs(source, target).count(b"R") == 1, "it booted again"
    await migrating.writes(owner)
    assert migrating.marks(owner) == logs(source, target).count(b"w") == 2
    found = [*qemus(sides.place.machines).get("a", ()), *qemus(sides.there.machines).get("a", ())]
    assert found == [owner.observed.pid], "there are two"
    await until(owner, lambda one: one._owner.record.sending == "", "nothing is left of it")
    assert not list(owner.directory.path.glob("*/live"))


@pytest.mark.parametrize(("fault", "step"), cases())
@played_by(run)
async def test_one_copy_is_left(place: Place, request: pytest.FixtureRequest, fault: str, step: int) -> None:
    if fault == "link":
        netns = request.getfixturevalue("netns")
    else:
        netns = ""
    sides = Sides(place)
    await _play(sides, fault, step, netns)
    await _is_whole(sides, fault)
