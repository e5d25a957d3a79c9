"""A driver that ends at any step: the next one cleans or completes, nothing exists twice, and no guest dies with it."""

import asyncio
import random

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock_drivers.firecracker import apifacts
from paddock_drivers.firecracker.api import VmmApi
from paddock_drivers.firecracker.driver import FirecrackerDriver
from tests.coroutines import run_by
from tests.unit.drivers.firecracker.conftest import Lab, Play, beginning, disks, done, power, request, state
from tests.unit.drivers.firecracker.crashes import run_until
from tests.unit.drivers.firecracker.test_conformance import left

# Of each work, so many steps are tried, at places that the seed chooses; the driver takes the first ones to open its directory.
TRIES, SEED, OPEN = 7, 20261123, 8
NETWORK = payloads.encode_list((payloads.NetworkPayload(name="lan", bridge="br0"),))
REQUEST = request("web", disks_json=disks(data=1), networks_json=NETWORK)


def steps(name: str, most: int) -> list[int]:
    """The steps that are tried."""
    chance = random.Random(f"{SEED}/{name}")
    return sorted(chance.sample(range(OPEN + 1, most), TRIES))


async def create(driver: FirecrackerDriver) -> str:
    made = await driver.create(REQUEST)
    assert await done(driver, made.task) == ""
    return made.id


async def delete(driver: FirecrackerDriver, id: str) -> None:
    response = await driver.delete(m.DeleteRequest(id=id))
    assert await done(driver, response.task) == ""


async def only(driver: FirecrackerDriver) -> m.VMInfo:
    (found,) = (await driver.list_vms(m.ListVMsRequest())).vms
    return found


@pytest.fixture
def cut_create(step: int, lab: Lab) -> None:
    """A driver that ended in a create."""
    run_until(lab, create, step)


@pytest.mark.usefixtures("cut_create")
@pytest.mark.parametrize("step", steps("create", 41))
@run_by("play")
async def test_a_create_is_completed(lab: Lab) -> None:
    async with lab.driver() as driver:
        web = await create(driver)
        machine = await only(driver)
        assert (machine.id, [each.size_gib for each in machine.disks]) == (web, [1, 1])
        await power(driver, web, m.PowerOp.ON)
        assert await state(driver, web) == "On"
        await delete(driver, web)
    assert (left(lab), lab.pids(), lab.network.taps) == ([], {}, {})


@pytest.mark.usefixtures("cut_create")
@pytest.mark.parametrize("step", steps("create-abandoned", 41))
@run_by("play")
async def test_a_create_that_nobody_repeats_is_completed_or_leaves_nothing(lab: Lab) -> None:
    async with lab.driver() as driver:
        for machine in (await driver.list_vms(m.ListVMsRequest())).vms:
            assert await done(driver, m.TaskRef(id=f"create:{machine.id}")) == ""
            await delete(driver, machine.id)
    assert left(lab) == []


async def start(driver: FirecrackerDriver) -> None:
    await power(driver, (await only(driver)).id, m.PowerOp.ON)


@pytest.mark.parametrize("step", steps("start", 48))
def test_a_start_is_completed(step: int, lab: Lab, play: Play) -> None:
    async def before() -> None:
        async with lab.driver() as driver:
            await create(driver)

    async def after() -> None:
        begun = lab.pids()
        async with lab.driver() as driver:
            web = (await only(driver)).id
            await power(driver, web, m.PowerOp.ON)
            assert await state(driver, web) == "On"
            assert len(lab.pids()) == 1
            if not crashed:
                # A machine that ran is the same one still.
                assert lab.pids() == begun
            await delete(driver, web)
        assert (left(lab), lab.pids()) == ([], {})

    play(before())
    crashed = run_until(lab, start, step)
    play(after())


@pytest.mark.parametrize("step", steps("delete", 46))
def test_a_delete_is_completed(step: int, lab: Lab, play: Play) -> None:
    async def before() -> None:
        async with lab.driver() as driver:
            await power(driver, await create(driver), m.PowerOp.ON)

    async def remove(driver: FirecrackerDriver) -> None:
        await delete(driver, (await only(driver)).id)

    async def after() -> None:
        async with lab.driver() as driver:
            for machine in (await driver.list_vms(m.ListVMsRequest())).vms:
                await delete(driver, machine.id)
            again = await create(driver)
            await delete(driver, again)
        assert (left(lab), lab.pids()) == ([], {})

    play(before())
    run_until(lab, remove, step)
    play(after())


@pytest.mark.parametrize("memory", [False, True], ids=["disks", "memory"])
@pytest.mark.parametrize("step", steps("snapshot", 46))
def test_a_snapshot_is_whole_or_not_there(step: int, memory: bool, lab: Lab, play: Play) -> None:
    async def before() -> None:
        async with lab.driver() as driver:
            await power(driver, await create(driver), m.PowerOp.ON)

    async def take(driver: FirecrackerDriver) -> None:
        web = (await only(driver)).id
        response = await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="before", include_memory=memory))
        assert await done(driver, response.task) == ""

    async def after() -> None:
        async with lab.driver() as driver:
            web = (await only(driver)).id
            # It was paused perhaps; it goes on, in the same process.
            await power(driver, web, m.PowerOp.ON)
            assert await VmmApi(lab.folder("web") / "root/api.sock", begun["web"]).state() == apifacts.RUNNING
            assert (await state(driver, web), lab.pids()) == ("On", begun)
            await take(driver)
            info = await driver.get_disk_info(m.GetDiskInfoRequest(vm_id=web))
            assert len(info.snapshots) == 1
            await power(driver, web, m.PowerOp.OFF)
            reverted = await driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=web, snapshot_id=info.snapshots[0]))
            assert await done(driver, reverted.task) == ""
            assert await state(driver, web) == ("On" if memory else "Off")
            await delete(driver, web)
        assert (left(lab), lab.pids()) == ([], {})

    play(before())
    begun = lab.pids()
    run_until(lab, take, step)
    play(after())


@pytest.mark.parametrize("step", steps("revert", 46))
def test_a_revert_is_completed(step: int, lab: Lab, play: Play) -> None:
    async def before() -> None:
        async with lab.driver() as driver:
            web = await create(driver)
            await driver.snapshot_create(m.SnapshotCreateRequest(vm_id=web, name_hint="before"))
            wider = payloads.DesiredPayload(
                machine_class=payloads.ClassPayload(cpu=4, memory_mib=512), disks=(payloads.DiskPayload(name="data", size_gib=3),)
            )
            await driver.reconfigure(m.ReconfigureRequest(id=web, desired_json=payloads.encode(wider)))
            (lab.folder("web") / "disks/root.raw").write_bytes(b"changed")

    async def revert(driver: FirecrackerDriver) -> None:
        web = (await only(driver)).id
        (snapshot,) = (await driver.get_disk_info(m.GetDiskInfoRequest(vm_id=web))).snapshots
        response = await driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=web, snapshot_id=snapshot))
        assert await done(driver, response.task) == ""

    async def after() -> None:
        async with lab.driver() as driver:
            # The next driver goes on by itself.
            async with asyncio.timeout(10):
                while "reverting" in (lab.folder("web") / "machine.json").read_text():
                    await asyncio.sleep(0.02)
            await revert(driver)
            machine = await only(driver)
            assert (machine.cpu, [each.size_gib for each in machine.disks]) == (1, [1, 1])
            assert beginning(lab.folder("web") / "disks/root.raw") == b"boot"
            await delete(driver, machine.id)
        assert left(lab) == []

    play(before())
    run_until(lab, revert, step)
    play(after())


@pytest.mark.parametrize("step", steps("clone", 50))
def test_a_clone_is_completed(step: int, lab: Lab, play: Play) -> None:
    async def before() -> None:
        async with lab.driver() as driver:
            await power(driver, await create(driver), m.PowerOp.ON)

    async def clone(driver: FirecrackerDriver) -> str:
        source = next(each.id for each in (await driver.list_vms(m.ListVMsRequest())).vms if each.name == "web")
        target = m.ObjectIdentity(namespace="lab", name="twin")
        response = await driver.clone(m.CloneRequest(source_vm_id=source, target_name="twin", target_vm=target))
        assert await done(driver, response.task) == ""
        return response.target_vm_id

    async def after() -> None:
        async with lab.driver() as driver:
            twin = await clone(driver)
            machines = {each.name: each for each in (await driver.list_vms(m.ListVMsRequest())).vms}
            assert set(machines) == {"web", "twin"} and machines["twin"].id == twin
            assert machines["twin"].networks[0].mac != machines["web"].networks[0].mac
            assert (await state(driver, machines["web"].id), lab.pids()) == ("On", begun)
            for machine in machines.values():
                await delete(driver, machine.id)
        assert (left(lab), lab.pids()) == ([], {})

    play(before())
    begun = lab.pids()
    run_until(lab, clone, step)
    play(after())
