"""Machines are made once: lost answers, restarts between any two calls, VMIDs that somebody takes, and foreign copies."""

import asyncio

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played_by
from tests.kit.proxmox.server import Fault
from tests.unit.drivers.proxmox.conftest import IMAGE_URL, Stage, play

BY_TEMPLATE = payloads.encode(payloads.ClassPayload(cpu=2, memory_mib=2048, disk_defaults=payloads.DiskDefaultsPayload(size_gib=5)))
IMAGE = payloads.encode(payloads.ImagePayload(url=IMAGE_URL, format="qcow2"))
DISKS = payloads.encode_list((payloads.DiskPayload(name="data", size_gib=1),))
KINDS = ("template", "image")


def order(stage: Stage, kind: str) -> m.CreateRequest:
    found = stage.request(class_json=BY_TEMPLATE, disks_json=DISKS, user_data=b"#cloud-config\nruncmd: [reboot]\n")
    return found if kind == "template" else msgspec.structs.replace(found, image_json=IMAGE)


async def persist(stage: Stage, request: m.CreateRequest) -> str:
    """Create as a manager does: again and again, until a task of it has ended well."""
    for _ in range(40):
        try:
            answer = await stage.driver.create(request)
            if await stage.finish(answer.task) == "":
                return answer.id
        except ProviderError as error:
            if error.kind not in (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT):
                raise
        await asyncio.sleep(5)
    raise AssertionError("the machine is never made")


def check_one(stage: Stage, id: str) -> None:
    """There is one machine, with all that was asked for, and no volume of any other."""
    stage.simulator.settle()
    made = [each for each in stage.simulator.cluster.machines.values() if not each.is_template]
    assert [each.conf.get("name") for each in made] == ["web"]
    conf = stage.conf(id)
    assert (conf["cores"], conf["memory"]) == ("2", "2048")
    assert "size=5G" in conf["scsi0"] and "serial=data" in conf["scsi1"]
    assert [key for key in conf if key.startswith("scsi") and key != "scsihw"] == ["scsi0", "scsi1"]
    owners = {volume.vmid for volume in stage.simulator.cluster.volumes.values() if volume.kind == "images"} - {0, 9000}
    assert owners == {made[0].vmid}
    isos = [volume for volume in stage.simulator.cluster.volumes.values() if volume.kind == "iso"]
    assert len(isos) == 1


@pytest.mark.spec("virtrigaud", 26)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("effect", ["lost-answer", "reset", "hang", "error"])
@pytest.mark.parametrize("at", range(0, 36, 2))
@played_by(play)
async def test_each_call_may_fail(stage: Stage, /, kind: str, effect: str, at: int) -> None:
    stage.transport.faults.append(Fault(".*", effect, after=at, status=596, reason="Connection timed out"))
    check_one(stage, await persist(stage, order(stage, kind)))


@pytest.mark.spec("virtrigaud", 26)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", range(1, 40, 3))
@played_by(play)
async def test_the_driver_may_be_started_again_before_each_call(stage: Stage, /, kind: str, call: int) -> None:
    request = order(stage, kind)
    begun = asyncio.create_task(stage.driver.create(request))
    while len(stage.simulator.calls) < call and not (begun.done() and not stage.driver._works._known):
        await asyncio.sleep(0.01)
        if begun.done() and all(each.done() for each in stage.driver._works._known.values()):
            break
    begun.cancel()
    stage.restart()
    check_one(stage, await persist(stage, request))


@pytest.mark.parametrize("kind", KINDS)
@played_by(play)
async def test_a_lost_answer_of_the_first_step_makes_no_second_machine(stage: Stage, /, kind: str) -> None:
    stage.simulator.tasks.seconds = 30.0
    request, step = order(stage, kind), "POST /nodes/pve1/qemu/9000/clone" if kind == "template" else "POST /nodes/pve1/qemu"
    stage.transport.faults.append(Fault(step, "lost-answer"))
    with pytest.raises(ProviderError):
        await stage.driver.create(request)
    # While it is made nobody can see whose it is.
    with pytest.raises(ProviderError, match="may be the same one") as caught:
        await stage.driver.create(request)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    check_one(stage, await persist(stage, request))
    assert stage.count(step) == 1


@played_by(play)
async def test_a_vmid_that_somebody_takes_is_left_to_them(stage: Stage, /) -> None:
    api = stage.driver._cluster.api
    get = api.get
    taken: list[str] = []

    async def raced(target: str, **query: object) -> object:
        answer = await get(target, **query)  # type: ignore[arg-type]
        if target == "/cluster/nextid" and "vmid" not in query and len(taken) < 3:
            taken.append(str(answer))
            stage.admin.done(stage.admin.post("/nodes/pve1/qemu", vmid=answer, name=f"other{answer}"))
        return answer

    api.get = raced  # type: ignore[method-assign]
    vm = await stage.make()
    assert vm.startswith("103/") and [stage.simulator.machine(int(each)).conf["name"] for each in taken] == [
        "other100",
        "other101",
        "other102",
    ]


@played_by(play)
async def test_many_equal_creates_at_once_are_one(stage: Stage, /) -> None:
    request = stage.request()
    answers = await asyncio.gather(*(stage.driver.create(request) for _ in range(8)))
    assert len({each.id for each in answers}) == 1
    assert await stage.finish(answers[0].task) == ""
    assert (await stage.driver.create(request)).task is None


@played_by(play)
async def test_machines_of_many_owners_are_made_at_once(stage: Stage, /) -> None:
    answers = await asyncio.gather(*(stage.driver.create(stage.request(f"web{number}")) for number in range(12)))
    assert [await stage.finish(each.task) for each in answers] == [""] * 12
    assert len({each.id for each in answers}) == 12


@played_by(play)
async def test_a_copy_that_somebody_makes_is_not_ours(stage: Stage, /) -> None:
    vm = await stage.make()
    copied = stage.admin.post(f"/nodes/pve1/qemu/{vm.partition('/')[0]}/clone", newid=500, name="web")
    assert stage.admin.done(copied) == "OK"
    assert (await stage.driver.create(stage.request())).id == vm
    listed = {each.id.partition("/")[0]: each for each in (await stage.driver.list_vms(m.ListVMsRequest())).vms}
    assert listed["500"].provider_raw["managed"] == "false" and listed["500"].id.partition("/")[2] != vm.partition("/")[2]


@played_by(play)
async def test_a_machine_is_ours_without_its_notes_name_and_tags(stage: Stage, /) -> None:
    vm = await stage.make()
    vmid = vm.partition("/")[0]
    stage.admin.put(f"/nodes/pve1/qemu/{vmid}/config", description="shop", name="renamed")
    again = await stage.driver.create(stage.request())
    assert (again.id, again.task) == (vm, None)
    assert (await stage.driver.describe(m.DescribeRequest(id=vm))).exists


@pytest.mark.spec("virtrigaud", 52)
@played_by(play)
async def test_a_vmid_that_is_used_again_is_another_machine(stage: Stage, /) -> None:
    vm = await stage.make()
    vmid = int(vm.partition("/")[0])
    stage.admin.done(stage.admin.delete(f"/nodes/pve1/qemu/{vmid}"))
    assert not (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    stage.admin.done(stage.admin.post("/nodes/pve1/qemu", vmid=vmid, name="web"))
    assert not (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    with pytest.raises(ProviderError) as caught:
        await stage.driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert (await stage.driver.delete(m.DeleteRequest(id=vm))).task is None
    assert vmid in stage.simulator.cluster.machines
    with pytest.raises(ProviderError) as caught:
        await stage.driver.create(stage.request())
    assert caught.value.kind is ErrorKind.CONFLICT


@played_by(play)
async def test_a_request_without_owner_is_found_by_what_it_asks(stage: Stage, /) -> None:
    request = stage.request(owner=None)
    vm = await stage.make(request)
    assert (await stage.driver.create(request)).id == vm
    with pytest.raises(ProviderError) as caught:
        await stage.driver.create(stage.request(owner=None, class_json=BY_TEMPLATE))
    assert caught.value.kind is ErrorKind.CONFLICT
