"""Changes: at once, at the next start, or not at all."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import GIB
from tests.scenario.fronts.stakater.stage import DISK, GROUP, SOURCE, Data, Stage, front


def request(claim: Data) -> str:
    """Return the request of a claim."""
    return str(claim["spec"]["resources"]["requests"]["storage"])


@pytest.mark.spec("stakater", 52)
@played
async def test_labels_come_and_go_and_those_of_others_stay(stage: Stage, /) -> None:
    await stage.make(front(additionalLabels={"tier": "web", "team": "a"}, additionalAnnotations={"note": "x"}))
    await stage.available()
    await stage.host.change("web", {"metadata": {"labels": {"theirs": "stays"}, "annotations": {"theirs": "stays"}}})
    await stage.parameters(additionalLabels={"tier": None}, additionalAnnotations={"note": None})
    await stage.available()
    meta = (await stage.host.vm())["metadata"]
    assert meta["labels"] == {
        "app.kubernetes.io/managed-by": "paddock",
        "infrastructure.stakater.com/virtual-machine": "web",
        "team": "a",
        "theirs": "stays",
    }
    assert meta["annotations"]["theirs"] == "stays" and "note" not in meta["annotations"]


@pytest.mark.spec("stakater", 62)
@played
async def test_disks_grow_and_never_shrink(stage: Stage, /) -> None:
    await stage.make(front(additionalDisks=[DISK, {**DISK, "name": "raw", "volumeMode": "Block"}]))
    await stage.available()
    root = await stage.claim("web-rootdisk")
    bigger = [{**DISK, "size": "3Gi"}, {**DISK, "name": "raw", "volumeMode": "Block", "size": "5Gi"}]
    await stage.parameters(storage={"size": "20Gi"}, additionalDisks=bigger)
    await stage.available()
    # With a filesystem between, the claim asks for a little more than the guest should see.
    for name, least in (("web-rootdisk", 20), ("web-data", 3)):
        assert least * GIB <= int(request(await stage.claim(name))) <= least * GIB * 1.07, name
    assert request(await stage.claim("web-raw")) == "5Gi"
    assert (await stage.claim("web-rootdisk"))["metadata"]["uid"] == root["metadata"]["uid"]
    assert "Updated" in await stage.reasons()
    for parameters, field in (
        ({"storage": {"size": "10Gi"}}, "storage.size"),
        ({"additionalDisks": [{**DISK, "size": "2Gi"}, bigger[1]]}, "additionalDisks[0].size"),
    ):
        reply = await stage.api.merge(stage.path("web"), {"spec": {"parameters": parameters}})
        assert reply.status == 422 and reply.causes == {f"spec.parameters.{field}": "Forbidden: disks cannot shrink"}, reply.data
    await asyncio.sleep(60)
    assert int(request(await stage.claim("web-rootdisk"))) >= 20 * GIB


@played
async def test_a_class_that_does_not_let_volumes_grow_is_told(stage: Stage, /) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses/paddock"
    assert (await stage.api.merge(path, {"allowVolumeExpansion": False})).status == 200
    await stage.make(front())
    await stage.available()
    before = request(await stage.claim("web-rootdisk"))
    await stage.parameters(storage={"size": "20Gi"})
    await asyncio.sleep(30)
    assert (await stage.said())["Synced"] == ("False", "ReconcileError")
    assert "allowVolumeExpansion" in await stage.message("Synced")
    assert request(await stage.claim("web-rootdisk")) == before
    assert (await stage.api.merge(path, {"allowVolumeExpansion": True})).status == 200
    await stage.available(seconds=120)


@pytest.mark.spec("stakater", 63)
@played
async def test_a_disk_that_is_taken_out_keeps_its_data(stage: Stage, /) -> None:
    await stage.make(front(additionalDisks=[DISK]))
    await stage.available()
    kept = (await stage.volume("web-data"))["metadata"]["uid"]
    await stage.parameters(additionalDisks=[])
    await asyncio.sleep(600)
    names = [each["metadata"]["name"] for each in (await stage.host.vm())["spec"]["dataVolumeTemplates"]]
    assert names == ["web-rootdisk"]
    assert (await stage.volume("web-data"))["metadata"]["uid"] == kept
    assert await stage.claim("web-data") != {}
    # Also when nobody uses it any more.
    await stage.parameters(runStrategy="Halted")
    await asyncio.sleep(600)
    assert (await stage.volume("web-data"))["metadata"]["uid"] == kept
    # Put back, it is the same disk.
    await stage.parameters(additionalDisks=[DISK], runStrategy="Always")
    await asyncio.sleep(30)
    assert (await stage.volume("web-data"))["metadata"]["uid"] == kept
    # It is deleted when that is said, as soon as nobody uses it.
    await stage.parameters(additionalDisks=[])
    await stage.change({"metadata": {"annotations": {"infrastructure.stakater.com/prune-disks": "true"}}})
    await asyncio.sleep(60)
    assert await stage.volume("web-data") != {}
    await stage.parameters(runStrategy="Halted")
    await asyncio.sleep(60)
    assert await stage.volume("web-data") == {} and await stage.claim("web-data") == {}
    assert await stage.volume("web-rootdisk") != {}


async def waits_for_restart(stage: Stage) -> bool:
    """Return whether `status.vm.conditions` says so."""
    return any((each["type"], each["status"]) == ("RestartRequired", "True") for each in (await stage.vm())["conditions"])


# What is changed, and whether the running machine has to be started again for it.
CHANGES: list[tuple[Data, bool]] = [
    ({"cpu": {"cores": 2}}, True),
    ({"cpu": {"threads": 2}}, True),
    ({"firmware": {"efi": False}}, True),
    ({"terminationGracePeriodSeconds": 20}, True),
    ({"networks": [{"name": "default", "interfaceModel": "e1000e"}]}, True),
    ({"cpu": {"sockets": 2}}, False),
    ({"memory": {"guest": "3Gi"}}, False),
    ({"memory": {"guest": "1Gi"}}, True),
    ({"nodeSelector": {"kubernetes.io/hostname": "host"}}, False),
    ({"service": {"enabled": True}}, False),
    ({"additionalLabels": {"tier": "db"}}, False),
]


@pytest.mark.spec("stakater", 64)
@pytest.mark.parametrize(("change", "waits"), CHANGES, ids=[f"{each}" for each, _ in CHANGES])
@played
async def test_a_change_is_live_or_waits_for_a_restart_that_nobody_makes(stage: Stage, /, change: Data, waits: bool) -> None:
    await stage.make(front(memory={"guest": "2Gi"}))
    await stage.available()
    running = await stage.host.running()
    await stage.parameters(**change)
    await asyncio.sleep(600)
    assert await waits_for_restart(stage) is waits
    assert (await stage.reasons()).count("RestartRequired") == int(waits)
    assert await stage.host.running() is running and running.observed.run == 1
    await stage.available()


LATER: list[tuple[Data, str]] = [
    ({"dataSource": {"name": "fedora"}}, "dataSource.name"),
    ({"storage": {"storageClassName": "fast"}}, "storage.storageClassName"),
    ({"additionalDisks": [{**DISK, "volumeMode": "Block"}]}, "additionalDisks[0].volumeMode"),
    ({"additionalDisks": [{**DISK, "accessModes": ["ReadWriteMany"]}]}, "additionalDisks[0].accessModes"),
    ({"additionalDisks": [{**DISK, "storageClassName": "fast"}]}, "additionalDisks[0].storageClassName"),
    ({"additionalDisks": [{**DISK, "sourceType": "http", "source": {"http": {"url": "http://a/b"}}}]}, "additionalDisks[0].sourceType"),
]


@pytest.mark.spec("stakater", 61)
@pytest.mark.parametrize(("change", "field"), LATER, ids=[field for _, field in LATER])
@played
async def test_what_would_mean_other_data_is_settled_when_the_machine_is_made(stage: Stage, /, change: Data, field: str) -> None:
    held: dict[str, Any] = {"sshPublicKey": {"secretName": "missing"}}
    await stage.make(front(additionalDisks=[DISK], **held))
    await asyncio.sleep(10)
    # Nothing is made of it yet: it may be anything.
    await stage.parameters(**change)
    await stage.parameters(dataSource={"name": "rhel9"}, storage={"storageClassName": None}, additionalDisks=[DISK], sshPublicKey=None)
    await stage.available()
    reply = await stage.api.merge(stage.path("web"), {"spec": {"parameters": change}})
    assert reply.status == 422 and f"spec.parameters.{field}" in reply.causes, reply.data
    # Also while the generated machine is away for a moment: what says that there was one stays.
    async with stage.api.watch(f"{GROUP}/virtualmachines?watch=true") as fronts:
        await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "web")
        await stage.available(seconds=60)
        states = []
        while not await fronts.quiet():
            states.append((await fronts.next())["object"]["status"])
    assert len(states) > 2 and all("vm" in each for each in states)


@played
async def test_another_image_for_a_machine_that_waits_for_one(stage: Stage, /) -> None:
    await stage.make(front(dataSource={"name": "fedora"}))
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "DataSourceNotFound")
    await stage.parameters(dataSource={"name": SOURCE["metadata"]["name"]})
    await stage.available()
