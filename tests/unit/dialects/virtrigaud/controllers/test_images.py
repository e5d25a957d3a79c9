"""Preparation of VirtRigaud's images, and the use of images, classes and networks (docs/spec/virtrigaud.md 2.2 and 2.3)."""

import asyncio
import json
import random
from typing import Any

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings, RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import RecordedDriver, Rigaud, image, machine, network, provider, rigaud, vmclass

URL = {"libvirt": {"url": "https://images.example/cloud.qcow2"}}
CHECKED = {"libvirt": {**URL["libvirt"], "checksum": "ab" * 32}}


async def of_image(life: Rigaud) -> dict[str, Any]:
    return await life.status("cloud", "VMImage")


def cloud(name: str = "web", **spec: Any) -> dict[str, Any]:
    return machine(name, imageRef={"name": "cloud"}, **spec)


@pytest.mark.spec("virtrigaud", 57)
@timeless
async def test_ten_machines_wait_for_one_preparation() -> None:
    async with rigaud(task_seconds=SecondsRange(12.0, 12.0)) as life:
        await life.make(image("cloud", URL), *(cloud(f"vm-{number}", powerState="Off") for number in range(10)))
        await asyncio.sleep(4)
        assert (await of_image(life))["phase"] == "Importing" and not (await of_image(life))["ready"]
        assert await life.said("Provisioning", "vm-3") == ("True", "TaskInProgress")
        assert life.driver.count("Create") == 0
        for number in range(10):
            await life.ready(f"vm-{number}")
        status = await of_image(life)
        assert (status["phase"], status["ready"], status["availableOn"]) == ("Ready", True, ["lab"])
        assert life.driver.count("ImagePrepare") == 1 and len(await life.machines()) == 10
        (asked,) = life.driver.of("ImagePrepare")
        assert json.loads(asked.image_json)["source"]["libvirt"]["url"] == URL["libvirt"]["url"]
        path = status["providerStatus"]["lab"]["path"]
        assert {json.loads(each.image_json)["Path"] for each in life.driver.of("Create")} == {path}


@timeless
async def test_short_tasks_do_not_wait_for_the_poll_of_long_ones() -> None:
    async with rigaud(task_seconds=SecondsRange(0.5, 0.5)) as life:
        await life.make(image("cloud", URL))
        await asyncio.sleep(30)
        began = asyncio.get_running_loop().time()
        await life.make(cloud(powerState="Off"))
        await life.ready()
        # One poll of the preparation and one of the creation, a second each.
        assert asyncio.get_running_loop().time() - began < 4
        assert life.driver.count("TaskStatus") == 2


@timeless
async def test_a_preparation_survives_the_manager() -> None:
    async with rigaud(task_seconds=SecondsRange(30.0, 30.0)) as life:
        await life.make(image("cloud", URL), cloud(powerState="Off"))
        for _ in range(3):
            await asyncio.sleep(6)
            await life.restart()
        await life.ready()
        assert life.driver.count("ImagePrepare") == 1


@timeless
async def test_a_preparation_is_followed_to_its_end_without_the_machine_that_wanted_it() -> None:
    async with rigaud(task_seconds=SecondsRange(30.0, 30.0)) as life:
        await life.make(image("cloud", URL), cloud(powerState="Off"))
        await asyncio.sleep(6)
        assert (await of_image(life))["prepareTaskRef"]
        await life.delete()
        await life.gone()
        await asyncio.sleep(60)
        status = await of_image(life)
        assert "prepareTaskRef" not in status and status["providerStatus"]["lab"]["available"]
        assert (status["phase"], status["ready"], status["availableOn"]) == ("Ready", True, ["lab"])
        assert (await life.condition("Ready", "cloud", "VMImage"))["message"] == "prepared for lab"


@pytest.mark.spec("virtrigaud", 58)
@pytest.mark.parametrize(("missing", "phase", "reason"), [("Fail", "Failed", "MissingOnProvider"), ("Wait", "Pending", "WaitingForImage")])
@timeless
async def test_a_machine_is_held_until_the_image_is_available(missing: str, phase: str, reason: str) -> None:
    async with rigaud() as life:
        await life.make(image("cloud", URL, prepare={"onMissing": missing}), cloud())
        await asyncio.sleep(120)
        assert (await of_image(life))["phase"] == phase
        assert await life.said("Ready", "cloud", "VMImage") == ("False", reason)
        assert await life.said() == ("False", reason)
        assert life.driver.count("ImagePrepare") == life.driver.count("Create") == 0
        entry = {"lab": {"available": True, "path": "/pool/cloud.qcow2"}}
        await life.status_merge("cloud", {"providerStatus": entry}, "VMImage")
        await life.ready()
        assert json.loads(life.driver.of("Create")[0].image_json)["Path"] == "/pool/cloud.qcow2"
        assert (await of_image(life))["availableOn"] == ["lab"]


@pytest.mark.spec("virtrigaud", 59)
@pytest.mark.parametrize(
    ("type", "source"),
    [
        ("libvirt", {"libvirt": {"path": "/images/a.qcow2"}}),
        ("vsphere", {"vsphere": {"templateName": "ubuntu"}}),
        ("proxmox", {"proxmox": {"templateID": 9000}}),
    ],
)
@timeless
async def test_a_reference_is_not_prepared(type: str, source: dict[str, Any]) -> None:
    blocks: dict[str, Any] = {"network": {"vsphere": {"portgroup": "lan"}, "proxmox": {"bridge": "vmbr0"}, "libvirt": {"networkName": "a"}}}
    async with rigaud(world=False) as life:
        ends = {"libvirt": "qemu:///system"}.get(type, "https://lab")
        prepare = {"onMissing": "Fail"}
        await life.make(provider(type=type, endpoint=ends), vmclass(), network(**blocks), image("cloud", source, prepare=prepare), cloud())
        await life.ready()
        assert life.driver.count("ImagePrepare") == 0
        assert await life.said("Ready", "cloud", "VMImage") == ("True", "ReconcileSuccess")


@pytest.mark.spec("virtrigaud", 60)
@timeless
async def test_retries_and_failure() -> None:
    fault = RpcFault(rpc="ImagePrepare", effect="task-error", message="the checksum differs", count=4)
    async with rigaud(faults=(fault,)) as life:
        await life.make(image("cloud", URL, prepare={"retries": 2}), cloud())
        await asyncio.sleep(120)
        assert life.driver.count("ImagePrepare") == 3
        assert (await of_image(life))["phase"] == "Failed"
        found = await life.condition("Ready", "cloud", "VMImage")
        assert found["reason"] == "PreparationFailed" and "the checksum differs" in found["message"]
        assert "the checksum differs" in (await life.condition())["message"]
        assert await life.said() == ("False", "PreparationFailed")
        assert await life.said("Provisioning") == ("False", "WaitingForDependencies")
        assert life.driver.count("Create") == 0
        await life.ready(seconds=3000)
        assert life.driver.count("ImagePrepare") == 5


@pytest.mark.spec("virtrigaud", 127)
@timeless
async def test_the_next_attempt_names_what_the_last_one_ended_with() -> None:
    """Also while it goes on, so the image and the machine never lose the reason."""
    fault = RpcFault(rpc="ImagePrepare", effect="task-error", message="the server answered 404", count=0)
    async with rigaud(faults=(fault,), task_seconds=SecondsRange(30.0, 30.0)) as life:
        await life.make(image("cloud", URL, prepare={"retries": 1}), cloud())

        async def failed() -> bool:
            return "404" in (await life.condition()).get("message", "")

        await life.until(failed)
        phases = set()
        for _ in range(800):
            await asyncio.sleep(1)
            phases.add((await of_image(life))["phase"])
            assert "404" in (await life.condition())["message"]
            assert "404" in (await life.condition("Ready", "cloud", "VMImage"))["message"]
        assert phases == {"Importing", "Failed"}


@pytest.mark.spec("virtrigaud", 128)
@timeless
async def test_a_provider_that_nobody_serves_holds_only_its_own_machines() -> None:
    async with rigaud() as life:
        await life.make(image("cloud", URL), provider("away", "qemu"), cloud(), cloud("there", providerRef={"name": "away"}))
        await life.ready()
        await asyncio.sleep(30)
        status = await of_image(life)
        assert (status["ready"], status["phase"], status["availableOn"]) == (True, "Ready", ["lab"])
        message = (await life.condition("Ready", "cloud", "VMImage"))["message"]
        assert message.startswith("prepared for lab; not for 1 of 2 Providers: Provider away ")
        assert (await life.condition(name="there"))["status"] == "False"
        await life.delete()
        await life.gone()
        await asyncio.sleep(30)
        status = await of_image(life)
        assert (status["ready"], status["phase"]) == (False, "Pending")


@pytest.mark.spec("virtrigaud", 128)
@timeless
async def test_an_image_that_failed_for_one_provider_says_for_how_many_it_is_ready() -> None:
    async with rigaud() as life:
        other = life.others["other"] = RecordedDriver(FakeDriver(FakeSettings(), life.clock, random.Random(7)))

        async def fails(rpc: str, request: Any) -> None:
            if rpc == "ImagePrepare":
                raise ProviderError(ErrorKind.INVALID_SPEC, "no such storage")

        other.script = fails
        await life.make(provider("other"), image("cloud", URL), cloud(), cloud("there", providerRef={"name": "other"}))
        await life.ready()
        await asyncio.sleep(30)
        status = await of_image(life)
        assert (status["ready"], status["phase"], status["availableOn"]) == (False, "Failed", ["lab"])
        message = (await life.condition("Ready", "cloud", "VMImage"))["message"]
        assert "no such storage" in message and message.endswith("; it is ready for 1 of 2 Providers: lab")


@pytest.mark.spec("virtrigaud", 60)
@pytest.mark.parametrize("checks", [True, False])
@timeless
async def test_a_wrong_checksum_fails_the_image(checks: bool) -> None:
    async with rigaud() as life:
        prepare = {"retries": 0, "validateChecksum": checks}
        await life.make(image("cloud", CHECKED, prepare=prepare), cloud())
        await asyncio.sleep(60)
        assert (await of_image(life))["phase"] == ("Failed" if checks else "Ready")
        message = (await life.condition("Ready", "cloud", "VMImage"))["message"]
        assert ("the image is damaged" in message) == checks
        assert life.driver.count("Create") == (0 if checks else 1)


@timeless
async def test_a_preparation_that_takes_too_long_failed() -> None:
    async with rigaud(task_seconds=SecondsRange(1000.0, 1000.0)) as life:
        await life.make(image("cloud", URL, prepare={"timeout": "1m", "retries": 0}), cloud())
        await asyncio.sleep(90)
        assert "longer than 60 s" in (await life.condition("Ready", "cloud", "VMImage"))["message"]
        assert (await of_image(life))["phase"] == "Failed"


@timeless
async def test_a_provider_that_imports_nothing_gets_the_address() -> None:
    async with rigaud(without=("image_import",)) as life:
        await life.make(image("cloud", CHECKED), cloud())
        await asyncio.sleep(20)
        assert life.driver.count("ImagePrepare") == 0
        (asked,) = {each.image_json for each in life.driver.of("Create")}
        assert json.loads(asked)["URL"] == URL["libvirt"]["url"] and json.loads(asked)["Checksum"] == "ab" * 32


@timeless
async def test_another_source_is_prepared_anew() -> None:
    async with rigaud() as life:
        await life.make(image("cloud", URL), cloud())
        await life.ready()
        await life.merge("cloud", {"spec": {"source": {"libvirt": {"url": "https://images.example/new.qcow2"}}}}, "VMImage")
        await asyncio.sleep(1)
        await life.make(cloud("second"))
        await life.ready("second")
        assert life.driver.count("ImagePrepare") == 2


@pytest.mark.spec("virtrigaud", 61, 62)
@timeless
async def test_the_block_of_the_providers_type_is_used() -> None:
    source = {"vsphere": {"templateName": "tpl"}, "libvirt": {"path": "/a.qcow2"}, "http": {"url": "https://images.example/b.qcow2"}}
    blocks: dict[str, Any] = {
        "network": {"vsphere": {"portgroup": "pg"}, "proxmox": {"bridge": "vmbr1", "vlanTag": 7}, "libvirt": {"networkName": "net"}}
    }
    async with rigaud() as life:
        await life.make(image("cloud", source), network("all", **blocks), provider("v", "vsphere"), provider("p", "proxmox"))
        on = [{"name": "a", "networkRef": {"name": "all"}}]
        for name in ("lab", "v", "p"):
            await life.make(cloud(f"on-{name}", providerRef={"name": name}, networks=on))
        for name in ("lab", "v", "p"):
            await life.ready(f"on-{name}")
        asked = {each.name: each for each in life.driver.of("Create")}
        images = {name: json.loads(each.image_json) for name, each in asked.items()}
        assert (images["on-lab"]["Path"], images["on-lab"]["TemplateName"]) == ("/a.qcow2", "")
        assert (images["on-v"]["Path"], images["on-v"]["TemplateName"]) == ("", "tpl")
        prepared = (await of_image(life))["providerStatus"]["p"]
        assert images["on-p"]["TemplateName"] == prepared["id"] and (await of_image(life))["availableOn"] == ["p"]
        nets = {name: json.loads(each.networks_json)[0] for name, each in asked.items()}
        assert (nets["on-lab"]["NetworkName"], nets["on-lab"]["Bridge"]) == ("net", "")
        assert (nets["on-v"]["NetworkName"], nets["on-v"]["Portgroup"]) == ("pg", "pg")
        assert (nets["on-p"]["Bridge"], nets["on-p"]["VLAN"], nets["on-p"]["name"], nets["on-p"]["vlan"]) == ("vmbr1", 7, "vmbr1", 7)


@pytest.mark.spec("virtrigaud", 63, 70)
@timeless
async def test_users_are_counted() -> None:
    async with rigaud() as life:
        await life.make(image("cloud", URL), cloud("a"), cloud("b", networks=None))
        for name in ("a", "b"):
            await life.ready(name)

        async def counts() -> tuple[Any, ...]:
            await asyncio.sleep(3)
            lan = await life.status("lan", "VMNetworkAttachment")
            used = (await life.status("small", "VMClass")).get("usedByVMs", 0)
            return used, lan.get("connectedVMs", 0), lan.get("availableOn"), (await life.status("lab", "Provider")).get("connectedVMs", 0)

        assert await counts() == (2, 1, ["lab"], 2)
        await life.delete("a")
        await life.gone("a")
        assert await counts() == (1, 0, None, 1)
        await life.delete("b")
        await life.gone("b")
        assert await counts() == (0, 0, None, 0)
        assert (await of_image(life))["availableOn"] == ["lab"]


@timeless
async def test_errors_of_a_preparation_by_kind() -> None:
    for kind, calls in ((ErrorKind.INVALID_SPEC, 1), (ErrorKind.UNAVAILABLE, 2)):
        async with rigaud(faults=(RpcFault(rpc="ImagePrepare", kind=kind),)) as life:
            await life.make(image("cloud", URL), cloud())
            await asyncio.sleep(100)
            assert life.driver.count("ImagePrepare") == calls
            assert ((await of_image(life))["phase"] == "Failed") == (kind == ErrorKind.INVALID_SPEC)
