"""`paddock plan` and what happens agree for VirtRigaud: each change is planned, and made at a running machine of the fake driver."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from paddock.base.jsondata import copied
from tests import virtualtime
from tests.coroutines import run_by
from tests.unit.cli.commands import paddock
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, image, machine, network, provider, rigaud, vmclass

Data = dict[str, Any]
HOT = {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}
WORLD = (
    provider(),
    provider("other"),
    vmclass(),
    vmclass("hot", performanceProfile=HOT),
    vmclass("large", cpu=4, memory="8Gi"),
    vmclass("same", firmware="UEFI"),
    image(),
    image("debian"),
    network(),
    network("wan"),
)
DISK = {"name": "data", "sizeGiB": 10, "type": "thin", "expandPolicy": "Offline"}
ONLINE = {**DISK, "expandPolicy": "Online"}
# name -> (what the machine is like before, the members that change, the field to check, the effect)
CHANGES: dict[str, tuple[Data, Data, str, str]] = {
    "off": ({}, {"powerState": "Off"}, "spec.powerState", "live"),
    "off gracefully": ({}, {"powerState": "OffGraceful"}, "spec.powerState", "live"),
    "processors": ({}, {"resources": {"cpu": 4}}, "spec.resources.cpu", "restart"),
    "more processors": ({"resources": {"cpu": 2}}, {"resources": {"cpu": 4}}, "spec.resources.cpu", "restart"),
    "hot processors": ({"classRef": {"name": "hot"}, "resources": {"cpu": 2}}, {"resources": {"cpu": 4}}, "spec.resources.cpu", "live"),
    "fewer hot processors": (
        {"classRef": {"name": "hot"}, "resources": {"cpu": 2}},
        {"resources": {"cpu": 1}},
        "spec.resources.cpu",
        "restart",
    ),
    "hot memory": (
        {"classRef": {"name": "hot"}, "resources": {"memoryMiB": 4096}},
        {"resources": {"memoryMiB": 8192}},
        "spec.resources.memoryMiB",
        "live",
    ),
    "memory": ({"resources": {"memoryMiB": 4096}}, {"resources": {"memoryMiB": 8192}}, "spec.resources.memoryMiB", "restart"),
    "another class": ({}, {"classRef": {"name": "large"}}, "spec.classRef.name", "restart"),
    "a class of the same size": ({}, {"classRef": {"name": "same"}}, "spec.classRef.name", "no effect"),
    "a disk grows": ({"disks": [DISK]}, {"disks": [{**DISK, "sizeGiB": 20}]}, "spec.disks[data].sizeGiB", "restart"),
    "a disk grows online": ({"disks": [ONLINE]}, {"disks": [{**ONLINE, "sizeGiB": 20}]}, "spec.disks[data].sizeGiB", "live"),
    "a disk shrinks": ({"disks": [DISK]}, {"disks": [{**DISK, "sizeGiB": 5}]}, "spec.disks[data].sizeGiB", "refused"),
    "a disk comes": ({"disks": [DISK]}, {"disks": [DISK, {**DISK, "name": "more"}]}, "spec.disks[more]", "live"),
    "a disk goes": ({"disks": [DISK, {**DISK, "name": "more"}]}, {"disks": [DISK]}, "spec.disks[more]", "live"),
    "another provider": ({}, {"providerRef": {"name": "other"}}, "spec.providerRef.name", "refused"),
    "another image": ({}, {"imageRef": {"name": "debian"}}, "spec.imageRef.name", "no effect"),
    "another network": (
        {},
        {"networks": [{"name": "lan", "networkRef": {"name": "wan"}}]},
        "spec.networks[lan].networkRef.name",
        "no effect",
    ),
    "a tag": ({"tags": ["a"]}, {"tags": ["b"]}, "spec.tags", "no effect"),
    "a place": ({"placement": {"folder": "/a"}}, {"placement": {"folder": "/b"}}, "spec.placement.folder", "no effect"),
    "the guest's document": (
        {"userData": {"cloudInit": {"inline": "#cloud-config\n"}}},
        {"userData": {"cloudInit": {"inline": "#cloud-config\na: 1\n"}}},
        "spec.userData.cloudInit.inline",
        "no effect",
    ),
}


def named(name: str) -> Data:
    return {"namespace": "default", "name": name}


def forms(given: Data, change: Data) -> tuple[Data, Data]:
    old = machine(**copied(given))
    old["metadata"] = named("web")
    new = copied(old)
    new["spec"].update(copied(change))
    return old, new


def planned(old: Data, new: Data, folder: Path) -> dict[str, str]:
    """The effects that the command names, by field."""
    world = [{**each, "metadata": {**each["metadata"], "namespace": "default"}} for each in WORLD]
    for name, side in (("old", old), ("new", new)):
        (folder / f"{name}.json").write_text("\n".join(map(json.dumps, [*world, side])), encoding="utf-8")
    answer = paddock("plan", "-f", str(folder / "new.json"), "--against", str(folder / "old.json"), "-o", "json")
    assert answer.out, answer.err
    return {each["field"]: each["effect"] for each in json.loads(answer.out)["changes"]}


async def happened(life: Rigaud, change: Data) -> str:
    """What becomes of a change of a machine that runs."""
    before = len(life.driver.names())
    reply = await life.api.merge("/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines/web", {"spec": change})
    if reply.status != 200:
        assert reply.status == 422, reply.data
        return "refused"
    await asyncio.sleep(60)
    if (await life.said("RestartRequired"))[0] == "True":
        assert not {"Power", "Create", "Delete"} & set(life.driver.names()[before:])
        return "restart"
    done = life.driver.names()[before:]
    assert not {"Create", "Delete"} & set(done)
    return "live" if done else "no effect"


@pytest.mark.spec("virtrigaud", 39, 41, 42, 43)
@pytest.mark.parametrize("name", CHANGES)
@run_by(virtualtime.run)
async def test_a_change_does_what_plan_says(name: str, tmp_path: Path) -> None:
    given, change, path, effect = CHANGES[name]
    old, new = forms(given, change)
    assert planned(old, new, tmp_path)[path] == effect
    async with rigaud(world=False) as life:
        await life.make(*WORLD, old)
        await life.ready()
        assert await happened(life, {key: new["spec"][key] for key in change}) == effect


def test_a_class_is_judged_by_its_profile(tmp_path: Path) -> None:
    for profile, effect in ((HOT, "live"), ({}, "restart")):
        world = [vmclass("tried", performanceProfile=profile), vmclass("tried", performanceProfile=profile, cpu=4)]
        for each in world:
            each["metadata"] = named("tried")
        assert planned(world[0], world[1], tmp_path)["spec.cpu"] == effect
