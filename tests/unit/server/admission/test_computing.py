"""Quotas of processors and memory: what Pods and machines take, in kube-apiserver's words."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.client.errors import QuotaExceeded
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

CORE = "/api/v1/namespaces/default"
QUOTAS = f"{CORE}/resourcequotas"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"


def pod(name: str, *, request: str = "", limit: str = "", **spec: Any) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if request:
        resources["requests"] = {"cpu": request, "memory": "1Gi"}
    if limit:
        resources["limits"] = {"cpu": limit, "memory": "2Gi"}
    container = {"name": "a", "image": "b", "resources": resources}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def stored() -> Harness:
    return Harness(settings=AdmissionSettings(controllers=False, workloads="stored"))


@pytest.mark.spec("kube-api", 167)
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@run_by(asyncio.run)
async def test_pods_take_what_they_request_until_they_end(phase: str) -> None:
    async with stored() as api:
        hard = {"requests.cpu": "3", "cpu": "3", "limits.memory": "4Gi", "pods": "3", "count/pods": "5"}
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        made = await asyncio.gather(*(api.post(f"{CORE}/pods", pod(f"p{each}", request="1", limit="1")) for each in range(5)))
        assert sorted(each.status for each in made) == [201, 201, 403, 403, 403]
        refused = next(each for each in made if each.status == 403)
        assert refused.data["message"] == (
            f'pods "{refused.data["details"]["name"]}" is forbidden: exceeded quota: q, '
            "requested: limits.memory=2Gi, used: limits.memory=4Gi, limited: limits.memory=4Gi"
        )
        first = next(each for each in made if each.status == 201).data["metadata"]["name"]
        ended = {"status": {"phase": phase}}
        done = await api.call("PATCH", f"{CORE}/pods/{first}/status", ended, content_type="application/merge-patch+json")
        assert done.status == 200, done.data
        assert (await api.post(f"{CORE}/pods", pod("next", request="1", limit="1"))).status == 201


@pytest.mark.spec("kube-api", 167)
@run_by(asyncio.run)
async def test_a_pod_says_what_a_quota_counts() -> None:
    async with stored() as api:
        hard = {"limits.cpu": "4", "requests.memory": "4Gi", "pods": "9"}
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        said = await api.post(f"{CORE}/pods", pod("plain"))
        assert said.data["message"] == (
            'pods "plain" is forbidden: failed quota: q: must specify limits.cpu for: a; requests.memory for: a'
        )
        first = [{"name": "i", "image": "b"}]
        said = await api.post(f"{CORE}/pods", pod("begins", request="1", limit="1", initContainers=first))
        assert said.data["message"].endswith("must specify limits.cpu for: i; requests.memory for: i")


@pytest.mark.spec("kube-api", 167)
@run_by(asyncio.run)
async def test_the_first_containers_and_the_overhead_count() -> None:
    async with stored() as api:
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "2500m"}}})
        first = [{"name": "i", "image": "b", "resources": {"requests": {"cpu": "2"}}}]
        assert (await api.post(f"{CORE}/pods", pod("one", request="1", initContainers=first))).status == 201
        said = await api.post(f"{CORE}/pods", pod("two", request="1"))
        assert said.data["message"].endswith("requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2500m")


SCOPES = [
    ("Terminating", {"activeDeadlineSeconds": 5}, True),
    ("Terminating", {}, False),
    ("NotTerminating", {}, True),
    ("NotBestEffort", {}, True),
]


@pytest.mark.spec("kube-api", 167)
@pytest.mark.parametrize(("scope", "spec", "counts"), SCOPES)
@run_by(asyncio.run)
async def test_scopes_choose_pods(scope: str, spec: dict[str, Any], counts: bool) -> None:
    async with stored() as api:
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}, "scopes": [scope]}})
        said = await api.post(f"{CORE}/pods", pod("a", request="1", **spec))
        assert said.status == (403 if counts else 201)


@pytest.mark.spec("kube-api", 169)
@run_by(asyncio.run)
async def test_a_refusal_names_who_uses_most() -> None:
    async with stored() as api:
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "10"}}})
        for name, request in (("a", "1"), ("b", "5"), ("c", "2"), ("d", "1")):
            assert (await api.post(f"{CORE}/pods", pod(name, request=request))).status == 201
        said = await api.post(f"{CORE}/pods", pod("e", request="2"))
        causes = [(each["reason"], each["message"]) for each in said.data["details"]["causes"]]
        assert causes == [("QuotaUser", f"pods/{name} uses requests.cpu={cpu}") for name, cpu in (("b", 5), ("c", 2), ("d", 1))]


@pytest.mark.spec("kubevirt", 193)
@run_by(asyncio.run)
async def test_the_server_admits_launchers_one_by_one() -> None:
    """All writes of one moment see one another, whatever the controller that sends them believes."""
    async with Harness() as api:
        await api.post(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"cpu/vmi": "5", "requests.memory": "100Gi"}}})
        domain = {"cpu": {"cores": 2}, "memory": {"guest": "1Gi"}, "devices": {}}
        for number in range(10):
            body = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": f"m{number}"}}
            assert (await api.post(VMIS, {**body, "spec": {"domain": domain}})).status == 201
        client = api.client()

        async def place(number: int, phase: str = "Scheduling") -> bool:
            try:
                await client.patch(INSTANCES, Key("default", f"m{number}"), merge_patch({"status": {"phase": phase}}))
            except QuotaExceeded:
                return False
            return True

        placed = await asyncio.gather(*(place(number) for number in range(10)))
        assert sum(placed) == 2
        # What has its place goes on, and an end gives it back.
        first = placed.index(True)
        assert await place(first, "Running") and not await place(placed.index(False))
        assert await place(first, "Succeeded") and await place(placed.index(False))
