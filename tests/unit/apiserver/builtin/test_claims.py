"""Claims, volumes and classes (docs/spec/kube-api.md section 7)."""

import asyncio
from typing import Any

import pytest

from paddock.apiserver.housekeeping.claims import ClaimProtection
from paddock.dialects.core.storageclass import PROVISIONER
from paddock.plan.storage.claimsizes import GUEST_SIZE
from paddock.store.contract import StoreKey
from tests.apiharness import Harness
from tests.unit.apiserver.conftest import Play

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
def test_a_claim_gets_the_default_class_and_only_grows(play: Play) -> None:
    async def script(api: Harness) -> None:
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

    play(script)


@pytest.mark.spec("kubevirt", 124)
def test_more_than_any_disk_has_is_refused_where_this_host_makes_the_disks(play: Play) -> None:
    def sized(name: str, size: str, **spec: Any) -> dict[str, Any]:
        return claim(name, resources={"requests": {"storage": size}}, **spec)

    async def script(api: Harness) -> None:
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

    play(script)


def test_a_claim_in_use_is_kept_until_nobody_uses_it(play: Play) -> None:
    async def script(api: Harness) -> None:
        claims = ClaimProtection(api.parts)
        claims.start()
        try:
            for name in ("used", "free"):
                await api.post(CLAIMS, claim(name))
            key = StoreKey("virtualmachineinstances.kubevirt.io", "default", "vm")
            machine = b'{"metadata":{"name":"vm"},"spec":{"volumes":[{"persistentVolumeClaim":{"claimName":"used"}}]}}'
            pending = api.store.put(key, 0, lambda revision: machine)
            await pending.committed()
            for name in ("used", "free"):
                assert (await api.delete(f"{CLAIMS}/{name}")).status == 200
            await asyncio.wait_for(claims.chores.settled(), 5)
            assert (await api.get(f"{CLAIMS}/free")).status == 404
            assert (await api.get(f"{CLAIMS}/used")).data["metadata"]["deletionTimestamp"]
            record = api.store.get(key)
            assert record is not None
            await api.store.delete(key, record.revision, lambda revision: machine).committed()
            await asyncio.wait_for(claims.chores.settled(), 5)
            assert (await api.get(f"{CLAIMS}/used")).status == 404
        finally:
            await claims.chores.stop()

    play(script)


def test_a_class_has_defaults_and_stays(play: Play) -> None:
    async def script(api: Harness) -> None:
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

    play(script)


def test_volumes_are_stored_as_they_come(play: Play) -> None:
    async def script(api: Harness) -> None:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        made = await api.post(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
        assert (made.status, made.data["spec"]["hostPath"], made.data["status"]) == (201, {"path": "/x", "type": ""}, {"phase": "Pending"})
        assert made.data["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
        assert set((await api.post(VOLUMES, {"metadata": {"name": "w"}})).causes) == {"spec.capacity", "spec.accessModes"}

    play(script)
