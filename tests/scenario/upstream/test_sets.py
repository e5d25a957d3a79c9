"""Sets of instances, as `tests/replicaset_test.go` of KubeVirt wants them."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost
from tests.scenario.upstream.asking import INSTANCES, PLACE, VM, condition, listed, names, operation, patched

pytestmark = pytest.mark.spec("kubevirt", 110)

KIND = "VirtualMachineInstanceReplicaSet"
SETS = f"{PLACE}/virtualmachineinstancereplicasets"
LABELS = {"select": "set"}


def replicas(**spec: Any) -> Data:
    """A set without instances yet."""
    hardware = {"domain": {"memory": {"guest": "32Mi"}, "devices": {}}, **spec}
    template = {"metadata": {"labels": LABELS}, "spec": hardware}
    body = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": VM, "kind": KIND, "metadata": {"name": "set"}, "spec": body}


async def told(host: FakeHost) -> Data:
    return await host.get(KIND, VM, "set")


async def changed(host: FakeHost, *operations: Data, seconds: float = 30) -> Data:
    await patched(host, f"{SETS}/set", *operations)
    await asyncio.sleep(seconds)
    return await told(host)


async def scaled(host: FakeHost, count: int) -> None:
    found = await changed(host, operation("replace", "/spec/replicas", count))
    assert found["status"].get("replicas", 0) == found["status"].get("readyReplicas", 0) == count
    assert len(await names(host, INSTANCES)) == count


@pytest.mark.parametrize("counts", [(3, 2, 0), (5, 6, 0)])
@pytest.mark.parametrize("way", ["spec", "scale"])
@played
async def test_it_has_as_many_instances_as_it_is_told(host: FakeHost, /, counts: tuple[int, ...], way: str) -> None:
    await host.make(replicas())
    for count in counts:
        if way == "spec":
            await scaled(host, count)
            continue
        scale = (await host.api.get(f"{SETS}/set/scale")).data
        scale["spec"]["replicas"] = count
        assert (await host.api.put(f"{SETS}/set/scale", scale)).status == 200
        await asyncio.sleep(30)
        assert (await host.api.get(f"{SETS}/set/scale")).data["status"]["replicas"] == count
        assert len(await names(host, INSTANCES)) == count


@played
async def test_what_makes_no_sense_is_refused(host: FakeHost, /) -> None:
    wrong = replicas()
    wrong["spec"]["template"]["spec"]["not-a-domain"] = wrong["spec"]["template"]["spec"].pop("domain")
    assert (await host.api.post(SETS, wrong)).status == 422
    wrong = replicas()
    wrong["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = [{"name": "testdisk"}]
    reply = await host.api.post(SETS, wrong)
    assert reply.status == 422 and list(reply.causes) == ["spec.template.spec.domain.devices.disks[0].name"]


@played
async def test_its_columns_are_printed_by_the_server(host: FakeHost, /) -> None:
    await host.make(replicas())
    await scaled(host, 2)
    table = (await host.api.get(f"{SETS}/set", accept="application/json;as=Table;v=v1;g=meta.k8s.io, application/json")).data
    columns = [(each["name"], each["type"]) for each in table["columnDefinitions"]]
    assert columns == [("Name", "string"), ("Desired", "integer"), ("Current", "integer"), ("Ready", "integer"), ("Age", "date")]
    assert table["rows"][0]["cells"][:4] == ["set", 2, 2, 2]


@played
async def test_its_instances_go_with_it(host: FakeHost, /) -> None:
    await host.make(replicas())
    await scaled(host, 2)
    await host.delete(KIND, VM, "set")
    await asyncio.sleep(60)
    assert await names(host, INSTANCES) == [] and list(host.engine.machines) == []


@played
async def test_orphans_have_no_owner(host: FakeHost, /) -> None:
    await host.make(replicas())
    await scaled(host, 2)
    assert all(each["metadata"]["ownerReferences"] for each in await listed(host, INSTANCES))
    await host.delete(KIND, VM, "set", "?propagationPolicy=Orphan")
    await asyncio.sleep(60)
    left = await listed(host, INSTANCES)
    assert await told(host) == {} and len(left) == 2
    assert not any(each["metadata"].get("ownerReferences") for each in left)
    assert [each["status"]["phase"] for each in left] == ["Running"] * 2


@played
async def test_a_set_that_is_paused_stays_as_it_is(host: FakeHost, /) -> None:
    await host.make(replicas())
    found = await changed(host, operation("add", "/spec/paused", True), seconds=10)
    assert condition(found, "ReplicaPaused") == "True"
    found = await changed(host, operation("replace", "/spec/replicas", 2), seconds=10)
    assert found["status"].get("replicas", 0) == 0 and len(found["status"]["conditions"]) == 1
    found = await changed(host, operation("replace", "/spec/paused", False), seconds=10)
    assert found["status"]["replicas"] == 2 and not found["status"].get("conditions")


@played
async def test_one_that_has_ended_is_replaced(host: FakeHost, /) -> None:
    await host.make(replicas())
    await scaled(host, 2)
    before = await listed(host, INSTANCES)
    ended = host.engine.machines.get(before[0]["metadata"]["uid"])
    assert ended is not None
    ended.crash("killed by signal 9")
    await asyncio.sleep(30)
    after = await names(host, INSTANCES)
    assert len(after) == 2 and before[0]["metadata"]["name"] not in after
    assert before[1]["metadata"]["name"] in after


@played
async def test_one_that_takes_long_to_end_is_replaced_at_once(host: FakeHost, /) -> None:
    await host.make(replicas(terminationGracePeriodSeconds=200))
    await scaled(host, 2)
    slow = (await listed(host, INSTANCES))[0]
    machine = host.engine.machines.get(slow["metadata"]["uid"])
    assert machine is not None
    machine.deaf = True
    await host.delete("VirtualMachineInstance", VM, slow["metadata"]["name"])
    await asyncio.sleep(20)
    assert len(await names(host, INSTANCES)) == 3
    still = await host.vmi(slow["metadata"]["name"])
    assert still["status"]["phase"] == "Running" and still["metadata"]["deletionTimestamp"]
