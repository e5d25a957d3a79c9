"""Machines that are deleted without what they have made, and claims that only bear a Machine's name."""

import asyncio

import pytest

from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import VERSIONS, Vitistack, machine, network

ADDRESS = "http://images/debian.qcow2"
WIRED = [{"name": "eth0", "networkName": "prod"}]


async def make(host: Vitistack) -> None:
    """Make a Machine with every kind of object: a DataVolume, a plain claim and a network."""
    host.engine.images.offer(ADDRESS)
    root = {"annotations": {"vitistack.io/root-image": ADDRESS}}
    await host.make(network(), machine(metadata=root, disks=[{"name": "data", "size": "1Gi"}], networks=WIRED))
    await host.up(seconds=60)


async def made(host: Vitistack) -> list[str]:
    """Return the UIDs of all that was made for the Machine, with those of the disks on the host."""
    kinds = ("VirtualMachine", "VirtualMachineInstance", "DataVolume", "PersistentVolumeClaim", "NetworkAttachmentDefinition")
    replies = [await host.api.get(host.place(each, VERSIONS.get(each, "v1"))) for each in kinds]
    return sorted([*(each["metadata"]["uid"] for reply in replies for each in reply.data["items"]), *host.engine.volumes.ids()])


async def orphan(host: Vitistack) -> None:
    """Delete the Machine as `kubectl delete --cascade=orphan` does."""
    reply = await host.api.delete(host.place("Machine", "vitistack.io/v1alpha1", name="web"), {"propagationPolicy": "Orphan"})
    assert reply.status == 200, reply.data


@pytest.mark.spec("kube-api", 96)
@pytest.mark.spec("vitistack", 83)
@pytest.mark.parametrize("away", [False, True], ids=["running", "away"])
@played
async def test_an_orphaning_deletion_takes_the_machine_alone(host: Vitistack, /, away: bool) -> None:
    """The controller that was away finds the finalizer `orphan` taken off, and the references of the dependents gone."""
    await make(host)
    before = await made(host)
    assert len(before) == 8
    if away:
        await host.end()
    await orphan(host)
    if away:
        await asyncio.sleep(30)
        assert (await host.machine())["metadata"]["finalizers"] == ["machine.vitistack.io/cleanup"]
        await host.begin()
    await asyncio.sleep(120)
    assert await host.machine() == {}
    assert await made(host) == before
    assert "connectedMachines" not in (await host.seen("NetworkConfiguration", "prod"))["status"]


@pytest.mark.spec("vitistack", 83)
@played
async def test_a_machine_that_is_made_anew_takes_up_what_the_former_one_left(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    before = await made(host)
    await orphan(host)
    await asyncio.sleep(60)
    await host.make(machine())
    uid = (await host.up())["metadata"]["uid"]
    assert await made(host) == before
    for kind, name in (("VirtualMachine", "web"), ("PersistentVolumeClaim", "web-root")):
        assert uid in [each["uid"] for each in (await host.seen(kind, name))["metadata"]["ownerReferences"]]
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.machine() == {}
    assert await made(host) == []


@pytest.mark.spec("vitistack", 69)
@played
async def test_a_claim_that_only_has_the_label_outlives_the_machine(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "paddock"}
    metadata = {"name": "mine", "labels": {"vitistack.io/machine": "web"}}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    await asyncio.sleep(30)
    await host.drop("Machine", "web")
    await asyncio.sleep(120)
    assert await host.machine() == {}
    assert await host.names("PersistentVolumeClaim") == ["mine"]
