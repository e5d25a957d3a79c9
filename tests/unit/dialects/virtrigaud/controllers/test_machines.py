"""The life of VirtRigaud's machines (docs/spec/virtrigaud.md 2.1)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import RpcFault, SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import GROUP, Rigaud, base, image, machine, network, provider, rigaud, vmclass

FINALIZER = "virtualmachine.infra.virtrigaud.io/finalizer"
LONG = SecondsRange(22.0, 22.0)


async def phases(life: Rigaud, seen: list[str], name: str = "web") -> None:
    """Note the phases of a machine as they come."""
    while True:
        phase = (await life.status(name)).get("phase", "")
        if phase and (not seen or seen[-1] != phase):
            seen.append(phase)
        await asyncio.sleep(0.05)


@pytest.mark.spec("virtrigaud", 23, 29, 30, 31)
@timeless
async def test_a_machine_comes_up() -> None:
    async with rigaud() as life:
        finalizers: list[Any] = []

        async def at_create(rpc: str, request: m.WireMessage) -> None:
            if rpc == "Create":
                finalizers.append((await life.get())["metadata"]["finalizers"])

        life.driver.script = at_create
        seen: list[str] = []
        noting = asyncio.create_task(phases(life, seen))
        await life.make(machine())
        status = await life.ready()
        noting.cancel()
        assert finalizers == [[FINALIZER]]
        assert seen in (["Pending", "Provisioning", "Running"], ["Provisioning", "Running"], ["Provisioning", "Stopped", "Running"])
        assert (status["powerState"], status["id"], status["currentResources"]) == ("On", "vm-1", {"cpu": 2, "memoryMiB": 4096})
        assert status["consoleURL"] and status["provider"]["boots"] == "1"
        await asyncio.sleep(15)
        assert (await life.status())["ips"] == ["10.0.0.1"]
        assert life.driver.names() == ["Create", "Power"]
        assert await life.events() == ["Created", "PoweringOn"]


@timeless
async def test_a_class_may_be_smaller_than_a_machines_own_resources_can_be() -> None:
    async with rigaud() as life:
        await life.make(vmclass("tiny", memory="64Mi"))
        await life.make(machine(classRef={"name": "tiny"}))
        assert (await life.ready())["currentResources"] == {"cpu": 2, "memoryMiB": 64}


@pytest.mark.spec("virtrigaud", 29)
@timeless
async def test_a_machine_that_is_off_is_never_started() -> None:
    async with rigaud() as life:
        await life.make(machine(powerState="Off"))
        assert (await life.ready())["phase"] == "Stopped"
        await asyncio.sleep(700)
        assert life.driver.names() == ["Create"]


@pytest.mark.spec("virtrigaud", 24)
@timeless
async def test_what_is_missing_is_named_and_waited_for() -> None:
    async with rigaud(world=False) as life:
        await life.make(machine())
        await asyncio.sleep(2)
        for body, kind in ((provider(), "Provider"), (vmclass(), "VMClass"), (image(), "VMImage"), (network(), "VMNetworkAttachment")):
            found = await life.condition()
            assert (found["status"], found["reason"]) == ("False", "WaitingForDependencies")
            assert f"no {kind} default/{body['metadata']['name']}" in found["message"]
            assert (await life.status())["phase"] == "Pending"
            await life.make(body)
            await asyncio.sleep(2)
            assert f"{kind} default" not in (await life.condition())["message"]
        assert life.driver.count("Create") == 1
        await life.ready()


@pytest.mark.spec("virtrigaud", 25, 103)
@timeless
async def test_references_lead_into_other_namespaces_with_their_consent() -> None:
    async with rigaud() as life:
        await life.api.namespace("infra")
        allowed = {"virtrigaud.io/consumer-namespaces": "default, other"}
        for body in (provider("far"), vmclass("far"), image("far"), network("far")):
            body["metadata"] |= {"namespace": "infra", "annotations": allowed if body["kind"] != "VMClass" else {}}
            await life.make(body, namespace="infra")
        far = {"name": "far", "namespace": "infra"}
        await life.make(machine(providerRef=far, classRef=far, imageRef=far, networks=[{"name": "lan", "networkRef": far}]))
        await asyncio.sleep(3)
        found = await life.condition()
        assert found["reason"] == "ConsumerNotAllowed" and "VMClass infra/far" in found["message"]
        assert life.driver.count("Create") == 0
        said = await life.api.merge(f"{GROUP}/namespaces/infra/vmclasses/far", {"metadata": {"annotations": allowed}})
        assert said.status == 200
        await life.ready()


@pytest.mark.spec("virtrigaud", 12, "neither", "stored, `Ready=False/ValidationError`, no create RPC")
@timeless
async def test_a_machine_without_a_source_is_stored_and_not_made() -> None:
    async with rigaud() as life:
        await life.make(machine(imageRef=None))
        await asyncio.sleep(600)
        found = await life.condition()
        assert (found["status"], found["reason"]) == ("False", "ValidationError")
        assert "neither imageRef nor importedDisk" in found["message"]
        assert (await life.status())["phase"] == "Failed"
        assert life.driver.count("Create") == 0
        await life.merge("web", {"spec": {"imageRef": {"name": "ubuntu"}}})
        await life.ready()


@pytest.mark.spec("virtrigaud", 26)
@timeless
async def test_a_killed_manager_creates_no_second_machine() -> None:
    async with rigaud() as life:
        reached = asyncio.Event()

        async def never_answers(rpc: str, request: Any) -> None:
            if rpc == "Create" and not reached.is_set():
                await life.driver.driver.create(request)
                reached.set()
                await asyncio.Event().wait()

        life.driver.script = never_answers
        await life.make(machine())
        await reached.wait()
        assert "id" not in await life.status()
        await life.restart()
        await life.ready()
        assert life.driver.count("Create") == 2
        assert [each.name for each in await life.machines()] == ["web"]
        uid = (await life.get())["metadata"]["uid"]
        assert [each.owner.uid for each in life.driver.of("Create")] == [uid, uid]


@pytest.mark.spec("virtrigaud", 27, 98)
@timeless
async def test_an_asynchronous_create_is_polled() -> None:
    async with rigaud(task_seconds=LONG) as life:
        await life.make(machine(powerState="Off"))
        await asyncio.sleep(3)
        for _ in range(3):
            status = await life.status()
            assert status["lastTaskRef"] == "task-1" and "currentResources" not in status
            assert await life.said("Provisioning") == ("True", "Creating")
            assert (await life.said())[0] == "False"
            assert life.driver.count("Describe") == 0
            await asyncio.sleep(5)
        polls = life.driver.count("TaskStatus")
        assert 3 <= polls <= 4
        status = await life.ready()
        assert "lastTaskRef" not in status and status["phase"] == "Stopped"
        assert await life.said("Provisioning") == ("False", "ReconcileSuccess")


@pytest.mark.spec("virtrigaud", 28, 98)
@timeless
async def test_a_failed_task_is_reported_and_tried_again() -> None:
    fault = RpcFault(rpc="Create", effect="task-error", message="the datastore is full")
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine())
        told: list[str] = []

        async def is_told() -> bool:
            found = await life.condition("Provisioning")
            if found.get("reason") == "ProviderError":
                told.append(found["message"])
            return bool(told)

        await life.until(is_told)
        assert "the datastore is full" in told[0] and "Provider default/lab" in told[0]
        assert "lastTaskRef" not in await life.status()
        await life.ready()
        assert life.driver.count("Create") == 2 and len(await life.machines()) == 1


@pytest.mark.spec("virtrigaud", 28)
@timeless
async def test_a_task_that_a_restarted_provider_forgot_leads_to_a_description() -> None:
    async with rigaud(task_seconds=LONG) as life:
        await life.make(machine(powerState="Off"))
        await asyncio.sleep(7)
        life.driver.driver.restart()
        await life.ready()
        assert life.driver.count("Create") == 1 and life.driver.count("Describe") >= 1
        assert (await life.status())["currentResources"] == {"cpu": 2, "memoryMiB": 4096}


@pytest.mark.spec("virtrigaud", 52)
@timeless
async def test_only_a_positive_answer_makes_a_machine_anew() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        life.driver.down = ProviderError(ErrorKind.NOT_FOUND, "no such host")
        await asyncio.sleep(400)
        assert await life.said() == ("False", "ProviderError")
        assert (await life.status())["id"] == "vm-1"
        life.driver.down = None
        await life.ready()
        assert life.driver.count("Create") == 1
        await life.driver.driver.delete(m.DeleteRequest(id="vm-1"))
        await asyncio.sleep(200)
        status = await life.ready()
        assert status["id"] != "vm-1" and life.driver.count("Create") == 2, life.driver.calls
        assert "MachineLost" in await life.events()


EXAMPLES = Path(__file__).parents[5] / "src" / "paddock" / "dialects" / "virtrigaud" / "examples" / "documented.yaml"


@pytest.mark.spec("virtrigaud", 22)
@timeless
async def test_the_documented_examples_wait_for_the_network_and_converge() -> None:
    async with rigaud(world=False) as life:
        documents = list(yaml.safe_load_all(EXAMPLES.read_text()))
        await life.make(*documents)
        await asyncio.sleep(60)
        found = await life.condition("Ready", "web-server")
        assert found["reason"] == "WaitingForDependencies"
        assert "VMNetworkAttachment default/app-network-attachment" in found["message"]
        attachment = next(each for each in documents if each["kind"] == "VMNetworkAttachment")
        await life.make({**attachment, "metadata": {"name": "app-network-attachment"}})
        status = await life.ready("web-server")
        assert status["phase"] == "Running"
        assert json.loads(life.driver.of("Create")[0].placement_json)["ResourcePool"] == "Production"


@pytest.mark.spec("virtrigaud", 56)
@timeless
async def test_an_adopted_machine_without_an_id_is_never_made() -> None:
    async with rigaud() as life:
        body = machine()
        body["metadata"]["labels"] = {"virtrigaud.io/adopted": "true"}
        await life.make(body)
        await asyncio.sleep(300)
        assert life.driver.count("Create") == 0
        assert await life.said() == ("False", "WaitingForDependencies")
        made = await life.driver.driver.create(
            m.CreateRequest(name="old", class_json='{"CPU":1,"MemoryMiB":512}', image_json='{"Path":"/a"}')
        )
        await life.status_merge("web", {"id": made.id}, "VirtualMachine")
        await life.ready()
        assert life.driver.count("Create") == 0


@pytest.mark.spec("virtrigaud", 40)
@timeless
async def test_overrides_reach_the_provider_and_are_confirmed() -> None:
    async with rigaud() as life:
        await life.make(machine(resources={"cpu": 6, "memoryMiB": 3000}))
        status = await life.ready()
        hardware = json.loads(life.driver.of("Create")[0].class_json)
        assert (hardware["CPU"], hardware["MemoryMiB"]) == (6, 3000)
        assert status["currentResources"] == {"cpu": 6, "memoryMiB": 3000}


@pytest.mark.spec("virtrigaud", 99)
@timeless
async def test_a_request_that_is_refused_waits_for_a_change() -> None:
    fault = RpcFault(rpc="Create", kind=ErrorKind.INVALID_SPEC, message="the class is too large")
    async with rigaud(faults=(fault,)) as life:
        await life.make(machine())
        await asyncio.sleep(3600)
        found = await life.condition()
        assert (found["status"], found["reason"]) == ("False", "ValidationError")
        assert "the class is too large" in found["message"] and (await life.status())["phase"] == "Failed"
        assert life.driver.count("Create") == 1
        await life.merge("small", {"spec": {"cpu": 1}}, "VMClass")
        await life.ready()
        assert life.driver.count("Create") == 2


@timeless
async def test_an_imported_disk_is_requested_with_its_path() -> None:
    async with rigaud(paths=("/pool/*", "/var/lib/libvirt/images/*")) as life:
        disk = {"diskID": "d1", "path": "/pool/d1.raw", "format": "raw", "source": "migration", "migrationRef": {"name": "move"}}
        await life.make(machine(imageRef=None, importedDisk=disk), machine("other", imageRef=None, importedDisk={"diskID": "d2"}))
        await life.ready()
        await life.ready("other")
        first, second = (json.loads(each.image_json) for each in sorted(life.driver.of("Create"), key=lambda each: each.name, reverse=True))
        assert (first["Path"], first["Format"]) == ("/pool/d1.raw", "raw")
        assert (second["Path"], second["Format"]) == ("/var/lib/libvirt/images/d2.qcow2", "qcow2")
        assert (await life.get())["spec"]["importedDisk"]["migrationRef"] == {"name": "move"}


@pytest.mark.spec("virtrigaud", 114)
@timeless
async def test_a_machine_at_rest_costs_one_description_a_poll() -> None:
    async with rigaud() as life:
        await life.make(machine(), machine("off", powerState="Off"))
        await life.ready()
        await life.ready("off")
        await asyncio.sleep(60)
        life.driver.calls.clear()
        writes = life.wire.writes
        for _ in range(4):
            await asyncio.sleep(600)
            await life.merge("web", {"spec": {"powerState": "On"}})
            await life.merge("web", {"spec": {"powerState": None}})
            for kind, name in (("VMClass", "small"), ("VMImage", "ubuntu"), ("VMNetworkAttachment", "lan"), ("Provider", "lab")):
                await life.merge(name, {"spec": (await life.get(name, kind))["spec"]}, kind)
        described = [each.id for each in life.driver.of("Describe")]
        web, off = (await life.status())["id"], (await life.status("off"))["id"]
        assert 18 <= described.count(web) <= 21 and 7 <= described.count(off) <= 9
        assert life.driver.names() == []
        # One status of the Provider for each check of its health, and the observed generations of the machine.
        checks = life.driver.count("Validate")
        assert 78 <= checks <= 81
        assert life.wire.writes - writes <= checks + 10


@pytest.mark.spec("virtrigaud", 12, "imageRef together with importedDisk rejected")
@timeless
async def test_a_machine_that_exists_needs_no_source_and_nobody_is_warned() -> None:
    """As other managers clone and adopt: the object has an id and neither an image nor a disk."""
    async with rigaud(world=False) as life:
        place, patch = f"{base('VirtualMachine')}/web", {"metadata": {"annotations": {"team": "blue"}}}
        made = await life.api.call("POST", base("VirtualMachine"), machine(imageRef=None))
        warned = [made.warnings, (await life.api.merge(place, patch)).warnings]
        assert [len(each) for each in warned] == [1, 1] and "neither imageRef nor importedDisk" in warned[0][0]
        await life.status_merge("web", {"id": "vm-42"}, "VirtualMachine")
        patch["metadata"]["annotations"]["team"] = "red"
        assert (await life.api.merge(place, patch)).warnings == []
        both = {"imageRef": {"name": "a"}, "importedDisk": {"diskID": "b"}}
        named = await life.api.merge(place, {"spec": both})
        made = await life.api.call("POST", base("VirtualMachine"), machine("both", **both))
        for refused in (named, made):
            assert (refused.status, "mutually exclusive" in refused.data["message"]) == (422, True), refused.data
