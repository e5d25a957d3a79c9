"""What holds for each of the ten kinds alike: generations, conditions, events, and manifests that are applied again."""

import asyncio
import copy
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.base.jsondata import Data
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.cloning import vmclone
from tests.unit.dialects.virtrigaud.controllers.moving import migration, moving
from tests.unit.dialects.virtrigaud.controllers.snapshots import snapshot
from tests.unit.kubevirt.controllers.rigaudharness import API, GROUP, WORLD, Rigaud, base, image, machine, provider

POLLS = (
    "Describe",
    "TaskStatus",
    "Validate",
    "GetCapabilities",
    "GetFeatures",
    "ListHosts",
    "GetHostInfo",
    "ListDatastores",
    "GetDiskInfo",
)
LABELS = {"app": "crew"}
POLICY = {"apiVersion": API, "kind": "VMPlacementPolicy", "metadata": {"name": "spread"}, "spec": {"soft": {"zones": ["a"]}}}
CREW = {
    "apiVersion": API,
    "kind": "VMSet",
    "metadata": {"name": "crew"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": machine()["spec"]},
    },
}
CLOUD = image("cloud", {"libvirt": {"url": "https://images.example/cloud.qcow2"}})
MANIFESTS: tuple[Data, ...] = (
    *WORLD,
    provider("other"),
    CLOUD,
    machine("web", disks=[{"name": "data", "sizeGiB": 3}]),
    machine("made", imageRef={"name": "cloud"}, powerState="Off"),
    POLICY,
    CREW,
    snapshot("before"),
    vmclone(),
    migration(target={"powerOn": False}),
)
KINDS = sorted({each["kind"] for each in MANIFESTS})
# What is made once is not made again for a change of its spec, but follows its generation.
CHANGES: dict[str, Data] = {
    "Provider": {"spec": {"healthCheck": {"interval": "45s"}}},
    "VMClass": {"spec": {"extraConfig": {"a": "b"}}},
    "VMClone": {"spec": {"metadata": {"project": "another"}}},
    "VMImage": {"spec": {"metadata": {"description": "another"}}},
    "VMMigration": {"spec": {"metadata": {"project": "another"}}},
    "VMNetworkAttachment": {"spec": {"network": {"mtu": 1400}}},
    "VMPlacementPolicy": {"spec": {"priority": 7}},
    "VMSet": {"spec": {"minReadySeconds": 1}},
    "VMSnapshot": {"spec": {"metadata": {"project": "another"}}},
    "VirtualMachine": {"spec": {"tags": ["another"]}},
}


@asynccontextmanager
async def everything(folder: Path) -> AsyncIterator[Rigaud]:
    """A world with objects of all kinds, at rest."""
    async with moving(folder) as world:
        life = world.life
        known = {(each["kind"], each["metadata"]["name"]) for each in (*WORLD, provider("other"), machine("web"))}
        await life.make(*(each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) not in known))
        await world.until("Ready")
        await asyncio.sleep(3000)
        yield life


async def objects(life: Rigaud) -> list[Data]:
    found = []
    for kind in KINDS:
        plural = base(kind).rsplit("/", 1)[1]
        found += [{**each, "kind": kind} for each in (await life.api.get(f"{GROUP}/{plural}")).data["items"]]
    return found


def calls(life: Rigaud) -> Counter[str]:
    made = [name for driver in (life.driver, *life.others.values()) for name, _ in driver.calls]
    return Counter(name for name in made if name not in POLLS)


async def written(life: Rigaud) -> dict[tuple[str, str], str]:
    """The revisions of all objects. A Provider's moves with each check of its health."""
    return {
        (each["kind"], each["metadata"]["name"]): each["metadata"]["resourceVersion"]
        for each in await objects(life)
        if each["kind"] != "Provider"
    }


@pytest.mark.spec("virtrigaud", 114)
@timeless
async def test_manifests_that_are_applied_again(tmp_path: Path) -> None:
    async with everything(tmp_path) as life:
        before = calls(life)
        revisions = await written(life)
        for manifest in copy.deepcopy(MANIFESTS):
            await life.merge(manifest["metadata"]["name"], manifest, manifest["kind"])
        await asyncio.sleep(1300)
        assert calls(life) == before
        assert await written(life) == revisions


@pytest.mark.spec("virtrigaud", 3, 115)
@timeless
async def test_generations_and_conditions(tmp_path: Path) -> None:
    async with everything(tmp_path) as life:
        for each in await objects(life):
            hold(each)
        seen = {each["kind"] for each in await objects(life)}
        assert seen == set(CHANGES)
        for kind, change in CHANGES.items():
            first = next(each for each in MANIFESTS if each["kind"] == kind)
            await life.merge(first["metadata"]["name"], change, kind)
        await asyncio.sleep(700)
        for each in await objects(life):
            hold(each)
            changed = next(one for one in MANIFESTS if one["kind"] == each["kind"])["metadata"]["name"] == each["metadata"]["name"]
            assert not changed or each["metadata"]["generation"] > 1, each["kind"]


def hold(seen: Data) -> None:
    """Hold an object against what each status has to say."""
    where, status, generation = f"{seen['kind']} {seen['metadata']['name']}", seen.get("status") or {}, seen["metadata"]["generation"]
    assert status.get("observedGeneration") == generation, (where, generation, status)
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    assert conditions, where
    for each in conditions:
        assert re.fullmatch("[A-Za-z][A-Za-z0-9]*", each["reason"]), (where, each)
        assert each.get("observedGeneration"), (where, each)
        assert each["observedGeneration"] <= generation, (where, each)
        assert each["lastTransitionTime"], (where, each)
    ready = next((each for each in conditions if each["type"] in ("Ready", "ProviderAvailable")), None)
    assert ready is not None, (where, conditions)
    assert ready["observedGeneration"] == generation, (where, ready)
    assert ready["message"], (where, ready)


@pytest.mark.spec("virtrigaud", 115)
@timeless
async def test_events_of_each_operation(tmp_path: Path) -> None:
    async with everything(tmp_path) as life:
        await life.merge("web", {"spec": {"powerState": "Off"}})
        await life.ready()
        await life.merge("web", {"spec": {"resources": {"cpu": 4}}})
        await life.ready()
        await life.delete("before", "VMSnapshot")
        await life.delete("made")
        await life.gone("made")
        await asyncio.sleep(60)
        found = (await life.api.get("/api/v1/namespaces/default/events")).data["items"]
        told = Counter((each["involvedObject"]["kind"], each["reason"]) for each in found)
        reasons = {kind: {reason for of, reason in told if of == kind} for kind in KINDS}
        assert {"Created", "PoweringOn", "PoweringOff", "Deleted"} <= reasons["VirtualMachine"], reasons
        assert {"Reconfiguring", "Reconfigured"} & reasons["VirtualMachine"], reasons
        for kind in ("VMSnapshot", "VMClone", "VMMigration", "VMSet"):
            assert reasons[kind], (kind, reasons)
        assert all(each["message"] for each in found)
