"""The host's heartbeat: a Lease every 10 seconds, the Node's condition every five minutes."""

import pytest

from paddock.kubernetes.meta import ages
from paddock.server.housekeeping import heartbeat
from paddock.server.housekeeping import node as presence
from paddock.server.housekeeping.heartbeat import Heartbeat
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

HOST = presence.NodeFacts(name="host-1", addresses=("192.0.2.7",), cpus=4, memory_kib=1024, version="v1.34.0")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODE = "/api/v1/nodes/host-1"


async def begin(api: Harness) -> Heartbeat:
    await api.namespace("kube-node-lease")
    await presence.ensure_node(api.parts, HOST)
    alive = Heartbeat(api.parts, HOST)
    await alive.beat()
    return alive


async def ready(api: Harness) -> str:
    (condition,) = (await api.get(NODE)).data["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "True")
    return str(condition["lastHeartbeatTime"])


@played
async def test_the_lease_is_renewed_and_now_and_then_the_node(api: Harness, /) -> None:
    alive = await begin(api)
    uid = (await api.get(NODE)).data["metadata"]["uid"]
    first = (await api.get(f"{LEASES}/host-1")).data
    assert first["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Node", "name": "host-1", "uid": uid}]
    assert (first["spec"]["holderIdentity"], first["spec"]["leaseDurationSeconds"]) == ("host-1", 40)
    started = await ready(api)
    for _ in range(29):
        api.clock.time += heartbeat.SECONDS
        await alive.beat()
        lease = (await api.get(f"{LEASES}/host-1")).data
        assert lease["spec"]["renewTime"] == ages.micro_timestamp(api.clock.time)
    assert await ready(api) == started
    revision = api.store.revision
    api.clock.time += heartbeat.SECONDS
    await alive.beat()
    assert await ready(api) == api.clock.now()
    # One write of the Lease, one of the Node's status.
    assert api.store.revision == revision + 2


@pytest.mark.parametrize("path", [f"{LEASES}/host-1", NODE])
@played
async def test_what_somebody_deletes_comes_back(api: Harness, /, path: str) -> None:
    alive = await begin(api)
    assert (await api.delete(path)).status == 200
    await alive.beat()
    assert (await api.get(path)).status == 200
    node = (await api.get(NODE)).data["metadata"]["uid"]
    assert (await api.get(f"{LEASES}/host-1")).data["metadata"]["ownerReferences"][0]["uid"] == node


@played
async def test_a_clock_that_is_set_back_does_not_silence_the_host(api: Harness, /) -> None:
    alive = await begin(api)
    api.clock.time -= 86400
    await alive.beat()
    assert await ready(api) == api.clock.now()
    assert (await api.get(f"{LEASES}/host-1")).data["spec"]["renewTime"] == ages.micro_timestamp(api.clock.time)


@played
async def test_cordon_taint_and_labels_outlive_the_heartbeat(api: Harness, /) -> None:
    alive = await begin(api)
    taint = {"key": "maintenance", "value": "now", "effect": "NoSchedule"}
    patch = {"metadata": {"labels": {"rack": "3"}}, "spec": {"unschedulable": True, "taints": [taint]}}
    await api.call("PATCH", NODE, patch, content_type="application/strategic-merge-patch+json")
    for _ in range(40):
        api.clock.time += heartbeat.SECONDS
        await alive.beat()
    node = (await api.get(NODE)).data
    assert (node["metadata"]["labels"]["rack"], node["spec"]["unschedulable"], node["spec"]["taints"]) == ("3", True, [taint])


@played
async def test_a_namespace_that_is_missing_stops_nothing(api: Harness, /) -> None:
    await presence.ensure_node(api.parts, HOST)
    await Heartbeat(api.parts, HOST).beat()
    assert (await api.get(f"{LEASES}/host-1")).status == 404


@pytest.mark.spec("kubevirt", 112)
@played
async def test_a_host_that_cannot_run_machines_says_so_at_once(api: Harness, /) -> None:
    problem: list[presence.NodeProblem | None] = [None]

    async def condition() -> tuple[str, str, str]:
        (found,) = (await api.get(NODE)).data["status"]["conditions"]
        return found["status"], found["reason"], found["lastTransitionTime"]

    await api.namespace("kube-node-lease")
    await presence.ensure_node(api.parts, HOST)
    alive = Heartbeat(api.parts, HOST, lambda: problem[0])
    began = api.clock.now()
    api.clock.time += 100
    problem[0] = presence.NodeProblem("NetworkUnusable", "there is no network")
    await alive.beat()
    since = api.clock.now()
    assert await condition() == ("False", "NetworkUnusable", since) and since != began
    api.clock.time += heartbeat.SECONDS
    problem[0] = presence.NodeProblem("QemuMissing", "there is no QEMU")
    await alive.beat()
    assert await condition() == ("False", "QemuMissing", since)
    api.clock.time += heartbeat.SECONDS
    problem[0] = None
    await alive.beat()
    assert await condition() == ("True", "ServerReady", api.clock.now())


@played
async def test_limits_of_the_host_are_conditions_that_come_and_go(api: Harness, /) -> None:
    limits: list[presence.NodeLimit] = [presence.NodeLimit("KvmLimited", "Limited", "this host has no /dev/kvm")]
    await begin(api)
    alive = Heartbeat(api.parts, HOST, limits=lambda: tuple(limits))
    await alive.beat()
    began = api.clock.now()
    for _ in range(2):
        found, limit = (await api.get(NODE)).data["status"]["conditions"]
        assert (found["type"], found["status"]) == ("Ready", "True")
        assert limit["lastTransitionTime"] == began
        assert limit["type"] == "KvmLimited" and limit["status"] == "True" and limit["reason"] == "Limited"
        assert limit["message"] == "this host has no /dev/kvm"
        api.clock.time += 600
        await alive.beat()
    limits.clear()
    await alive.beat()
    await ready(api)
