"""PersistentVolumes: their phases, which claim gets which, and what keeps them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.server.housekeeping.background import BackgroundControllers
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"


def volume(name: str, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    wanted = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {**wanted, **spec}}


def claim(name: str = "c", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": {**wanted, **spec}}


@asynccontextmanager
async def housekept(*, alone: bool = True) -> AsyncIterator[tuple[Harness, BackgroundControllers]]:
    async with Harness() as api:
        house = BackgroundControllers(api.parts, "authority", alone=alone)
        house.start()
        try:
            await house.settled()
            yield api, house
        finally:
            await house.stop()


async def phases(api: Harness) -> dict[str, str]:
    """The phase of every volume and claim."""
    found = [*(await api.get(VOLUMES)).data["items"], *(await api.get(CLAIMS)).data["items"]]
    return {each["metadata"]["name"]: each["status"]["phase"] for each in found}


@pytest.mark.spec("kube-api", 141)
@run_by(asyncio.run)
async def test_a_claim_gets_the_smallest_volume_that_fits_and_releases_it() -> None:
    async with housekept() as (api, house):
        for each in (volume("large", "5Gi"), volume("small", "2Gi"), volume("tiny", "1Mi")):
            await api.post(VOLUMES, each)
        await house.settled()
        assert await phases(api) == {"large": "Available", "small": "Available", "tiny": "Available"}
        await api.post(CLAIMS, claim())
        await house.settled()
        assert await phases(api) == {"large": "Available", "small": "Bound", "tiny": "Available", "c": "Bound"}
        bound = (await api.get(f"{CLAIMS}/c")).data
        assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
        assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        has = (await api.get(f"{VOLUMES}/small")).data
        assert (has["spec"]["claimRef"]["uid"], bound["spec"]["volumeName"]) == (bound["metadata"]["uid"], "small")
        # It is kept as long as the claim has it.
        await api.delete(f"{VOLUMES}/small")
        await house.settled()
        assert (await api.get(f"{VOLUMES}/small")).data["metadata"]["deletionTimestamp"]
        await api.delete(f"{CLAIMS}/c")
        await house.settled()
        assert await phases(api) == {"large": "Available", "tiny": "Available"}


@pytest.mark.parametrize(
    ("offered", "wanted", "bound"),
    [
        (volume("v"), claim(), True),
        (volume("v", storageClassName="a"), claim(), False),
        (volume("v", storageClassName="a"), claim(storageClassName="a"), True),
        (volume("v"), claim(accessModes=["ReadWriteMany"]), False),
        (volume("v", volumeAttributesClassName="gold"), claim(), False),
        (volume("v", volumeAttributesClassName="gold"), claim(volumeAttributesClassName="gold"), True),
        (volume("v", volumeMode="Block"), claim(), False),
        (volume("v"), claim(selector={"matchLabels": {"a": "b"}}), False),
        (volume("v", labels={"a": "b"}), claim(selector={"matchLabels": {"a": "b"}}), True),
        (volume("v", claimRef={"namespace": "default", "name": "c"}), claim(), True),
        (volume("v", claimRef={"namespace": "default", "name": "other"}), claim(), False),
        (volume("v", "1Mi"), claim(volumeName="v"), True),
        (volume("v"), claim(volumeName="w"), False),
        (volume("v", storageClassName="waits"), claim(storageClassName="waits"), False),
    ],
)
@run_by(asyncio.run)
async def test_what_fits(offered: dict[str, Any], wanted: dict[str, Any], bound: bool) -> None:
    async with housekept() as (api, house):
        waits = {"metadata": {"name": "waits"}, "provisioner": "a.b/c", "volumeBindingMode": "WaitForFirstConsumer"}
        await api.post(CLASSES, waits)
        assert (await api.post(CLAIMS, wanted)).status == 201
        assert (await api.post(VOLUMES, offered)).status == 201
        await house.settled()
        assert await phases(api) == ({"v": "Bound", "c": "Bound"} if bound else {"v": "Available", "c": "Pending"})


@run_by(asyncio.run)
async def test_a_released_volume_is_not_given_away_and_a_lost_one_is_reported() -> None:
    async with housekept() as (api, house):
        await api.post(VOLUMES, volume("v"))
        await api.post(CLAIMS, claim())
        await house.settled()
        await api.delete(f"{CLAIMS}/c")
        await house.settled()
        assert await phases(api) == {"v": "Released"}
        await api.post(CLAIMS, claim())
        await house.settled()
        assert await phases(api) == {"v": "Released", "c": "Pending"}
        await api.delete(f"{VOLUMES}/v")
        await api.post(VOLUMES, volume("w"))
        await house.settled()
        assert await phases(api) == {"w": "Bound", "c": "Bound"}
        await api.merge(f"{VOLUMES}/w", {"metadata": {"finalizers": None}})
        await api.delete(f"{VOLUMES}/w")
        await house.settled()
        assert await phases(api) == {"c": "Lost"}


@pytest.mark.spec("kubevirt", 132)
@run_by(asyncio.run)
async def test_beside_machines_a_claim_gets_the_volume_that_an_administrator_made_for_it() -> None:
    async with housekept(alone=False) as (api, house):
        named = {"namespace": "default", "name": "c"}
        await api.post(VOLUMES, volume("v", claimRef=named, persistentVolumeReclaimPolicy="Retain"))
        await house.settled()
        assert await phases(api) == {"v": "Available"}
        await api.post(CLAIMS, claim("other", storageClassName=""))
        await api.post(CLAIMS, claim(storageClassName="", volumeName="v"))
        await house.settled()
        assert await phases(api) == {"v": "Bound", "c": "Bound", "other": "Pending"}
        assert (await api.get(f"{VOLUMES}/v")).data["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        await api.delete(f"{CLAIMS}/c")
        await house.settled()
        assert await phases(api) == {"v": "Released", "other": "Pending"}
        await api.delete(f"{VOLUMES}/v")
        await house.settled()
        assert await phases(api) == {"other": "Pending"}


@run_by(asyncio.run)
async def test_beside_machines_their_controller_makes_the_volumes_of_its_class() -> None:
    async with housekept(alone=False) as (api, house):
        await api.post(CLASSES, {"metadata": {"name": "own"}, "provisioner": "paddock.dev/directory"})
        await api.post(VOLUMES, volume("v", storageClassName="own"))
        await api.post(CLAIMS, claim(storageClassName="own"))
        await house.settled()
        assert await phases(api) == {"v": "Available", "c": "Pending"}


@run_by(asyncio.run)
async def test_volumes_of_directories_are_let_go_by_their_controller() -> None:
    async with housekept(alone=False) as (api, house):
        made = volume("v")
        made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": "paddock.dev/directory"}
        await api.post(VOLUMES, made)
        await api.delete(f"{VOLUMES}/v")
        await house.settled()
        assert (await api.get(f"{VOLUMES}/v")).data["metadata"]["deletionTimestamp"]
