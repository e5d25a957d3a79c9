"""The objects that are deleted with a machine, and those that stay (docs/spec/kubevirt.md 1.2, 2.1 and 2.4)."""

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.pool.controller import wire as wire_pools
from paddock.kubevirt.controllers.virtualmachine.controller import wire
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import KUBEVIRT, Life, living

DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


def machine(**metadata: str) -> Data:
    disk = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
    hardware = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}, "volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": metadata or {"name": "web"},
        "spec": {"runStrategy": "Always", "template": {"spec": hardware}, "dataVolumeTemplates": [disk]},
    }


async def running(life: Life) -> Data:
    made = await life.make(machine())
    await life.rest(2)
    await life.api.merge(f"{DISKS}/root/status", {"status": {"phase": "Succeeded"}})
    await life.shows("Running")
    return made


async def left(life: Life) -> dict[str, int]:
    paths = {"vm": f"{KUBEVIRT}/virtualmachines", "vmi": f"{KUBEVIRT}/virtualmachineinstances", "disk": DISKS, "revision": REVISIONS}
    return {name: len((await life.api.get(path)).data["items"]) for name, path in paths.items()}


@pytest.mark.spec("kubevirt", 59)
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@timeless
async def test_a_machine_takes_its_disks_along_and_its_instance_ends_first(policy: str) -> None:
    async with living(wire, collects=True) as life:
        await running(life)
        life.player.holds_deletion = True
        await life.delete(body={"propagationPolicy": policy})
        await life.rest(30)
        before = await left(life)
        assert (before["vm"], before["vmi"]) == (1, 1)
        life.player.holds_deletion = False
        life.played.offer(Key("default", "web"))
        await life.rest(30)
        assert await left(life) == {"vm": 0, "vmi": 0, "disk": 0, "revision": 0}


@pytest.mark.spec("kubevirt", 59)
@timeless
async def test_orphans_stay() -> None:
    async with living(wire, collects=True) as life:
        await running(life)
        await life.delete(body={"propagationPolicy": "Orphan"})
        await life.rest(30)
        assert await left(life) == {"vm": 0, "vmi": 1, "disk": 1, "revision": 1}
        disk = (await life.api.get(f"{DISKS}/root")).data["metadata"]
        assert "ownerReferences" not in disk


@pytest.mark.spec("kubevirt", 59)
@timeless
async def test_names_that_are_made_and_preconditions() -> None:
    async with living(wire) as life:
        made = await life.make(machine(generateName="web-"))
        name = made["metadata"]["name"]
        assert name.startswith("web-") and len(name) == 9
        path = f"{KUBEVIRT}/virtualmachines/{name}"
        refused = await life.api.delete(path, {"preconditions": {"uid": "another"}})
        assert refused.status == 409 and (await life.api.get(path)).status == 200
        assert (await life.api.delete(path, {"preconditions": {"uid": made["metadata"]["uid"]}})).status == 200
        await life.rest(5)
        assert (await life.api.get(path)).status == 404


@pytest.mark.parametrize(("policy", "machines"), [("Background", 0), ("Foreground", 0), ("Orphan", 2)])
@timeless
async def test_a_pool_takes_its_machines_along(policy: str, machines: int) -> None:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}}},
    }
    body = {
        "apiVersion": "pool.kubevirt.io/v1beta1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "virtualMachineTemplate": template},
    }
    base = "/apis/pool.kubevirt.io/v1beta1/namespaces/default"
    async with living(wire, wire_pools, collects=True) as life:
        await life.make(body, "virtualmachinepools", base)
        await life.rest(10)
        await life.delete("web", "virtualmachinepools", {"propagationPolicy": policy}, base)
        await life.rest(30)
        assert (await left(life))["vm"] == (await left(life))["vmi"] == machines
        assert await life.get("web", "virtualmachinepools", base) is None
        if machines:
            assert "pool.kubevirt.io/finalizer" not in (await life.vm("web-0"))["metadata"]["finalizers"]
