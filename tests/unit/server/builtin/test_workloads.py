"""Pods and what is made of Pods, stored as kube-apiserver stores them where no kubelet and no controllers run."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.meta import ages
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.server.builtin import pods
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness

CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
BATCH, SCALING = "/apis/batch/v1/namespaces/default", "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CONTAINER = {"name": "a", "image": "nginx"}
SHOWN = {
    **CONTAINER,
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "Always",
}
POD_SPEC = {
    "containers": [SHOWN],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
LABELS = {"metadata": {"labels": {"a": "b"}}}
TEMPLATE: dict[str, Any] = {**LABELS, "spec": {"containers": [CONTAINER]}}
FULL = {**LABELS, "spec": POD_SPEC}
ENDING = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}
SELECTOR = {"matchLabels": {"a": "b"}}
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
MERGE = "application/merge-patch+json"


class Workloads(Harness):
    """A server that stores workloads."""

    def __init__(self) -> None:
        super().__init__(settings=AdmissionSettings(controllers=False, workloads="stored"))

    async def __aenter__(self) -> "Workloads":
        await super().__aenter__()
        self.api.subresources.update(pods.handlers(self.parts))
        return self


# where, the spec that is sent, the spec and the status that are stored (recorded from kube-apiserver 1.36.3)
STORED: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        f"{APPS}/deployments",
        {"selector": SELECTOR, "template": TEMPLATE},
        {
            "replicas": 1,
            "selector": SELECTOR,
            "template": FULL,
            "strategy": ROLLING,
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        {},
    ),
    (
        f"{APPS}/replicasets",
        {"selector": SELECTOR, "template": TEMPLATE},
        {"replicas": 1, "selector": SELECTOR, "template": FULL},
        {"replicas": 0},
    ),
    (
        f"{APPS}/statefulsets",
        {"selector": SELECTOR, "template": TEMPLATE},
        {
            "replicas": 1,
            "selector": SELECTOR,
            "template": FULL,
            "serviceName": "",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
        {"replicas": 0, "availableReplicas": 0},
    ),
    (
        f"{APPS}/daemonsets",
        {"selector": SELECTOR, "template": TEMPLATE},
        {
            "selector": SELECTOR,
            "template": FULL,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
            "revisionHistoryLimit": 10,
        },
        {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0},
    ),
    (
        f"{BATCH}/cronjobs",
        {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}},
        {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
        {},
    ),
    (
        f"{CORE}/replicationcontrollers",
        {"template": TEMPLATE},
        {"replicas": 1, "selector": {"a": "b"}, "template": FULL},
        {"replicas": 0},
    ),
]


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize(("path", "spec", "stored", "status"), STORED, ids=[path.rpartition("/")[2] for path, *_ in STORED])
@run_by(asyncio.run)
async def test_defaults_and_status_are_those_of_a_real_server(
    path: str, spec: dict[str, Any], stored: dict[str, Any], status: dict[str, Any]
) -> None:
    async with Workloads() as api:
        made = await api.post(path, {"metadata": {"name": "x"}, "spec": spec})
        assert made.status == 201, made.data
        assert made.data["spec"] == stored
        assert made.data["status"] == status
        assert made.data["metadata"]["generation"] == 1
        again = await api.put(f"{path}/x", made.data)
        assert again.data["metadata"]["resourceVersion"] == made.data["metadata"]["resourceVersion"]
        said = await api.call("PATCH", f"{path}/x/status", {"status": {"observedGeneration": 1}}, content_type=MERGE)
        if "observedGeneration" not in said.data["status"]:
            assert path.endswith("cronjobs")


REFUSED: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        f"{APPS}/deployments",
        {},
        {
            "spec.selector": "Required value",
            "spec.template.metadata.labels": "Invalid value: null: `selector` does not match template `labels`",
            "spec.template.spec.containers": "Required value",
        },
    ),
    (
        f"{APPS}/deployments",
        {"selector": {}, "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
        {
            "spec.selector": "Invalid value: {}: empty selector is invalid for deployment",
            "spec.template.spec.restartPolicy": 'Unsupported value: "Never": supported values: "Always"',
        },
    ),
    (
        f"{BATCH}/jobs",
        {"template": TEMPLATE},
        {"spec.template.spec.restartPolicy": 'Required value: valid values: "OnFailure", "Never"'},
    ),
    (
        f"{BATCH}/cronjobs",
        {"schedule": "61 * * * *", "timeZone": "Mars", "jobTemplate": {"spec": {"template": ENDING}}},
        {
            "spec.schedule": 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61',
            "spec.timeZone": 'Invalid value: "Mars": unknown time zone Mars',
        },
    ),
    (
        f"{CORE}/pods",
        {"containers": [{"name": "A_", "image": ""}]},
        {"spec.containers[0].name": "a lowercase RFC 1123 label must consist of", "spec.containers[0].image": "Required value"},
    ),
    (
        f"{CORE}/pods",
        {"containers": [CONTAINER, {**CONTAINER, "volumeMounts": [{"name": "x", "mountPath": "/x"}]}]},
        {"spec.containers[1].name": 'Duplicate value: "a"', "spec.containers[1].volumeMounts[0].name": 'Not found: "x"'},
    ),
    (
        f"{CORE}/pods",
        {"containers": [CONTAINER], "restartPolicy": "Odd", "activeDeadlineSeconds": 0},
        {
            "spec.restartPolicy": 'Unsupported value: "Odd"',
            "spec.activeDeadlineSeconds": "Invalid value: 0: must be between 1 and 2147483647, inclusive",
        },
    ),
    (
        f"{CORE}/pods",
        {"containers": [{**CONTAINER, "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]},
        {"spec.containers[0].resources.requests": 'Invalid value: "2": must be less than or equal to cpu limit of 1'},
    ),
    (
        f"{CORE}/pods",
        {
            "containers": [CONTAINER],
            "securityContext": {"sysctls": [{"name": name, "value": "1"} for name in ("kernel.shmmax", "net/core", "foo-", "net/core")]},
        },
        {
            "spec.securityContext.sysctls[2].name": 'Invalid value: "foo-": must have at most 253 characters and match regex ^(',
            "spec.securityContext.sysctls[3].name": 'Duplicate value: "net/core"',
        },
    ),
    (
        SCALING.format("v2"),
        {"scaleTargetRef": {"kind": "Deployment", "name": "x"}},
        {
            "spec.maxReplicas": "Required value: must be set and greater than 0",
            "spec.scaleTargetRef.apiVersion": 'Invalid value: "": apiVersion must specify API group',
        },
    ),
]


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize(
    ("path", "spec", "causes"), REFUSED, ids=[f"{path.rpartition('/')[2]}-{index}" for index, (path, *_) in enumerate(REFUSED)]
)
@run_by(asyncio.run)
async def test_what_makes_no_sense_is_refused_in_the_words_of_a_real_server(
    path: str, spec: dict[str, Any], causes: dict[str, str]
) -> None:
    async with Workloads() as api:
        said = await api.post(path, {"metadata": {"name": "x"}, "spec": spec})
        assert said.status == 422, said.data
        found = {each["field"]: each["message"] for each in reversed(said.data["details"]["causes"])}
        assert {field: why in found.get(field, "") for field, why in causes.items()} == dict.fromkeys(causes, True), found


@run_by(asyncio.run)
async def test_a_body_of_other_types_cannot_be_read() -> None:
    async with Workloads() as api:
        said = await api.post(f"{CORE}/pods", {"metadata": {"name": "x"}, "spec": {"containers": "x"}})
        assert (said.status, "json: cannot unmarshal string into Go value of type []v1.Container" in said.data["message"]) == (
            400,
            True,
        )
        said = await api.post(
            f"{CORE}/pods?fieldValidation=Strict", {"metadata": {"name": "x"}, "spec": {"containers": [CONTAINER], "odd": 1}}
        )
        assert (said.status, said.data["message"]) == (400, 'strict decoding error: unknown field "spec.odd"')


@run_by(asyncio.run)
async def test_a_job_finds_its_pods_by_its_identity() -> None:
    async with Workloads() as api:
        made = await api.post(f"{BATCH}/jobs", {"metadata": {"name": "x"}, "spec": {"template": ENDING}})
        uid = made.data["metadata"]["uid"]
        labels = {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid}
        labels |= {"batch.kubernetes.io/job-name": "x", "job-name": "x"}
        assert made.data["metadata"]["labels"] == made.data["spec"]["template"]["metadata"]["labels"] == labels
        assert made.data["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        assert (made.data["spec"]["completions"], made.data["spec"]["backoffLimit"], made.data["spec"]["suspend"]) == (1, 6, False)
        said = await api.merge(f"{BATCH}/jobs/x", {"spec": {"completions": 3}})
        assert (said.status, said.causes) == (422, {"spec.completions": "Invalid value: 3: field is immutable"})


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
@run_by(asyncio.run)
async def test_the_scale_has_the_selector_as_text(plural: str) -> None:
    async with Workloads() as api:
        await api.post(f"{APPS}/{plural}", {"metadata": {"name": "x"}, "spec": {"selector": SELECTOR, "template": TEMPLATE}})
        scale = (await api.get(f"{APPS}/{plural}/x/scale")).data
        assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b"})
        scale["spec"]["replicas"] = 4
        assert (await api.put(f"{APPS}/{plural}/x/scale", scale)).status == 200
        found = (await api.get(f"{APPS}/{plural}/x")).data
        assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)


@run_by(asyncio.run)
async def test_a_scaler_is_the_same_in_both_versions() -> None:
    async with Workloads() as api:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
        spec = {"maxReplicas": 3, "scaleTargetRef": target}
        for version in ("v1", "v2"):
            made = await api.post(SCALING.format(version), {"metadata": {"name": version}, "spec": spec})
            assert made.status == 201, made.data
            old = (await api.get(f"{SCALING.format('v1')}/{version}")).data
            assert old["spec"] == {**spec, "minReplicas": 1, "targetCPUUtilizationPercentage": 80}
            assert old["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
            new = (await api.get(f"{SCALING.format('v2')}/{version}")).data
            usage = {"type": "Utilization", "averageUtilization": 80}
            assert new["spec"] == {
                **spec,
                "minReplicas": 1,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": usage}}],
            }
            assert new["status"] == {"desiredReplicas": 0, "currentMetrics": None}


async def _pod(api: Harness, **spec: Any) -> dict[str, Any]:
    made = await api.post(f"{CORE}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [CONTAINER], **spec}})
    assert made.status == 201, made.data
    data: dict[str, Any] = made.data
    return data


@pytest.mark.spec("kube-api", 152)
@run_by(asyncio.run)
async def test_a_pod_waits_for_a_node_and_ends_with_its_kubelet() -> None:
    async with Workloads() as api:
        made = await _pod(api, terminationGracePeriodSeconds=5)
        assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert (made["spec"]["enableServiceLinks"], made["spec"]["priority"]) == (True, 0)
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        assert (await api.post(f"{CORE}/pods/p/binding", binding)).status == 201
        again = await api.post(f"{CORE}/pods/p/binding", binding)
        assert (again.status, 'pod p is already assigned to node "n1"' in again.data["message"]) == (409, True)
        bound = (await api.get(f"{CORE}/pods/p")).data
        assert (bound["spec"]["nodeName"], bound["status"]["conditions"][0]["type"]) == ("n1", "PodScheduled")
        ending = await api.delete(f"{CORE}/pods/p")
        meta = ending.data["metadata"]
        waits = (ages.seconds_of(meta["deletionTimestamp"]) or 0) - (ages.seconds_of(api.clock.now()) or 0)
        assert (meta["deletionGracePeriodSeconds"], waits) == (5, 5)
        assert (await api.get(f"{CORE}/pods/p")).status == 200
        await api.delete(f"{CORE}/pods/p?gracePeriodSeconds=0")
        assert (await api.get(f"{CORE}/pods/p")).status == 404


@run_by(asyncio.run)
async def test_a_pod_has_what_its_runtime_class_says() -> None:
    async with Workloads() as api:
        tolerations = [{"key": "gpu", "operator": "Exists"}]
        scheduling = {"nodeSelector": {"disk": "fast"}, "tolerations": tolerations}
        body = {"metadata": {"name": "kata"}, "handler": "kata", "overhead": {"podFixed": {"cpu": "1"}}, "scheduling": scheduling}
        assert (await api.post("/apis/node.k8s.io/v1/runtimeclasses", body)).status == 201
        spec = (await _pod(api, runtimeClassName="kata", nodeSelector={"zone": "a"}))["spec"]
        assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "1"}, {"zone": "a", "disk": "fast"})
        assert tolerations[0] in spec["tolerations"]
        for wrong, words in (
            ({"runtimeClassName": "none"}, 'pods "q" is forbidden: pod rejected: RuntimeClass "none" not found'),
            (
                {"runtimeClassName": "kata", "nodeSelector": {"disk": "slow"}},
                "conflict: runtimeClass.scheduling.nodeSelector[disk] = fast",
            ),
            ({"runtimeClassName": "kata", "overhead": {"cpu": "2"}}, "doesn't match RuntimeClass's defined Overhead"),
            ({"overhead": {"cpu": "2"}}, "without corresponding RuntimeClass defined Overhead"),
        ):
            asked = {"metadata": {"name": "q"}, "spec": {"containers": [CONTAINER], **wrong}}
            refused = await api.post(f"{CORE}/pods", asked)
            assert (refused.status, words in refused.data["message"]) == (403, True), refused.data


@run_by(asyncio.run)
async def test_a_pod_without_a_node_goes_at_once() -> None:
    async with Workloads() as api:
        await _pod(api)
        assert (await api.delete(f"{CORE}/pods/p")).data["kind"] == "Pod"
        assert (await api.get(f"{CORE}/pods/p")).status == 404


@run_by(asyncio.run)
async def test_little_of_a_pod_changes() -> None:
    async with Workloads() as api:
        await _pod(api)
        assert (await api.merge(f"{CORE}/pods/p", {"spec": {"containers": [{**SHOWN, "image": "other"}]}})).status == 200
        said = await api.merge(f"{CORE}/pods/p", {"spec": {"nodeSelector": {"a": "b"}}})
        assert (said.status, "pod updates may not change fields other than" in said.causes["spec"]) == (422, True)
        change = {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}
        patch = "application/strategic-merge-patch+json"
        added = await api.call("PATCH", f"{CORE}/pods/p/ephemeralcontainers", change, content_type=patch)
        assert (added.status, added.data["spec"]["ephemeralContainers"][0]["name"]) == (200, "e")
        change["spec"]["ephemeralContainers"][0]["image"] = "y"
        said = await api.call("PATCH", f"{CORE}/pods/p/ephemeralcontainers", change, content_type=patch)
        assert (said.status, list(said.causes)) == (422, ["spec.ephemeralContainers"])


@pytest.mark.spec("kube-api", 152)
@pytest.mark.parametrize("path", ["log", "exec?command=x", "attach", "portforward"])
@run_by(asyncio.run)
async def test_nobody_has_the_output_of_a_pod(path: str) -> None:
    async with Workloads() as api:
        await _pod(api)
        said = await api.get(f"{CORE}/pods/p/{path}")
        assert (said.status, said.data["message"]) == (400, "pod p does not have a host assigned")


@pytest.mark.spec("kube-api", 152)
@run_by(asyncio.run)
async def test_a_budget_keeps_a_running_pod() -> None:
    async with Workloads() as api:
        body = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"containers": [CONTAINER], "nodeName": "n"}}
        assert (await api.post(f"{CORE}/pods", body)).status == 201
        await api.call("PATCH", f"{CORE}/pods/p/status", {"status": {"phase": "Running"}}, content_type=MERGE)
        budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        await api.post(budgets, {"metadata": {"name": "q"}, "spec": {"minAvailable": 1, "selector": SELECTOR}})
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        said = await api.post(f"{CORE}/pods/p/eviction", eviction)
        assert (said.status, said.data["reason"]) == (429, "TooManyRequests")
        await api.delete(f"{budgets}/q")
        assert (await api.post(f"{CORE}/pods/p/eviction", eviction)).status == 201
        assert (await api.get(f"{CORE}/pods/p")).data["metadata"]["deletionTimestamp"]


ROWS: list[tuple[str, dict[str, Any], list[Any]]] = [
    (f"{CORE}/pods", {"containers": [CONTAINER]}, ["0/1", "Pending", "0", "<none>", "<none>", "<none>", "<none>"]),
    (f"{APPS}/deployments", {"selector": SELECTOR, "template": TEMPLATE}, ["0/1", 0, 0, "a", "nginx", "a=b"]),
    (f"{APPS}/statefulsets", {"selector": SELECTOR, "template": TEMPLATE}, ["0/1", "a", "nginx"]),
    (f"{APPS}/daemonsets", {"selector": SELECTOR, "template": TEMPLATE}, [0, 0, 0, 0, 0, "<none>", "a", "nginx", "a=b"]),
    (
        f"{BATCH}/jobs",
        {"parallelism": 2, "template": {**ENDING, "metadata": {"labels": {"a": "b"}}}, "manualSelector": True, "selector": SELECTOR},
        ["Running", "0/1 of 2", "", "a", "nginx", "a=b"],
    ),
    (
        f"{BATCH}/cronjobs",
        {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ENDING}}},
        ["* * * * *", "<none>", "False", 0, "<none>", "a", "nginx", "<none>"],
    ),
    (
        SCALING.format("v2"),
        {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}},
        ["Deployment/x", "cpu: <unknown>/80%", "1", 3, 0],
    ),
]


@pytest.mark.spec("kube-api", 151)
@pytest.mark.parametrize(("path", "spec", "cells"), ROWS, ids=[path.rpartition("/")[2] for path, *_ in ROWS])
@run_by(asyncio.run)
async def test_rows_are_those_of_a_real_server(path: str, spec: dict[str, Any], cells: list[Any]) -> None:
    async with Workloads() as api:
        await api.post(path, {"metadata": {"name": "x"}, "spec": spec})
        table = (await api.get(path, accept=TABLE)).data
        names = [column["name"] for column in table["columnDefinitions"]]
        shown = [cell for name, cell in zip(names, table["rows"][0]["cells"], strict=True) if name not in ("Name", "Age")]
        assert shown == cells


@pytest.mark.spec("kube-api", 153)
@pytest.mark.parametrize(
    ("path", "spec"),
    [(f"{CORE}/pods", {"containers": [CONTAINER]}), (f"{APPS}/deployments", {"selector": SELECTOR, "template": TEMPLATE})],
)
@played
async def test_a_server_of_machines_refuses_them_with_the_reason(api: Harness, /, path: str, spec: dict[str, Any]) -> None:
    for given in (spec, {}):
        said = await api.post(path, {"metadata": {"name": "x"}, "spec": given})
        assert said.status == 403
        assert "this server runs virtual machines, not pods; create a VirtualMachine instead" in said.data["message"]


@run_by(asyncio.run)
async def test_a_revision_does_not_hinder_a_dry_run_nor_hide_what_is_wrong() -> None:
    async with Workloads() as api:
        path, meta = f"{APPS}/deployments", {"name": "x", "resourceVersion": "7"}
        body = {"metadata": meta, "spec": {"selector": SELECTOR, "template": TEMPLATE}}
        assert (await api.post(f"{path}?dryRun=All", body)).status == 201
        said = await api.post(path, body)
        assert (said.status, said.data["message"]) == (400, "resourceVersion should not be set on objects to be created")
        assert (await api.post(path, {"metadata": meta, "spec": {}})).status == 422
