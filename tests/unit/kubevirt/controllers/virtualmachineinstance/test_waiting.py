"""The prerequisites of a machine, and that it goes on once they exist."""

import asyncio
from typing import Any

from paddock.base.images.errors import ImageRefused, ImageUnavailable
from tests.coroutines import played
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import CORE, GIB, VMIS, Host

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
IMAGE = "registry:5000/disks/tiny:1"
CONTAINER = [{"name": "root", "containerDisk": {"image": IMAGE}}]
CLAIM = [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]


async def claim(host: Host, name: str = "disk", mode: str = "ReadWriteOnce", *, bound: bool = True) -> str:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    made = await host.post(f"{CORE}/persistentvolumeclaims", body)
    if bound:
        await bind(host, made["metadata"]["uid"], name)
    return str(made["metadata"]["uid"])


async def bind(host: Host, uid: str, name: str = "disk") -> None:
    await host.engine.volumes.create(uid, GIB)
    await host.api.merge(f"{CORE}/persistentvolumeclaims/{name}/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})


@played
async def test_a_claim_that_is_missing_then_unbound_then_there(host: Host, /) -> None:
    await host.make(volumes=CLAIM)
    await asyncio.sleep(1)
    assert (await host.conditions())["Synchronized"] == ("False", "FailedPvcNotFound")
    assert (await host.conditions())["PodScheduled"] == ("False", "Unschedulable")
    assert (await host.status())["phase"] == "Pending"
    uid = await claim(host, bound=False)
    await asyncio.sleep(1)
    assert not {"Synchronized", "PodScheduled"} & (await host.conditions()).keys()
    await bind(host, uid)
    await asyncio.sleep(1)
    status = await host.status()
    assert status["phase"] == "Running"
    (volume,) = status["volumeStatus"]
    assert volume["persistentVolumeClaimInfo"]["claimName"] == "disk"


@played
async def test_a_data_volume_is_waited_for_and_one_that_is_gone_is_not(host: Host, /) -> None:
    volumes = [{"name": "root", "dataVolume": {"name": "disk"}}]
    spec = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
    await claim(host)
    body = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "disk"}, "spec": spec}
    body["metadata"] = {"name": "disk", "annotations": {"cdi.kubevirt.io/allowClaimAdoption": "true"}}
    await host.post(CDI, body)
    await host.make(volumes=volumes)
    await asyncio.sleep(1)
    assert (await host.conditions())["DataVolumesReady"] == ("False", "NotAllDVsReady")
    await host.api.delete(f"{CDI}/disk")
    await asyncio.sleep(1)
    assert (await host.status())["phase"] == "Running"
    assert (await host.conditions())["DataVolumesReady"] == ("True", "AllDVsReady")


@played
async def test_an_image_that_cannot_be_pulled_is_tried_again_with_growing_pauses(host: Host, /) -> None:
    host.engine.images.offer(IMAGE)
    host.engine.images.script(IMAGE, [ImageUnavailable("Unreachable", "no route"), ImageRefused("NotFound", "no such tag")])
    await host.make(volumes=CONTAINER)
    await asyncio.sleep(0.5)
    assert (await host.conditions())["Synchronized"] == ("False", "ErrImagePull")
    await asyncio.sleep(3)
    assert (await host.conditions())["Synchronized"] == ("False", "ImagePullBackOff")
    await asyncio.sleep(60)
    assert (await host.status())["phase"] == "Running"
    reasons = [reason for reason, _ in await host.events()]
    assert "SyncFailed" in reasons and reasons[-1] == "Started"


@played
async def test_another_attempt_shows_the_last_failure_until_it_goes_on_for_a_while(host: Host, /) -> None:
    host.engine.images.offer(IMAGE)
    host.engine.images.script(IMAGE, [ImageUnavailable("Unreachable", "no route")])
    await host.make(volumes=CONTAINER)
    await asyncio.sleep(3)
    host.engine.images.hold(IMAGE)
    while host.engine.images.fetched[IMAGE] < 2:
        await asyncio.sleep(0.1)
    await asyncio.sleep(5)
    assert (await host.conditions())["Synchronized"] == ("False", "ImagePullBackOff")
    await asyncio.sleep(6)
    assert "Synchronized" not in await host.conditions()
    host.engine.images.release(IMAGE)
    await asyncio.sleep(2)
    assert (await host.status())["phase"] == "Running"


@played
async def test_a_machine_that_is_deleted_while_its_image_comes_goes_at_once(host: Host, /) -> None:
    host.engine.images.offer(IMAGE)
    host.engine.images.hold(IMAGE)
    await host.make(volumes=CONTAINER)
    await asyncio.sleep(2)
    assert (await host.status())["phase"] == "Scheduling"
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(1)
    assert await host.get() == {}


@played
async def test_a_secret_that_is_missing(host: Host, /) -> None:
    await host.make(volumes=[{"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "words"}}}])
    await asyncio.sleep(1)
    assert (await host.conditions())["Synchronized"] == ("False", "FailedMount")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words"}, "stringData": {"userdata": "#cloud-config\n"}}
    await host.post(f"{CORE}/secrets", body)
    await asyncio.sleep(1)
    assert (await host.status())["phase"] == "Running"


@played
async def test_a_claim_has_one_writer(host: Host, /) -> None:
    await claim(host)
    first = await host.running("first", volumes=CLAIM)
    await host.make("second", volumes=CLAIM)
    await asyncio.sleep(1)
    assert (await host.conditions("second"))["Synchronized"] == ("False", "PVCInUse")
    first.power_off()
    await asyncio.sleep(30)
    assert (await host.status("second"))["phase"] == "Running"


@played
async def test_a_shared_claim_has_many(host: Host, /) -> None:
    await claim(host, mode="ReadWriteMany")
    await host.running("first", volumes=CLAIM)
    await host.running("second", volumes=CLAIM)


@played
async def test_memory_is_given_out_whole(host: Host, /) -> None:
    first = await host.running("first", domain={"memory": {"guest": "40Gi"}})
    await host.make("second", domain={"memory": {"guest": "40Gi"}})
    await asyncio.sleep(1)
    assert (await host.conditions("second"))["PodScheduled"] == ("False", "Unschedulable")
    message = next(each["message"] for each in (await host.status("second"))["conditions"] if each["type"] == "PodScheduled")
    assert message.startswith("0/1 nodes are available: 1 Insufficient memory: ")
    assert "of memory" in message and "stop another machine" in message
    first.power_off()
    await asyncio.sleep(10)
    assert (await host.status("second"))["phase"] == "Running"


@played
async def test_cpus_of_ones_own_are_pinned_and_given_back(host: Host, /) -> None:
    domain = {"cpu": {"cores": 1, "dedicatedCpuPlacement": True}, "memory": {"guest": "1Gi"}}
    first = await host.running("first", domain=domain)
    # The first CPU stays for everybody.
    assert first.config.cpu.pinned == (1,)
    await host.make("second", domain=domain)
    await asyncio.sleep(1)
    assert (await host.conditions("second"))["PodScheduled"] == ("False", "Unschedulable")
    message = next(each["message"] for each in (await host.status("second"))["conditions"] if each["type"] == "PodScheduled")
    assert "it wants 1 CPUs of its own, and 0 of 2 can be given away" in message
    first.power_off()
    await asyncio.sleep(10)
    status = await host.status("second")
    assert status["phase"] == "Running"


@played
async def test_a_node_selector_is_honoured(host: Host, /) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "host"}}
    await host.post("/api/v1/nodes", node)
    await host.make(nodeSelector={"disk": "fast"})
    await asyncio.sleep(1)
    assert (await host.conditions())["PodScheduled"] == ("False", "Unschedulable")
    await host.api.merge("/api/v1/nodes/host", {"metadata": {"labels": {"disk": "fast"}}})
    await asyncio.sleep(1)
    assert (await host.status())["phase"] == "Running"


@played
async def test_a_network_that_cannot_be_had_says_why(host: Host, /) -> None:
    interfaces = {"interfaces": [{"name": "lan", "bridge": {}}]}
    await host.make(devices=interfaces, networks=[{"name": "lan", "multus": {"networkName": "elsewhere"}}])
    await asyncio.sleep(1)
    assert (await host.conditions())["PodScheduled"] == ("False", "Unschedulable")
    assert "NetworkAttachmentDefinition elsewhere does not exist" in str((await host.status())["conditions"])
