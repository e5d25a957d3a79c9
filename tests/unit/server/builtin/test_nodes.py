"""The host as a Node, the server as a Service, rows of tables, and kinds that are only kept (docs/spec/kube-api.md 2.2 and 7)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock.server.housekeeping import bootstrap
from paddock.server.housekeeping import node as presence
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness
from tests.unit.server.admission import test_webhooks as webhooks

NODE = "/api/v1/nodes/host-1"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
HOST = presence.NodeFacts(name="host-1", addresses=("192.0.2.7",), cpus=4, memory_kib=1024, version="v1.34.0", kernel="6.1", image="OS")


async def rows(api: Harness, path: str) -> list[dict[str, Any]]:
    table = (await api.get(path, accept=TABLE)).data
    columns = [column["name"] for column in table["columnDefinitions"]]
    return [dict(zip(columns, row["cells"], strict=True)) for row in table["rows"]]


def strategic(api: Harness, patch: Any) -> Any:
    return api.call("PATCH", NODE, patch, content_type=STRATEGIC)


@pytest.mark.spec("kube-api", 119)
@played
async def test_the_host_is_a_ready_node(api: Harness, /) -> None:
    await presence.ensure(api.parts, HOST, 7443)
    node = (await api.get(NODE)).data
    assert node["status"]["capacity"] == {"cpu": "4", "memory": "1Mi", "pods": "110"}
    (row,) = await rows(api, "/api/v1/nodes")
    assert (row["Name"], row["Status"], row["Roles"], row["Internal-IP"]) == ("host-1", "Ready", "worker", "192.0.2.7")
    assert (await strategic(api, {"spec": {"unschedulable": True}})).status == 200
    assert (await rows(api, "/api/v1/nodes"))[0]["Status"] == "Ready,SchedulingDisabled"
    for condition, count in (("%3Dtrue", 1), ("%3Dfalse", 0), ("!%3Dfalse", 1)):
        assert len((await api.get(f"/api/v1/nodes?fieldSelector=spec.unschedulable{condition}")).data["items"]) == count
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    assert (await strategic(api, {"spec": {"taints": [taint]}})).data["spec"]["taints"] == [taint]
    assert (await strategic(api, {"spec": {"taints": [taint, taint]}})).status == 422
    await strategic(api, {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})
    api.clock.time += 60
    await presence.ensure(api.parts, HOST, 7443)
    again = (await api.get(NODE)).data
    assert (again["spec"]["unschedulable"], again["spec"]["taints"]) == (True, [taint])
    (ready,) = again["status"]["conditions"]
    assert (ready["lastHeartbeatTime"], ready["lastTransitionTime"]) == (api.clock.now(), node["metadata"]["creationTimestamp"])
    assert (await rows(api, "/api/v1/nodes"))[0]["Roles"] == "worker"
    opened = await strategic(api, {"spec": {"unschedulable": None, "taints": None}})
    assert opened.data["spec"] == {}
    assert len((await api.get("/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse")).data["items"]) == 1


@played
async def test_the_server_is_a_service(api: Harness, /) -> None:
    await bootstrap.ensure(api.parts)
    for port in (7443, 7444):
        await presence.ensure(api.parts, HOST, port)
        (row,) = await rows(api, "/api/v1/namespaces/default/services")
        assert (row["Name"], row["Type"], row["Cluster-IP"], row["Port(s)"]) == ("kubernetes", "ClusterIP", "10.96.0.1", "443/TCP")
        (row,) = await rows(api, "/api/v1/namespaces/default/endpoints")
        assert row["Endpoints"] == f"192.0.2.7:{port}"
        (row,) = await rows(api, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")
        assert (row["AddressType"], row["Ports"], row["Endpoints"]) == ("IPv4", str(port), "192.0.2.7")


SECRET = {"metadata": {"name": "x"}, "data": {"a": "", "b": ""}}
MAP = {"metadata": {"name": "x"}, "data": {"a": "", "b": ""}, "binaryData": {"c": ""}}
CLASS = {"metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"}
CLAIM = {"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
EVENT = {"metadata": {"name": "x"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "message": "m "}
BINDING = {
    "metadata": {"name": "x"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "User", "name": "ada"}, {"kind": "ServiceAccount", "name": "a", "namespace": "default"}],
}


@pytest.mark.parametrize(
    ("group", "plural", "body", "row"),
    [
        ("api/v1/namespaces/default", "secrets", SECRET, {"Type": "Opaque", "Data": 2, "Age": "0s"}),
        ("api/v1/namespaces/default", "configmaps", MAP, {"Data": 3, "Age": "0s"}),
        ("api/v1/namespaces/default", "serviceaccounts", {"metadata": {"name": "x"}, "secrets": [{"name": "a"}]}, {"Name": "x"}),
        ("api/v1/namespaces/default", "persistentvolumeclaims", CLAIM, {"Status": "Pending", "Volume": "", "VolumeMode": "Filesystem"}),
        (
            "apis/storage.k8s.io/v1",
            "storageclasses",
            CLASS,
            {"Name": "x (default)", "ReclaimPolicy": "Delete", "AllowVolumeExpansion": False},
        ),
        ("api/v1/namespaces/default", "events", EVENT, {"Last Seen": "<unknown>", "Object": "pod/p", "Message": "m", "Count": 1}),
        (
            "apis/rbac.authorization.k8s.io/v1/namespaces/default",
            "rolebindings",
            BINDING,
            {"Role": "ClusterRole/view", "Users": "ada", "Groups": "", "ServiceAccounts": "default/a"},
        ),
        (
            "apis/coordination.k8s.io/v1/namespaces/default",
            "leases",
            {"metadata": {"name": "x"}, "spec": {"holderIdentity": "me"}},
            {"Holder": "me"},
        ),
    ],
)
@played
async def test_rows(api: Harness, /, group: str, plural: str, body: dict[str, Any], row: dict[str, Any]) -> None:
    made = await api.post(f"/{group}/{plural}", body)
    assert made.status == 201, made.data
    (shown,) = await rows(api, f"/{group}/{plural}")
    assert {key: shown[key] for key in row} == row


OF_PODS = [
    ("", "Pod"),
    *(("apps", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")),
    *(("batch", kind) for kind in ("Job", "CronJob")),
]


@played
async def test_a_pod_with_tools_for_disks_is_refused_with_the_tools_of_the_host(api: Harness, /) -> None:
    made = await api.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "libguestfs-tools-disk"}, "spec": {}})
    assert (made.status, "qemu-img and guestfish" in made.data["message"]) == (403, True)


@pytest.mark.parametrize(("group", "kind"), OF_PODS)
@played
async def test_pods_and_what_is_made_of_them_can_be_looked_for_and_not_made(api: Harness, /, group: str, kind: str) -> None:
    plural, version = f"{kind.lower()}s", f"{group}/v1" if group else "v1"
    place = f"/{f'apis/{group}' if group else 'api'}/v1/namespaces/default/{plural}"
    named = f"{plural}.{group}" if group else plural
    why = "this server runs virtual machines, not pods; create a VirtualMachine instead"
    refused = await api.post(place, {"metadata": {"name": "p"}, "spec": {"template": {}}})
    assert (refused.status, refused.data["message"]) == (403, f'{named} "p" is forbidden: {why}')
    assert refused.data["details"] == {"name": "p", **({"group": group} if group else {}), "kind": plural}
    assert why in (await api.apply(f"{place}/p", {"apiVersion": version, "kind": kind, "metadata": {"name": "p"}})).data["message"]
    assert (await api.get(place)).data["items"] == []
    assert (await api.get(f"{place}/p")).status == 404
    assert (await api.delete(f"{place}/p")).status == 404


@run_by(asyncio.run)
async def test_webhooks_judge_what_no_server_of_machines_makes(tmp_path: Path) -> None:
    async with webhooks.judged_by(tmp_path, lambda asked: webhooks.deny(asked, message="never", code=403)) as (api, hook):
        rule = {**webhooks.CREATES, "apiGroups": ["apps"], "resources": ["deployments"]}
        await webhooks.configure(api, hook, rules=[rule])
        refused = await api.post("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "d"}, "spec": {}})
        assert (refused.status, refused.data["message"]) == (403, 'admission webhook "h0.example.com" denied the request: never')


@played
async def test_the_system_has_priorities_of_its_own(api: Harness, /) -> None:
    priorities = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await bootstrap.ensure(api.parts)
    found = {each["metadata"]["name"]: each["value"] for each in (await api.get(priorities)).data["items"]}
    assert found == {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
    kept = await api.delete(f"{priorities}/system-node-critical")
    assert (kept.status, "this is a system priority class and cannot be deleted" in kept.data["message"]) == (403, True)
    refused = await api.post(priorities, {"metadata": {"name": "system-mine"}, "value": 5})
    (cause,) = refused.data["details"]["causes"]
    assert (refused.status, cause["field"]) == (422, "metadata.name")
    assert cause["message"].endswith("error: system-mine is not a known system priority class")


@played
async def test_pods_of_a_node_can_be_looked_for(api: Harness, /) -> None:
    found = await api.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dx%2Cstatus.phase!%3DFailed")
    assert found.data["items"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 5}),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"minAvailable": "50%"}}),
    ],
)
@played
async def test_kinds_that_are_kept(api: Harness, /, path: str, body: dict[str, Any]) -> None:
    made = await api.post(path, {"metadata": {"name": "x"}, **body})
    assert made.status == 201
    assert {key: made.data[key] for key in body} == body
    assert (await api.get(f"{path}/x")).data == made.data


@played
async def test_priorities_stay(api: Harness, /) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    made = await api.post(path, {"metadata": {"name": "x"}, "value": 5})
    assert made.data["preemptionPolicy"] == "PreemptLowerPriority"
    assert "value" in (await api.merge(f"{path}/x", {"value": 6})).causes


@pytest.mark.spec("kube-api", 139)
@played
async def test_the_network_of_services_is_shown(api: Harness, /) -> None:
    await bootstrap.ensure(api.parts)
    path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    revisions = []
    for network in ("10.96.0.0/12", "10.96.0.0/12", "10.20.0.0/16"):
        await presence.ensure_network(api.parts, network)
        shown = (await api.get(path)).data
        assert shown["spec"]["cidrs"] == [network]
        assert [(each["type"], each["status"]) for each in shown["status"]["conditions"]] == [("Ready", "True")]
        revisions.append(shown["metadata"]["resourceVersion"])
    assert revisions[0] == revisions[1]
