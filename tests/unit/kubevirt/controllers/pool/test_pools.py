"""Pools at work, with machines and instances that are played (docs/spec/kubevirt.md 6, items 98 to 101)."""

import asyncio
from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.kubevirt.controllers.pool.controller import wire
from paddock.kubevirt.controllers.virtualmachine.controller import wire as wire_machines
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import Life, living

BASE = "/apis/pool.kubevirt.io/v1beta1/namespaces/default"
SCALE = f"{BASE}/virtualmachinepools/web/scale"
LABELS = {"app": "web"}


def pool(replicas: int = 3, strategy: str = "Always", hardware: Data | None = None, **spec: Any) -> Data:
    template = {
        "metadata": {"labels": LABELS},
        "spec": {
            "runStrategy": strategy,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"domain": {"devices": {}, "cpu": {"cores": 1}, "memory": {"guest": "1Gi"}}, **(hardware or {})},
            },
        },
    }
    machine = spec.pop("machine", {})
    template["spec"].update(machine)  # type: ignore[attr-defined]
    return {
        "apiVersion": "pool.kubevirt.io/v1beta1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": template, **spec},
    }


def hardware(change: Data) -> Data:
    return {"spec": {"virtualMachineTemplate": {"spec": {"template": {"spec": change}}}}}


async def make(life: Life, body: Data) -> Data:
    return await life.make(body, "virtualmachinepools", BASE)


async def change(life: Life, body: Data) -> None:
    await life.merge(body, plural="virtualmachinepools", base=BASE)


async def the_pool(life: Life) -> Data:
    found = await life.get(plural="virtualmachinepools", base=BASE)
    assert found is not None
    return found


async def names(life: Life, plural: str = "virtualmachines") -> list[str]:
    found = (await life.api.get(f"/apis/kubevirt.io/v1/namespaces/default/{plural}")).data["items"]
    return sorted(each["metadata"]["name"] for each in found)


async def uids(life: Life, plural: str = "virtualmachineinstances") -> dict[str, str]:
    found = (await life.api.get(f"/apis/kubevirt.io/v1/namespaces/default/{plural}")).data["items"]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


async def scale(life: Life, replicas: int) -> None:
    said = await life.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": replicas}})
    assert said.status == 200, said.data


def numbered(*numbers: int) -> list[str]:
    return sorted(f"web-{number}" for number in numbers)


@pytest.mark.spec("kubevirt", 101)
@timeless
async def test_three_machines_run() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool())
        await life.rest(10)
        assert await names(life) == numbered(0, 1, 2) == await names(life, "virtualmachineinstances")
        seen = await the_pool(life)
        assert seen["status"] == {"replicas": 3, "readyReplicas": 3, "labelSelector": "app=web"}
        vm = await life.vm("web-1")
        assert vm["metadata"]["labels"] == {**LABELS, "kubevirt.io/vm-pool-revision-name": "web-1"}
        assert "pool.kubevirt.io/finalizer" in vm["metadata"]["finalizers"]
        (owner,) = vm["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("VirtualMachinePool", seen["metadata"]["uid"], True)
        vmi = await life.vmi("web-1")
        assert vmi is not None and vmi["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-1"
        # In virtual time all three are of one moment, and so of one name.
        assert ("Normal", "SuccessfulCreate", "Created VM default/web-0") in await life.events("web")


@pytest.mark.spec("kubevirt", 98)
@timeless
async def test_scaling_up_and_down_and_gaps() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(0))
        await scale(life, 10)
        await life.rest(20)
        assert await names(life) == numbered(*range(10))
        said = (await life.api.get(SCALE)).data
        assert said["status"] == {"replicas": 10, "selector": "app=web"}
        await scale(life, 3)
        await life.rest(20)
        assert len(await names(life)) == 3
        await scale(life, 10)
        await life.rest(20)
        assert await names(life) == numbered(*range(10))
        await scale(life, 0)
        await life.rest(20)
        assert await names(life) == [] == await names(life, "virtualmachineinstances")


@pytest.mark.spec("kubevirt", 98)
@timeless
async def test_a_number_that_was_a_mistake_can_be_corrected() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(10**9, "Halted"))
        while not await names(life):
            await asyncio.sleep(0)
        await scale(life, 2)
        await life.rest(60)
        assert len(await names(life)) == 2


@pytest.mark.spec("kubevirt", 98)
@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ({"sortPolicy": "AscendingOrder"}, (2, 3)),
        ({"sortPolicy": "DescendingOrder"}, (0, 1)),
        ({"sortPolicy": "Oldest"}, (0, 3)),
        ({"sortPolicy": "Newest"}, (1, 2)),
        ({"sortPolicy": "DescendingOrder", "selectors": {"labelSelector": {"matchLabels": {"spare": "yes"}}}}, (2, 3)),
    ],
)
@timeless
async def test_who_goes_first(policy: Data, left: tuple[int, ...]) -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(4, strategy="Halted", scaleInStrategy={"proactive": {"selectionPolicy": policy}}))
        await life.rest(10)
        if policy["sortPolicy"] in ("Oldest", "Newest"):
            # The lowest number is the youngest.
            life.api.clock.time += 100
            await life.delete("web-0")
            await life.rest(10)
        for number in (0, 1):
            await life.merge({"metadata": {"labels": {"spare": "yes"}}}, f"web-{number}")
        await scale(life, 2)
        await life.rest(10)
        assert await names(life) == numbered(*left)


@pytest.mark.parametrize("way", ["unmanaged", "opportunistic"])
@timeless
async def test_a_pool_that_deletes_nothing_by_itself(way: str) -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(3, strategy="Halted", scaleInStrategy={way: {}}))
        await life.rest(10)
        await scale(life, 2)
        await life.rest(60)
        assert len(await names(life)) == 3
        await life.delete("web-0")
        await life.rest(60)
        assert await names(life) == numbered(1, 2)


@pytest.mark.spec("kubevirt", 101)
@timeless
async def test_a_pool_that_is_paused_does_nothing() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(2, paused=True))
        await life.rest(10)
        assert await names(life) == []
        (condition,) = (await the_pool(life))["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("ReplicaPaused", "True")
        await change(life, {"spec": {"paused": None}})
        await life.rest(10)
        assert len(await names(life)) == 2 and "conditions" not in (await the_pool(life))["status"]


@pytest.mark.spec("kubevirt", 99)
@timeless
async def test_another_template_restarts_the_machines_and_keeps_their_identity() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(3))
        await life.rest(10)
        before, firmware = await uids(life), (await life.vm("web-0"))["spec"]["template"]["spec"]["domain"]["firmware"]
        machines = await uids(life, "virtualmachines")
        await change(life, hardware({"domain": {"cpu": {"cores": 2}}}))
        await life.rest(60)
        after = await uids(life)
        assert set(after) == set(before) and not set(after.values()) & set(before.values())
        assert await uids(life, "virtualmachines") == machines
        domain = (await life.vm("web-0"))["spec"]["template"]["spec"]["domain"]
        assert domain["cpu"]["cores"] == 2 and domain["firmware"] == firmware
        vmi = await life.vmi("web-2")
        assert vmi is not None and vmi["spec"]["domain"]["cpu"]["cores"] == 2
        assert vmi["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == "web-2"
        kept = (await life.api.get("/apis/apps/v1/namespaces/default/controllerrevisions")).data["items"]
        assert [each["metadata"]["name"] for each in kept if each["metadata"]["name"].startswith("web-")] == ["web-2"]


@pytest.mark.spec("kubevirt", 99)
@timeless
async def test_no_more_machines_than_allowed_are_down_at_a_time() -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(4, maxUnavailable=1))
        await life.rest(20)
        before = await uids(life)
        life.player.seconds = 2.0
        await change(life, hardware({"domain": {"cpu": {"cores": 2}}}))
        fewest = 4
        for _ in range(400):
            await life.rest(0.25)
            fewest = min(fewest, (await the_pool(life))["status"].get("readyReplicas", 0))
        after = await uids(life)
        assert fewest == 3 and not set(after.values()) & set(before.values())


@pytest.mark.spec("kubevirt", 99)
@pytest.mark.parametrize(("way", "cores"), [("opportunistic", 2), ("unmanaged", 1)])
@timeless
async def test_updates_that_leave_instances_alone(way: str, cores: int) -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(2, updateStrategy={way: {}}))
        await life.rest(10)
        before = await uids(life)
        await change(life, hardware({"domain": {"cpu": {"cores": 2}}}))
        await life.rest(60)
        assert await uids(life) == before
        assert (await life.vm("web-0"))["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == cores
        await life.delete("web-0", "virtualmachineinstances")
        await life.rest(10)
        vmi = await life.vmi("web-0")
        assert vmi is not None and vmi["spec"]["domain"]["cpu"]["cores"] == cores


@pytest.mark.spec("kubevirt", 99)
@timeless
async def test_other_disks_make_other_machines() -> None:
    disk = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
    volumes = {"volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}
    async with living(wire, wire_machines) as life:
        await make(life, pool(2, strategy="Halted", hardware=volumes, machine={"dataVolumeTemplates": [disk]}))
        await life.rest(10)
        before = await uids(life, "virtualmachines")
        other = {**disk, "spec": {**disk["spec"], "storage": {"resources": {"requests": {"storage": "2Gi"}}}}}  # type: ignore[dict-item]
        await change(life, {"spec": {"virtualMachineTemplate": {"spec": {"dataVolumeTemplates": [other]}}}})
        await life.rest(30)
        after = await uids(life, "virtualmachines")
        assert set(after) == set(before) and not set(after.values()) & set(before.values())
        vm = await life.vm("web-1")
        assert vm["spec"]["template"]["spec"]["volumes"] == [{"name": "root", "dataVolume": {"name": "root-1"}}]


@pytest.mark.spec("kubevirt", 100)
@timeless
async def test_disks_are_kept_where_the_pool_says_so() -> None:
    disk = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
    volumes = {"volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}
    keep = {"proactive": {"statePreservation": "Offline", "selectionPolicy": {"sortPolicy": "DescendingOrder"}}}
    async with living(wire, wire_machines, collects=True, writing=0.2) as life:
        body = pool(2, strategy="Halted", hardware=volumes, machine={"dataVolumeTemplates": [disk]}, scaleInStrategy=keep)
        await make(life, body)
        await life.rest(10)
        path = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/root-1"
        before = (await life.api.get(path)).data["metadata"]
        assert [each["kind"] for each in before["ownerReferences"]] == ["VirtualMachine"]
        await scale(life, 1)
        await life.rest(10)
        assert await names(life) == ["web-0"]
        kept = (await life.api.get(path)).data["metadata"]
        assert kept["uid"] == before["uid"] and "ownerReferences" not in kept
        await scale(life, 2)
        await life.rest(10)
        again = (await life.api.get(path)).data["metadata"]
        assert again["uid"] == before["uid"]
        assert [each["uid"] for each in again["ownerReferences"]] == [(await life.vm("web-1"))["metadata"]["uid"]]


@pytest.mark.spec("kubevirt", 101)
@pytest.mark.parametrize(
    "patch", [{"metadata": {"labels": {"app": "mine"}}}, {"metadata": {"ownerReferences": None}}], ids=["label", "owner"]
)
@timeless
async def test_a_machine_that_leaves_the_pool_is_replaced(patch: Data) -> None:
    async with living(wire, wire_machines) as life:
        await make(life, pool(2))
        await life.rest(10)
        before = await uids(life)
        await life.merge(patch, "web-0")
        await life.rest(10)
        assert await names(life) == numbered(0, 1, 2)
        assert (await uids(life))["web-0"] == before["web-0"]
        left = (await life.vm("web-0"))["metadata"]
        assert "ownerReferences" not in left and "pool.kubevirt.io/finalizer" not in left["finalizers"]
        await life.delete("web-0")
        await life.rest(10)
        assert await names(life) == numbered(1, 2)


@timeless
async def test_a_machine_that_is_taken_out_a_moment_before_it_would_be_deleted_stays() -> None:
    async with living(wire, wire_machines, writing=0.2) as life:
        await make(life, pool(1, strategy="Halted"))
        await life.rest(10)
        await scale(life, 0)
        # The deletion is on its way.
        await life.rest(0.1)
        await life.merge({"metadata": {"ownerReferences": None}}, "web-0")
        await life.rest(30)
        assert await names(life) == ["web-0"] and "deletionTimestamp" not in (await life.vm("web-0"))["metadata"]


@pytest.mark.spec("kubevirt", 101)
@pytest.mark.parametrize("reason", ["count", "time"])
@timeless
async def test_a_machine_that_does_not_start_is_made_anew(reason: str) -> None:
    healing = {"startUpFailureThreshold": 3 if reason == "count" else 100, "minFailingToStartDuration": "5m" if reason == "time" else "9h"}
    async with living(wire, wire_machines) as life:
        life.player.until["web-1"] = "Failed"
        await make(life, pool(2, autohealing=healing))
        await life.rest(10)
        before = await uids(life, "virtualmachines")

        async def replaced() -> bool:
            return (await uids(life, "virtualmachines")).get("web-1", "") not in ("", before["web-1"])

        await life.until(replaced, 1200)
        life.player.until.clear()
        assert (await uids(life, "virtualmachines"))["web-0"] == before["web-0"]
        await life.shows("Running", "web-1")


@timeless
async def test_a_refusal_is_told_in_the_status() -> None:
    quota: Data = {"metadata": {"name": "few"}, "spec": {"hard": {"count/virtualmachines.kubevirt.io": "1"}}}
    async with living(wire, wire_machines) as life:
        await life.api.post("/api/v1/namespaces/default/resourcequotas", quota)
        await life.api.merge("/api/v1/namespaces/default/resourcequotas/few/status", {"status": {"hard": quota["spec"]["hard"]}})
        await make(life, pool(2, strategy="Halted"))
        await life.rest(5)
        seen = (await the_pool(life))["status"]
        if seen["replicas"] == 1:
            (condition,) = seen["conditions"]
            assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedScaleOut")
            assert "exceeded quota" in condition["message"]


@pytest.mark.spec("kubevirt", 100)
@pytest.mark.parametrize(
    ("asked", "config_map", "secret"),
    [
        ({}, "settings", "user"),
        ({"appendIndexToConfigMapRefs": True}, "settings-0", "user"),
        ({"appendIndexToSecretRefs": True}, "settings", "user-0"),
    ],
)
@timeless
async def test_references_follow_the_number_only_when_asked(asked: Data, config_map: str, secret: str) -> None:
    volumes = {
        "volumes": [
            {"name": "own", "configMap": {"name": "settings"}},
            {"name": "cloud", "cloudInitNoCloud": {"secretRef": {"name": "user"}}},
            {"name": "shared", "persistentVolumeClaim": {"claimName": "shared"}},
        ]
    }
    async with living(wire, wire_machines) as life:
        await make(life, pool(1, "Halted", volumes, nameGeneration=asked))
        await life.rest(10)
        config, cloud, shared = (await life.vm("web-0"))["spec"]["template"]["spec"]["volumes"]
    assert (config["configMap"]["name"], cloud["cloudInitNoCloud"]["secretRef"]["name"]) == (config_map, secret)
    assert shared["persistentVolumeClaim"]["claimName"] == "shared"


@timeless
async def test_the_machine_of_a_number_may_belong_to_somebody_else() -> None:
    async with living(wire, wire_machines) as life:
        own = {**pool()["spec"]["virtualMachineTemplate"], "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
        await life.make({**own, "metadata": {"name": "web-0"}})
        await make(life, pool(2))
        await life.rest(10)
        assert await names(life) == numbered(0, 1, 2)
        assert "ownerReferences" not in (await life.vm("web-0"))["metadata"]


@pytest.mark.spec("kubevirt", 6)
@timeless
async def test_a_change_in_the_flat_form_restarts_the_machines() -> None:
    base, nested = "/apis/kubevirt.io/v1alpha1/namespaces/default", pool(2)
    machine = nested["spec"]["virtualMachineTemplate"]["spec"]
    hardware = machine.pop("template")["spec"]
    flat = {**nested, "apiVersion": "kubevirt.io/v1alpha1"}
    machine.update(hardware)
    async with living(wire, wire_machines) as life:
        await life.make(flat, "virtualmachinepools", base)
        await life.rest(10)
        before = await uids(life)
        assert set(before) == set(numbered(0, 1))
        change = {"spec": {"virtualMachineTemplate": {"spec": {"domain": {"cpu": {"cores": 2}}}}}}
        await life.merge(change, plural="virtualmachinepools", base=base)
        await life.rest(60)
        after = await uids(life)
        assert set(after) == set(before) and not set(after.values()) & set(before.values())
        for name in after:
            assert (await life.vm(name))["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2
            vmi = await life.vmi(name)
            assert vmi is not None and vmi["spec"]["domain"]["cpu"]["cores"] == 2
