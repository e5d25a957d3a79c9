"""Claims, volumes and classes (docs/spec/kube-api.md section 7)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.core.storageclass import PROVISIONER
from paddock.kubernetes.storage.claimsizes import GUEST_SIZE
from paddock.server.builtin import trust
from paddock.server.housekeeping.claims import ClaimProtection
from paddock.server.store.contract import StoreKey
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
MARK = "storageclass.kubernetes.io/is-default-class"


def claim(name: str = "c", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {**wanted, **spec}}


def storage_class(name: str, *, default: bool = False) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": {MARK: "true"} if default else {}}, "provisioner": "paddock.io/files"}


@pytest.mark.spec("kube-api", 118)
@played
async def test_a_claim_gets_the_default_class_and_only_grows(api: Harness, /) -> None:
    before = (await api.post(CLAIMS, claim("early"))).data
    assert "storageClassName" not in before["spec"]
    for name, default in (("plain", False), ("older", True)):
        await api.post(CLASSES, storage_class(name, default=default))
    api.clock.time += 10
    await api.post(CLASSES, storage_class("newer", default=True))
    made = (await api.post(CLAIMS, claim())).data
    assert (made["spec"]["storageClassName"], made["spec"]["volumeMode"]) == ("newer", "Filesystem")
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert made["status"] == {"phase": "Pending"}
    assert (await api.post(CLAIMS, claim("none", storageClassName=""))).data["spec"]["storageClassName"] == ""
    grown = await api.merge(f"{CLAIMS}/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    assert (grown.status, grown.data["spec"]["resources"]["requests"]["storage"]) == (200, "2Gi")
    for change in (
        {"resources": {"requests": {"storage": "1Gi"}}},
        {"accessModes": ["ReadWriteMany"]},
        {"storageClassName": "older"},
        {"volumeMode": "Block"},
        {"selector": {"matchLabels": {"a": "b"}}},
    ):
        refused = await api.merge(f"{CLAIMS}/c", {"spec": change})
        assert (refused.status, "Forbidden" in refused.data["message"]) == (422, True), change
    bound = await api.merge(f"{CLAIMS}/c/status", {"status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}})
    assert (bound.data["status"]["phase"], (await api.merge(f"{CLAIMS}/c", {"status": None})).data["status"]["phase"]) == (
        "Bound",
        "Bound",
    )


@pytest.mark.spec("kubevirt", 124)
@played
async def test_more_than_any_disk_has_is_refused_where_this_host_makes_the_disks(api: Harness, /) -> None:
    def sized(name: str, size: str, **spec: Any) -> dict[str, Any]:
        return claim(name, resources={"requests": {"storage": size}}, **spec)

    # Nobody knows what the class will be that it gets.
    assert (await api.post(CLAIMS, sized("early", "8Ei"))).status == 201
    await api.post(CLASSES, {**storage_class("ours", default=True), "provisioner": PROVISIONER})
    await api.post(CLASSES, storage_class("theirs"))
    assert (await api.post(CLAIMS, sized("theirs", "8Ei", storageClassName="theirs"))).status == 201
    assert (await api.post(CLAIMS, sized("most", "2Pi"))).status == 201
    for size in ("8Ei", "2251799813685249"):
        refused = await api.post(CLAIMS, sized("more", size))
        said = refused.data["details"]["causes"]
        assert [each["field"] for each in said] == ["spec.resources.requests.storage"], size
        assert "a disk has at most 2Pi" in said[0]["message"]
    grown = await api.merge(f"{CLAIMS}/most", {"spec": {"resources": {"requests": {"storage": "3Pi"}}}})
    assert (grown.status, "a disk has at most 2Pi" in grown.data["message"]) == (422, True)
    # What is there already is not judged again.
    assert (await api.merge(f"{CLAIMS}/early", {"spec": {"storageClassName": "ours"}})).status == 200
    assert (await api.merge(f"{CLAIMS}/early", {"metadata": {"labels": {"a": "b"}}})).status == 200
    # The claim of a DataVolume asks for the overhead of a file system, too, which is not part of the disk.
    inflated = sized("inflated", "2386907802506364")
    inflated["metadata"]["annotations"] = {GUEST_SIZE: "2251799813685248/2386907802506364"}
    assert (await api.post(CLAIMS, inflated)).status == 201


def instance(name: str, *claims: str, phase: str = "Running") -> bytes:
    volumes = [{"persistentVolumeClaim": {"claimName": each}} for each in claims]
    metadata = {"name": name, "namespace": "default"}
    return orjson.dumps({"metadata": metadata, "spec": {"volumes": volumes}, "status": {"phase": phase}})


async def put(api: Harness, name: str, value: bytes) -> None:
    """Write an instance, past the API."""
    key = StoreKey("virtualmachineinstances.kubevirt.io", "default", name)
    before = api.store.get(key)
    await api.store.put(key, before.revision if before else 0, lambda revision: value).committed()


@asynccontextmanager
async def protected(api: Harness) -> AsyncIterator[ClaimProtection]:
    claims = ClaimProtection(api.parts)
    claims.start()
    try:
        yield claims
    finally:
        await claims.chores.stop()


async def left(api: Harness, claims: ClaimProtection) -> set[str]:
    """Return the claims that are there when the controller has nothing left to do."""
    await asyncio.wait_for(claims.chores.settled(), 5)
    return {each["metadata"]["name"] for each in (await api.get(CLAIMS)).data["items"]}


@played
async def test_a_claim_in_use_is_kept_until_nobody_uses_it(api: Harness, /) -> None:
    """Until the machine goes, ends, or gives the disk back."""
    async with protected(api) as claims:
        for name in ("goes", "ends", "unplugged", "free"):
            await api.post(CLAIMS, claim(name))
        for name in ("goes", "ends"):
            await put(api, name, instance(name, name))
        await put(api, "plugs", instance("plugs", "other", "unplugged"))
        for name in ("goes", "ends", "unplugged", "free"):
            assert (await api.delete(f"{CLAIMS}/{name}")).status == 200
        assert await left(api, claims) == {"goes", "ends", "unplugged"}
        assert (await api.get(f"{CLAIMS}/goes")).data["metadata"]["deletionTimestamp"]
        await put(api, "plugs", instance("plugs", "other"))
        assert await left(api, claims) == {"goes", "ends"}
        await put(api, "ends", instance("ends", "ends", phase="Failed"))
        assert await left(api, claims) == {"goes"}
        key = StoreKey("virtualmachineinstances.kubevirt.io", "default", "goes")
        record = api.store.get(key)
        assert record is not None
        await api.store.delete(key, record.revision, lambda revision: record.value).committed()
        assert await left(api, claims) == set()


@played
async def test_news_of_a_machine_concern_its_own_claims(api: Harness, /, monkeypatch: pytest.MonkeyPatch) -> None:
    """When many machines go at once, each has news several times, and each has claims that wait for it."""
    async with protected(api) as claims:
        names = [f"vm-{number}" for number in range(20)]
        for name in names:
            await api.post(CLAIMS, claim(name))
            await put(api, name, instance(name, name))
            assert (await api.delete(f"{CLAIMS}/{name}")).status == 200
        assert await left(api, claims) == set(names)
        looked: list[tuple[str, str]] = []
        monkeypatch.setattr(claims.chores, "offer", looked.append)
        await put(api, "vm-7", instance("vm-7", "vm-7", phase="Failed"))
        assert looked == [("default", "vm-7")]


@played
async def test_a_class_has_defaults_and_stays(api: Harness, /) -> None:
    made = (await api.post(CLASSES, storage_class("a"))).data
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    for change in (
        {"provisioner": "x"},
        {"parameters": {"a": "b"}},
        {"reclaimPolicy": "Retain"},
        {"volumeBindingMode": "WaitForFirstConsumer"},
    ):
        assert (await api.merge(f"{CLASSES}/a", change)).status == 422, change
    assert (await api.merge(f"{CLASSES}/a", {"allowVolumeExpansion": True})).data["allowVolumeExpansion"] is True


@played
async def test_volumes_are_stored_as_they_come(api: Harness, /) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made = await api.post(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
    assert (made.status, made.data["spec"]["hostPath"], made.data["status"]) == (201, {"path": "/x", "type": ""}, {"phase": "Pending"})
    assert made.data["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert set((await api.post(VOLUMES, {"metadata": {"name": "w"}})).causes) == {"spec.capacity", "spec.accessModes"}


async def _bound(api: Harness, user: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a claim and a volume for it as somebody, and bind them; return both."""
    client = api.client(user)
    made = (await api.post(CLAIMS, claim())).data
    owner = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": made["metadata"]["uid"]}
    spec = {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": owner, "local": {"path": "/volumes/c"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    return (
        await client.create(plain("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False), volume),
        await client.patch(
            plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
            Key("default", "c"),
            merge_patch({"spec": {"volumeName": "v"}}),
        ),
    )


@pytest.mark.parametrize(
    ("user", "phase", "status"),
    [
        (trust.CONTROLLER, "Bound", {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}),
        ("ada", "Pending", {"phase": "Pending"}),
    ],
)
@played
async def test_what_a_controller_binds_is_bound_with_that_write(api: Harness, /, user: str, phase: str, status: dict[str, Any]) -> None:
    volume, bound = await _bound(api, user)
    assert volume["status"] == {"phase": phase}
    assert bound["status"] == status
