"""A machine's way from creation to Running and back, under every strategy (docs/spec/kubevirt.md 2.4)."""

from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import from_data
from paddock.kubevirt.controllers.virtualmachine.controller import wire
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.machine import runrequests
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import KUBEVIRT, Life, living

HARDWARE: Data = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}
KEY = Key("default", "web")
STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Halted", "Once")


def machine(strategy: str | bool = "Always", name: str = "web", **spec: Any) -> Data:
    when = {"running": strategy} if isinstance(strategy, bool) else {"runStrategy": strategy}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": HARDWARE}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {**when, "template": template, **spec},
    }


async def ask(life: Life, verb: str, **options: Any) -> None:
    """Do as the subresources do: decide, and send the patches."""
    found = await life.vmi()
    vm = from_data(await life.vm(), VirtualMachine)
    change = getattr(runrequests, verb)(vm, from_data(found, VirtualMachineInstance) if found else None, **options)
    for path, patch in (("virtualmachines/web", change.machine), ("virtualmachines/web/status", change.status)):
        if patch:
            said = await life.api.call("PATCH", f"{KUBEVIRT}/{path}", list(patch), content_type="application/json-patch+json")
            assert said.status == 200, said.data
    assert not change.instance


async def running(life: Life, strategy: str | bool) -> str:
    """Bring a machine to Running; returns the UID of its instance."""
    halted = strategy in ("Halted", False)
    await life.make(machine("Always" if strategy == "Halted" else True if strategy is False else strategy))
    if strategy == "Manual":
        await life.shows("Stopped")
        await ask(life, "start")
    await life.shows("Running")
    if halted:
        return await uid(life)
    return await uid(life)


async def uid(life: Life) -> str:
    found = await life.vmi()
    return found["metadata"]["uid"] if found else ""


@pytest.mark.parametrize(("seconds", "words"), [(0.0, [None, "Running"]), (0.2, [None, "Starting", "Running"])])
@timeless
async def test_from_creation_to_running_in_few_writes(seconds: float, words: list[str | None]) -> None:
    """A start that takes its time is seen."""
    async with living(wire) as life, life.api.watch("/apis/kubevirt.io/v1/virtualmachines?watch=true") as events:
        life.player.seconds = seconds
        await life.make(machine())
        vm = await life.shows("Running")
        await life.rest(60)
        written = [await events.next() for _ in words]
        assert [each["object"].get("status", {}).get("printableStatus") for each in written] == words
        assert await events.quiet()
        assert vm["status"]["created"] is vm["status"]["ready"] is True


@timeless
async def test_what_an_instance_is_made_of() -> None:
    async with living(wire) as life:
        vm = await life.make(machine())
        await life.shows("Running")
        vmi = await life.vmi()
        assert vmi is not None
        meta = vmi["metadata"]
        assert meta["labels"] == {"app": "web", "kubevirt.io/created-by": vm["metadata"]["uid"]}
        assert meta["annotations"]["kubevirt.io/vm-generation"] == "1"
        assert meta["annotations"]["kubevirt.io/pci-topology-version"] == "v3"
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("VirtualMachine", vm["metadata"]["uid"], True)
        assert set(meta["finalizers"]) == {
            "kubevirt.io/virtualMachineControllerFinalize",
            "kubevirt.io/foregroundDeleteVirtualMachine",
        }
        domain, template = vmi["spec"]["domain"], vm["spec"]["template"]["spec"]["domain"]
        assert domain["firmware"] == template["firmware"] and domain["memory"]["guest"] == "1Gi"
        assert domain["cpu"]["maxSockets"] == 4 and vmi["spec"]["networks"] == [{"name": "default", "pod": {}}]
        revision = f"revision-start-vm-{vm['metadata']['uid']}-1"
        assert vmi["status"]["virtualMachineRevisionName"] == revision
        kept = (await life.api.get(f"/apis/apps/v1/namespaces/default/controllerrevisions/{revision}")).data
        assert kept["data"] == {"spec": vm["spec"]}
        status = (await life.vm())["status"]
        assert (status["desiredGeneration"], status["observedGeneration"], status["runStrategy"]) == (1, 1, "Always")


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize(
    ("strategy", "word"),
    [
        *((strategy, "Running") for strategy in ("Always", "RerunOnFailure", "Once", True)),
        *((strategy, "Stopped") for strategy in ("Manual", "Halted", False)),
    ],
)
@timeless
async def test_a_new_machine(strategy: str | bool, word: str) -> None:
    async with living(wire) as life:
        await life.make(machine(strategy))
        await life.shows(word)
        await life.rest(60)
        assert bool(await life.vmi()) == (word == "Running")


# What is there some time after the guest shut down, crashed, or its instance was deleted: a new instance, the old one, or none.
AFTER = {
    "Succeeded": {"Always": "new", "RerunOnFailure": "none", "Manual": "old", "Once": "old"},
    "Failed": {"Always": "new", "RerunOnFailure": "new", "Manual": "old", "Once": "old"},
    "deleted": {"Always": "new", "RerunOnFailure": "none", "Manual": "none", "Once": "new"},
    "deleted and killed": {"Always": "new", "RerunOnFailure": "none", "Manual": "none", "Once": "new"},
}


@pytest.mark.spec("kubevirt", 16, 17, 18, 19)
@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
@pytest.mark.parametrize("event", AFTER)
@timeless
async def test_the_end_of_a_run(strategy: str, event: str) -> None:
    async with living(wire) as life:
        before = await running(life, strategy)
        life.player.ends = "Failed" if event.endswith("killed") else "Succeeded"
        if event.startswith("deleted"):
            await life.delete(plural="virtualmachineinstances")
        else:
            await life.player.say(KEY, event)
        await life.rest(30)
        after = await uid(life)
        assert {"new": after not in ("", before), "old": after == before, "none": not after}[AFTER[event][strategy]]
        assert await life.word() == ("Running" if AFTER[event][strategy] == "new" else "Stopped")


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize("strategy", STRATEGIES)
@timeless
async def test_halting_ends_the_instance(strategy: str) -> None:
    async with living(wire) as life:
        await running(life, strategy)
        await life.merge({"spec": {"runStrategy": "Halted"}})
        await life.shows("Stopped")
        await life.rest(30)
        assert not await life.vmi()


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize("becomes", ["Always", "RerunOnFailure", "Manual", "Once"])
@pytest.mark.parametrize("strategy", ["Always", "RerunOnFailure", "Manual", "Once"])
@timeless
async def test_another_strategy_keeps_the_instance(strategy: str, becomes: str) -> None:
    async with living(wire) as life:
        before = await running(life, strategy)
        await life.merge({"spec": {"runStrategy": becomes}})
        await life.rest(30)
        assert await uid(life) == before and await life.word() == "Running"
        assert (await life.vm())["status"]["runStrategy"] == becomes


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize(("halted", "started"), [("Halted", "Always"), (False, True)])
@timeless
async def test_starting_and_stopping_a_halted_machine(halted: str | bool, started: str | bool) -> None:
    member = "running" if isinstance(halted, bool) else "runStrategy"
    async with living(wire) as life:
        await life.make(machine(halted))
        await life.shows("Stopped")
        await ask(life, "start")
        assert (await life.shows("Running"))["spec"][member] == started
        await ask(life, "stop")
        assert (await life.shows("Stopped"))["spec"][member] == halted


@timeless
async def test_a_halted_machine_started_paused() -> None:
    async with living(wire) as life:
        await life.make(machine("Halted"))
        await life.shows("Stopped")
        await ask(life, "start", paused=True)
        vm = await life.shows("Running")
        assert vm["spec"]["runStrategy"] == "Always" and "stateChangeRequests" not in vm["status"]
        vmi = await life.vmi()
        assert vmi is not None and vmi["spec"]["startStrategy"] == "Paused"
        assert "startStrategy" not in vm["spec"]["template"]["spec"]


@pytest.mark.spec("kubevirt", 14)
@pytest.mark.parametrize("strategy", ["RerunOnFailure", "Manual"])
@timeless
async def test_requests_of_a_machine_that_keeps_its_strategy(strategy: str) -> None:
    async with living(wire) as life:
        first = await running(life, strategy)
        await ask(life, "stop")
        vm = await life.shows("Stopped")
        await life.rest(60)
        assert not await uid(life) and "stateChangeRequests" not in vm["status"]
        await ask(life, "start")
        await life.shows("Running")
        second = await uid(life)
        await ask(life, "restart")
        await life.rest(10)
        vm = await life.shows("Running")
        assert len({first, second, await uid(life)}) == 3
        assert vm["spec"]["runStrategy"] == strategy and "stateChangeRequests" not in vm["status"]


@timeless
async def test_a_restart_of_a_machine_that_always_runs() -> None:
    async with living(wire) as life:
        first = await running(life, "Always")
        await ask(life, "restart")
        await life.rest(10)
        assert await life.word() == "Running" and await uid(life) != first


@pytest.mark.spec("kubevirt", 18)
@timeless
async def test_a_start_after_a_guest_shut_down() -> None:
    async with living(wire) as life:
        first = await running(life, "Manual")
        await life.player.say(KEY, "Succeeded")
        await life.shows("Stopped")
        assert await uid(life) == first
        await ask(life, "start")
        await life.shows("Running")
        assert await uid(life) != first


@timeless
async def test_a_machine_whose_guest_is_slow_to_stop_shows_it() -> None:
    async with living(wire) as life:
        await running(life, "Always")
        life.player.holds_deletion = True
        await life.merge({"spec": {"runStrategy": "Halted"}})
        vm = await life.shows("Stopping")
        assert vm["status"]["created"] is True
        life.player.holds_deletion = False
        life.played.offer(KEY)
        await life.shows("Stopped")


@pytest.mark.spec("kubevirt", 14)
@timeless
async def test_a_machine_goes_after_its_instance() -> None:
    async with living(wire) as life:
        await running(life, "Always")
        life.player.holds_deletion = True
        await life.delete(body={"gracePeriodSeconds": 7})
        await life.shows("Terminating")
        vmi = await life.vmi()
        assert vmi is not None and vmi["metadata"]["deletionGracePeriodSeconds"] == 7
        life.player.holds_deletion = False
        life.played.offer(KEY)
        await life.rest(5)
        assert await life.get() is None and await life.vmi() is None


@timeless
async def test_a_machine_that_is_stopped_goes_at_once() -> None:
    async with living(wire) as life:
        await life.make(machine("Halted"))
        await life.shows("Stopped")
        await life.delete()
        await life.rest(5)
        assert await life.get() is None


@timeless
async def test_an_orphaned_instance_runs_on() -> None:
    async with living(wire) as life:
        before = await running(life, "Always")
        await life.delete(body={"propagationPolicy": "Orphan"})
        await life.rest(5)
        assert await uid(life) == before
        vmi = await life.vmi()
        assert vmi is not None and "deletionTimestamp" not in vmi["metadata"]


@timeless
async def test_who_tells_events() -> None:
    async with living(wire) as life:
        await running(life, "Always")
        await life.rest()
        found = (await life.api.get("/api/v1/namespaces/default/events")).data["items"]
        assert {each["source"]["component"] for each in found} == {"virtualmachine-controller"}


@timeless
async def test_events() -> None:
    async with living(wire) as life:
        first = await running(life, "Always")
        await life.merge({"spec": {"runStrategy": "Halted"}})
        await life.shows("Stopped")
        assert await life.events() == [
            ("Normal", "SuccessfulCreate", "Started the virtual machine by creating the new virtual machine instance web"),
            ("Normal", "SuccessfulDelete", f"Stopped the virtual machine by deleting the virtual machine instance {first}"),
        ]


@pytest.mark.spec("kubevirt", 32)
@timeless
async def test_machines_of_one_name_in_two_namespaces() -> None:
    async with living(wire) as life:
        await life.api.namespace("other")
        await life.make(machine())
        await life.make(machine(), base="/apis/kubevirt.io/v1/namespaces/other")
        await life.shows("Running")
        await life.rest(5)
        there = (await life.api.get("/apis/kubevirt.io/v1/namespaces/other/virtualmachineinstances/web")).data
        here = await life.vmi()
        assert here is not None and there["metadata"]["uid"] != here["metadata"]["uid"]
        firmware = [each["spec"]["domain"]["firmware"]["uuid"] for each in (here, there)]
        assert firmware[0] != firmware[1]
        await life.delete()
        await life.rest(10)
        assert await life.vmi() is None
        left = await life.api.get("/apis/kubevirt.io/v1/namespaces/other/virtualmachines/web")
        assert left.data["status"]["printableStatus"] == "Running"


@timeless
async def test_an_instance_of_somebody_else_is_left_alone() -> None:
    async with living(wire) as life:
        own = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": HARDWARE}
        await life.make(own, "virtualmachineinstances")
        await life.make(machine())
        await life.rest(10)
        vm = await life.vm()
        (failure,) = [each for each in vm["status"]["conditions"] if each["type"] == "Failure"]
        assert failure["reason"] == "FailedCreate" and "does not belong to it" in failure["message"]
        await life.delete(plural="virtualmachineinstances")
        await life.rest(600)
        assert await life.word() == "Running"
        assert not [each for each in (await life.vm())["status"]["conditions"] if each["type"] == "Failure"]
