"""Replica sets of instances (docs/spec/kubevirt.md 6)."""

import asyncio
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.replicaset.controller import wire
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import KUBEVIRT, Life, living

PLURAL = "virtualmachineinstancereplicasets"
SCALE = f"{KUBEVIRT}/{PLURAL}/web/scale"
LABELS = {"app": "web"}


def replicas(count: int = 3, **spec: Any) -> Data:
    template = {"metadata": {"labels": LABELS}, "spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceReplicaSet",
        "metadata": {"name": "web"},
        "spec": {"replicas": count, "selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


async def names(life: Life) -> set[str]:
    return {each["metadata"]["name"] for each in (await life.api.get(f"{KUBEVIRT}/virtualmachineinstances")).data["items"]}


async def status(life: Life) -> Data:
    found = await life.get(plural=PLURAL)
    assert found is not None
    return dict(found["status"])


@timeless
async def test_instances_are_made_scaled_and_replaced() -> None:
    async with living(wire) as life:
        made = await life.make(replicas(), PLURAL)
        await life.rest(10)
        first = await names(life)
        assert len(first) == 3 and all(name.startswith("web") and len(name) == 8 for name in first)
        assert await status(life) == {"replicas": 3, "readyReplicas": 3, "labelSelector": "app=web"}
        vmi = await life.vmi(sorted(first)[0])
        assert vmi is not None and vmi["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        ended = sorted(first)[1]
        await life.player.say(Key("default", ended), "Failed")
        await life.rest(10)
        second = await names(life)
        assert len(second) == 3 and second & first == first - {ended}
        await life.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": 1}})
        await life.rest(10)
        assert len(await names(life)) == 1
        assert (await life.api.get(SCALE)).data["status"] == {"replicas": 1, "selector": "app=web"}


@timeless
async def test_a_number_that_was_a_mistake_can_be_corrected() -> None:
    async with living(wire) as life:
        await life.make(replicas(10**9), PLURAL)
        while not await names(life):
            await asyncio.sleep(0)
        await life.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": 2}})
        await life.rest(60)
        assert len(await names(life)) == 2


@timeless
async def test_a_set_that_is_paused_does_nothing() -> None:
    async with living(wire) as life:
        await life.make(replicas(2, paused=True), PLURAL)
        await life.rest(10)
        assert await names(life) == set()
        (condition,) = (await status(life))["conditions"]
        assert condition["type"] == "ReplicaPaused"
        await life.merge({"spec": {"paused": False}}, plural=PLURAL)
        await life.rest(10)
        assert len(await names(life)) == 2 and "conditions" not in await status(life)


@timeless
async def test_those_that_are_not_ready_go_first_and_the_relabelled_are_let_go() -> None:
    async with living(wire) as life:
        await life.make(replicas(2), PLURAL)
        await life.rest(5)
        alone = sorted(await names(life))[0]
        await life.merge({"metadata": {"labels": {"app": "mine"}}}, alone, "virtualmachineinstances")
        await life.rest(5)
        assert len(await names(life)) == 3
        vmi = await life.vmi(alone)
        assert vmi is not None and "ownerReferences" not in vmi["metadata"]
        life.player.until["*"] = "Scheduling"
        ready = await names(life) - {alone}
        await life.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": 4}})
        await life.rest(5)
        await life.api.put(SCALE, {"metadata": {"name": "web"}, "spec": {"replicas": 2}})
        await life.rest(10)
        assert await names(life) == ready | {alone}
