"""The group `metrics.k8s.io`: discovery, rights, objects, tables and selectors."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from paddock.app.resourcemetrics import endpoint
from paddock.kubernetes.quotas import launcher
from paddock.server.housekeeping import bootstrap
from tests.coroutines import timeless
from tests.unit.app.subresources.world import World

BASE = "/apis/metrics.k8s.io/v1beta1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass
class Seen:
    """A process of the host stands for a machine: this one."""

    pid: int = field(default_factory=os.getpid)
    live: bool = True


@dataclass
class Process:
    id: str
    observed: Seen = field(default_factory=Seen)


@asynccontextmanager
async def world(*names: str, ready: bool = True) -> AsyncIterator[tuple[World, list[Process]]]:
    async with World() as made:
        node = {"metadata": {"name": "host", "labels": {"kubernetes.io/os": "linux"}}, "spec": {}}
        assert (await made.api.post("/api/v1/nodes", node)).status == 201
        machines = [Process(await made.instance(name)) for name in names]
        endpoint.install(made.api.api, made.api.parts, lambda: machines if ready else None)
        yield made, machines


def pod_of(machine: Process) -> str:
    return launcher.name_of("web", machine.id)


def names(data: dict[str, Any]) -> list[str]:
    return [each["metadata"]["name"] for each in data["items"]]


@timeless
async def test_the_objects() -> None:
    async with world("web", "db") as (made, machines):
        machines[1].observed.live = False
        found = (await made.api.get(f"{BASE}/namespaces/default/pods")).data
        assert (found["kind"], found["apiVersion"]) == ("PodMetricsList", "metrics.k8s.io/v1beta1")
        # One that does not run has no use.
        assert names(found) == [pod_of(machines[0])]
        (pod,) = found["items"]
        (container,) = pod["containers"]
        assert container["name"] == "compute" and pod["metadata"]["labels"]["vm.kubevirt.io/name"] == "web"
        assert container["usage"]["cpu"].endswith("n") and int(container["usage"]["memory"].removesuffix("Ki")) > 1024
        assert float(pod["window"].removesuffix("s")) >= 1
        one = await made.api.get(f"{BASE}/namespaces/default/pods/{pod_of(machines[0])}")
        assert one.data["metadata"]["name"] == pod_of(machines[0]) and one.data["kind"] == "PodMetrics"
        assert (await made.api.get(f"{BASE}/namespaces/default/pods/virt-launcher-db-bbbbb")).status == 404
        assert (await made.api.get(f"{BASE}/nodes/host")).data["usage"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", 2),
        ("?labelSelector=vm.kubevirt.io/name%3Dweb", 1),
        ("?labelSelector=kubevirt.io%3Dvirt-launcher", 2),
        ("?labelSelector=kubevirt.io%3Dother", 0),
        ("?fieldSelector=metadata.name%3Dvirt-launcher-db", 0),
    ],
)
@timeless
async def test_selectors(query: str, expected: int) -> None:
    async with world("web", "db") as (made, _):
        assert len((await made.api.get(f"{BASE}/pods{query}")).data["items"]) == expected
        assert (await made.api.get(f"{BASE}/namespaces/other/pods{query}")).data["items"] == []
        assert (await made.api.get(f"{BASE}/pods?fieldSelector=spec.nodeName%3Dhost")).status == 400


@timeless
async def test_a_table_shows_the_use_of_now() -> None:
    async with world("web") as (made, machines):
        found = (await made.api.get(f"{BASE}/pods", accept=TABLE)).data
        assert [each["name"] for each in found["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
        before = found["rows"][0]["cells"]
        assert before[0] == pod_of(machines[0])
        # Within a second the answer is the same; the rows of one measurement are not those of the next.
        assert (await made.api.get(f"{BASE}/pods", accept=TABLE)).data["rows"][0]["cells"] == before
        await asyncio.sleep(5)
        after = (await made.api.get(f"{BASE}/pods", accept=TABLE)).data["rows"][0]["cells"]
        assert (before[3], after[3]) == ("1.000s", "5.000s")


@timeless
async def test_it_can_only_be_read_and_says_so() -> None:
    async with world() as (made, _):
        listed = (await made.api.get(BASE)).data
        assert {each["name"]: (each["kind"], each["verbs"]) for each in listed["resources"]} == {
            "nodes": ("NodeMetrics", ["get", "list"]),
            "pods": ("PodMetrics", ["get", "list"]),
        }
        assert (await made.api.post(f"{BASE}/namespaces/default/pods", {"metadata": {"name": "a"}})).status == 405
        assert (await made.api.get(f"{BASE}/nodes?watch=true")).status == 405


@timeless
async def test_before_the_engine_runs_the_reason_is_an_answer() -> None:
    async with world(ready=False) as (made, _):
        answer = await made.api.get(f"{BASE}/nodes")
        assert answer.status == 503 and "engine" in answer.data["message"]


def test_viewers_may_read_it() -> None:
    roles = {data["metadata"]["name"]: data for plural, data in bootstrap.objects() if plural == "clusterroles"}
    labels = roles["system:aggregated-metrics-reader"]["metadata"]["labels"]
    for level in ("view", "edit", "admin"):
        assert labels[f"rbac.authorization.k8s.io/aggregate-to-{level}"] == "true"
        assert {"apiGroups": ["metrics.k8s.io"], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]} in roles[level]["rules"]
