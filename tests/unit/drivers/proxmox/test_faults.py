"""Trouble of the cluster: away for minutes, nodes that are off, tasks whose end nobody saw, locks, moves, privileges that are missing."""

import asyncio

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played_by
from tests.kit.proxmox.server import Fault
from tests.kit.proxmox.tasks import TaskFault
from tests.unit.drivers.proxmox.conftest import TEMPLATE, Stage, play

TWO = ("pve1", "pve2", "pve3")


async def refused(call: object) -> ProviderError:
    """The error of a call that is refused."""
    with pytest.raises(ProviderError) as caught:
        await call  # type: ignore[misc]
    return caught.value


@played_by(play)
async def test_a_cluster_that_is_away_is_trouble_and_no_missing_machine(stage: Stage, /) -> None:
    vm = await stage.make()
    stage.transport.away = True
    for call in (
        stage.driver.describe(m.DescribeRequest(id=vm)),
        stage.driver.delete(m.DeleteRequest(id=vm)),
        stage.driver.list_vms(m.ListVMsRequest()),
        stage.driver.create(stage.request("other")),
        stage.driver.validate(m.ValidateRequest()),
    ):
        assert (await refused(call)).kind is ErrorKind.UNAVAILABLE
    stage.transport.away = False
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).exists


@played_by(play)
async def test_work_goes_on_when_the_cluster_comes_back_after_minutes(stage: Stage, /) -> None:
    stage.simulator.tasks.seconds = 60.0
    answer = await stage.driver.create(stage.request())
    await asyncio.sleep(5)
    stage.transport.away = True
    await asyncio.sleep(600)
    stage.transport.away = False
    assert await stage.finish(answer.task) == ""
    assert "cores" in stage.conf(answer.id)
    assert asyncio.get_running_loop().time() > 600


@played_by(play)
async def test_a_slow_cluster_is_waited_for(stage: Stage, /) -> None:
    stage.transport.seconds = 7.0
    vm = await stage.make()
    await stage.power(vm, m.PowerOp.ON)
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).power_state == "On"


@played_by(play, nodes=TWO)
async def test_a_node_that_is_off_takes_no_machine_away(stage: Stage, /) -> None:
    vm = await stage.make()
    vmid = vm.partition("/")[0]
    assert stage.admin.done(stage.admin.post(f"/nodes/pve1/qemu/{vmid}/migrate", target="pve2", with__local__disks=1)) == "OK"
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    stage.simulator.cluster.nodes["pve2"].online = False
    error = await refused(stage.driver.describe(m.DescribeRequest(id=vm)))
    assert error.kind is ErrorKind.UNAVAILABLE
    listed = {each.id: each for each in (await stage.driver.list_vms(m.ListVMsRequest())).vms}
    assert vm not in listed or listed[vm].power_state == "Unknown"
    assert (await refused(stage.driver.create(stage.request()))).kind is ErrorKind.UNAVAILABLE
    stage.simulator.cluster.nodes["pve2"].online = True
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    assert (await stage.driver.create(stage.request())).id == vm


@played_by(play, nodes=TWO)
async def test_a_machine_that_somebody_moves_is_followed(stage: Stage, /) -> None:
    vm = await stage.make()
    vmid = vm.partition("/")[0]
    await stage.power(vm, m.PowerOp.ON)
    for target, source in (("pve2", "pve1"), ("pve3", "pve2")):
        moved = stage.admin.post(f"/nodes/{source}/qemu/{vmid}/migrate", target=target, online=1, with__local__disks=1)
        assert stage.admin.done(moved) == "OK"
        assert (await stage.raw(vm))["node"] == target
    await stage.power(vm, m.PowerOp.OFF)
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""
    assert not (await stage.driver.describe(m.DescribeRequest(id=vm))).exists


@pytest.mark.parametrize("lock", ["backup", "snapshot", "migrate"])
@played_by(play)
async def test_a_locked_machine_is_tried_again_later(stage: Stage, /, lock: str) -> None:
    vm = await stage.make()
    stage.conf(vm)["lock"] = lock
    begun = await stage.driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))
    assert f"locked ({lock})" in await stage.finish(begun.task)
    desired = payloads.encode(payloads.DesiredPayload(name="web", machine_class=payloads.ClassPayload(cpu=4, memory_mib=1024)))
    changed = await stage.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=desired))
    assert f"locked ({lock})" in await stage.finish(changed.task)
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    del stage.conf(vm)["lock"]
    await stage.power(vm, m.PowerOp.ON)


@pytest.mark.spec("virtrigaud", 98)
@pytest.mark.parametrize(("kind", "op"), [("qmstart", m.PowerOp.ON), ("qmstop", m.PowerOp.OFF)])
@played_by(play)
async def test_a_task_whose_end_nobody_saw_is_judged_by_the_machine(stage: Stage, /, kind: str, op: m.PowerOp) -> None:
    vm = await stage.make()
    if op is m.PowerOp.OFF:
        await stage.power(vm, m.PowerOp.ON)
    stage.simulator.tasks.faults.append(TaskFault(kind, vanish=True))
    answer = await stage.driver.power(m.PowerRequest(id=vm, op=op))
    stage.simulator.settle()
    stage.restart()
    assert await stage.finish(answer.task) == ""


@played_by(play)
async def test_a_task_that_fails_says_why(stage: Stage, /) -> None:
    vm = await stage.make()
    stage.simulator.tasks.faults.append(TaskFault("qmstart", status="start failed: QEMU exited with code 1"))
    answer = await stage.driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))
    assert "QEMU exited with code 1" in await stage.finish(answer.task)
    stage.simulator.tasks.faults.append(TaskFault("qmclone", status="clone failed: no space left on device"))
    answer2 = await stage.driver.create(stage.request("other"))
    assert "no space left" in await stage.finish(answer2.task)
    assert await stage.make(stage.request("other"))


@pytest.mark.spec("virtrigaud", 28)
@pytest.mark.parametrize("seconds", [0.0, 60.0])
@played_by(play)
async def test_tasks_survive_a_restart_of_the_driver(stage: Stage, /, seconds: float) -> None:
    stage.simulator.tasks.seconds = seconds
    begun = await stage.driver.create(stage.request())
    stage.restart()
    error = await stage.finish(begun.task)
    assert "call again" in error
    vm = await stage.make()
    assert vm == begun.id
    on = await stage.driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))
    stage.restart()
    assert await stage.finish(on.task) == ""
    snapshot = await stage.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, name_hint="before"))
    stage.restart()
    assert await stage.finish(snapshot.task) == ""
    gone = await stage.driver.delete(m.DeleteRequest(id=vm))
    stage.restart()
    first = await stage.finish(gone.task)
    assert first == "" or "call again" in first
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""
    assert not (await stage.driver.describe(m.DescribeRequest(id=vm))).exists


@played_by(play)
async def test_a_machine_that_may_not_be_seen_is_not_missing(stage: Stage, /) -> None:
    vm = await stage.make()
    access = stage.simulator.access
    stage.transport.token = access.add_token("root@pam", "blind", separated=True)
    access.grant("/nodes", "root@pam!blind", "PVEAuditor")
    error = await refused(stage.driver.describe(m.DescribeRequest(id=vm)))
    assert error.kind is ErrorKind.UNAUTHORIZED
    found = await stage.driver.validate(m.ValidateRequest())
    assert not found.ok and "VM.Audit" in found.message and "Datastore.AllocateSpace" in found.message


@played_by(play)
async def test_a_missing_privilege_is_named_with_its_path(stage: Stage, /) -> None:
    vm = await stage.make()
    access = stage.simulator.access
    stage.transport.token = access.add_token("root@pam", "reader", separated=True)
    access.grant("/", "root@pam!reader", "PVEAuditor")
    error = await refused(stage.driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON)))
    assert error.kind is ErrorKind.UNAUTHORIZED and "VM.PowerMgmt" in str(error) and "/vms/" in str(error)


@played_by(play)
async def test_no_error_repeats_what_is_secret(stage: Stage, /) -> None:
    secret = "hunter2-correct-horse"
    document = f"#cloud-config\nuser: me\nssh_authorized_keys: ['ssh-ed25519 {secret}']\n".encode()
    stage.transport.faults.append(
        Fault("PUT /nodes/pve1/qemu/100/config", "error", after=1, status=400, reason=f"bad value ssh-ed25519%20{secret}")
    )
    answer = await stage.driver.create(stage.request(user_data=document))
    error = await stage.finish(answer.task)
    assert error and secret not in error and "hidden" in error
    assert secret not in repr(stage.driver)


@pytest.mark.parametrize(
    ("release", "works", "imports"),
    [("6.4", False, False), ("7.1", False, False), ("7.4", True, False), ("8.0", True, False), ("8.3", True, False), ("8.4", True, True)],
)
@played_by(play)
async def test_older_releases(stage: Stage, /, release: str, works: bool, imports: bool) -> None:
    stage.simulator.use_release(release)
    found = await stage.driver.validate(m.ValidateRequest())
    assert found.ok is works, found.message
    if not works:
        return
    vm = await stage.make(stage.request(user_data=b"#cloud-config\nuser: me\n"))
    assert ("ciupgrade" in stage.conf(vm)) is (int(release[0]) >= 8)
    can = await stage.driver.get_capabilities(m.GetCapabilitiesRequest())
    assert can.supports_image_import is can.supports_disk_import is imports
    image = payloads.encode(payloads.ImagePayload(url="https://x.example/a.qcow2"))
    answer = await stage.driver.create(stage.request("other", image_json=image))
    error = await stage.finish(answer.task)
    assert error == "" if imports else "8.4" in error
    # With a parameter that only newer releases know, a stop would be refused.
    await stage.power(vm, m.PowerOp.ON)
    await stage.power(vm, m.PowerOp.OFF)
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""


@played_by(play)
async def test_a_cluster_that_was_upgraded_is_asked_again(stage: Stage, /) -> None:
    stage.simulator.use_release("7.4")
    assert not (await stage.driver.get_capabilities(m.GetCapabilitiesRequest())).supports_image_import
    stage.simulator.use_release("9.0")
    assert (await stage.driver.validate(m.ValidateRequest())).ok
    assert (await stage.driver.get_capabilities(m.GetCapabilitiesRequest())).supports_image_import


@played_by(play)
async def test_notes_cannot_name_files_of_others(stage: Stage, /) -> None:
    vm = await stage.make(stage.request(user_data=b"#!/bin/sh\n"))
    victim = "shared:iso/paddock-999-0.iso"
    stage.admin.upload("/nodes/pve1/storage/shared/upload", "iso", "paddock-999-0.iso", b"x" * 2048)
    stage.simulator.settle()
    conf = stage.conf(vm)
    own = next(each.volid for each in stage.simulator.cluster.volumes.values() if f"paddock-{vm.partition('/')[0]}-" in each.volid)
    conf["description"] = conf["description"].replace(own, victim)
    assert victim in conf["description"]
    assert await stage.finish((await stage.driver.delete(m.DeleteRequest(id=vm))).task) == ""
    assert victim in {each.volid for each in stage.simulator.cluster.volumes.values()}


@played_by(play, nodes=("pve1", "pve2"))
async def test_an_examination_names_what_is_missing(stage: Stage, /) -> None:
    found = await stage.driver.examine()
    assert {each.grade for each in found} == {"good"} and {"release", "rights", "nodes", "templates"} <= {each.check for each in found}
    stage.simulator.cluster.nodes["pve2"].online = False
    for each in stage.simulator.cluster.storages.values():
        each.content = ("iso",)
    template = stage.simulator.machine(TEMPLATE).conf
    del template["ide2"], template["agent"]
    access = stage.simulator.access
    stage.transport.token = access.add_token("root@pam", "reader", separated=True)
    access.grant("/", "root@pam!reader", "PVEAuditor")
    grades = {each.text: each.grade for each in await stage.driver.examine()}
    bad = " ".join(text for text, grade in grades.items() if grade != "good")
    for words in (
        "pve2",
        "no storage takes disks",
        "no storage takes imports",
        "cloud-init drive",
        "guest agent",
        "Datastore.Allocate ",
    ):
        assert words in bad, words
