"""Changes, clones and deletions reach their end although any call on the way fails or its answer is lost; a caller only calls again."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.errors import RULES, ProviderError
from tests.coroutines import played_by
from tests.kit.proxmox.server import Fault
from tests.unit.drivers.proxmox.conftest import Stage, play

EFFECTS = ("lost-answer", "reset", "error")
DATA = p.DiskPayload(name="data", size_gib=2)


async def persist(stage: Stage, call: Callable[[], Awaitable[object]]) -> object:
    """Call until the call and its task have ended well."""
    for _ in range(30):
        try:
            answer = await call()
            if await stage.finish(getattr(answer, "task", None)) == "":
                return answer
        except ProviderError as error:
            if not RULES[error.kind].transient:
                raise
        await asyncio.sleep(5)
    raise AssertionError("it never ends well")


def fail(stage: Stage, effect: str, at: int) -> None:
    stage.transport.faults.append(Fault(".*", effect, after=at, status=596, reason="Connection timed out"))


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("at", range(16))
@played_by(play)
async def test_a_change_is_carried_out_once(stage: Stage, /, effect: str, at: int) -> None:
    vm = await stage.make(stage.request(disks_json=p.encode_list((p.DiskPayload(name="old", size_gib=1),))))
    fail(stage, effect, at)
    wanted = p.DesiredPayload(
        name="web",
        machine_class=p.ClassPayload(cpu=3, memory_mib=2048, disk_defaults=p.DiskDefaultsPayload(size_gib=6)),
        disks=(DATA,),
    )
    await persist(stage, lambda: stage.driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=p.encode(wanted))))
    conf = stage.conf(vm)
    assert (conf["cores"], conf["memory"]) == ("3", "2048") and "size=6G" in conf["scsi0"]
    disks = [value for key, value in conf.items() if key.startswith("scsi") and "serial=" in value]
    assert len(disks) == 1 and "serial=data" in disks[0]
    # The disk that nobody names any more is kept, and no other volume is left.
    assert len([key for key in conf if key.startswith("unused")]) == 1
    assert len([each for each in stage.simulator.cluster.volumes.values() if each.vmid == 100 and "cloudinit" not in each.volid]) == 3


@pytest.mark.spec("virtrigaud", 80)
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("at", range(0, 20, 2))
@played_by(play)
async def test_a_clone_is_made_once(stage: Stage, /, effect: str, at: int) -> None:
    vm = await stage.make()
    request = m.CloneRequest(source_vm_id=vm, target_name="copy", target_vm=m.ObjectIdentity(namespace="default", name="copy"))
    fail(stage, effect, at)
    answer = await persist(stage, lambda: stage.driver.clone(request))
    names = sorted(each.conf.get("name", "") for each in stage.simulator.cluster.machines.values() if not each.is_template)
    assert names == ["copy", "web"]
    assert stage.conf(answer.target_vm_id)["name"] == "copy"  # type: ignore[attr-defined]


@pytest.mark.spec("virtrigaud", 53, 54)
@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("at", range(12))
@played_by(play)
async def test_a_machine_is_deleted_with_all_that_is_its_own(stage: Stage, /, effect: str, at: int) -> None:
    vm = await stage.make(stage.request(user_data=b"#!/bin/sh\n"))
    other = await stage.make(stage.request("other", user_data=b"#!/bin/sh\n"))
    await stage.power(vm, m.PowerOp.ON)
    fail(stage, effect, at)
    await persist(stage, lambda: stage.driver.delete(m.DeleteRequest(id=vm)))
    stage.transport.faults.clear()
    assert not (await stage.driver.describe(m.DescribeRequest(id=vm))).exists
    assert (await stage.driver.describe(m.DescribeRequest(id=other))).exists
    volumes = stage.simulator.cluster.volumes.values()
    left = {each.volid for each in volumes if each.vmid == 100 or ":iso/paddock-100-" in each.volid}
    assert left == set()


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("at", range(6))
@played_by(play)
async def test_a_snapshot_is_taken_once(stage: Stage, /, effect: str, at: int) -> None:
    vm = await stage.make()
    fail(stage, effect, at)
    await persist(stage, lambda: stage.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, name_hint="before")))
    stage.transport.faults.clear()
    assert (await stage.driver.get_disk_info(m.GetDiskInfoRequest(vm_id=vm))).snapshots == ("before",)
