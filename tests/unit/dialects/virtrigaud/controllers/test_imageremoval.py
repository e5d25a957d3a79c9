"""What images leave at Providers: a prepared image goes with its VMImage, or an event says that it stays."""

import asyncio
from typing import Any

import pytest

from paddock.contract.errors import ErrorKind
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.dialects.virtrigaud.controllers.test_images import URL, cloud
from tests.unit.kubevirt.controllers.rigaudharness import Rigaud, image, rigaud

FINALIZER = "vmimage.infra.virtrigaud.io/finalizer"


async def prepared(life: Rigaud, name: str = "web") -> None:
    """A machine from a prepared image."""
    await life.make(image("cloud", URL), cloud(name))
    await life.ready(name)
    assert (await life.get("cloud", "VMImage"))["metadata"]["finalizers"] == [FINALIZER]
    assert len(life.driver.driver._inventory.images) == 1


async def gone(life: Rigaud, seconds: float = 120) -> None:
    async def holds() -> bool:
        return not await life.get("cloud", "VMImage")

    await life.until(holds, seconds)


@timeless
async def test_a_prepared_image_goes_with_its_object() -> None:
    async with rigaud(task_seconds=SecondsRange(8.0, 8.0)) as life:
        await prepared(life)
        await life.delete("cloud", "VMImage")
        await gone(life)
        assert not life.driver.driver._inventory.images and len(await life.machines()) == 1
        assert await life.events("cloud") == ["PreparedImageDeleted"]


@timeless
async def test_an_image_that_is_only_referred_to_has_no_finalizer() -> None:
    async with rigaud(without=("image_import",)) as life:
        await life.make(image("cloud", URL), cloud())
        await life.ready()
        for name in ("cloud", "ubuntu"):
            assert "finalizers" not in (await life.get(name, "VMImage"))["metadata"]
        await life.delete("cloud", "VMImage")
        await gone(life, 5)
        assert life.driver.count("ImageDelete") == 0


@pytest.mark.spec("virtrigaud", 104)
@timeless
async def test_without_the_feature_an_event_says_what_stays() -> None:
    async with rigaud(without=("image-delete",)) as life:
        await prepared(life)
        await life.delete("cloud", "VMImage")
        await gone(life)
        assert life.driver.count("ImageDelete") == 0 and len(life.driver.driver._inventory.images) == 1
        assert await life.events("cloud") == ["PreparedImageLeft"]


@timeless
async def test_what_somebody_else_made_available_stays() -> None:
    async with rigaud() as life:
        await life.make(image("cloud", URL, prepare={"onMissing": "Wait"}), cloud())
        await asyncio.sleep(20)
        await life.status_merge("cloud", {"providerStatus": {"lab": {"available": True, "path": "/pool/cloud.qcow2"}}}, "VMImage")
        await life.ready()
        await life.merge("cloud", {"metadata": {"finalizers": [FINALIZER]}}, "VMImage")
        await life.delete("cloud", "VMImage")
        await gone(life)
        assert life.driver.count("ImageDelete") == 0 and await life.events("cloud") == []


@timeless
async def test_an_image_waits_for_the_machines_that_are_made_from_it() -> None:
    async with rigaud(task_seconds=SecondsRange(30.0, 30.0)) as life:
        await life.make(image("cloud", URL), cloud())

        async def creating() -> bool:
            return life.driver.count("Create") == 1

        await life.until(creating)
        await life.delete("cloud", "VMImage")
        await asyncio.sleep(10)
        assert life.driver.count("ImageDelete") == 0
        assert "VirtualMachine default/web" in (await life.condition("Deleting", "cloud", "VMImage"))["message"]
        await life.make(cloud("late"))
        await gone(life)
        await asyncio.sleep(60)
        assert life.driver.count("Create") == 1 and len(await life.machines()) == 1
        assert "VMImage default/cloud" in (await life.condition("Ready", "late"))["message"]


@timeless
async def test_a_machine_whose_creation_has_begun_is_made_from_an_image_that_is_deleted_meanwhile() -> None:
    """The manager ends at the create, and nobody knows its outcome: the machine and the image would wait for each other."""
    async with rigaud() as life:
        await life.make(image("cloud", URL))
        begun = asyncio.Event()

        async def ends(rpc: str, request: Any) -> None:
            if rpc == "Create":
                begun.set()
                await asyncio.Event().wait()

        life.driver.script = ends
        await life.make(cloud())
        await begun.wait()
        await life.stop()
        life.driver.script = None
        await life.delete("cloud", "VMImage")
        await life.start()
        await gone(life)
        assert len(await life.machines()) == 1 and life.driver.of("Create")[0] == life.driver.of("Create")[1]


@timeless
async def test_a_provider_stays_until_it_has_deleted_its_image() -> None:
    """Someone deletes the whole of a manifest."""
    async with rigaud(faults=(RpcFault(rpc="ImageDelete", kind=ErrorKind.UNAVAILABLE),)) as life:
        await prepared(life)
        for name, kind in (("lab", "Provider"), ("cloud", "VMImage"), ("web", "VirtualMachine")):
            await life.delete(name, kind)
        await life.gone()
        assert "1 images that it deletes" in (await life.condition("Deleting", "lab", "Provider"))["message"]
        await gone(life)
        await asyncio.sleep(1)
        assert await life.get("lab", "Provider") == {}
        assert not life.driver.driver._inventory.images and await life.events("cloud") == ["PreparedImageDeleted"]


@timeless
async def test_a_deletion_is_tried_until_it_succeeds_also_by_another_manager() -> None:
    faults = (
        RpcFault(rpc="ImageDelete", kind=ErrorKind.UNAVAILABLE),
        RpcFault(rpc="ImageDelete", effect="task-error", message="the pool is locked", after=1),
    )
    async with rigaud(faults=faults) as life:
        await prepared(life)
        await life.delete("cloud", "VMImage")
        await asyncio.sleep(2)
        assert (await life.condition("Deleting", "cloud", "VMImage"))["message"].startswith("Provider default/lab:")
        await asyncio.sleep(20)
        assert "the pool is locked" in (await life.condition("Deleting", "cloud", "VMImage"))["message"]
        await life.restart()
        await gone(life)
        assert not life.driver.driver._inventory.images


@timeless
async def test_a_user_may_force_it() -> None:
    async with rigaud(faults=(RpcFault(rpc="ImageDelete", kind=ErrorKind.UNAVAILABLE, count=0),)) as life:
        await prepared(life)
        await life.delete("cloud", "VMImage")
        await asyncio.sleep(60)
        assert await life.get("cloud", "VMImage")
        await life.merge("cloud", {"metadata": {"annotations": {"virtrigaud.io/force-delete": "true"}}}, "VMImage")
        await gone(life)
        assert await life.events("cloud") == ["PreparedImageLeft"]
