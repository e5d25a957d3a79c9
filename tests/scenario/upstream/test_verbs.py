"""Start, stop, restart, pause and their dry runs, as `tests/compute` of KubeVirt wants them."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played, played_by
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.upstream.asking import INSTANCES, PLACE, asked, condition, instance_uid, names, phase

pytestmark = pytest.mark.spec("kubevirt", 110)

STRATEGIES = ["Always", "RerunOnFailure", "Manual"]


async def running(host: FakeHost, strategy: str = "Always", **more: Any) -> str:
    """A machine that runs, whatever its strategy; the UID of its instance."""
    await host.make(machine(strategy=strategy, **more))
    if strategy in ("Manual", "Halted"):
        await asked(host, "web", "start")
    return (await host.running()).id


async def requests(host: FakeHost) -> Any:
    return (await host.vm())["status"].get("stateChangeRequests", [])


@pytest.mark.parametrize("strategy", STRATEGIES)
@played
async def test_a_restart_keeps_the_strategy_and_leaves_no_request(host: FakeHost, /, strategy: str) -> None:
    before = await running(host, strategy)
    await asked(host, "web", "restart", seconds=30)
    assert (await host.running()).id != before
    assert (await host.vm())["spec"]["runStrategy"] == strategy and await requests(host) == []


@pytest.mark.parametrize(("strategy", "after"), [("Manual", "Manual"), ("Halted", "Always")])
@played
async def test_it_is_started_only_once(host: FakeHost, /, strategy: str, after: str) -> None:
    await running(host, strategy)
    assert (await host.vm())["spec"]["runStrategy"] == after and await requests(host) == []
    reply = await host.verb("web", "start")
    assert reply.status == 409 and "VM is already running" in reply.data["message"]


@played
async def test_it_starts_paused_when_that_is_asked_for(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Manual"))
    await asyncio.sleep(5)
    await asked(host, "web", "start", {"paused": True})
    found = await host.vmi()
    assert found["spec"]["startStrategy"] == "Paused" and found["status"]["phase"] == "Running"
    assert condition(found, "Paused") == "True" and (await host.vm())["status"]["created"] is True


@pytest.mark.parametrize(("strategy", "after"), [("Always", "Halted"), ("RerunOnFailure", "RerunOnFailure"), ("Manual", "Manual")])
@played
async def test_a_stop_takes_the_instance_away(host: FakeHost, /, strategy: str, after: str) -> None:
    await running(host, strategy)
    await asked(host, "web", "stop", seconds=30)
    assert await host.vmi() == {} and await requests(host) == []
    assert (await host.vm())["spec"]["runStrategy"] == after


@played
async def test_a_machine_that_keeps_failing_is_stopped(host: FakeHost, /) -> None:
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, "qemu: no")
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    await host.make(machine())
    await asyncio.sleep(30)
    assert await host.status() == "CrashLoopBackOff"
    await asked(host, "web", "stop", seconds=120)
    assert await host.status() == "Stopped" and "startFailure" not in (await host.vm())["status"]


@played
async def test_a_forced_restart_does_not_wait_for_the_guest(host: FakeHost, /) -> None:
    before = await running(host, terminationGracePeriodSeconds=600)
    ran = host.engine.machines.get(before)
    assert ran is not None
    ran.deaf = True
    await asked(host, "web", "restart", {"gracePeriodSeconds": 0}, seconds=0)
    assert (await host.running(seconds=20)).id != before
    assert host.engine.machines.get(before) is None


@pytest.mark.parametrize("deaf", [False, True], ids=["listening", "deaf"])
@played
async def test_a_forced_stop_does_not_wait_for_the_guest(host: FakeHost, /, deaf: bool) -> None:
    before = await running(host, terminationGracePeriodSeconds=600)
    ran = host.engine.machines.get(before)
    assert ran is not None
    ran.deaf = deaf
    async with host.api.watch(f"{INSTANCES}?watch=true") as events:
        await asked(host, "web", "stop", {"gracePeriod": 0}, seconds=10)
        assert await host.vmi() == {}
        graces = set()
        while not await events.quiet():
            graces.add((await events.next())["object"]["spec"]["terminationGracePeriodSeconds"])
    assert graces == {600, 0}


@pytest.mark.parametrize("strategy", ["Always", "Once", "RerunOnFailure", "Manual"])
@played_by("gated", gate="RebootPolicy")
async def test_a_reboot_ends_a_run_where_the_policy_says_so(host: FakeHost, /, strategy: str) -> None:
    before = await running(host, strategy, domain={"rebootPolicy": "Terminate"})
    ran = host.engine.machines.get(before)
    assert ran is not None
    ran.agent.connect()
    await asyncio.sleep(2)
    async with host.api.watch(f"{INSTANCES}?watch=true") as events:
        await asked(host, "web", "softreboot", kind="VirtualMachineInstance", seconds=30)
        phases = []
        while not await events.quiet():
            phases.append((await events.next())["object"].get("status", {}).get("phase"))
    assert "Succeeded" in phases
    now = await instance_uid(host)
    if strategy == "Always":
        assert now not in ("", before) and await phase(host) == "Running"
    else:
        assert now in ("", before) and await phase(host) in ("", "Succeeded")


@played
async def test_paused_is_told_and_taken_back(host: FakeHost, /) -> None:
    await running(host)
    await asked(host, "web", "pause", kind="VirtualMachineInstance")
    for found in (await host.vm(), await host.vmi()):
        assert condition(found, "Paused") == "True"
    assert await host.status() == "Paused"
    await asked(host, "web", "unpause", kind="VirtualMachineInstance")
    for found in (await host.vm(), await host.vmi()):
        assert condition(found, "Paused") in ("", "False")


@played
async def test_a_paused_machine_is_stopped_and_not_twice(host: FakeHost, /) -> None:
    await running(host, startStrategy="Paused", terminationGracePeriodSeconds=5)
    assert condition(await host.vm(), "Paused") == "True"
    await asked(host, "web", "stop", seconds=30)
    assert await host.vmi() == {} and condition(await host.vm(), "Ready") == "False"
    reply = await host.verb("web", "stop")
    assert reply.status == 409 and "VM is not running" in reply.data["message"]


@played
async def test_a_paused_machine_is_running_already(host: FakeHost, /) -> None:
    await running(host, startStrategy="Paused")
    reply = await host.verb("web", "start")
    assert reply.status == 409 and "VM is already running" in reply.data["message"]


@played
async def test_a_paused_machine_is_restarted_and_no_longer_paused(host: FakeHost, /) -> None:
    before = await running(host, terminationGracePeriodSeconds=5)
    await asked(host, "web", "pause", kind="VirtualMachineInstance")
    await asked(host, "web", "restart", seconds=30)
    assert (await host.running()).id != before
    assert condition(await host.vm(), "Paused") in ("", "False")


@played
async def test_a_dry_start_starts_nothing(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Manual"))
    await asked(host, "web", "start", {"dryRun": ["All"]}, seconds=30)
    assert await host.vmi() == {} and await requests(host) == []


@pytest.mark.parametrize(("verb", "body"), [("stop", {}), ("stop", {"gracePeriod": 10}), ("restart", {})])
@played
async def test_a_dry_stop_or_restart_stops_nothing(host: FakeHost, /, verb: str, body: dict[str, Any]) -> None:
    await running(host)
    before = (await host.vm())["spec"], await host.vmi()
    await asked(host, "web", verb, {**body, "dryRun": ["All"]}, seconds=30)
    assert ((await host.vm())["spec"], await host.vmi()) == before


@played
async def test_a_dry_migration_makes_no_migration(host: FakeHost, /) -> None:
    await running(host)
    await asked(host, "web", "migrate", {"dryRun": ["All"]})
    assert await names(host, f"{PLACE}/virtualmachineinstancemigrations") == []


async def guest_that_runs(host: FakeHost) -> Any:
    """An instance without a machine above it, which runs."""
    spec = machine()["spec"]["template"]["spec"]
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": spec})
    return await host.running()


@pytest.mark.spec("kubevirt", 165)
@pytest.mark.parametrize("grace", [10, None])
@played
async def test_a_guest_that_shuts_down_when_it_is_asked_to_has_succeeded(host: FakeHost, /, grace: int | None) -> None:
    spec = machine()["spec"]["template"]["spec"] | ({"terminationGracePeriodSeconds": grace} if grace else {})
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": spec})
    ran = await host.running()
    await host.delete("VirtualMachineInstance", "kubevirt.io/v1", "web")
    found = []
    for _ in range(10):
        # As KubeVirt's test looks.
        found.append(await phase(host))
        await asyncio.sleep(1)
    assert ran.presses == 1 and "Succeeded" in found and found[-1] == ""


@played
async def test_nobody_waits_for_the_end_of_an_instance_that_got_no_time(host: FakeHost, /) -> None:
    await guest_that_runs(host)
    await host.delete("VirtualMachineInstance", "kubevirt.io/v1", "web", "?gracePeriodSeconds=0")
    await asyncio.sleep(1)
    assert await phase(host) == ""


@played
async def test_a_guest_that_is_killed_has_failed(host: FakeHost, /) -> None:
    (await guest_that_runs(host)).crash("killed by signal 9")
    await asyncio.sleep(5)
    assert await phase(host) == "Failed"
    assert "Stopped" in await host.events(kind="VirtualMachineInstance")


@played
async def test_without_an_agent_nothing_is_frozen(host: FakeHost, /) -> None:
    await guest_that_runs(host)
    for verb in ("freeze", "unfreeze"):
        body = {"unfreezeTimeout": "0s"} if verb == "freeze" else None
        reply = await host.verb("web", verb, body, "VirtualMachineInstance")
        assert reply.status == 500 and "agent" in reply.data["message"], reply.data


@pytest.mark.parametrize("times", [1, 5])
@played
async def test_a_guest_is_frozen_and_thawed(host: FakeHost, /, times: int) -> None:
    ran = await guest_that_runs(host)
    ran.agent.connect()
    await asyncio.sleep(2)
    for _ in range(times):
        await asked(host, "web", "freeze", {"unfreezeTimeout": "0s"}, "VirtualMachineInstance")
        assert ran.agent.is_frozen and (await host.vmi())["status"]["fsFreezeStatus"] == "frozen"
        await asked(host, "web", "unfreeze", None, "VirtualMachineInstance", 30)
        assert not ran.agent.is_frozen and "fsFreezeStatus" not in (await host.vmi())["status"]


@played
async def test_a_frozen_guest_is_thawed_when_its_time_is_over(host: FakeHost, /) -> None:
    ran = await guest_that_runs(host)
    ran.agent.connect()
    await asyncio.sleep(2)
    await asked(host, "web", "freeze", {"unfreezeTimeout": "10s"}, "VirtualMachineInstance", 8)
    assert ran.agent.is_frozen
    await asyncio.sleep(5)
    assert not ran.agent.is_frozen and "fsFreezeStatus" not in (await host.vmi())["status"]


@pytest.mark.parametrize("way", ["agent", "acpi"])
@played
async def test_a_soft_reboot_keeps_the_instance(host: FakeHost, /, way: str) -> None:
    ran = await guest_that_runs(host)
    if way == "agent":
        ran.agent.connect()
        await asyncio.sleep(2)
    await asked(host, "web", "softreboot", kind="VirtualMachineInstance")
    assert ran.observed.resets == 1 and await instance_uid(host) == ran.id and await phase(host) == "Running"


@pytest.mark.parametrize("hinder", ["neither", "paused"])
@played
async def test_a_soft_reboot_that_cannot_be(host: FakeHost, /, hinder: str) -> None:
    spec = machine()["spec"]["template"]["spec"]
    spec["domain"]["features"] = {"acpi": {"enabled": hinder != "neither"}}
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "web"}, "spec": spec})
    ran = await host.running()
    if hinder == "paused":
        await asked(host, "web", "pause", kind="VirtualMachineInstance")
    reply = await host.verb("web", "softreboot", kind="VirtualMachineInstance")
    word = {"neither": "neither", "paused": "paused"}[hinder]
    assert reply.status == 409 and word in reply.data["message"].lower(), reply.data
    assert ran.observed.resets == 0


@played
async def test_a_reset_keeps_the_instance(host: FakeHost, /) -> None:
    ran = await guest_that_runs(host)
    await asked(host, "web", "reset", kind="VirtualMachineInstance")
    assert ran.observed.resets == 1 and await instance_uid(host) == ran.id
