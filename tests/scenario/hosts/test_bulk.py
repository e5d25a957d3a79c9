"""What making and deleting costs for each of many machines at once, compared between few and many.

Calls of functions are counted: a clock would judge the machine.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.fronts.kubermatic.making import pool

FEW, MANY = 5, 20
# What is done with all of them for each makes MANY / FEW times as many calls of some function. The sum of all functions would hide it.
BOUND, FEW_CALLS = 2.0, 20
BASE = "/apis/kubevirt.io/{}/namespaces/default/{}"
MACHINES, INSTANCES = BASE.format("v1", "virtualmachines"), BASE.format("v1", "virtualmachineinstances")
POOLS = BASE.format("v1alpha1", "virtualmachinepools")


def documents(kind: str, count: int) -> tuple[str, list[Data]]:
    """The collection to delete, and what makes so many machines."""
    if kind == "machines":
        return MACHINES, [machine(f"m{number:03}", volumes=[]) for number in range(count)]
    return POOLS, [pool(count, disks=False)]


async def settled(host: FakeHost, count: int) -> None:
    """Wait until so many machines run and no other is there."""
    for _ in range(200):
        await asyncio.sleep(5)
        phases = [each["status"].get("phase") for each in (await host.api.current(INSTANCES)).data["items"]]
        if phases == ["Running"] * count and len((await host.api.current(MACHINES)).data["items"]) == count:
            return
    raise AssertionError(phases)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts the calls of each of Paddock's functions in the block; what a generator yields counts, too."""
    calls: Counter[Any] = Counter()

    def called(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    named: Counter[str] = Counter()
    sys.setprofile(called)
    try:
        yield named
    finally:
        sys.setprofile(None)
        for code, count in calls.items():
            if "/paddock/" in code.co_filename:
                named[f"{code.co_filename.rpartition('/paddock/')[2]} {code.co_qualname}"] += count


def costs(folder: Path, kind: str, count: int) -> list[dict[str, float]]:
    """The calls that making and deleting a machine among so many take, by functions."""
    folder.mkdir()
    found: list[dict[str, float]] = []

    async def script() -> None:
        async with FakeHost(folder) as host:
            path, bodies = documents(kind, count)
            with counting() as making:
                for body in bodies:
                    assert (await host.api.post(path, body)).status == 201
                await settled(host, count)
            with counting() as deleting:
                assert (await host.api.delete(path)).status == 200
                await settled(host, 0)
            found.extend({name: calls / count for name, calls in counted.items()} for counted in (making, deleting))

    virtualtime.run(script())
    return found


@pytest.mark.spec("kubevirt", 149)
@pytest.mark.parametrize("kind", ["machines", "pool"])
def test_a_machine_among_many_costs_no_more_than_among_few(tmp_path: Path, kind: str) -> None:
    costs(tmp_path / "first", kind, 2)
    few, many = costs(tmp_path / "few", kind, FEW), costs(tmp_path / "many", kind, MANY)
    for one, other in zip(few, many, strict=True):
        dearer = {name: (one.get(name, 0), calls) for name, calls in other.items() if calls > BOUND * one.get(name, 0) + FEW_CALLS}
        assert dearer == {}


def conflicts(host: FakeHost) -> list[str]:
    """The series of requests that met a newer object than they were made for."""
    return [line for line in host.api.api.metrics.lines() if line.startswith("apiserver_request_total") and 'code="409"' in line]


@pytest.mark.spec("kubevirt", 149)
@run_by(virtualtime.run)
async def test_controllers_that_delete_a_machine_never_write_at_the_same_time(tmp_path: Path) -> None:
    """One of two would have to begin again, later and later, for each of many machines."""
    async with FakeHost(tmp_path) as host:
        path, bodies = documents("machines", FEW)
        for body in bodies:
            assert (await host.api.post(path, body)).status == 201
        await settled(host, FEW)
        before = conflicts(host)
        assert (await host.api.delete(path)).status == 200
        await settled(host, 0)
        assert conflicts(host) == before
