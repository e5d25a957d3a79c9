"""The life of VMSets (docs/spec/virtrigaud.md 1.9 and 2.8)."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import API, GROUP, Rigaud, image, machine, rigaud

LABELS = {"app": "web"}


def vmset(replicas: int = 2, name: str = "web", template: Data | None = None, metadata: Data | None = None, **spec: Any) -> Data:
    given = {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS, **(metadata or {})}, "spec": {**machine()["spec"], **(template or {})}},
        **spec,
    }
    return {"apiVersion": API, "kind": "VMSet", "metadata": {"name": name}, "spec": given}


def rolling(type: str = "RollingUpdate", **members: Any) -> Data:
    return {"type": type, "rollingUpdate": members} if members else {"type": type}


async def machines(life: Rigaud) -> list[Data]:
    found = (await life.api.get(f"{GROUP}/namespaces/default/virtualmachines")).data["items"]
    return sorted(found, key=lambda each: (len(each["metadata"]["name"]), each["metadata"]["name"]))


async def names(life: Rigaud) -> list[str]:
    return [each["metadata"]["name"] for each in await machines(life)]


def is_ready(vm: Data) -> bool:
    found = (vm.get("status") or {}).get("conditions") or []
    return any(
        (each["type"], each["status"], each["observedGeneration"]) == ("Ready", "True", vm["metadata"]["generation"]) for each in found
    )


async def complete(life: Rigaud, name: str = "web", seconds: float = 3000.0) -> Data:
    """Wait until a set is as its spec says; hold its counters against what is there."""

    async def holds() -> bool:
        seen = await life.get(name, "VMSet")
        current = (seen.get("status") or {}).get("observedGeneration") == seen["metadata"]["generation"]
        return current and (await life.said("Ready", name, "VMSet")) == ("True", "AllReplicasReady")

    try:
        await life.until(holds, seconds)
    except TimeoutError:
        raise AssertionError(f"not complete: {await life.status(name, 'VMSet')}, {await names(life)}") from None
    status = await life.status(name, "VMSet")
    there = [each for each in await machines(life) if each["metadata"]["name"].rpartition("-")[0] == name]
    assert status.get("replicas", 0) == len(there)
    assert status.get("readyReplicas", 0) == status.get("availableReplicas", 0) == sum(is_ready(each) for each in there)
    by = Counter(each["metadata"]["labels"]["virtrigaud.io/set-revision"] for each in there)
    assert (status.get("updatedReplicas", 0), status.get("currentReplicas", 0)) == (
        by[status["updateRevision"]],
        by[status["currentRevision"]],
    )
    return status


async def revisions(life: Rigaud) -> list[str]:
    """The versions of everything that the set and its machines are."""
    there = [await life.get("web", "VMSet"), *await machines(life)]
    return [each["metadata"]["resourceVersion"] for each in there]


async def scale(life: Rigaud, replicas: int, name: str = "web") -> Data:
    """Scale as kubectl and autoscalers do."""
    path = f"{GROUP}/namespaces/default/vmsets/{name}/scale"
    found = (await life.api.get(path)).data
    found["spec"]["replicas"] = replicas
    said = await life.api.put(path, found)
    assert said.status == 200, said.data
    return dict(said.data)


class Watching:
    """Notes after each change which machines there are and how many are ready."""

    def __init__(self, life: Rigaud) -> None:
        self.life = life
        self.seen: list[tuple[tuple[str, ...], int]] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Watching":
        self._task = asyncio.create_task(self._note())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    async def _note(self) -> None:
        while True:
            there = await machines(self.life)
            alive = tuple(each["metadata"]["name"] for each in there if "deletionTimestamp" not in each["metadata"])
            found = (alive, sum(is_ready(each) for each in there if each["metadata"]["name"] in alive))
            if not self.seen or self.seen[-1] != found:
                self.seen.append(found)
            await asyncio.sleep(0.1)

    @property
    def steps(self) -> list[tuple[str, ...]]:
        """The machines that there were, one after another."""
        return [each for index, (each, _) in enumerate(self.seen) if not index or self.seen[index - 1][0] != each]


@pytest.mark.spec("virtrigaud", 93, 21)
@timeless
async def test_a_set_scales_in_order() -> None:
    async with rigaud() as life:
        await life.make(vmset(0))
        assert (await complete(life)).get("replicas", 0) == 0
        async with Watching(life) as up:
            said = await scale(life, 5)
            assert said["status"]["selector"] == "app=web"
            status = await complete(life)
        assert up.steps == [tuple(f"web-{each}" for each in range(count)) for count in range(6)]
        for there, ready in up.seen:
            # Each comes when the one before it is ready.
            assert ready >= len(there) - 1
        assert status["replicas"] == status["readyReplicas"] == 5
        assert [each["name"] for each in status["vmStatus"]] == [f"web-{each}" for each in range(5)]
        async with Watching(life) as down:
            await scale(life, 2)
            status = await complete(life)
        assert down.steps == [tuple(f"web-{each}" for each in range(count)) for count in (5, 4, 3, 2)]
        assert len(await life.machines()) == 2
        found = (await life.api.get(f"{GROUP}/namespaces/default/vmsets/web/scale")).data
        assert found["status"] == {"replicas": 2, "selector": "app=web"}


@pytest.mark.spec("virtrigaud", 93)
@timeless
async def test_a_set_scales_at_once_in_parallel_mode() -> None:
    async with rigaud() as life:
        await life.make(vmset(5, updateStrategy=rolling(podManagementPolicy="Parallel"), ordinals={"start": 7}))
        await asyncio.sleep(0.5)
        assert await names(life) == ["web-7", "web-8", "web-9", "web-10", "web-11"]
        await complete(life)
        await scale(life, 2)
        await asyncio.sleep(0.5)
        alive = [each["metadata"]["name"] for each in await machines(life) if "deletionTimestamp" not in each["metadata"]]
        assert alive == ["web-7", "web-8"]
        await complete(life)


@pytest.mark.spec("virtrigaud", 93)
@timeless
async def test_the_machines_belong_to_the_set() -> None:
    async with rigaud() as life:
        await life.make(vmset(2, metadata={"annotations": {"note": "x"}}))
        await complete(life)
        uid = (await life.get("web", "VMSet"))["metadata"]["uid"]
        for each in await machines(life):
            (owner,) = each["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("VMSet", uid, True)
            assert each["metadata"]["labels"]["app"] == "web" and each["metadata"]["annotations"]["note"] == "x"


@pytest.mark.spec("virtrigaud", 93)
@timeless
async def test_a_machine_has_to_be_ready_for_a_while() -> None:
    async with rigaud() as life:
        await life.make(vmset(2, minReadySeconds=120))
        await asyncio.sleep(1)
        await life.ready("web-0")
        await asyncio.sleep(100)
        status = await life.status("web", "VMSet")
        assert (status["replicas"], status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 1, 0)
        await asyncio.sleep(30)
        assert await names(life) == ["web-0", "web-1"]
        assert (await complete(life))["availableReplicas"] == 2


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_a_rolling_update_has_one_machine_too_many_and_none_too_few() -> None:
    async with rigaud() as life:
        await life.make(image("debian"), vmset(3))
        before = await complete(life)
        async with Watching(life) as update:
            await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "debian"}}}}}, "VMSet")
            status = await complete(life)
        assert all(ready >= 3 and len(there) <= 4 for there, ready in update.seen), update.seen
        assert [each for each in update.steps if len(each) == 3][1:] == [
            ("web-0", "web-1", "web-3"),
            ("web-0", "web-2", "web-3"),
            ("web-1", "web-2", "web-3"),
            ("web-0", "web-1", "web-2"),
        ]
        assert status["updateRevision"] == status["currentRevision"] != before["updateRevision"]
        assert status["updateStatus"]["phase"] == "Completed" and status["updateStatus"]["completionTime"]
        assert {each["spec"]["imageRef"]["name"] for each in await machines(life)} == {"debian"}


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_a_rolling_update_misses_as_many_machines_as_it_may() -> None:
    async with rigaud() as life:
        strategy = rolling(maxUnavailable=2, maxSurge=0, partition=1, podManagementPolicy="Parallel")
        await life.make(image("debian"), vmset(4, updateStrategy=strategy))
        old = (await complete(life))["updateRevision"]
        async with Watching(life) as update:
            await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "debian"}}}}}, "VMSet")
            status = await complete(life)
        assert all(ready >= 2 and len(there) <= 4 for there, ready in update.seen), update.seen
        assert update.steps[1] == ("web-0", "web-1")
        images = {each["metadata"]["name"]: each["spec"]["imageRef"]["name"] for each in await machines(life)}
        assert images == {"web-0": "ubuntu", "web-1": "debian", "web-2": "debian", "web-3": "debian"}
        assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == (old, 1, 3)
        assert status["updateStatus"]["phase"] == "Pending"
        # A machine below the partition comes back as it was.
        await life.delete("web-0")
        await asyncio.sleep(60)
        status = await complete(life)
        assert (await life.get("web-0"))["spec"]["imageRef"]["name"] == "ubuntu"
        await life.merge("web", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "VMSet")
        await asyncio.sleep(5)
        status = await complete(life)
        assert status["currentReplicas"] == status["updatedReplicas"] == 4


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_sizes_power_and_labels_change_in_place() -> None:
    async with rigaud() as life:
        await life.make(vmset(2, "web", {"disks": [{"name": "data", "sizeGiB": 5}]}, updateStrategy=rolling(maxUnavailable=1)))
        await complete(life)
        before = {each["metadata"]["uid"] for each in await machines(life)}
        change = {"resources": {"cpu": 4}, "powerState": "Off", "disks": [{"name": "data", "sizeGiB": 9}]}
        await life.merge("web", {"spec": {"template": {"metadata": {"labels": {"tier": "front"}}, "spec": change}}}, "VMSet")
        await asyncio.sleep(5)
        await complete(life)
        there = await machines(life)
        assert {each["metadata"]["uid"] for each in there} == before
        assert all(each["metadata"]["labels"]["tier"] == "front" for each in there)
        assert {(each.cpu, each.power_state, each.disks[1].size_gib) for each in await life.machines()} == {(4, "Off", 9)}
        assert life.driver.count("Create") == 2 and life.driver.count("Delete") == 0


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_on_delete_changes_only_what_somebody_deletes() -> None:
    async with rigaud() as life:
        await life.make(image("debian"), vmset(2, updateStrategy=rolling("OnDelete")))
        await complete(life)
        await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "debian"}}}}}, "VMSet")
        await asyncio.sleep(600)
        assert [each["spec"]["imageRef"]["name"] for each in await machines(life)] == ["ubuntu", "ubuntu"]
        status = await life.status("web", "VMSet")
        assert (status.get("updatedReplicas", 0), status["updateStatus"]["phase"]) == (0, "Pending")
        await life.delete("web-1")
        await asyncio.sleep(60)
        assert [each["spec"]["imageRef"]["name"] for each in await machines(life)] == ["ubuntu", "debian"]


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_recreate_deletes_all_machines_before_it_makes_one() -> None:
    async with rigaud() as life:
        await life.make(image("debian"), vmset(3, updateStrategy=rolling("Recreate")))
        await complete(life)
        async with Watching(life) as update:
            await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "debian"}}}}}, "VMSet")
            await asyncio.sleep(1)
            await complete(life)
        assert update.steps[:3] == [("web-0", "web-1", "web-2"), (), ("web-0",)]


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_a_failed_machine_pauses_the_update_until_the_template_is_corrected() -> None:
    async with rigaud(templates=("*",), paths=("/images/ubuntu.qcow2", "/images/fixed.qcow2")) as life:
        broken, fixed = ({"libvirt": {"path": f"/images/{each}.qcow2"}} for each in ("broken", "fixed"))
        await life.make(image("broken", broken), image("fixed", fixed))
        await life.make(vmset(4, updateStrategy=rolling(maxUnavailable=2, maxSurge=0)))
        await complete(life)
        await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "broken"}}}}}, "VMSet")
        await asyncio.sleep(1200)
        status = await life.status("web", "VMSet")
        assert status["updateStatus"]["phase"] == "Paused" and status["readyReplicas"] == 2
        assert [each["name"] for each in status["updateStatus"]["failedVMs"]] == ["web-2"]
        assert (await life.said("Progressing", "web", "VMSet")) == ("False", "RolloutPaused")
        assert (await life.said("ReplicaFailure", "web", "VMSet")) == ("True", "ReplicaFailed")
        assert "RolloutPaused" in await life.events("web")
        await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "fixed"}}}}}, "VMSet")
        await asyncio.sleep(5)
        await complete(life)
        assert {each["spec"]["imageRef"]["name"] for each in await machines(life)} == {"fixed"}


@pytest.mark.spec("virtrigaud", 93)
@timeless
async def test_a_name_that_somebody_else_has_is_named_and_waited_for() -> None:
    async with rigaud() as life:
        await life.make(machine("web-1"))
        await life.ready("web-1")
        await life.make(vmset(2))
        await asyncio.sleep(1)
        await life.ready("web-0")
        await asyncio.sleep(30)
        status = await life.status("web", "VMSet")
        assert (status["replicas"], status["collisionCount"]) == (1, 1)
        found = await life.condition("Ready", "web", "VMSet")
        assert found["reason"] == "NameConflict" and "web-1" in found["message"]
        await life.delete("web-1")
        await asyncio.sleep(60)
        assert "collisionCount" not in await complete(life)


@pytest.mark.spec("virtrigaud", 19, 115)
@timeless
async def test_what_cannot_be_carried_out_is_refused_by_name() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]
    async with rigaud() as life:
        await life.make(vmset(2, volumeClaimTemplates=claims))
        await asyncio.sleep(30)
        found = await life.condition("Ready", "web", "VMSet")
        assert found["reason"] == "UnsupportedByProvider" and "volumeClaimTemplates" in found["message"]
        assert found["observedGeneration"] == 1
        assert await names(life) == [] and life.driver.count("Create") == 0
        keep = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        change = {"volumeClaimTemplates": None, "serviceName": "web", "persistentVolumeClaimRetentionPolicy": keep}
        await life.merge("web", {"spec": change}, "VMSet")
        await complete(life)
        text = (await life.condition("Unsupported", "web", "VMSet"))["message"]
        assert "spec.serviceName" in text and "spec.persistentVolumeClaimRetentionPolicy" in text


@pytest.mark.spec("virtrigaud", 94)
@timeless
async def test_old_revisions_are_kept_to_the_limit_and_a_template_that_comes_back_is_the_old_revision() -> None:
    async with rigaud() as life:
        await life.make(vmset(1, revisionHistoryLimit=2, updateStrategy=rolling(maxUnavailable=1)))
        first = (await complete(life))["updateRevision"]
        for cpu in (3, 4, 5, 6):
            await life.merge("web", {"spec": {"template": {"spec": {"resources": {"cpu": cpu}}}}}, "VMSet")
            await asyncio.sleep(60)
            await complete(life)
        stored = (await life.api.get("/apis/apps/v1/namespaces/default/controllerrevisions")).data["items"]
        assert sorted(each["revision"] for each in stored) == [3, 4, 5]
        await life.merge("web", {"spec": {"template": {"spec": {"resources": {"cpu": 4}}}}}, "VMSet")
        await asyncio.sleep(60)
        status = await complete(life)
        assert status["updateRevision"] in {each["metadata"]["labels"]["virtrigaud.io/set-revision"] for each in stored} - {first}
        assert (await life.get("web-0"))["spec"]["resources"] == {"cpu": 4}


@pytest.mark.spec("virtrigaud", 93, 94)
@pytest.mark.parametrize("number", range(0, 44, 2))
@timeless
async def test_the_process_ends_before_each_write(number: int) -> None:
    """It ends before a write and begins anew: nothing is made twice, and the set becomes what its spec says."""
    async with rigaud() as life:
        await life.make(image("debian"))
        creates: Counter[str] = Counter()

        async def note(rpc: str, request: m.WireMessage) -> None:
            if isinstance(request, m.CreateRequest) and request.owner is not None:
                creates[request.owner.uid] += 1

        life.driver.script = note
        life.wire.writes, life.wire.ends_at = 0, number
        await life.make(vmset(2, updateStrategy=rolling(podManagementPolicy="Parallel", maxUnavailable=1, maxSurge=0)))
        await asyncio.sleep(60)
        life.wire.ends_at = -1
        await life.restart()
        await complete(life)
        life.wire.writes, life.wire.ends_at = 0, number
        await life.merge("web", {"spec": {"template": {"spec": {"imageRef": {"name": "debian"}}}}}, "VMSet")
        await asyncio.sleep(200)
        life.wire.ends_at = -1
        await life.restart()
        await asyncio.sleep(10)
        await complete(life)
        there = await life.machines()
        assert sorted(each.name for each in there) == ["web-0", "web-1"]
        assert max(creates.values()) <= 2, "a create whose answer got lost is repeated for the same owner, and for nobody else"
        assert len(creates) == 4


@pytest.mark.spec("virtrigaud", 93)
@timeless
async def test_a_machine_that_cannot_be_made_is_named() -> None:
    async with rigaud() as life:
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "the hypervisor is away")
        await life.make(vmset(1))
        await asyncio.sleep(60)
        found = await life.condition("Ready", "web", "VMSet")
        assert found["reason"] == "CreatingReplicas" and "web-0" in found["message"] and "hypervisor is away" in found["message"]
        life.driver.down = None
        await complete(life)


@pytest.mark.spec("virtrigaud", 114)
@timeless
async def test_nothing_is_written_when_nothing_changes() -> None:
    async with rigaud() as life:
        await life.make(vmset(3))
        await complete(life)
        await asyncio.sleep(1500)
        before = await revisions(life)
        await asyncio.sleep(3000)
        assert await revisions(life) == before
