"""Clones of machines that run, by the libvirt driver on a real libvirtd: the data of one moment, and nothing left at the source."""

import asyncio

import pytest

from paddock.contract import messages as m
from tests.coroutines import played_by
from tests.host.drivers.libvirtdisks import DiskBench, holds, play, write

pytestmark = [pytest.mark.needs("libvirtd", "root", "qemu"), pytest.mark.slow]


@pytest.mark.spec("virtrigaud", 129)
@played_by(play, "libvirtd")
async def test_a_running_machine_is_cloned_while_it_runs(found: DiskBench, /) -> None:
    vm = await found.create("runs", data=("data",))
    write(await found.path(vm, "data"), 51, 1)
    await found.power(vm, m.PowerOp.ON)
    before = await found.process(vm)
    clone = await found.clone(vm, "runs-copy")
    assert holds(await found.path(clone, "data"), 51, 1) and holds(await found.path(clone), 7, 5)
    assert await found.snapshots(vm) == await found.snapshots(clone) == [] and await found.process(vm) == before
    assert await found.clone(vm, "runs-copy") == clone
    # Two at once, and one beside the snapshot of a user.
    await found.snapshot(vm, "mine")
    others = await asyncio.gather(*(found.clone(vm, f"runs-{number}") for number in range(2)))
    assert await found.snapshots(vm) == ["mine"] and await found.process(vm) == before
    assert all([holds(await found.path(each, "data"), 51, 1) for each in others])
    await found.power(clone, m.PowerOp.ON)
    await found.delete(clone, *others, vm)


@pytest.mark.spec("virtrigaud", 129)
@pytest.mark.parametrize(
    "step", ["clones._define.0", "snapshots.take.0", "chains.raw.0", "keeping.keep.1", "snapshots.remove.0", "clones._define.1"]
)
@pytest.mark.parametrize("then", ["clone", "off", "delete"])
@played_by(play, "libvirtd")
async def test_a_clone_of_a_running_machine_that_is_cut_off_leaves_nothing(found: DiskBench, /, step: str, then: str) -> None:
    """The driver ends at a step; the source may be powered off before the clone goes on, or the clone is deleted."""
    name = f"cut-{step.replace('.', '-').replace('_', '')}-{then}"
    vm = await found.create(name, data=("data",))
    data = await found.path(vm, "data")
    write(data, 61, 1)
    await found.power(vm, m.PowerOp.ON)
    clone = await found.cut_clone(vm, f"{name}-copy", step)
    if then == "off":
        await found.power(vm, m.PowerOp.OFF)
    if then != "delete":
        assert await found.clone(vm, f"{name}-copy") == clone
        assert holds(await found.path(clone, "data"), 61, 1) and holds(await found.path(clone), 7, 5)
    assert then == "delete" or await found.snapshots(vm) == []
    await found.delete(clone)
    assert await found.snapshots(vm) == []
    await found.delete(vm)
    assert not [each for each in found.files() if each.startswith(name)]
