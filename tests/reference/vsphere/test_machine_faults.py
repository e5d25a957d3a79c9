"""Machines on VMware's simulator: whatever happens meanwhile, nothing is made twice and nothing is taken for missing."""

import asyncio
from pathlib import Path

import pytest
from pyVmomi import vim

from paddock.base.clock import SystemClock
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.factory import DriverContext
from paddock.contract.payloads import (
    ClassPayload,
    ImagePayload,
    NetworkPayload,
)
from paddock_drivers.vsphere import factory
from tests.coroutines import played_by, run_by
from tests.reference.vsphere.scripts import created, driven, ended, machines, play, refused, request, settings
from tests.reference.vsphere.vcenter import Simulator, finished, running, template, write_credentials

pytestmark = pytest.mark.reference
LAN = payloads.encode_list((NetworkPayload(name="lan", network_name="VM Network"),))


@pytest.fixture
def simulator(stocked: Simulator) -> Simulator:
    return stocked


# --- nothing twice ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 26)
@run_by(asyncio.run)
async def test_a_clone_that_nobody_saw_end_is_completed_by_the_next_driver(either: Simulator) -> None:
    simulator, bare = either, not either.carrying
    simulator.tell(works={"CloneVm": 3000})
    made: list[m.CreateResponse] = []

    async with driven(simulator) as driver:
        made.append(await driver.create(request(networks_json=LAN)))
    assert made[0].task is not None

    async with driven(simulator) as driver:
        # Nothing on a bare clone says what it is to be; the create does.
        assert await ended(driver, made[0].task) == ("the machine is not there; create it again" if bare else "")
        again = await driver.create(request(networks_json=LAN))
        assert again.id == made[0].id and await ended(driver, again.task) == ""
    (machine,) = machines(simulator)
    assert not settings(machine).get("paddock.pending") and machine.config.hardware.memoryMB == 4096


@pytest.mark.spec("virtrigaud", 26, 28)
@played_by(play, "simulator")
async def test_a_task_that_vcenter_has_forgotten_is_judged_by_the_machine(driver: Driver, /, simulator: Simulator) -> None:
    own = await created(driver)
    simulator.tell(forget=True)
    for goal in ("create", "reconfigure"):
        task = m.TaskRef(id=f"{goal}|{own}|task-1|{'2x4096' if goal == 'reconfigure' else ''}".rstrip("|"))
        assert await ended(driver, task) == ""
    assert "did not reach" in await ended(driver, m.TaskRef(id=f"reconfigure|{own}|task-1|8x4096"))
    assert "not on" in await ended(driver, m.TaskRef(id=f"on|{own}|task-1"))
    gone = "00000000-0000-0000-0000-000000000001"
    assert await ended(driver, m.TaskRef(id=f"delete|{gone}|task-1")) == ""
    assert "create it again" in await ended(driver, m.TaskRef(id=f"create|{gone}|task-1"))


@run_by(asyncio.run)
async def test_a_slow_clone_is_completed_by_the_driver_that_began_it(either: Simulator) -> None:
    either.tell(works={"CloneVm": 3000})

    async with driven(either) as driver:
        own = await created(driver)
        assert await driver.create(request()) == m.CreateResponse(id=own)
    (machine,) = machines(either)
    assert not settings(machine).get("paddock.pending") and machine.config.hardware.memoryMB == 4096


@played_by(play, "either")
async def test_a_bare_machine_that_no_attempt_has_left_is_somebody_elses(driver: Driver, /, either: Simulator) -> None:
    """A clone of the same template is not taken over once anything has happened to it, and a clone of another one never."""
    tmpl, (other,) = machines(either, "tmpl")[0], machines(either, "DC0_H0_VM1")
    spec = vim.vm.CloneSpec(location=vim.vm.RelocateSpec(pool=other.resourcePool), powerOn=False, template=False)
    for source, touched in ((tmpl, True), (other, False)):
        machine = finished(source.CloneVM_Task(tmpl.parent, "web-server", spec))
        if touched:
            for task in (machine.PowerOnVM_Task, machine.PowerOffVM_Task):
                finished(task())
        error = await refused(driver.create(request()))
        assert error.kind is ErrorKind.CONFLICT and "is not this owner's" in str(error)
        assert not settings(machine).get("paddock.owner-uid")
        finished(machine.Destroy_Task())


@pytest.mark.parametrize("state", ["off", "on"])
@played_by(play, "either")
async def test_a_machine_that_is_off_stands_for_a_template_and_keeps_its_secrets(driver: Driver, /, either: Simulator, state: str) -> None:
    other = m.ObjectIdentity(uid="6f0c7f0e-4d2e-4d5e-9a0b-1f2e3d4c5b6a", namespace="default", name="source")
    source = await created(driver, request("source", owner=other, user_data=b"#cloud-config\npassword: secret\n"))
    assert "guestinfo.userdata" in settings(machines(either, "source")[0])
    wanted = request(image_json=payloads.encode(ImagePayload(template_name="source")))
    if state == "on":
        assert await ended(driver, (await driver.power(m.PowerRequest(id=source, op=m.PowerOp.ON))).task) == ""
        error = await refused(driver.create(wanted))
        assert error.kind is ErrorKind.CONFLICT and "power it off" in str(error) and not machines(either)
        return
    own = await created(driver, wanted)
    (machine,) = machines(either)
    assert own != source and machine.config.instanceUuid == own and not settings(machine).get("guestinfo.userdata")
    assert settings(machine)["paddock.owner"] == "default/web-server"


@run_by(asyncio.run)
async def test_a_create_whose_answer_was_lost_makes_one_machine(simulator: Simulator) -> None:
    """The endpoint takes the clone, and the driver does not hear of it."""

    async with driven(simulator) as driver:
        simulator.tell(faults=[{"method": "RetrievePropertiesEx", "type": "SystemError", "count": 0}])
        first = await driver.create(request())
        again = await asyncio.gather(*(driver.create(request()) for _ in range(3)))
        assert {each.id for each in again} == {first.id}
    assert len(machines(simulator)) == 1


@run_by(asyncio.run)
async def test_two_drivers_make_one_machine(simulator: Simulator) -> None:
    simulator.tell(works={"CloneVm": 300})
    async with factory.make(simulator.context()) as first, factory.make(simulator.context()) as second:
        made = await asyncio.gather(*(driver.create(request()) for driver in (first, second, first, second)))
        assert len({each.id for each in made}) == 1
        for each in made:
            assert await ended(first, each.task) == ""
    assert len(machines(simulator)) == 1


@run_by(asyncio.run)
async def test_a_name_of_somebody_else_is_a_conflict_and_a_machine_of_another_owner_is_not_touched(simulator: Simulator) -> None:
    async with driven(simulator) as driver:
        own = await created(driver)
        stranger = m.ObjectIdentity(uid="11111111-4d2e-4d5e-9a0b-1f2e3d4c5b6a", namespace="other", name="web-server")
        for call in (
            driver.create(request(owner=stranger)),
            driver.delete(m.DeleteRequest(id=own, owner=stranger)),
            driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON, owner=stranger)),
        ):
            with pytest.raises(ProviderError) as caught:
                await call
            assert caught.value.kind is ErrorKind.CONFLICT
        finished(machines(simulator, "DC0_C0_RP1_VM1")[0].Rename_Task("foreign"))
        nobody = m.ObjectIdentity(uid="22222222-4d2e-4d5e-9a0b-1f2e3d4c5b6a", namespace="default", name="foreign")
        with pytest.raises(ProviderError, match="is not this owner's"):
            await driver.create(request(name="foreign", owner=nobody))
    assert len(machines(simulator)) == 1


# --- faults -------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 52, 54)
@run_by(asyncio.run)
async def test_an_endpoint_that_is_away_is_an_error_and_never_a_missing_machine(vcsim: Path, tmp_path: Path) -> None:
    with running(vcsim, tmp_path / "one") as simulator:
        template(simulator, "DC0_H0_VM0", "tmpl")
        context = simulator.context()

        async with factory.make(context) as driver:
            own = await created(driver)
            simulator.stop()
            for call in (
                driver.describe(m.DescribeRequest(id=own)),
                driver.list_vms(m.ListVMsRequest()),
                driver.delete(m.DeleteRequest(id=own)),
                driver.create(request()),
                driver.validate(m.ValidateRequest()),
            ):
                assert (await refused(call)).kind is ErrorKind.UNAVAILABLE


@run_by(asyncio.run)
async def test_a_driver_starts_while_the_endpoint_is_away(tmp_path: Path) -> None:
    write_credentials(tmp_path, "secret")
    context = DriverContext(clock=SystemClock(), environment={"PROVIDER_ENDPOINT": "https://127.0.0.1:9"}, credentials=tmp_path)
    async with factory.make(context) as driver:
        assert (await refused(driver.validate(m.ValidateRequest()))).kind is ErrorKind.UNAVAILABLE


@run_by(asyncio.run)
async def test_a_session_that_is_lost_in_the_middle_of_everything_is_not_felt(simulator: Simulator) -> None:
    async with driven(simulator) as driver:
        own = await created(driver)
        for call in (
            lambda: driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON)),
            lambda: driver.describe(m.DescribeRequest(id=own)),
            lambda: driver.list_vms(m.ListVMsRequest()),
            lambda: driver.delete(m.DeleteRequest(id=own)),
        ):
            simulator.tell(logout=True)
            await call()
    assert machines(simulator) == []


@played_by(play, "simulator")
async def test_credentials_that_rotate_are_taken_up_without_a_restart(driver: Driver, /, simulator: Simulator) -> None:
    own = await created(driver)
    simulator.tell(password="newer", logout=True)
    error = await refused(driver.describe(m.DescribeRequest(id=own)))
    assert error.kind is ErrorKind.UNAUTHORIZED and "newer" not in str(error)
    write_credentials(simulator.credentials, "newer")
    assert (await driver.describe(m.DescribeRequest(id=own))).exists


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("NoPermission", ErrorKind.UNAUTHORIZED, "VirtualMachine.Inventory.Create"),
        ("NoDiskSpace", ErrorKind.QUOTA_EXCEEDED, ""),
        ("TaskInProgress", ErrorKind.UNAVAILABLE, ""),
        ("RestrictedVersion", ErrorKind.NOT_SUPPORTED, ""),
        ("SystemError", ErrorKind.INTERNAL, ""),
    ],
)
@run_by(asyncio.run)
async def test_a_fault_of_vsphere_has_a_kind_and_nothing_is_left_behind(
    simulator: Simulator, fault: str, kind: ErrorKind, words: str
) -> None:
    simulator.tell(faults=[{"method": "CloneVM_Task", "type": fault, "count": 1}])

    async with driven(simulator) as driver:
        error = await refused(driver.create(request()))
        assert error.kind is kind and words in str(error)
        assert machines(simulator) == []
        await created(driver)
    assert len(machines(simulator)) == 1


@pytest.mark.spec("virtrigaud", 52)
@played_by(play, "simulator")
async def test_what_happens_behind_the_drivers_back(driver: Driver, /, simulator: Simulator) -> None:
    own = await created(driver)
    (machine,) = machines(simulator)
    finished(machine.Rename_Task("renamed"))
    seen = await driver.describe(m.DescribeRequest(id=own))
    assert seen.exists and '"renamed"' in seen.provider_raw_json
    assert (await driver.create(request())).id == own
    finished(machine.Rename_Task("web-server"))
    # Brought back from a backup, it has another reference and is the same machine.
    folder, pool = machine.parent, machine.resourcePool
    finished(machine.Destroy_Task())
    assert not (await driver.describe(m.DescribeRequest(id=own))).exists
    location, config = vim.vm.RelocateSpec(pool=pool), vim.vm.ConfigSpec(instanceUuid=own)
    spec = vim.vm.CloneSpec(location=location, config=config, powerOn=False, template=False)
    again = finished(machines(simulator, "tmpl")[0].CloneVM_Task(folder, "web-server", spec))
    finished(again.ReconfigVM_Task(config))
    assert (await driver.describe(m.DescribeRequest(id=own))).exists
    finished(again.Destroy_Task())
    assert not (await driver.describe(m.DescribeRequest(id=own))).exists
    await driver.delete(m.DeleteRequest(id=own))
    assert (await refused(driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON)))).kind is ErrorKind.NOT_FOUND


@played_by(play, "simulator")
async def test_slow_answers_leave_other_calls_alone(driver: Driver, /, simulator: Simulator) -> None:
    own = await created(driver)
    simulator.tell(delays={"PowerOnVM_Task": 1500})
    slow = asyncio.create_task(driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON)))
    await asyncio.sleep(0.2)
    async with asyncio.timeout(1.0):
        assert (await driver.describe(m.DescribeRequest(id=own))).exists
    await slow


class HandClock:
    """A clock that is moved by hand."""

    now = 1_000_000.0

    def seconds(self) -> float:
        """Seconds since the epoch."""
        return self.now


@pytest.mark.spec("virtrigaud", 34)
@run_by(asyncio.run)
async def test_a_shutdown_is_forced_by_any_driver_when_its_time_is_over(simulator: Simulator) -> None:
    clock, tasks = HandClock(), []
    simulator.tell(works={"ShutdownGuest": 60_000})
    # The simulator's guests have tools when a setting says so.
    tools = ClassPayload(cpu=1, memory_mib=512, extra_config={"SET.guest.toolsRunningStatus": "guestToolsRunning"})

    async with driven(simulator, clock) as driver:
        own = await created(driver, request(name="web-server", class_json=payloads.encode(tools)))
        await driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON))
        given = await driver.power(m.PowerRequest(id=own, op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=120))
        tasks.append(given.task)
        assert not (await driver.task_status(m.TaskStatusRequest(task=given.task))).done
    clock.now += 121

    async with driven(simulator, clock) as driver:
        assert await ended(driver, tasks[0]) == ""
    (machine,) = machines(simulator)
    assert machine.runtime.powerState == "poweredOff"
