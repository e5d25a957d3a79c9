"""Pools in the flat form on a whole host: numbers, scaling, updates, healing, and what is told of data."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.fronts.kubermatic.making import (
    CDI,
    LABELS,
    POOL,
    URL,
    Data,
    identities,
    names,
    pool,
    settle,
    source,
    template,
    volume,
)

BASE = "/apis/kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"
SCALE = f"{BASE}/web/scale"
INSTANCES = "virtualmachineinstances"


async def begin(host: FakeHost, document: Data, seconds: float = 30.0) -> None:
    """A pool with its image."""
    host.engine.images.offer(URL)
    await host.make(source(), document)
    await settle(seconds)


async def change(host: FakeHost, spec: Data, name: str = "web") -> None:
    reply = await host.api.merge(f"{BASE}/{name}", {"spec": spec})
    assert reply.status == 200, reply.data


def hardware(cores: int) -> Data:
    """Another number of cores, in the flat form."""
    return {"virtualMachineTemplate": {"spec": {"domain": {"cpu": {"cores": cores}}}}}


async def scale(host: FakeHost, replicas: int, seconds: float = 30.0) -> None:
    reply = await host.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": replicas}})
    assert reply.status == 200, reply.data
    await settle(seconds)


async def status(host: FakeHost) -> Data:
    return dict((await host.api.get(f"{BASE}/web")).data.get("status") or {})


async def conditions(host: FakeHost) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each.get("reason", "")) for each in (await status(host)).get("conditions") or ()}


def numbered(*numbers: int, name: str = "web") -> list[str]:
    return sorted(f"{name}-{number}" for number in numbers)


@pytest.mark.spec("kubermatic", 51)
@pytest.mark.spec("kubermatic", 53)
@pytest.mark.spec("kubermatic", 70)
@played
async def test_numbers_scaling_and_what_is_said_of_it(host: FakeHost, /) -> None:
    await begin(host, pool(3))
    assert await names(host) == numbered(0, 1, 2) == await names(host, INSTANCES)
    assert await names(host, "datavolumes", CDI) == numbered(0, 1, 2, name="disk")
    assert await status(host) == {"replicas": 3, "readyReplicas": 3, "labelSelector": "app=web"}
    before = await identities(host)
    # What `kubectl scale` and an autoscaler do: they read the scale, look at its selector, and write it back.
    found = dict((await host.api.get(SCALE)).data)
    assert (found["kind"], found["spec"], found["status"]) == ("Scale", {"replicas": 3}, {"replicas": 3, "selector": "app=web"})
    chosen = (await host.api.get("/apis/kubevirt.io/v1/namespaces/default/virtualmachines?labelSelector=app%3Dweb")).data["items"]
    assert len(chosen) == 3
    found["spec"] = {"replicas": 5}
    assert (await host.api.put(SCALE, found)).status == 200
    await settle(30)
    after = await identities(host)
    assert sorted(after) == numbered(0, 1, 2, 3, 4) and {name: after[name] for name in before} == before
    assert (await status(host))["readyReplicas"] == 5
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web-1")
    await settle(60)
    again = await identities(host)
    assert sorted(again) == numbered(0, 1, 2, 3, 4)
    assert {name for name in again if again[name] != after[name]} == {"web-1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    hard = {"hard": {"count/virtualmachines.kubevirt.io": "5"}}
    assert (await host.api.post("/api/v1/namespaces/default/resourcequotas", {**quota, "spec": hard})).status == 201
    await settle(10)
    await scale(host, 6)
    assert await conditions(host) == {"ReplicaFailure": ("True", "FailedScaleOut")}
    message = next(each["message"] for each in (await status(host))["conditions"])
    assert "exceeded quota" in message and (await status(host))["replicas"] == 5
    assert (await host.api.delete("/api/v1/namespaces/default/resourcequotas/few")).status == 200
    await settle(400)
    assert await conditions(host) == {} and (await status(host))["readyReplicas"] == 6


@pytest.mark.spec("kubermatic", 52)
@played
async def test_the_name_of_a_stranger_is_left_alone(host: FakeHost, /) -> None:
    template_ = pool(1, disks=False)["spec"]["virtualMachineTemplate"]["spec"]
    own = {"runStrategy": "Halted", "template": {"spec": {"domain": template_["domain"], "volumes": template_["volumes"]}}}
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web-1"}, "spec": own})
    await settle(5)
    before = await host.vm("web-1")
    await host.make(pool(3, disks=False))
    await settle(30)
    assert await names(host) == numbered(0, 1, 2, 3)
    assert await host.vm("web-1") == before and (await status(host))["replicas"] == 3


async def _spread(host: FakeHost, **spec: Any) -> dict[str, str]:
    """Four machines, made one after the other, the last number first."""
    await host.make(pool(4, strategy="Halted", disks=False, **spec))
    await settle(10)
    return await identities(host)


@pytest.mark.spec("kubermatic", 54)
@pytest.mark.parametrize(
    ("order", "left"),
    [("DescendingOrder", (0, 1)), ("AscendingOrder", (2, 3)), ("Newest", (1, 2)), ("Oldest", (0, 3))],
)
@played
async def test_who_goes_first(host: FakeHost, /, order: str, left: tuple[int, ...]) -> None:
    await _spread(host, scaleInStrategy={"proactive": {"selectionPolicy": {"sortPolicy": order}}})
    # 3 and then 0 are made anew, so numbers and ages differ: 1 and 2 are the oldest, 0 is the newest.
    for number in (3, 0):
        host.api.clock.time += 60
        await host.delete("VirtualMachine", "kubevirt.io/v1", f"web-{number}")
        await settle(10)
    await scale(host, 2)
    assert await names(host) == numbered(*left)


@pytest.mark.spec("kubermatic", 54)
@played
async def test_who_goes_is_a_matter_of_chance_unless_it_is_said(host: FakeHost, /) -> None:
    gone: list[str] = []
    await host.make(pool(8, strategy="Halted", disks=False))
    for _ in range(6):
        await settle(10)
        before = set(await names(host))
        await scale(host, 7, 10)
        gone += before - set(await names(host))
        await scale(host, 8, 0)
    # By number, or by age: the same always, or one after the other.
    orders = ([f"web-{number}" for number in numbers] for numbers in (range(6), range(7, 1, -1), [0] * 6, [7] * 6))
    assert len(set(gone)) >= 3 and gone not in list(orders)


@pytest.mark.spec("kubevirt", 98)
@pytest.mark.spec("kubermatic", 55)
@played
async def test_selectors_say_who_may_go(host: FakeHost, /) -> None:
    selectors: Data = {
        "labelSelector": {"matchLabels": {"spare": "yes"}},
        "nodeSelectorRequirementMatcher": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host"]}],
    }
    policy = {"selectionPolicy": {"sortPolicy": "AscendingOrder", "selectors": selectors}}
    await host.make(pool(4, disks=False, scaleInStrategy={"proactive": policy}))
    await settle(20)
    for number in (1, 2):
        await host.change(f"web-{number}", {"metadata": {"labels": {"spare": "yes"}}})
    # Nothing of it runs on a node any more, so both selectors together mean the other one alone.
    await host.change("web-1", {"spec": {"runStrategy": "Halted"}})
    await settle(60)
    await scale(host, 3)
    assert await names(host) == numbered(0, 1, 3)
    selectors["nodeSelectorRequirementMatcher"] = []
    await change(host, {"scaleInStrategy": {"proactive": policy}})
    await scale(host, 2)
    assert await names(host) == numbered(0, 3)


@pytest.mark.spec("kubermatic", 56)
@pytest.mark.parametrize("kept", [False, True])
@played
async def test_disks_of_machines_that_go(host: FakeHost, /, kept: bool) -> None:
    # Requests take their time, so that those of several controllers come between each other.
    await host.end()
    wire = host.interrupted()
    wire.reading, wire.writing = 0.05, 0.2
    await host.begin()
    preservation = {"statePreservation": "Offline" if kept else "Disabled", "selectionPolicy": {"sortPolicy": "DescendingOrder"}}
    await begin(host, pool(2, scaleInStrategy={"proactive": preservation}))
    before = (await volume(host, "disk-1"))["metadata"]["uid"]
    claim = (await host.get("PersistentVolumeClaim", "v1", "disk-1"))["metadata"]["uid"]
    await scale(host, 1, 60)
    assert await names(host) == numbered(0)
    assert (await volume(host, "disk-1") != {}) == kept == (host.engine.volumes.get(claim) is not None)
    await scale(host, 2, 60)
    assert await host.status("web-1") == "Running"
    found = await volume(host, "disk-1")
    assert (found["metadata"]["uid"] == before) == kept
    assert host.engine.images.fetched[URL] == (2 if kept else 3)


@pytest.mark.spec("kubermatic", 58)
@played
async def test_another_template_restarts_one_at_a_time(host: FakeHost, /) -> None:
    await host.make(pool(3, disks=False, maxUnavailable=1))
    await settle(30)
    machines, before = await identities(host), await identities(host, INSTANCES)
    fewest = 3
    async with host.api.watch(f"{BASE}?watch=true") as events:
        await change(host, {"virtualMachineTemplate": {"spec": {"domain": {"memory": {"guest": "256Mi"}}}}})
        await settle(3)
        specs = [(await host.vm(name))["spec"]["template"]["spec"]["domain"]["memory"]["guest"] for name in machines]
        assert specs == ["256Mi"] * 3
        await settle(120)
        while not await events.quiet():
            fewest = min(fewest, (await events.next())["object"].get("status", {}).get("readyReplicas", 0))
    after = await identities(host, INSTANCES)
    assert fewest == 2 and await identities(host) == machines
    assert sorted(after) == sorted(before) and not set(after.values()) & set(before.values())
    kept = (await host.api.get("/apis/apps/v1/namespaces/default/controllerrevisions")).data["items"]
    assert [each["metadata"]["name"] for each in kept if each["metadata"]["name"].startswith("web-")] == ["web-2"]
    assert (await host.vm("web-0"))["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-2"
    instance = await host.vmi("web-0")
    assert instance["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-2"
    assert instance["spec"]["domain"]["memory"]["guest"] == "256Mi"


@pytest.mark.spec("kubermatic", 60)
@pytest.mark.spec("kubermatic", 61)
@pytest.mark.spec("kubermatic", 71)
@pytest.mark.parametrize(("way", "cores", "revisions"), [("opportunistic", 2, ["web-1", "web-2"]), ("unmanaged", 1, ["web-1", "web-2"])])
@played
async def test_updates_that_leave_guests_alone(host: FakeHost, /, way: str, cores: int, revisions: list[str]) -> None:
    await host.make(pool(2, disks=False, updateStrategy={way: {}}))
    await settle(20)
    before, machine = await identities(host, INSTANCES), await host.vm("web-0")
    await change(host, hardware(2))
    await settle(300)
    assert await identities(host, INSTANCES) == before
    now = await host.vm("web-0")
    assert now["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == cores
    if way == "unmanaged":
        assert now == machine
    assert await _revisions(host) == revisions
    for name in before:
        await host.delete("VirtualMachineInstance", "kubevirt.io/v1", name)
    await settle(60)
    assert (await host.vmi("web-0"))["spec"]["domain"]["cpu"]["cores"] == cores
    # What nothing is made from any more is not kept.
    assert await _revisions(host) == (revisions if way == "unmanaged" else ["web-2"])


async def _revisions(host: FakeHost) -> list[str]:
    kept = (await host.api.get("/apis/apps/v1/namespaces/default/controllerrevisions")).data["items"]
    return sorted(each["metadata"]["name"] for each in kept if each["metadata"]["name"].startswith("web-"))


@pytest.mark.spec("kubermatic", 62)
@played
async def test_other_disks_make_other_machines_and_that_is_told(host: FakeHost, /) -> None:
    await begin(host, pool(2))
    machines, disks = await identities(host), await identities(host, "datavolumes", CDI)
    await change(host, {"virtualMachineTemplate": {"spec": {"dataVolumeTemplates": [template("disk", size="20Gi")]}}})
    await settle(120)
    for before, after in ((machines, await identities(host)), (disks, await identities(host, "datavolumes", CDI))):
        assert sorted(before) == sorted(after) and not set(before.values()) & set(after.values())
    assert (await volume(host, "disk-1"))["spec"]["pvc"]["resources"]["requests"]["storage"] == "20Gi"
    events = (await host.api.get("/api/v1/namespaces/default/events")).data["items"]
    told = [each for each in events if each["involvedObject"]["name"] == "web" and each["reason"] == "DataLoss"]
    assert {each["type"] for each in told} == {"Warning"}
    assert {each["message"].split()[0] for each in told} and all("disk" in each["message"] for each in told)
    assert sum(each.get("count", 1) for each in told) == 2


@pytest.mark.spec("kubermatic", 63)
@played
async def test_annotations_alone_restart_nothing(host: FakeHost, /) -> None:
    nested = pool(2, disks=False)
    machine = nested["spec"]["virtualMachineTemplate"]["spec"]
    instance = {name: machine.pop(name) for name in ("domain", "volumes")}
    machine["template"] = {"metadata": {"labels": LABELS}, "spec": instance}
    nested["apiVersion"] = POOL
    await host.make(nested)
    await settle(20)
    before, machines = await identities(host, INSTANCES), await identities(host)
    await change(host, {"virtualMachineTemplate": {"metadata": {"annotations": {"team": "blue"}}}})
    await settle(120)
    assert await identities(host, INSTANCES) == before and await identities(host) == machines
    metadata = (await host.vm("web-1"))["metadata"]
    assert metadata["annotations"]["team"] == "blue" and metadata["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-2"


@pytest.mark.spec("kubermatic", 65)
@played
async def test_a_pool_that_is_paused(host: FakeHost, /) -> None:
    await host.make(pool(2, disks=False))
    await settle(20)
    before = await identities(host, INSTANCES)
    await change(host, {"paused": True, **hardware(2)})
    await scale(host, 4)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web-1")
    await settle(60)
    assert await identities(host, INSTANCES) == {"web-0": before["web-0"]}
    assert await conditions(host) == {"ReplicaPaused": ("True", "SuccessfulPaused")}
    await change(host, {"paused": False})
    await settle(120)
    assert await conditions(host) == {}
    assert sorted(await identities(host, INSTANCES)) == numbered(0, 1, 2, 3)
    assert (await host.vmi("web-0"))["spec"]["domain"]["cpu"]["cores"] == 2
    assert {"SuccessfulPaused", "SuccessfulResume"} <= set(await host.events("web", "VirtualMachinePool"))


@pytest.mark.spec("kubermatic", 67)
@played
async def test_a_machine_that_does_not_start_is_replaced_and_a_slow_one_is_not(host: FakeHost, /) -> None:
    broken: set[str] = set()
    failed: list[str] = []
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        for found in [(await host.vmi(name)).get("metadata", {}) for name in broken]:
            if found.get("uid") == id:
                host.engine.machines.fail(id, "qemu: no")
                failed.append(found["ownerReferences"][0]["uid"])
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    # It waits for its image much longer than starts may fail.
    slow = "http://images/slow.qcow2"
    host.engine.images.offer(slow)
    host.engine.images.hold(slow)
    broken.add("web-1")
    await host.make(source(url=slow), pool(1, autohealing={"startUpFailureThreshold": 3}))
    await settle(10)
    first = await identities(host)
    await settle(900)
    assert await identities(host) == first and sorted(first) == numbered(0) and await host.status("web-0") == "Provisioning"
    host.engine.images.release(slow)
    await settle(60)
    assert await host.status("web-0") == "Running"
    await scale(host, 2, 5)
    before = await identities(host)
    while (await identities(host)).get("web-1", before["web-1"]) == before["web-1"]:
        await asyncio.sleep(1)
    assert failed.count(before["web-1"]) == 3
    broken.clear()
    await settle(60)
    assert await host.status("web-1") == "Running" and (await identities(host))["web-0"] == first["web-0"]


@pytest.mark.spec("kubermatic", 68)
@played
async def test_a_machine_that_is_let_go_is_replaced(host: FakeHost, /) -> None:
    await host.make(pool(2, disks=False))
    await settle(20)
    before = await identities(host, INSTANCES)
    await host.change("web-0", {"metadata": {"ownerReferences": None}})
    await settle(30)
    assert await names(host) == numbered(0, 1, 2)
    assert (await identities(host, INSTANCES))["web-0"] == before["web-0"]
    assert "pool.kubevirt.io/finalizer" not in (await host.vm("web-0"))["metadata"]["finalizers"]
    await host.delete("VirtualMachinePool", POOL, "web")
    await settle(60)
    assert await names(host) == numbered(0)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web-0")
    await settle(60)
    assert await names(host) == []


@pytest.mark.spec("kubermatic", 69)
@pytest.mark.parametrize(("policy", "left"), [("Background", 0), ("Foreground", 0), ("Orphan", 2)])
@played
async def test_a_pool_takes_its_machines_along_unless_they_are_to_stay(host: FakeHost, /, policy: str, left: int) -> None:
    await begin(host, pool(2))
    assert (await host.api.delete(f"{BASE}/web", {"propagationPolicy": policy})).status in (200, 202)
    await settle(120)
    assert (await host.api.get(f"{BASE}/web")).status == 404
    assert len(await names(host)) == len(await names(host, INSTANCES)) == len(await names(host, "datavolumes", CDI)) == left


@pytest.mark.spec("kubermatic", 73)
@played
async def test_a_pool_of_two_groups_is_one(host: FakeHost, /) -> None:
    await host.make(pool(0))
    await settle(5)
    groups = ("kubevirt.io/v1alpha1", POOL, "pool.kubevirt.io/v1alpha1")
    found = [(await host.api.get(f"/apis/{group}/virtualmachinepools")).data["items"] for group in groups]
    assert [len(each) for each in found] == [1, 1, 1]
    assert len({each["metadata"]["uid"] for (each,) in found}) == 1
    short: list[str] = []
    in_all: list[str] = []
    for group in groups[:2]:
        for each in (await host.api.get(f"/apis/{group}")).data["resources"]:
            short += [group for name in each.get("shortNames") or () if name == "vmpool"]
            in_all += [group for name in each.get("categories") or () if name == "all" and each["name"] == "virtualmachinepools"]
    # `kubectl get vmpool` and `kubectl get all` ask one group.
    assert short == in_all == [POOL]
    await host.delete("VirtualMachinePool", POOL, "web")
    await settle(10)
    assert [(await host.api.get(f"/apis/{group}/virtualmachinepools")).data["items"] for group in groups] == [[], [], []]
