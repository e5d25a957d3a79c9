"""Claims: bound to a volume of their own, filled, grown, and cleared away."""

from typing import Any

from paddock.engine.storage.errors import StoreFull
from tests.coroutines import played
from tests.unit.kubevirt.controllers.storage.conftest import CORE, GIB, Host, pvc

CLAIMS = f"{CORE}/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


async def claim(host: Host, name: str = "a", size: str = "1Gi", **more: Any) -> dict[str, Any]:
    annotations = more.pop("annotations", {})
    return await host.post(CLAIMS, {"metadata": {"name": name, "annotations": annotations}, "spec": {**pvc(size), **more}})


@played
async def test_a_plain_claim_is_bound_to_an_empty_disk(host: Host, /) -> None:
    made = await claim(host, size="1Gi")
    await host.settle()
    found = await host.claim("a")
    uid = made["metadata"]["uid"]
    assert found["spec"]["storageClassName"] == "paddock"
    assert found["spec"]["volumeName"] == f"pvc-{uid}"
    assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    volume = await host.get(f"/api/v1/persistentvolumes/pvc-{uid}")
    assert volume["status"]["phase"] == "Bound" and volume["spec"]["claimRef"]["uid"] == uid
    assert (host.volumes.volumes[uid].size, host.volumes.content[uid]) == (GIB, "blank")


@played
async def test_an_unknown_class_is_said(host: Host, /) -> None:
    await claim(host, storageClassName="gold")
    await host.settle()
    assert (await host.claim("a"))["status"]["phase"] == "Pending"
    assert await host.reasons("a") == ["ProvisioningFailed"]
    # somebody makes the class
    await host.post(CLASSES, {"metadata": {"name": "gold"}, "provisioner": "paddock.dev/directory", "parameters": {"pool": "fast"}})
    await host.settle()
    assert (await host.claim("a"))["status"]["phase"] == "Bound"


@played
async def test_a_claim_that_was_there_before_the_class_gets_it(host: Host, /) -> None:
    await host.end()
    await host.api.delete(f"{CLASSES}/paddock")
    made = await claim(host)
    assert "storageClassName" not in made["spec"]
    await claim(host, "none", storageClassName="")
    await host.begin()
    assert (await host.claim("a"))["status"]["phase"] == "Bound"
    assert (await host.claim("none"))["status"]["phase"] == "Pending" and await host.reasons("none") == ["FailedBinding"]


@played
async def test_a_claim_may_wait_for_its_first_machine(host: Host, /) -> None:
    late = {"metadata": {"name": "late"}, "provisioner": "paddock.dev/directory", "volumeBindingMode": "WaitForFirstConsumer"}
    await host.post(CLASSES, late)
    await claim(host, storageClassName="late")
    await claim(host, "now", storageClassName="late", annotations={"cdi.kubevirt.io/storage.bind.immediate.requested": ""})
    await host.settle()
    assert (await host.claim("a"))["status"]["phase"] == "Pending"
    assert (await host.claim("now"))["status"]["phase"] == "Bound"
    await machine(host, "a")
    await host.settle()
    assert (await host.claim("a"))["status"]["phase"] == "Bound"


async def machine(host: Host, claim_name: str) -> None:
    disk = {"name": "root", "persistentVolumeClaim": {"claimName": claim_name}}
    domain = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "memory": {"guest": "64Mi"}}
    body = {"metadata": {"name": "m"}, "spec": {"domain": domain, "volumes": [disk]}}
    await host.post("/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances", body)


@played
async def test_a_claim_grows_at_rest_and_with_its_machine(host: Host, /) -> None:
    await claim(host)
    await host.settle()
    uid = (await host.claim("a"))["metadata"]["uid"]

    async def ask(size: str) -> Any:
        return await host.api.merge(f"{CLAIMS}/a", {"spec": {"resources": {"requests": {"storage": size}}}})

    await ask("2Gi")
    await host.settle()
    assert host.volumes.volumes[uid].size == 2 * GIB
    assert (await host.claim("a"))["status"]["capacity"] == {"storage": "2Gi"}
    assert (await host.get(f"/api/v1/persistentvolumes/pvc-{uid}"))["spec"]["capacity"] == {"storage": "2Gi"}
    # a machine has it open: it grows there, and nothing is said before it has
    host.volumes.open.add(uid)
    await ask("3Gi")
    await host.settle()
    status = (await host.claim("a"))["status"]
    assert status["capacity"] == {"storage": "2Gi"} and status["conditions"][0]["type"] == "Resizing"
    await host.volumes.grown(uid, 3 * GIB)
    await host.settle()
    status = (await host.claim("a"))["status"]
    assert status["capacity"] == {"storage": "3Gi"} and "conditions" not in status
    assert (await ask("1Gi")).status == 422


@played
async def test_what_a_claim_held_goes_with_it(host: Host, /) -> None:
    await claim(host)
    kept = {"metadata": {"name": "kept"}, "provisioner": "paddock.dev/directory", "reclaimPolicy": "Retain"}
    await host.post(CLASSES, kept)
    await claim(host, "b", storageClassName="kept")
    await host.settle()
    uid, other = (await host.claim("a"))["metadata"]["uid"], (await host.claim("b"))["metadata"]["uid"]
    host.volumes.open.add(uid)
    await gone(host, "a")
    await gone(host, "b")
    await host.settle(0.2)
    assert uid in host.volumes.volumes
    host.volumes.open.clear()
    await host.settle(60)
    assert set(host.volumes.volumes) == {other}
    assert (await host.api.get(f"/api/v1/persistentvolumes/pvc-{uid}")).status == 404
    assert (await host.get(f"/api/v1/persistentvolumes/pvc-{other}"))["status"]["phase"] == "Released"


async def gone(host: Host, name: str) -> None:
    await host.api.delete(f"{CLAIMS}/{name}")


@played
async def test_a_claim_that_was_deleted_while_nobody_looked_is_cleared_away(host: Host, /) -> None:
    await claim(host)
    await host.settle()
    await host.end()
    await gone(host, "a")
    await host.begin()
    await host.settle()
    assert host.volumes.volumes == {}


@played
async def test_a_full_store_is_said_and_waited_for(host: Host, /) -> None:
    host.volumes.failures = [StoreFull("cannot make volume a", why="no space is left") for _ in range(2)]
    await host.data_volume("a", {"source": {"blank": {}}, "pvc": pvc()})
    await host.settle()
    said = await host.condition("a", "Running")
    assert said["status"] == "False" and "no space is left" in said["message"]
    await host.settle(40)
    assert await host.phase("a") == "Succeeded" and (await host.status("a"))["restartCount"] == 2


@played
async def test_populators_and_annotations_of_old_fill_a_claim(host: Host, /) -> None:
    host.images.offer("http://images/a.qcow2")
    reference = {"apiGroup": "cdi.kubevirt.io", "kind": "VolumeImportSource", "name": "golden"}
    await claim(host, "by-object", dataSourceRef=reference)
    await claim(host, "by-note", annotations={"cdi.kubevirt.io/storage.import.endpoint": "http://images/a.qcow2"})
    await host.settle()
    assert await host.volume_of("by-object") is None
    assert await host.content("by-note") == "sha256:http://images/a.qcow2"
    sources = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/volumeimportsources"
    await host.post(sources, {"metadata": {"name": "golden"}, "spec": {"source": {"http": {"url": "http://images/a.qcow2"}}}})
    await host.settle()
    assert await host.content("by-object") == "sha256:http://images/a.qcow2"
    notes = (await host.claim("by-object"))["metadata"]["annotations"]
    assert notes["cdi.kubevirt.io/storage.pod.phase"] == "Succeeded"
    await claim(host, "copy", dataSource={"kind": "PersistentVolumeClaim", "name": "by-note"})
    await host.settle()
    assert (await host.content("copy")).startswith("copy of ")
    await claim(host, "foreign", dataSourceRef={"apiGroup": "example.com", "kind": "Tape", "name": "x"})
    await host.settle()
    assert await host.volume_of("foreign") is None
