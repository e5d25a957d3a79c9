"""Snapshots: taken once, gone back to, deleted, and refused."""

import asyncio
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import EVERYTHING, OWNER, Target, creation

SNAPSHOTS, RESTORES = EVERYTHING[6], EVERYTHING[7]
OTHER = m.ObjectIdentity(uid="99999999-2222-4333-8444-555555555555", namespace="team", name="other")


async def taken(target: Target, vm_id: str, name: str = "before") -> str:
    answer = await target.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm_id, name_hint=name, description="why"))
    assert await target.ends(answer.task) == ""
    return answer.snapshot_id


@pytest.mark.parametrize("runs", [False, True], ids=["off", "on"])
@played
async def test_a_snapshot_is_taken_and_gone_back_to(target: Target, /, runs: bool) -> None:
    vm_id = await (target.running if runs else target.made)(tags=("old",))
    snapshot = await taken(target, vm_id)
    await target.host.api.merge(f"{EVERYTHING[0]}/web", {"metadata": {"annotations": {"virtrigaud.io/tags": '["new"]'}}})
    answer = await target.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=vm_id, snapshot_id=snapshot))
    # The call that is repeated meanwhile goes back once.
    assert await target.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=vm_id, snapshot_id=snapshot)) == answer
    assert await target.ends(answer.task) == ""
    vm = await target.host.vm()
    assert vm["metadata"]["annotations"]["virtrigaud.io/tags"] == '["old"]'
    # It is the same machine, of the same owner, on claims of its own.
    assert (await target.seen(vm_id)).exists and vm["metadata"]["labels"]["virtrigaud.io/owner-uid"] == OWNER.uid
    assert await target.power(vm_id, m.PowerOp.ON) == "" and (await target.seen(vm_id)).power_state == "On"
    again = await target.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=vm_id, snapshot_id=snapshot))
    assert again != answer and await target.ends(again.task) == ""
    assert len((await target.names(RESTORES))["virtualmachinerestores"]) == 1
    await target.ends((await target.driver.delete(m.DeleteRequest(id=vm_id))).task)
    await asyncio.sleep(30)
    assert not any((await target.names(*EVERYTHING)).values())


@pytest.mark.spec("virtrigaud", 178)
@played
async def test_a_snapshot_with_memory(target: Target, /) -> None:
    vm_id = await target.running()
    request = m.SnapshotCreateRequest(vm_id=vm_id, name_hint="warm", include_memory=True, description="why")
    answer = await target.driver.snapshot_create(request)
    assert await target.ends(answer.task) == ""
    (made,) = (await target.host.api.get(SNAPSHOTS)).data["items"]
    assert made["metadata"]["annotations"]["paddock.dev/memory"] == "true" and made["status"]["indications"] == ["Memory", "Online"]
    revert = await target.driver.snapshot_revert(m.SnapshotRevertRequest(vm_id=vm_id, snapshot_id=answer.snapshot_id))
    assert await target.ends(revert.task) == ""
    # It goes on by itself, where it was.
    assert len((await target.host.running()).continued) == 1


@pytest.mark.spec("virtrigaud", 179)
@played
async def test_no_memory_where_the_target_is_not_paddock(target: Target, /) -> None:
    vm_id = await target.running()
    classes = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses"
    for each in (await target.host.api.get(classes)).data["items"]:
        await target.host.api.delete(f"{classes}/{each['metadata']['name']}")
    foreign = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "ceph"}}
    reply = await target.host.api.post(classes, {**foreign, "driver": "rbd.csi.ceph.com", "deletionPolicy": "Delete"})
    assert reply.status == 201, reply.data
    assert not (await target.driver.get_capabilities(m.GetCapabilitiesRequest())).supports_memory_snapshots
    with pytest.raises(ProviderError) as error:
        await target.driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm_id, include_memory=True))
    assert error.value.kind is ErrorKind.NOT_SUPPORTED


@played
async def test_the_same_name_is_the_same_snapshot(target: Target, /) -> None:
    vm_id = await target.made()
    first = await taken(target, vm_id)
    target.again()
    assert await taken(target, vm_id) == first and await taken(target, vm_id, "Other name") != first
    assert len((await target.names(SNAPSHOTS))["virtualmachinesnapshots"]) == 2


@played
async def test_a_snapshot_that_failed_is_taken_again(target: Target, /) -> None:
    vm_id = await target.made()
    first = await taken(target, vm_id)
    failed = {"status": {"phase": "Failed", "readyToUse": False, "error": {"message": "no room"}}}
    await target.host.api.merge(f"{SNAPSHOTS}/{first.partition('/')[0]}/status", failed)
    with pytest.raises(ProviderError, match="no room") as caught:
        await taken(target, vm_id)
    assert caught.value.kind == ErrorKind.UNAVAILABLE
    await asyncio.sleep(5)
    assert await taken(target, vm_id) != first
    assert len((await target.names(SNAPSHOTS))["virtualmachinesnapshots"]) == 1


@played
async def test_deleting_a_snapshot(target: Target, /) -> None:
    vm_id = await target.made()
    snapshot = await taken(target, vm_id)
    request = m.SnapshotDeleteRequest(vm_id=vm_id, snapshot_id=snapshot)
    assert await target.ends((await target.driver.snapshot_delete(request)).task) == ""
    assert (await target.names(SNAPSHOTS)) == {"virtualmachinesnapshots": []}
    assert await target.driver.snapshot_delete(request) == m.TaskResponse()


@played
async def test_refusals(target: Target, /) -> None:
    vm_id = await target.made()
    other = (await target.driver.create(creation("other", owner=OTHER))).id
    snapshot = await taken(target, vm_id)
    calls: tuple[tuple[Any, Any, ErrorKind], ...] = (
        (target.driver.snapshot_create, m.SnapshotCreateRequest(vm_id=vm_id, include_memory=True), ErrorKind.CONFLICT),
        (target.driver.snapshot_create, m.SnapshotCreateRequest(vm_id="web/gone"), ErrorKind.NOT_FOUND),
        (target.driver.snapshot_revert, m.SnapshotRevertRequest(vm_id=other, snapshot_id=snapshot), ErrorKind.CONFLICT),
        (target.driver.snapshot_delete, m.SnapshotDeleteRequest(vm_id=other, snapshot_id=snapshot), ErrorKind.CONFLICT),
        (target.driver.snapshot_revert, m.SnapshotRevertRequest(vm_id=vm_id, snapshot_id="gone/1"), ErrorKind.NOT_FOUND),
    )
    for call, request, kind in calls:
        with pytest.raises(ProviderError) as error:
            await call(request)
        assert error.value.kind is kind
    assert (await target.names(SNAPSHOTS, RESTORES))["virtualmachinerestores"] == []
