"""The fake driver: what the conformance suite cannot see from outside, such as faults, quotas, hosts and lost tasks."""

import asyncio

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.settings import FakeHost, ForeignMachine, RpcFault, SecondsRange
from tests import virtualtime
from tests.coroutines import run_by, timeless
from tests.unit.drivers.fake.driving import create, driver, ended, error, exists, kind, made


@timeless
async def test_a_task_takes_its_time_and_then_has_its_effect() -> None:
    fake = driver(task_seconds=SecondsRange(5, 5))
    vm = await made(fake)
    task = (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task
    assert (await fake.describe(m.DescribeRequest(id=vm))).power_state == "Off"
    await asyncio.sleep(4.9)
    assert not (await fake.task_status(m.TaskStatusRequest(task=task))).done
    await asyncio.sleep(0.2)
    # Describe alone settles what is due.
    assert (await fake.describe(m.DescribeRequest(id=vm))).power_state == "On"
    assert (await fake.task_status(m.TaskStatusRequest(task=task))).done


@run_by(virtualtime.run)
async def test_a_synchronous_driver_answers_when_all_is_done() -> None:
    fake = driver(tasks="sync", task_seconds=SecondsRange(5, 5))
    response = await fake.create(create())
    assert response.task is None and await exists(fake, response.id)
    assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.2)


@timeless
async def test_the_seed_decides() -> None:
    async def times(seed: int) -> list[float]:
        fake, found = driver(seed=seed, task_seconds=SecondsRange(0, 100)), []
        for name in "abcd":
            start = asyncio.get_running_loop().time()
            await made(fake, create(name))
            found.append(asyncio.get_running_loop().time() - start)
        return found

    first, again, other = await times(1), await times(1), await times(2)
    assert first == pytest.approx(again) and first != pytest.approx(other)


@timeless
async def test_works_on_one_machine_are_done_one_after_another() -> None:
    fake = driver(task_seconds=SecondsRange(1, 1))
    vm = await made(fake)
    on = await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))
    off = await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.OFF))
    assert on.task and off.task
    await asyncio.sleep(1.5)
    assert (await fake.describe(m.DescribeRequest(id=vm))).power_state == "On"
    await asyncio.sleep(1)
    assert (await fake.describe(m.DescribeRequest(id=vm))).power_state == "Off"


# --- faults ---------------------------------------------------------------------------------------------------------------


@timeless
async def test_an_error_has_no_effect_and_hits_the_calls_that_it_names() -> None:
    fault = RpcFault(rpc="Create", kind=ErrorKind.RATE_LIMIT, message="too fast", after=1, count=2)
    fake = driver(faults=(fault,))
    await made(fake, create("a"))
    assert [await kind(fake.create(create("b"))) for _ in range(2)] == [ErrorKind.RATE_LIMIT] * 2
    assert len((await fake.list_vms(m.ListVMsRequest())).vms) == 1
    await made(fake, create("b"))


@timeless
async def test_a_lost_answer_has_its_effect() -> None:
    fake = driver(faults=(RpcFault(rpc="Create", effect="lost-answer"),))
    request = create(uid="u1")
    assert await kind(fake.create(request)) is ErrorKind.UNAVAILABLE
    vm = await made(fake, request)
    assert [each.id for each in (await fake.list_vms(m.ListVMsRequest())).vms] == [vm]


@timeless
async def test_a_failed_create_leaves_nothing() -> None:
    fake = driver(faults=(RpcFault(rpc="Create", effect="task-error", message="no space"),))
    response = await fake.create(create())
    assert await ended(fake, response.task) == "no space"
    assert not await exists(fake, response.id)
    await made(fake)


@timeless
async def test_a_failed_power_changes_nothing() -> None:
    fake = driver(faults=(RpcFault(rpc="Power", effect="task-error", message="no host"),))
    vm = await made(fake)
    task = (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task
    assert await ended(fake, task) == "no host"
    assert (await fake.describe(m.DescribeRequest(id=vm))).power_state == "Off"


@timeless
async def test_a_hanging_task_never_ends() -> None:
    fake = driver(faults=(RpcFault(rpc="Power", effect="task-hang"),))
    vm = await made(fake)
    task = (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task
    await asyncio.sleep(86400)
    assert await fake.task_status(m.TaskStatusRequest(task=task)) == m.TaskStatusResponse()


@timeless
async def test_a_restart_loses_tasks_and_not_their_work() -> None:
    fake = driver(task_seconds=SecondsRange(5, 5), faults=(RpcFault(rpc="Validate", effect="restart"),))
    response = await fake.create(create())
    await fake.validate(m.ValidateRequest())
    status = await fake.task_status(m.TaskStatusRequest(task=response.task))
    assert status.done and "unknown" in status.error
    await asyncio.sleep(6)
    assert await exists(fake, response.id)


@run_by(virtualtime.run)
async def test_a_delay_takes_its_time() -> None:
    fake = driver(faults=(RpcFault(rpc="*", effect="delay", delay=7, count=1),))
    await fake.validate(m.ValidateRequest())
    await fake.validate(m.ValidateRequest())
    assert asyncio.get_running_loop().time() == pytest.approx(7)


@timeless
async def test_probability_hits_some_calls() -> None:
    fake = driver(faults=(RpcFault(rpc="Validate", probability=0.5, count=0),))
    results = await asyncio.gather(*(fake.validate(m.ValidateRequest()) for _ in range(100)), return_exceptions=True)
    assert 30 < sum(isinstance(each, Exception) for each in results) < 70


# --- ownership ------------------------------------------------------------------------------------------------------------


@timeless
async def test_the_owners_machine_is_found_under_another_name() -> None:
    fake = driver()
    vm = await made(fake, create("a", uid="u1"))
    assert await made(fake, create("b", uid="u1")) == vm


@timeless
async def test_a_foreign_machine_is_listed_and_never_taken_over() -> None:
    fake = driver(machines=(ForeignMachine(name="legacy", cpu=4, memory_mib=8192),))
    (found,) = (await fake.list_vms(m.ListVMsRequest())).vms
    assert (found.name, found.power_state, found.cpu, found.memory_mib) == ("legacy", "On", 4, 8192)
    assert found.ips and found.networks[0].mac and found.disks[0].size_gib == 20
    assert await kind(fake.create(create("legacy", uid="u1"))) is ErrorKind.CONFLICT


@timeless
async def test_calls_of_another_owner_are_a_conflict() -> None:
    fake, other = driver(), m.ObjectIdentity(uid="u2")
    vm = await made(fake, create(uid="u1"))
    assert await kind(fake.delete(m.DeleteRequest(id=vm, owner=other))) is ErrorKind.CONFLICT
    assert await kind(fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON, owner=other))) is ErrorKind.CONFLICT
    assert await kind(fake.describe(m.DescribeRequest(id=vm, owner=other))) is ErrorKind.CONFLICT
    assert await exists(fake, vm)


@timeless
async def test_a_machine_that_is_being_deleted_is_nobodys() -> None:
    fake, request = driver(task_seconds=SecondsRange(5, 5)), create(uid="u1")
    vm = await made(fake, request)
    await fake.delete(m.DeleteRequest(id=vm))
    assert await kind(fake.create(request)) is ErrorKind.UNAVAILABLE
    await asyncio.sleep(6)
    assert await made(fake, request) != vm


# --- limits ---------------------------------------------------------------------------------------------------------------


@timeless
async def test_a_quota_holds_for_all_machines_together() -> None:
    fake = driver(most_cpu=2)
    await made(fake, create("a"))
    vm = await made(fake, create("b"))
    assert await kind(fake.create(create("c"))) is ErrorKind.QUOTA_EXCEEDED
    assert await kind(fake.clone(m.CloneRequest(source_vm_id=vm, target_name="d"))) is ErrorKind.QUOTA_EXCEEDED
    assert len((await fake.list_vms(m.ListVMsRequest())).vms) == 2


@timeless
async def test_unknown_images_are_refused() -> None:
    fake = driver(templates=("debian-*",), paths=())
    assert await kind(fake.create(create())) is ErrorKind.INVALID_SPEC
    assert await kind(fake.create(create(image_json='{"Path":"/images/x.qcow2"}'))) is ErrorKind.INVALID_SPEC
    assert await kind(fake.create(create(image_json=""))) is ErrorKind.INVALID_SPEC
    await made(fake, create(image_json='{"TemplateName":"debian-13"}'))


@pytest.mark.parametrize(
    ("capability", "call"),
    [
        ("snapshots", lambda fake, vm: fake.snapshot_create(m.SnapshotCreateRequest(vm_id=vm))),
        ("memory_snapshots", lambda fake, vm: fake.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, include_memory=True))),
        ("linked_clones", lambda fake, vm: fake.clone(m.CloneRequest(source_vm_id=vm, target_name="c", linked=True))),
        ("image_import", lambda fake, vm: fake.image_prepare(m.ImagePrepareRequest(target_name="i", image_json='{"source":{}}'))),
        ("disk_export", lambda fake, vm: fake.export_disk(m.ExportDiskRequest(vm_id=vm, destination_url="pvc://c/d"))),
        ("disk_import", lambda fake, vm: fake.import_disk(m.ImportDiskRequest(source_url="pvc://c/d", target_name="d"))),
    ],
)
@run_by(virtualtime.run)
async def test_a_capability_that_is_off_is_not_supported(capability: str, call: object) -> None:
    fake = driver(without=(capability,))
    vm = await made(fake)
    assert not getattr(await fake.get_capabilities(m.GetCapabilitiesRequest()), f"supports_{capability}")
    assert await kind(call(fake, vm)) is ErrorKind.NOT_SUPPORTED  # type: ignore[operator]


@timeless
async def test_an_unreachable_hypervisor_is_said_by_validate() -> None:
    answer = await driver(unreachable="wrong password").validate(m.ValidateRequest())
    assert answer == m.ValidateResponse(ok=False, message="wrong password")


@timeless
async def test_hosts_have_what_their_machines_leave() -> None:
    fake = driver(hosts=(FakeHost(id="a", cpu=8), FakeHost(id="b", cpu=8, ready=False)))
    assert (await fake.get_capabilities(m.GetCapabilitiesRequest())).supports_clustering
    await made(fake, create(target_host_id="b"))
    hosts = (await fake.list_hosts(m.ListHostsRequest())).hosts
    assert [(each.id, each.allocatable_cpu, each.health.name) for each in hosts] == [("a", 8, "READY"), ("b", 7, "NOT_READY")]
    assert (await fake.get_host_info(m.GetHostInfoRequest(host_id="b"))).allocatable_cpu == 7
    assert await kind(fake.get_host_info(m.GetHostInfoRequest(host_id="c"))) is ErrorKind.NOT_FOUND
    assert await kind(fake.create(create("x", target_host_id="c"))) is ErrorKind.INVALID_SPEC
    assert await kind(driver().list_hosts(m.ListHostsRequest())) is ErrorKind.NOT_SUPPORTED


@timeless
async def test_a_running_machine_says_what_needs_a_stop() -> None:
    fake = driver()
    vm = await made(fake)
    await ended(fake, (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task)
    desired = '{"Class":{"CPU":2,"MemoryMiB":512},"Image":{"TemplateName":"debian"}}'
    problem = await error(fake.reconfigure(m.ReconfigureRequest(id=vm, desired_json=desired)))
    assert problem.kind is ErrorKind.CONFLICT
    assert str(problem) == "machine vm-1 cannot change its CPUs from 1 to 2: it is running; power it off first"


@timeless
async def test_a_removed_disk_keeps_its_data() -> None:
    fake = driver()
    vm = await made(fake, create(disks_json='[{"Name":"data","SizeGiB":1}]'))
    (_, data) = (await fake.list_vms(m.ListVMsRequest())).vms[0].disks
    desired = '{"Class":{"CPU":1,"MemoryMiB":512},"Image":{"TemplateName":"debian"}}'
    await ended(fake, (await fake.reconfigure(m.ReconfigureRequest(id=vm, desired_json=desired))).task)
    assert len((await fake.list_vms(m.ListVMsRequest())).vms[0].disks) == 1
    other = await made(fake, create("other", image_json=f'{{"Path":"{data.path}"}}'))
    assert (await fake.get_disk_info(m.GetDiskInfoRequest(vm_id=other))).path == data.path


@timeless
async def test_a_guest_has_its_address_a_moment_after_its_start() -> None:
    fake = driver(address_seconds=10)
    vm = await made(fake, create(networks_json='[{"Name":"lan","StaticIP":"192.0.2.7"},{"Name":"store"}]'))
    await ended(fake, (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task)
    assert (await fake.describe(m.DescribeRequest(id=vm))).ips == ()
    await asyncio.sleep(11)
    assert (await fake.describe(m.DescribeRequest(id=vm))).ips == ("192.0.2.7",)


@timeless
async def test_hardware_is_upgraded_while_the_machine_is_off() -> None:
    fake = driver()
    vm = await made(fake)
    await ended(fake, (await fake.hardware_upgrade(m.HardwareUpgradeRequest(id=vm, target_version=19))).task)
    assert await kind(fake.hardware_upgrade(m.HardwareUpgradeRequest(id=vm, target_version=19))) is ErrorKind.INVALID_SPEC
    await ended(fake, (await fake.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))).task)
    assert await kind(fake.hardware_upgrade(m.HardwareUpgradeRequest(id=vm, target_version=20))) is ErrorKind.CONFLICT
