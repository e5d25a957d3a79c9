"""Views: launcher Pods of instances and KubeVirt's programs, read like stored objects and never written."""

import asyncio
from typing import Any

import msgspec
import pytest

from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.admission import views
from paddock.kubevirt.plan.views import launchers
from paddock.server.api import Api
from paddock.server.builtin import pods
from paddock.server.context import ServerParts
from tests.coroutines import timeless
from tests.kit.servers.apiharness import Harness, NoJournal

PODS = "/api/v1/namespaces/default/pods"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
DEPLOYMENTS, DAEMON_SETS = "/apis/apps/v1/namespaces/kubevirt/deployments", "/apis/apps/v1/namespaces/kubevirt/daemonsets"
KUBEVIRTS = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
RUNNING: dict[str, Any] = {
    "phase": "Running",
    "nodeName": "vm",
    "qosClass": "Burstable",
    "runtimeUser": 107,
    "memory": {"memoryOverhead": "100Mi"},
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:02Z"}],
    "interfaces": [{"name": "default", "ipAddress": "10.112.0.5", "ipAddresses": ["10.112.0.5"]}],
}


class Viewed(Harness):
    """A server with views that stores workloads, or refuses them."""

    def __init__(self, workloads: str = "refused") -> None:
        super().__init__(settings=AdmissionSettings(controllers=False, workloads=workloads))

    async def __aenter__(self) -> "Viewed":
        await super().__aenter__()
        await self.parts.following.close()
        self.parts = ServerParts(self.store, self.registry, clock=self.clock, judge=self.rbac.answers, views=views.VIEWS)
        self.api = Api(self.parts, self._door, NoJournal())
        self.api.subresources.update(pods.handlers(self.parts))
        return self

    async def machine(self, name: str, **labels: str) -> None:
        devices = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]}
        spec = {
            "domain": {"devices": devices, "memory": {"guest": "128Mi"}},
            "networks": [{"name": "default", "pod": {}}],
            "serviceAccountName": "robot",
            "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}}],
        }
        meta = {"name": name, "labels": labels}
        made = await self.post(VMIS, {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": meta, "spec": spec})
        assert made.status == 201, made.data

    async def becomes(self, name: str, **status: Any) -> int:
        """Give an instance a status; the revision of it."""
        done = await self.merge(f"{VMIS}/{name}", {"status": status})
        assert done.status == 200, done.data
        return int(done.data["metadata"]["resourceVersion"])

    async def pod(self, selector: str = "") -> dict[str, Any]:
        (only,) = (await self.get(f"{PODS}?labelSelector={selector}")).data["items"]
        found: dict[str, Any] = only
        return found


@pytest.mark.spec("kubevirt", 156)
@timeless
async def test_a_running_instance_has_a_launcher_pod() -> None:
    async with Viewed() as api:
        await api.machine("web", tier="front")
        assert (await api.get(PODS)).data["items"] == []
        revision = await api.becomes("web", **RUNNING)
        pod = await api.pod("kubevirt.io%3Dvirt-launcher,vm.kubevirt.io/name%3Dweb,tier%3Dfront")
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        vmi = (await api.get(f"{VMIS}/web")).data["metadata"]
        assert meta["name"].startswith("virt-launcher-web-") and meta["resourceVersion"] == str(revision)
        assert meta["labels"]["kubevirt.io/created-by"] == vmi["uid"] != meta["uid"]
        assert meta["ownerReferences"][0]["uid"] == vmi["uid"]
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("robot", False)
        assert spec["nodeName"] == "vm" and spec["volumes"] == [{"name": "root", "persistentVolumeClaim": {"claimName": "web-root"}}]
        assert spec["containers"][0]["resources"]["requests"] == {"cpu": "100m", "ephemeral-storage": "50M", "memory": "396Mi"}
        assert (status["phase"], status["podIP"], status["podIPs"]) == ("Running", "10.112.0.5", [{"ip": "10.112.0.5"}])
        assert {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
        one = await api.get(f"{PODS}/{meta['name']}")
        assert one.status == 200 and one.data["metadata"]["uid"] == meta["uid"]
        assert (await api.get(f"{PODS}/{meta['name']}/status")).data["status"]["podIP"] == "10.112.0.5"


@pytest.mark.spec("kubevirt", 156)
def test_a_launcher_pod_names_its_instance_although_that_names_its_machine() -> None:
    labels = {"kubevirt.io/created-by": "of-the-machine", "kubevirt.io": "other", "vm.kubevirt.io/name": "other", "tier": "front"}
    metadata = {"name": "web", "namespace": "default", "uid": "of-the-instance", "labels": labels}
    (pod,) = launchers.pods({"metadata": metadata, "spec": {"domain": {"devices": {}}}, "status": {"phase": "Running"}})
    assert pod["metadata"]["labels"] == {
        "kubevirt.io": "virt-launcher",
        "kubevirt.io/created-by": "of-the-instance",
        "vm.kubevirt.io/name": "web",
        "vmi.kubevirt.io/id": "web",
        "tier": "front",
    }


@pytest.mark.spec("kubevirt", 156)
@pytest.mark.parametrize(
    ("phase", "shown"),
    [
        ("Pending", None),
        ("Scheduling", "Pending"),
        ("Scheduled", "Running"),
        ("Running", "Running"),
        ("Succeeded", "Succeeded"),
        ("Failed", "Failed"),
    ],
)
@timeless
async def test_phases(phase: str, shown: str | None) -> None:
    async with Viewed() as api:
        await api.machine("web")
        await api.becomes("web", **{**RUNNING, "phase": phase})
        found = (await api.get(PODS)).data["items"]
        assert [each["status"]["phase"] for each in found] == ([] if shown is None else [shown])
        if shown in ("Succeeded", "Failed"):
            assert "podIP" not in found[0]["status"]


@pytest.mark.spec("kubevirt", 156)
@timeless
async def test_a_pod_says_why_it_is_on_no_node() -> None:
    async with Viewed() as api:
        await api.machine("web")
        # While an image is pulled, nobody has refused it.
        await api.becomes("web", phase="Scheduling")
        assert "PodScheduled" not in {each["type"] for each in (await api.pod())["status"]["conditions"]}
        why = {"reason": "Unschedulable", "message": "no node has the label zone=b"}
        await api.becomes("web", phase="Scheduling", conditions=[{"type": "PodScheduled", "status": "False", **why}])
        conditions = {each["type"]: each for each in (await api.pod())["status"]["conditions"]}
        assert conditions["PodScheduled"]["status"] == "False" and why.items() <= conditions["PodScheduled"].items()
        assert "reason" not in conditions["Ready"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("fieldSelector=spec.nodeName%3Dvm", 2),
        ("fieldSelector=spec.nodeName%3Dother", 0),
        ("fieldSelector=status.phase%3DRunning", 1),
        ("fieldSelector=status.podIP%3D10.112.0.5", 2),
        ("labelSelector=kubevirt.io%3Dvirt-launcher", 2),
        ("labelSelector=kubevirt.io%21%3Dvirt-launcher", 0),
        ("limit=1", 1),
    ],
)
@pytest.mark.spec("kubevirt", 157)
@timeless
async def test_selectors(query: str, count: int) -> None:
    async with Viewed() as api:
        for name in ("web", "db"):
            await api.machine(name)
            await api.becomes(name, **RUNNING)
        await api.becomes("db", phase="Scheduling")
        assert len((await api.get(f"{PODS}?{query}")).data["items"]) == count


@pytest.mark.spec("kubevirt", 157)
@timeless
async def test_pages_and_revisions_agree_with_the_store() -> None:
    async with Viewed() as api:
        for name in ("a", "a-b", "b"):
            await api.machine(name)
            last = await api.becomes(name, **RUNNING)
        whole = (await api.get(PODS)).data
        names = [each["metadata"]["name"] for each in whole["items"]]
        assert names == sorted(names) and whole["metadata"]["resourceVersion"] == str(last)
        page = (await api.get(f"{PODS}?limit=2")).data
        await api.becomes("b", phase="Succeeded")
        rest = (await api.get(f"{PODS}?limit=2&continue={page['metadata']['continue']}")).data
        shown = [*page["items"], *rest["items"]]
        assert [(each["metadata"]["name"], each["status"]["phase"]) for each in shown] == [(name, "Running") for name in names]
        before = (await api.get(f"{PODS}?resourceVersion={last}&resourceVersionMatch=Exact")).data["items"]
        assert [each["status"]["phase"] for each in before] == ["Running"] * 3
        now = (await api.get(PODS)).data["items"]
        assert sorted(each["status"]["phase"] for each in now) == ["Running", "Running", "Succeeded"]


@pytest.mark.spec("kubevirt", 157)
@timeless
async def test_a_watch_sees_what_becomes_of_an_instance() -> None:
    async with Viewed() as api:
        await api.machine("web")
        start = await api.becomes("web", phase="Scheduling")
        async with api.watch(f"{PODS}?watch=true&resourceVersion={start - 1}") as events:
            first = await events.next()
            revision = await api.becomes("web", **RUNNING)
            second = await events.next()
            assert (first["type"], first["object"]["status"]["phase"]) == ("ADDED", "Pending")
            assert (second["type"], second["object"]["status"]["podIP"]) == ("MODIFIED", "10.112.0.5")
            assert second["object"]["metadata"]["resourceVersion"] == str(revision)
            # one that begins further back than the first
            async with api.watch(f"{PODS}?watch=true&resourceVersion={start - 1}") as later:
                assert [each["type"] for each in await later.take(2)] == ["ADDED", "MODIFIED"]
            assert (await api.delete(f"{VMIS}/web")).status == 200
            gone = await events.next()
            assert (gone["type"], gone["object"]["metadata"]["resourceVersion"]) == ("DELETED", str(api.store.revision))
            assert await events.quiet()


@pytest.mark.spec("kubevirt", 157)
@timeless
async def test_a_selecting_watch_sees_a_pod_come_and_go() -> None:
    async with Viewed() as api:
        await api.machine("web")
        start = await api.becomes("web", phase="Scheduling")
        query = f"watch=true&resourceVersion={start}&fieldSelector=status.phase%3DRunning&labelSelector=kubevirt.io%3Dvirt-launcher"
        async with api.watch(f"{PODS}?{query}") as events:
            await api.becomes("web", **RUNNING)
            await api.becomes("web", phase="Succeeded")
            assert [(each["type"], each["object"]["status"]["phase"]) for each in await events.take(2)] == [
                ("ADDED", "Running"),
                ("DELETED", "Running"),
            ]


@timeless
async def test_nothing_is_made_while_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(data: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        made.append(data["metadata"]["name"])
        return ()

    counted = [msgspec.structs.replace(each, make=make) for each in views.VIEWS]
    monkeypatch.setattr(views, "VIEWS", tuple(counted))
    async with Viewed() as api:
        await api.machine("web")
        async with api.watch(f"{VMIS}?watch=true") as events:
            await api.becomes("web", **RUNNING)
            await events.next()
        assert made == []
        async with api.watch(f"{PODS}?watch=true&resourceVersion={api.store.revision}"):
            for _ in range(5):
                await asyncio.sleep(0)
            await api.becomes("web", phase="Scheduled")
        assert made
        # the last watcher has gone
        for _ in range(5):
            await asyncio.sleep(0)
        made.clear()
        await api.becomes("web", phase="Succeeded")
        assert made == []


@pytest.mark.spec("kubevirt", 158)
@pytest.mark.parametrize("workloads", ["refused", "stored"])
@timeless
async def test_a_view_is_not_written(workloads: str) -> None:
    async with Viewed(workloads) as api:
        await api.machine("web")
        await api.becomes("web", **RUNNING)
        pod = await api.pod()
        place = f"{PODS}/{pod['metadata']['name']}"
        gone = await api.delete(place)
        assert gone.status == 403 and "kubectl delete vmi web" in gone.data["message"]
        assert (await api.merge(place, {"metadata": {"labels": {"a": "b"}}})).status == 403
        assert (await api.put(place, pod)).status == 403
        assert (await api.put(f"{place}/status", pod)).status == 403
        assert (await api.delete(PODS)).status == 403
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod["metadata"]["name"]}}
        assert (await api.post(f"{place}/eviction", eviction)).status == 403
        again = await api.post(PODS, {"metadata": {"name": pod["metadata"]["name"]}, "spec": pod["spec"]})
        assert again.status == (403 if workloads == "refused" else 409), again.data
        assert (await api.get(f"{PODS}?limit=5")).data["items"][0]["metadata"]["uid"] == pod["metadata"]["uid"]


@pytest.mark.spec("kubevirt", 158)
@pytest.mark.parametrize(
    ("subresource", "words"),
    [("log", "paddock logs web"), ("exec", "paddock exec web"), ("portforward", "paddock forward web"), ("proxy", "paddock forward web")],
)
@timeless
async def test_what_a_process_would_answer_names_the_verb_of_the_machine(subresource: str, words: str) -> None:
    async with Viewed() as api:
        await api.machine("web")
        await api.becomes("web", **RUNNING)
        name = (await api.pod())["metadata"]["name"]
        said = await api.get(f"{PODS}/{name}/{subresource}")
        assert said.status == 403 and words in said.data["message"]


@pytest.mark.spec("kubevirt", 157)
@timeless
async def test_stored_pods_live_beside_them() -> None:
    async with Viewed("stored") as api:
        await api.machine("web")
        await api.becomes("web", **RUNNING)
        own = {
            "metadata": {"name": "zz", "labels": {"kubevirt.io": "virt-launcher"}},
            "spec": {"containers": [{"name": "a", "image": "b"}]},
        }
        async with api.watch(f"{PODS}?watch=true&resourceVersion={api.store.revision}") as events:
            assert (await api.post(PODS, own)).status == 201
            assert (await events.next())["object"]["metadata"]["name"] == "zz"
        found = (await api.get(f"{PODS}?labelSelector=kubevirt.io%3Dvirt-launcher")).data["items"]
        assert [each["metadata"]["name"][:14] for each in found] == ["virt-launcher-", "zz"]
        table = (await api.get(PODS, accept=TABLE)).data["rows"]
        assert [row["cells"][1:3] for row in table] == [["1/1", "Running"], ["0/1", "Pending"]]
        assert (await api.delete(f"{PODS}/zz")).status == 200


@pytest.mark.spec("kubevirt", 159)
@timeless
async def test_the_programs_are_ready_while_the_installation_is_available() -> None:
    async with Viewed() as api:
        assert (await api.get(f"{DEPLOYMENTS}/virt-api")).status == 404
        await api.namespace("kubevirt")
        await api.post(KUBEVIRTS, {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}, "spec": {}})
        assert (await api.get(f"{DEPLOYMENTS}/virt-api")).data["status"].get("readyReplicas", 0) == 0
        available = {"type": "Available", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
        async with api.watch(f"{DEPLOYMENTS}?watch=true&resourceVersion={api.store.revision}") as events:
            done = await api.merge(f"{KUBEVIRTS}/kubevirt/status", {"status": {"conditions": [available]}})
            assert done.status == 200
            seen = await events.take(3)
        found = (await api.get(DEPLOYMENTS)).data["items"]
        assert [each["metadata"]["name"] for each in found] == ["virt-api", "virt-controller", "virt-operator"]
        assert [each["status"]["readyReplicas"] for each in found] == [1, 1, 1]
        assert [each["object"]["metadata"]["uid"] for each in seen] == [each["metadata"]["uid"] for each in found]
        (handler,) = (await api.get(DAEMON_SETS)).data["items"]
        assert (handler["metadata"]["name"], handler["status"]["numberReady"]) == ("virt-handler", 1)
        gone = await api.delete(f"{DEPLOYMENTS}/virt-api")
        assert gone.status == 403 and "KubeVirt" in gone.data["message"]
        table = (await api.get(DEPLOYMENTS, accept=TABLE)).data["rows"]
        assert table[0]["cells"][:4] == ["virt-api", "1/1", 1, 1]
