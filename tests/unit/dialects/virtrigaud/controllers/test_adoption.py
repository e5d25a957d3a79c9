"""Machines that a Provider had before: which are adopted, as what, and what adoption leaves alone (docs/spec/virtrigaud.md 2.4)."""

import asyncio
import json
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import ForeignMachine, SecondsRange
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.cloning import settled, vmclone
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, machine, provider, rigaud

ADOPT, FILTER = "virtrigaud.io/adopt-vms", "virtrigaud.io/adopt-filter"
OLD = (
    ForeignMachine(name="Web_Server.1", cpu=4, memory_mib=8192, disk_gib=20),
    ForeignMachine(name="db", cpu=2, memory_mib=2048, power="Off"),
    ForeignMachine(name="batch", cpu=1, memory_mib=512),
)


async def annotate(life: Rigaud, **annotations: str | None) -> None:
    names = {"adopt": ADOPT, "filter": FILTER}
    await life.merge("lab", {"metadata": {"annotations": {names[name]: value for name, value in annotations.items()}}}, "Provider")


async def adoption(life: Rigaud) -> dict[str, Any]:
    return dict((await life.status("lab", "Provider")).get("adoption") or {})


async def discovered(life: Rigaud, seconds: float = 60.0) -> dict[str, Any]:
    """The status after the next discovery."""
    before = (await adoption(life)).get("lastDiscoveryTime")

    async def holds() -> bool:
        return (await adoption(life)).get("lastDiscoveryTime") not in (None, before)

    await life.until(holds, seconds)
    return await adoption(life)


async def objects(life: Rigaud) -> list[str]:
    found = (await life.api.get("/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines")).data["items"]
    return sorted(each["metadata"]["name"] for each in found)


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_machines_get_objects_that_describe_them_and_change_nothing() -> None:
    async with rigaud(machines=OLD) as life:
        before = [(each.id, each.name, each.power_state, each.cpu, each.memory_mib) for each in await life.machines()]
        await annotate(life, adopt="true")
        found = await discovered(life)
        assert {name: found[name] for name in ("discoveredVMs", "adoptedVMs", "failedAdoptions")} == {
            "discoveredVMs": 3,
            "adoptedVMs": 3,
            "failedAdoptions": 0,
        }
        assert "message" not in found and await objects(life) == ["batch", "db", "web-server-1"]
        status = await life.ready("web-server-1")
        assert (status["id"], status["powerState"], status["currentResources"]) == ("vm-1", "On", {"cpu": 4, "memoryMiB": 8192})
        made = await life.get("web-server-1")
        disk = next(each for each in await life.machines() if each.id == "vm-1").disks[0]
        assert made["spec"]["importedDisk"] == {"diskID": disk.id, "path": disk.path, "format": "qcow2", "source": "manual", "sizeGiB": 20}
        assert made["metadata"]["labels"] == {"virtrigaud.io/adopted": "true"}
        assert made["spec"]["classRef"] == {"name": "adopted-4cpu-8192mb"} and made["spec"]["providerRef"] == {"name": "lab"}
        named = await life.get("adopted-4cpu-8192mb", "VMClass")
        assert (named["spec"]["cpu"], named["spec"]["memory"]) == (4, "8192Mi")
        assert (await life.ready("db"))["powerState"] == "Off"
        await asyncio.sleep(700)
        assert life.driver.names() == ["ListVMs"]
        assert [(each.id, each.name, each.power_state, each.cpu, each.memory_mib) for each in await life.machines()] == before
        assert "Adopted" in await life.events("db")


@pytest.mark.spec("virtrigaud", 73)
@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["batch", "db", "web-server-1"]),
        ({"namePattern": "^(db|batch)$"}, ["batch", "db"]),
        ({"namePattern": "erv"}, ["web-server-1"]),
        ({"powerState": "Off"}, ["db"]),
        ({"minCPU": 2}, ["db", "web-server-1"]),
        ({"maxCPU": 2}, ["batch", "db"]),
        ({"minMemoryMiB": 2048}, ["db", "web-server-1"]),
        ({"maxMemoryMiB": 2048}, ["batch", "db"]),
        ({"minCPU": 2, "powerState": "On"}, ["web-server-1"]),
    ],
)
@timeless
async def test_each_field_of_the_filter_counts(wanted: dict[str, Any], names: list[str]) -> None:
    async with rigaud(machines=OLD) as life:
        await annotate(life, adopt="true", filter=json.dumps(wanted))
        assert (await discovered(life))["adoptedVMs"] == len(names)
        assert await objects(life) == names


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_a_filter_that_cannot_be_read_is_reported_and_nothing_is_listed() -> None:
    async with rigaud(machines=OLD) as life:
        # The server refuses what its rules know; a cluster takes anything.
        await annotate(life, adopt="true", filter='{"powerState": "Up"}')
        await asyncio.sleep(5)
        assert "virtrigaud.io/adopt-filter" in (await adoption(life))["message"]
        assert life.driver.names() == [] and await objects(life) == []
        await annotate(life, filter='{"namePattern": "db"}')
        assert (await discovered(life))["adoptedVMs"] == 1 and "message" not in await adoption(life)


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_names_that_collide_are_failures() -> None:
    old = (ForeignMachine(name="a.b"), ForeignMachine(name="A-B"), ForeignMachine(name="web"), ForeignMachine(name="-_-"))
    async with rigaud(machines=old) as life:
        await life.make(provider("other"), machine(providerRef={"name": "other"}, imageRef={"name": "none"}))
        await annotate(life, adopt="true")
        found = await discovered(life)
        assert (found["discoveredVMs"], found["adoptedVMs"], found["failedAdoptions"]) == (4, 1, 3)
        assert all(text in found["message"] for text in ("A-B", "VirtualMachine default/web exists", "-_-: its name"))
        assert await objects(life) == ["a-b", "web"] and "id" not in await life.status()


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_sizes_beyond_what_an_object_can_ask_for() -> None:
    async with rigaud(machines=(ForeignMachine(name="tiny", memory_mib=32), ForeignMachine(name="huge", cpu=256))) as life:
        await annotate(life, adopt="true")
        found = await discovered(life)
        assert (found["adoptedVMs"], found["failedAdoptions"]) == (1, 1) and "huge: " in found["message"]
        assert (await life.ready("tiny"))["currentResources"] == {"cpu": 2, "memoryMiB": 32}
        assert "resources" not in (await life.get("tiny"))["spec"] and life.driver.names() == ["ListVMs"]


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_managed_machines_and_those_that_are_being_cloned_are_not_adopted() -> None:
    async with rigaud(machines=OLD[1:2], task_seconds=SecondsRange(20.0, 20.0)) as life:
        await life.make(machine())
        await life.ready()
        await life.make(vmclone())
        await asyncio.sleep(7)
        assert len(await life.machines()) == 3
        await annotate(life, adopt="true")
        assert (await discovered(life))["adoptedVMs"] == 1 and await objects(life) == ["db", "web"]
        assert (await settled(life))["phase"] == "Ready"
        await asyncio.sleep(4000)
        assert (await adoption(life))["adoptedVMs"] == 1 and await objects(life) == ["db", "twin", "web"]


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_a_machine_that_is_neither_on_nor_off_is_adopted_when_it_is() -> None:
    async with rigaud(machines=(ForeignMachine(name="asleep", power="Suspended"),)) as life:
        await annotate(life, adopt="true")
        found = await discovered(life)
        assert (found["adoptedVMs"], found["failedAdoptions"]) == (0, 1) and "Suspended" in found["message"]
        life.driver.driver._inventory.named("asleep").power = "On"  # type: ignore[union-attr]
        assert (await discovered(life, 4000))["adoptedVMs"] == 1 and await objects(life) == ["asleep"]


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_listing_is_throttled_before_it_is_asked() -> None:
    async with rigaud(machines=OLD) as life:
        await annotate(life, adopt="true", filter='{"namePattern": "db"}')
        await discovered(life)
        for pattern in ("web", "batch", "web|batch"):
            await annotate(life, filter=json.dumps({"namePattern": pattern}))
            await asyncio.sleep(5)
        assert life.driver.count("ListVMs") == 1
        await discovered(life, 320)
        assert life.driver.count("ListVMs") == 2 and await objects(life) == ["batch", "db"]
        await asyncio.sleep(3500)
        assert life.driver.count("ListVMs") == 2
        await asyncio.sleep(200)
        assert life.driver.count("ListVMs") == 3
        await life.restart()
        await asyncio.sleep(60)
        assert life.driver.count("ListVMs") == 3


@pytest.mark.spec("virtrigaud", 73)
@timeless
async def test_a_removed_annotation_clears_the_status_and_keeps_the_objects() -> None:
    async with rigaud(machines=OLD) as life:
        await annotate(life, adopt="true")
        await discovered(life)
        await annotate(life, adopt=None)
        await asyncio.sleep(2)
        assert await adoption(life) == {} and len(await objects(life)) == 3


@timeless
async def test_an_error_of_the_listing_is_reported_and_tried_again() -> None:
    async with rigaud(machines=OLD) as life:

        async def fails(rpc: str, request: Any) -> None:
            if rpc == "ListVMs" and life.driver.count("ListVMs") == 1:
                raise ProviderError(ErrorKind.INTERNAL, "no inventory")

        life.driver.script = fails
        await annotate(life, adopt="true")
        assert "no inventory" in (await discovered(life))["message"]
        found = await discovered(life, 320)
        assert found["adoptedVMs"] == 3 and "message" not in found


@timeless
async def test_a_provider_that_does_not_answer_is_not_listed() -> None:
    async with rigaud(machines=OLD) as life:
        life.driver.down = ProviderError(ErrorKind.UNAVAILABLE, "connection refused")
        await asyncio.sleep(150)
        await annotate(life, adopt="true")
        await asyncio.sleep(100)
        assert life.driver.count("ListVMs") == 0
        life.driver.down = None
        assert (await discovered(life, 120))["adoptedVMs"] == 3


@pytest.mark.spec("virtrigaud", 73, 56)
@pytest.mark.parametrize("number", range(9))
@timeless
async def test_a_pass_that_ends_anywhere_is_made_up_for(number: int) -> None:
    async with rigaud(machines=OLD[:2]) as life:
        life.wire.ends_at = life.wire.writes + number
        await annotate(life, adopt="true")
        await asyncio.sleep(20)
        life.wire.ends_at = -1
        await life.restart()
        await life.until(lambda: life.get("web-server-1"), 400)
        await life.ready("web-server-1")
        await life.ready("db")
        assert [(await life.status(name))["id"] for name in ("web-server-1", "db")] == ["vm-1", "vm-3"]
        assert life.driver.count("Create") == 0 and len(await life.machines()) == 2


@pytest.mark.spec("virtrigaud", 55)
@timeless
async def test_an_adopted_machine_outlives_its_object_until_somebody_says_otherwise() -> None:
    async with rigaud(machines=OLD) as life:
        await annotate(life, adopt="true")
        await discovered(life)
        await life.ready("batch")
        await annotate(life, adopt=None)
        await life.delete("db")
        await life.gone("db")
        assert len(await life.machines()) == 3 and life.driver.count("Delete") == 0
        await life.merge("batch", {"metadata": {"annotations": {"virtrigaud.io/orphan-on-delete": None}}})
        await life.delete("batch")
        await life.gone("batch")
        assert [each.name for each in await life.machines()] == ["Web_Server.1", "db"]


@pytest.mark.spec("virtrigaud", 56)
@timeless
async def test_an_adopted_machine_is_kept_up_and_never_made_again() -> None:
    async with rigaud(machines=OLD[:1]) as life:
        await annotate(life, adopt="true")
        await discovered(life)
        await life.ready("web-server-1")
        await life.merge("web-server-1", {"spec": {"powerState": "Off"}})
        await life.ready("web-server-1")
        await life.merge("web-server-1", {"spec": {"resources": {"cpu": 2}}})
        await life.ready("web-server-1")
        (there,) = await life.machines()
        assert (there.power_state, there.cpu, len(there.disks)) == ("Off", 2, 1)
        await life.driver.driver.delete(m.DeleteRequest(id="vm-1"))
        await asyncio.sleep(1000)
        assert life.driver.count("Create") == 0 and await life.machines() == []
        assert "an adopted machine is not made again" in (await life.condition("Ready", "web-server-1"))["message"]
