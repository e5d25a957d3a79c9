"""The life of a Machine on a whole host: its phases, its status, its end, and what is set right."""

import asyncio
from itertools import pairwise

import pytest

from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import FINALIZER, Data, Vitistack, machine, network
from tests.unit.dialects.vitistack.plan.test_phases import STEPS

_FIELDS = {"phase", "conditions", "claims", "vmName", "vmiName", "ipAddresses", "nodeName", "lastUpdated", "resourceVersion"}


def phases(states: list[Data]) -> list[str]:
    """The phases in the order in which they were said, each once in a row."""
    said = [str(each.get("status", {}).get("phase", "")) for each in states]
    return [phase for index, phase in enumerate(said) if index == 0 or said[index - 1] != phase]


@pytest.mark.spec("vitistack", 62)
@pytest.mark.spec("vitistack", 67)
@played
async def test_phases_follow_each_other_and_conditions_are_four(host: Vitistack, /) -> None:
    async with host.recorded() as states:
        await host.make(machine())
        await host.up()
        await host.merge("VirtualMachine", "web", {"spec": {"running": False}})
        await asyncio.sleep(60)
        await host.merge("VirtualMachine", "web", {"spec": {"running": True}})
        await host.up()
    assert phases(states) == ["Pending", "Creating", "Running", "Stopped", "Running"]
    assert all(after in STEPS[before].split() for before, after in pairwise(phases(states)))
    for state in states[1:]:
        types = [each["type"] for each in state["status"]["conditions"]]
        assert types == ["Ready", "VirtualMachineReady", "StorageReady", "NetworkReady"]


@pytest.mark.spec("vitistack", 59, "S's debug selector finds vm, vmi, pvc")
@played
async def test_one_selector_finds_all_that_belongs_to_a_machine(host: Vitistack, /) -> None:
    await host.make(machine(disks=[{"name": "data", "size": "1Gi"}]), machine("other"))
    await host.up()
    await host.up("other")
    selector = "vitistack.io%2Fmachine%3Dweb"
    assert await host.names("VirtualMachine", selector) == await host.names("VirtualMachineInstance", selector) == ["web"]
    assert await host.names("PersistentVolumeClaim", selector) == ["web-data", "web-root"]


@pytest.mark.spec("vitistack", 62)
@played
async def test_phases_hold_when_the_controller_is_away(host: Vitistack, /) -> None:
    async with host.recorded() as states:
        await host.make(machine())
        for _ in range(12):
            await asyncio.sleep(0.01)
            await host.again()
        await host.up()
    assert phases(states) == ["Pending", "Creating", "Running"]


@pytest.mark.spec("vitistack", 63)
@pytest.mark.spec("vitistack", 64)
@played
async def test_users_stop_and_start_machines_and_nobody_corrects_them(host: Vitistack, /) -> None:
    await host.make(machine())
    assert {"vmiName", "ipAddresses"} <= (await host.up())["status"].keys()
    # what the subresource `stop` does to a machine that says `running`
    await host.merge("VirtualMachine", "web", {"spec": {"running": False}})
    await asyncio.sleep(60)
    stopped = (await host.machine())["status"]
    assert stopped["phase"] == "Stopped"
    assert not {"vmiName", "ipAddresses", "nodeName"} & stopped.keys()
    assert (await host.condition("Ready"))[:2] == ("False", "MachineStopped")
    # sweeps, another spec, a restart of the controller: it stays off
    await asyncio.sleep(300)
    await host.merge("Machine", "web", {"spec": {"resources": {"cpu": {"cores": 2}}}})
    await asyncio.sleep(60)
    await host.again()
    await asyncio.sleep(120)
    assert await host.phase() == "Stopped"
    vm = await host.vm()
    assert vm["spec"]["running"] is False
    assert vm["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 2
    await host.merge("VirtualMachine", "web", {"spec": {"running": True}})
    assert "vmiName" in (await host.up())["status"]


@played
async def test_the_annotation_makes_power_declarative(host: Vitistack, /) -> None:
    await host.make(machine(metadata={"annotations": {"vitistack.io/power-state": "stopped"}}))
    await asyncio.sleep(60)
    assert await host.phase() == "Creating"
    assert (await host.vm())["spec"]["running"] is False
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}})
    await host.up()
    await host.merge("VirtualMachine", "web", {"spec": {"running": False}})
    await host.up(seconds=60)
    # and without it, whatever is there stays
    await host.merge("Machine", "web", {"metadata": {"annotations": None}})
    await asyncio.sleep(60)
    assert (await host.vm())["spec"]["running"] is True
    assert await host.phase() == "Running"


@pytest.mark.spec("vitistack", 65)
@played
async def test_a_running_machine_has_every_field_of_the_status(host: Vitistack, /) -> None:
    await host.make(machine())
    status, vm, vmi = (await host.up())["status"], await host.vm(), await host.vmi()
    assert status.keys() == _FIELDS
    assert (status["vmName"], status["vmiName"], status["nodeName"]) == ("web", "web", "host")
    assert status["ipAddresses"] == vmi["status"]["interfaces"][0]["ipAddresses"]
    assert status["resourceVersion"] == vm["metadata"]["resourceVersion"]
    assert status["lastUpdated"].endswith("Z")
    assert await host.condition("Ready") == ("True", "MachineReady", "the machine runs")
    # a change of the VirtualMachine is followed
    await host.merge("VirtualMachine", "web", {"metadata": {"labels": {"mine": "yes"}}})
    await asyncio.sleep(10)
    assert (await host.machine())["status"]["resourceVersion"] == (await host.vm())["metadata"]["resourceVersion"]


@pytest.mark.spec("vitistack", 66)
@played
async def test_nothing_is_written_while_nothing_changes(host: Vitistack, /) -> None:
    await host.make(network(), machine(), machine("wired", networks=[{"name": "eth0", "networkName": "prod"}]))
    await host.up()
    updated, revision = (await host.machine())["status"]["lastUpdated"], await host.revision()
    await asyncio.sleep(300)
    assert await host.revision() == revision
    assert (await host.machine())["status"]["lastUpdated"] == updated
    # also by a controller that has just started, and when what is there is applied again
    await host.again()
    await asyncio.sleep(120)
    assert await host.revision() == revision
    reply = await host.api.apply(host.place("Machine", "vitistack.io/v1alpha1", name="web"), machine(), "kubectl", force=True)
    assert reply.status == 200
    applied = await host.revision()
    reply = await host.api.apply(host.place("Machine", "vitistack.io/v1alpha1", name="web"), machine(), "kubectl", force=True)
    await asyncio.sleep(120)
    assert await host.revision() == applied


@played
async def test_a_start_is_five_writes_of_the_machine(host: Vitistack, /) -> None:
    async with host.recorded() as states:
        await host.make(machine())
        await host.up(seconds=60)
    # made; finalizer; Pending; Creating; Running; the last revision of the VirtualMachine
    assert len({each["metadata"]["resourceVersion"] for each in states}) <= 6


@pytest.mark.spec("vitistack", 69)
@played
async def test_a_machine_goes_in_order(host: Vitistack, /) -> None:
    await host.make(network(), machine(networks=[{"name": "eth0", "networkName": "prod"}]))
    await host.up()
    engine = (await host.running()).id
    host.engine.machines.get(engine).deaf = True  # type: ignore[union-attr]
    await host.drop("Machine", "web")
    seen: list[tuple[bool, bool, bool, bool]] = []
    for _ in range(400):
        await asyncio.sleep(0.25)
        listed = (await host.seen("NetworkConfiguration", "prod")).get("status", {}).get("connectedMachines", [])
        vm = bool(await host.vm() or await host.vmi())
        claims = bool(await host.names("PersistentVolumeClaim"))
        state = (vm, claims, "default/web" in listed, FINALIZER in (await host.machine()).get("metadata", {}).get("finalizers", []))
        if not seen or seen[-1] != state:
            seen.append(state)
    assert seen[0] == (True, True, True, True)
    assert seen[-1] == (False, False, False, False)
    for state in seen:
        vm, claims, connected, held = state
        # whatever is there holds what comes after it
        assert not vm or claims, seen
        assert not claims or connected, seen
        assert not connected or held, seen
    assert await host.machine() == {}
    assert await host.names("NetworkAttachmentDefinition") == []
    assert await host.seen("NetworkConfiguration", "prod") != {}
    assert host.engine.volumes.ids() == set()


@pytest.mark.spec("vitistack", 69)
@played
async def test_the_virtual_machine_is_gone_before_its_claims_are_asked_to_go(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    await host.merge("VirtualMachine", "web", {"metadata": {"finalizers": ["a/b", "kubevirt.io/virtualMachineControllerFinalize"]}})
    await host.drop("Machine", "web")
    await asyncio.sleep(200)
    claim = await host.seen("PersistentVolumeClaim", "web-root")
    assert claim != {}
    assert "deletionTimestamp" not in claim["metadata"]
    assert "it waits for the VirtualMachine to stop" in (await host.condition("Ready"))[2]
    await host.merge("VirtualMachine", "web", {"metadata": {"finalizers": None}})
    await asyncio.sleep(60)
    assert await host.machine() == {}


@pytest.mark.spec("vitistack", 70)
@played
async def test_a_machine_goes_when_everything_of_it_has_gone_already(host: Vitistack, /) -> None:
    await host.make(network(), machine(networks=[{"name": "eth0", "networkName": "prod"}]))
    await host.up()
    await host.end()
    await host.merge("VirtualMachine", "web", {"metadata": {"finalizers": None}})
    await host.merge("VirtualMachineInstance", "web", {"metadata": {"finalizers": None}})
    for kind, name in (("VirtualMachine", "web"), ("VirtualMachineInstance", "web"), ("NetworkConfiguration", "prod")):
        if await host.seen(kind, name):
            await host.drop(kind, name)
    await host.merge("PersistentVolumeClaim", "web-root", {"metadata": {"finalizers": None}})
    if await host.seen("PersistentVolumeClaim", "web-root"):
        await host.drop("PersistentVolumeClaim", "web-root")
    await asyncio.sleep(5)
    await host.drop("Machine", "web")
    assert await host.machine() != {}
    await host.begin()
    await asyncio.sleep(60)
    assert await host.machine() == {}


@pytest.mark.spec("vitistack", 72)
@played
async def test_more_processors_wait_for_a_restart(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    run = (await host.vmi())["metadata"]["uid"]
    await host.merge("Machine", "web", {"spec": {"resources": {"cpu": {"cores": 4}}}})
    await asyncio.sleep(30)
    assert (await host.vm())["spec"]["template"]["spec"]["domain"]["cpu"]["cores"] == 4
    assert (await host.vmi())["metadata"]["uid"] == run
    assert await host.phase() == "Running"
    assert (await host.events("web", "Machine")).count("RestartRequired") == 1
    assert "a restart is needed" in (await host.condition("VirtualMachineReady"))[2]
    await asyncio.sleep(300)
    assert (await host.events("web", "Machine")).count("RestartRequired") == 1


@pytest.mark.spec("vitistack", 73)
@played
async def test_a_deleted_virtual_machine_is_made_again(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    before = (await host.vm())["metadata"]["uid"]
    claim = (await host.seen("PersistentVolumeClaim", "web-root"))["metadata"]["uid"]
    await host.drop("VirtualMachine", "web")
    await host.up(seconds=60)
    assert (await host.vm())["metadata"]["uid"] != before
    assert (await host.seen("PersistentVolumeClaim", "web-root"))["metadata"]["uid"] == claim


@played
async def test_what_users_change_of_ours_is_set_right_and_the_rest_is_theirs(host: Vitistack, /) -> None:
    await host.make(machine())
    await host.up()
    patch = {
        "metadata": {"labels": {"vitistack.io/machine": "other", "mine": "yes"}},
        "spec": {"template": {"spec": {"domain": {"memory": {"guest": "1Gi"}}}}},
    }
    await host.merge("VirtualMachine", "web", patch)
    await asyncio.sleep(40)
    vm = await host.vm()
    assert vm["metadata"]["labels"]["vitistack.io/machine"] == "web"
    assert vm["metadata"]["labels"]["mine"] == "yes"
    assert vm["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "2Gi"


@played
async def test_a_virtual_machine_of_somebody_else_is_left_alone(host: Vitistack, /) -> None:
    spec = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}, "memory": {"guest": "64Mi"}}}}}
    other = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": spec}
    await host.make(other, machine())
    await asyncio.sleep(60)
    status, reason, message = await host.condition("VirtualMachineReady")
    assert (status, reason) == ("False", "VMFailed")
    assert "belongs to nobody" in message
    assert (await host.condition("Ready"))[1] == "KubeVirtApiError"
    await host.drop("Machine", "web")
    await asyncio.sleep(60)
    assert await host.machine() == {}
    assert (await host.vm())["spec"]["runStrategy"] == "Halted"


@played
async def test_too_many_failed_starts_are_a_failure_that_the_annotation_ends(host: Vitistack, /) -> None:
    define = host.engine.machines.define

    async def defined(id: str, config: object) -> object:
        host.engine.machines.fail(id, "qemu: no")
        return await define(id, config)  # type: ignore[arg-type]

    host.engine.machines.define = defined  # type: ignore[method-assign, assignment]
    await host.make(machine())
    await asyncio.sleep(1200)
    assert await host.phase() == "Failed"
    status, reason, message = await host.condition("VirtualMachineReady")
    assert (status, reason) == ("False", "VMFailed")
    assert "5 starts in a row failed" in message
    host.engine.machines.define = define  # type: ignore[method-assign]
    await asyncio.sleep(900)
    assert await host.phase() == "Failed"
    await host.merge("Machine", "web", {"metadata": {"annotations": {"vitistack.io/retry": "1"}}})
    await host.up(seconds=900)


@played
async def test_a_sweep_without_news_translates_nothing(host: Vitistack, /, monkeypatch: pytest.MonkeyPatch) -> None:
    translated: list[str] = []

    def counted(source: Machine, world: ObjectSet, rendering: Rendering) -> object:
        translated.append(source.metadata.name)
        return to_kubevirt(source, world, rendering)

    monkeypatch.setattr("paddock.dialects.vitistack.controllers.translation.to_kubevirt", counted)

    await host.make(machine())
    await host.up()
    assert 1 <= len(translated) <= 3
    translated.clear()
    await asyncio.sleep(600)
    assert translated == []
