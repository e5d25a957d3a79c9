"""Requests that shall change nothing, as `tests/dryrun_test.go` of KubeVirt wants them."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.upstream.asking import PLACE, VM
from tests.scenario.upstream.test_sets import replicas

pytestmark = pytest.mark.spec("kubevirt", 110)

SNAPSHOTS = "snapshot.kubevirt.io/v1beta1"
SOURCE = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "other"}
DRY = "dryRun=All"


def of(kind: str, spec: Data, version: str = VM) -> Data:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


INSTANCE = of("VirtualMachineInstance", machine()["spec"]["template"]["spec"])
OBJECTS = {
    "virtualmachineinstances": INSTANCE,
    "virtualmachines": machine(strategy="Halted"),
    "virtualmachineinstancemigrations": of("VirtualMachineInstanceMigration", {"vmiName": "other"}),
    "virtualmachineinstancepresets": of(
        "VirtualMachineInstancePreset", {"selector": {"matchLabels": {"a": "b"}}, "domain": {"devices": {}}}
    ),
    "virtualmachineinstancereplicasets": {**replicas(), "metadata": {"name": "web"}},
    "virtualmachinesnapshots": of("VirtualMachineSnapshot", {"source": SOURCE}, SNAPSHOTS),
    "virtualmachinerestores": of(
        "VirtualMachineRestore",
        {"target": SOURCE, "virtualMachineSnapshotName": "one", "targetReadinessPolicy": "WaitEventually"},
        SNAPSHOTS,
    ),
}


def place(plural: str) -> str:
    return PLACE.replace(VM, SNAPSHOTS) + f"/{plural}" if plural.endswith(("snapshots", "restores")) else f"{PLACE}/{plural}"


async def settled(host: FakeHost, path: str) -> Data:
    """The object when nobody changes it any more."""
    await asyncio.sleep(30)
    reply = await host.api.get(path)
    assert reply.status == 200, reply.data
    return dict(reply.data)


@pytest.mark.parametrize("plural", OBJECTS)
@pytest.mark.parametrize("verb", ["create", "delete", "update", "patch"])
@played
async def test_nothing_is_different_afterwards(host: FakeHost, /, plural: str, verb: str) -> None:
    path, body = place(plural), OBJECTS[plural]
    # A restore looks at its target from the beginning, and a migration is of an instance that there is.
    await host.make(machine("other", "Always" if plural == "virtualmachineinstancemigrations" else "Halted"))
    await asyncio.sleep(30)
    if verb == "create":
        reply = await host.api.post(f"{path}?{DRY}", body)
        assert reply.status == 201 and reply.data["metadata"]["uid"], reply.data
        await asyncio.sleep(30)
        assert (await host.api.get(f"{path}/web")).status == 404
        return
    assert (await host.api.post(path, body)).status == 201
    before = await settled(host, f"{path}/web")
    if verb == "delete":
        reply = await host.api.delete(f"{path}/web?{DRY}")
    elif verb == "update":
        labels = {**before["metadata"].get("labels", {}), "key": "42"}
        reply = await host.api.put(f"{path}/web?{DRY}", {**before, "metadata": {**before["metadata"], "labels": labels}})
    else:
        reply = await host.api.merge(f"{path}/web?{DRY}", {"metadata": {"labels": {"key": "42"}}})
    assert reply.status == 200, str(reply.data)
    assert verb == "delete" or reply.data["metadata"]["labels"]["key"] == "42"
    assert await settled(host, f"{path}/web") == before


@pytest.mark.parametrize("verb", ["delete", "update", "patch"])
@played
async def test_the_installation_is_what_it_was(host: FakeHost, /, verb: str) -> None:
    path = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
    before = await settled(host, path)
    changed = {"metadata": {"labels": {"key": "42"}}}
    if verb == "delete":
        reply = await host.api.delete(f"{path}?{DRY}")
    elif verb == "update":
        reply = await host.api.put(f"{path}?{DRY}", {**before, "metadata": {**before["metadata"], **changed["metadata"]}})
    else:
        reply = await host.api.merge(f"{path}?{DRY}", changed)
    assert reply.status == 200, reply.data
    assert await settled(host, path) == before
