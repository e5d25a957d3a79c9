"""The life of machines on a whole host: what users do, what guests do, what becomes of the machine."""

import asyncio
import itertools
from typing import Any

import pytest

from paddock.engine.machine.errors import RequestRefused
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES
from tests.coroutines import played
from tests.kit.engine.fakehost import GIB, FakeHost, machine

TEMPLATE = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
DISK = [{"name": "root", "dataVolume": {"name": "disk"}}]


async def uid(host: FakeHost, name: str = "web") -> str:
    """Return the UID of the machine's run."""
    return str((await host.vmi(name)).get("metadata", {}).get("uid", ""))


@pytest.mark.spec("kubermatic", 39)
@pytest.mark.spec("kubevirt", 15)
@played
async def test_rerun_on_failure_tells_a_shutdown_from_a_crash(host: FakeHost, /) -> None:
    await host.make(machine(strategy="RerunOnFailure"))
    first = await host.running()
    first.end("crashed", "killed by signal 9")
    second = await host.running()
    assert second.id != first.id
    second.power_off()
    await asyncio.sleep(600)
    assert await host.status() == "Stopped"
    assert await host.vmi() == {}


@pytest.mark.spec("kubevirt", 21)
@played
async def test_a_machine_that_cannot_start_is_tried_with_growing_pauses(host: FakeHost, /) -> None:
    runs: list[tuple[float, str]] = []

    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, "qemu: no")
        runs.append((asyncio.get_running_loop().time(), id))
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    await host.make(machine())
    await asyncio.sleep(30 * 60)
    assert await host.status() == "CrashLoopBackOff"
    pauses = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(runs)]
    for number, pause in enumerate(pauses[:5], start=1):
        least = min(10.0 * number * number, 300.0)
        assert least <= pause <= min(least * 1.5, 300.0) + 3, (number, pauses)
    failure = (await host.vm())["status"]["startFailure"]
    assert failure["consecutiveFailCount"] == len(runs)
    # stop, and start again: everything is forgotten
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(5)
    assert await host.status() == "Stopped"
    host.engine.machines.define = define  # type: ignore[method-assign]
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await host.running()
    assert "startFailure" not in (await host.vm())["status"]


@played
async def test_a_claim_that_is_only_read_is_no_disk_to_write_to(host: FakeHost, /) -> None:
    for name, claim in (("web", {"claimName": "disk", "readOnly": True}), ("other", {"claimName": "disk"})):
        templates = [TEMPLATE] if name == "web" else []
        await host.make(machine(name, volumes=[{"name": "root", "persistentVolumeClaim": claim}], templates=templates))
        running = await host.running(name, seconds=30)
        assert [disk.readonly for disk in running.config.disks] == [name == "web"]
        await host.change(name, {"spec": {"runStrategy": "Halted"}})
        running.power_off()
        await asyncio.sleep(30)


@pytest.mark.spec("kubevirt", 23)
@played
async def test_everything_of_a_machine_goes_with_it(host: FakeHost, /) -> None:
    await host.make(machine(volumes=DISK, templates=[TEMPLATE]))
    await host.running()
    assert len(host.engine.volumes.ids()) == 1
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)
    for kind, version, name in (
        ("VirtualMachine", "kubevirt.io/v1", "web"),
        ("VirtualMachineInstance", "kubevirt.io/v1", "web"),
        ("DataVolume", "cdi.kubevirt.io/v1beta1", "disk"),
        ("PersistentVolumeClaim", "v1", "disk"),
    ):
        assert await host.get(kind, version, name) == {}, kind
    assert list(host.engine.machines) == []
    assert host.engine.volumes.ids() == set()
    assert host.engine.volumes.scratch_owners() == set()
    assert host.engine.networks.owners() == set()


@pytest.mark.spec("kubevirt", 24)
@played
async def test_disks_are_left_when_that_is_asked_for_and_force_leaves_no_process(host: FakeHost, /) -> None:
    await host.make(machine(volumes=DISK, templates=[TEMPLATE]))
    await host.running()
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web", "?propagationPolicy=Orphan")
    await asyncio.sleep(60)
    assert await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "disk") != {}
    assert await host.get("PersistentVolumeClaim", "v1", "disk") != {}

    await host.make(machine("forced"))
    forced = await host.running("forced")
    forced.deaf = True
    await host.delete("VirtualMachineInstance", "kubevirt.io/v1", "forced", "?gracePeriodSeconds=0")
    await host.delete("VirtualMachine", "kubevirt.io/v1", "forced", "?gracePeriodSeconds=0")
    await asyncio.sleep(10)
    assert await host.vmi("forced") == {}
    assert host.engine.machines.get(forced.id) is None


@pytest.mark.spec("kubevirt", 25)
@played
async def test_all_phases_have_their_times_in_order(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Once"))
    (await host.running()).power_off()
    await asyncio.sleep(5)
    passed = (await host.vmi())["status"]["phaseTransitionTimestamps"]
    assert [each["phase"] for each in passed] == ["Pending", "Scheduling", "Scheduled", "Running", "Succeeded"]
    times = [each["phaseTransitionTimestamp"] for each in passed]
    assert times == sorted(times)


@pytest.mark.spec("kubevirt", 26)
@played
async def test_conditions_and_events_have_their_reasons(host: FakeHost, /) -> None:
    await host.make(machine(volumes=DISK, templates=[TEMPLATE]))
    first = await host.running()
    conditions = {each["type"]: each.get("reason") for each in (await host.vm())["status"]["conditions"]}
    assert {"Ready", "PodScheduled", "LiveMigratable", "DataVolumesReady"} <= conditions.keys()
    assert conditions["DataVolumesReady"] == "AllDVsReady"
    events = await host.events(kind="VirtualMachine")
    assert {"SuccessfulDataVolumeCreate", "SuccessfulCreate"} <= set(events)
    assert (await host.events(kind="VirtualMachineInstance"))[:2] == ["Created", "Started"]
    first.crash("a line")
    await host.running()
    assert "Stopped" in await host.events(kind="VirtualMachineInstance")
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(10)
    assert "SuccessfulDelete" in await host.events(kind="VirtualMachine")
    conditions = {each["type"]: (each["status"], each.get("reason")) for each in (await host.vm())["status"]["conditions"]}
    assert conditions["Ready"] == ("False", "VMINotExists")


@pytest.mark.spec("kubevirt", 27)
@played
async def test_a_machine_is_ready_as_its_probe_says_and_ended_when_it_is_dead(host: FakeHost, /) -> None:
    ping = {"guestAgentPing": {}, "periodSeconds": 2}
    await host.make(machine(readinessProbe=ping, livenessProbe={**ping, "failureThreshold": 4, "initialDelaySeconds": 20}))
    first = await host.running()
    assert (await host.vm())["status"].get("ready", False) is False
    first.agent.connect()
    await asyncio.sleep(5)
    assert (await host.vm())["status"]["ready"] is True
    await asyncio.sleep(30)
    first.agent.disconnect()
    await asyncio.sleep(7)
    assert (await host.vm())["status"].get("ready", False) is False
    second = await host.running(seconds=20)
    assert second.id != first.id


@pytest.mark.spec("kubevirt", 30)
@played
async def test_a_restart_of_paddock_changes_nothing_and_misses_nothing(host: FakeHost, /) -> None:
    names = ("one", "two", "three")
    for name in names:
        await host.make(machine(name))
    machines = {name: await host.running(name) for name in names}
    before = {name: ((await host.vm(name))["status"], (await host.vmi(name))["status"]) for name in names}
    await host.again()
    await asyncio.sleep(60)
    assert {name: ((await host.vm(name))["status"], (await host.vmi(name))["status"]) for name in names} == before
    assert all(each.observed.run == 1 for each in machines.values())
    await host.end()
    machines["one"].crash("while nobody looked")
    await host.begin()
    again = await host.running("one")
    assert again.id != machines["one"].id
    assert "Stopped" in await host.events("one")


@pytest.mark.spec("kubevirt", 31)
@played
async def test_after_a_reboot_of_the_host_machines_run_as_their_strategy_says(host: FakeHost, /) -> None:
    strategies = ("Always", "RerunOnFailure", "Manual", "Halted")
    for strategy in strategies:
        await host.make(machine(strategy.lower(), strategy))
    await asyncio.sleep(5)
    assert (await host.verb("manual", "start")).status == 202
    await asyncio.sleep(5)
    runs = {name: await uid(host, name) for name in ("always", "rerunonfailure")}
    await host.end()
    for each in tuple(host.engine.machines):
        each.end("host-reboot")
    await host.begin()
    await asyncio.sleep(30)
    for name, run in runs.items():
        assert await host.status(name) == "Running"
        assert await uid(host, name) not in ("", run)
    for name in ("manual", "halted"):
        assert await host.status(name) == "Stopped"


@pytest.mark.spec("kubevirt", 36)
@played
async def test_a_machine_waits_for_a_node_that_has_its_labels(host: FakeHost, /) -> None:
    await host.make(machine(nodeSelector={"disk": "fast"}))
    await asyncio.sleep(5)
    assert await host.status() == "ErrorUnschedulable"
    reply = await host.api.merge("/api/v1/nodes/host", {"metadata": {"labels": {"disk": "fast"}}})
    assert reply.status == 200
    await host.running()


@played
async def test_machines_stored_writes_are_few(host: FakeHost, /) -> None:
    group = "/apis/kubevirt.io/v1"
    async with (
        host.api.watch(f"{group}/virtualmachines?watch=true") as machines,
        host.api.watch(f"{group}/virtualmachineinstances?watch=true") as instances,
    ):
        await host.make(machine(volumes=[{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]))
        await host.running()
        await asyncio.sleep(60)
        counted = [await _count(each) for each in (machines, instances)]
    assert counted[0] <= 3 and counted[1] <= 3, counted


async def _count(events: Any) -> int:
    count = 0
    while not await events.quiet():
        await events.next()
        count += 1
    return count


@played
async def test_memory_is_not_promised_twice(host: FakeHost, /) -> None:
    await host.make(machine("one", domain={"memory": {"guest": "40Gi"}}), machine("two", domain={"memory": {"guest": "40Gi"}}))
    await asyncio.sleep(10)
    found = {await host.status(name): await host.vmi(name) for name in ("one", "two")}
    assert sorted(found) == ["ErrorUnschedulable", "Running"]
    assert host.engine.room.memory < 80 * GIB
    # Nobody reaches a machine that waits, so it shows no address.
    assert "interfaces" not in found["ErrorUnschedulable"]["status"]
    assert found["Running"]["status"]["interfaces"][0]["ipAddress"]


async def _phases(events: Any) -> list[str]:
    """The phases of the instance, as a watch told them."""
    found: list[str] = []
    while not await events.quiet():
        phase = (await events.next())["object"].get("status", {}).get("phase", "")
        if phase and phase not in found[-1:]:
            found.append(phase)
    return found


@pytest.mark.spec("kubevirt", 22)
@pytest.mark.parametrize(
    ("deaf", "asked", "presses", "seconds", "phase"),
    [
        (False, None, 1, 0, "Succeeded"),
        (True, None, 0, 20, "Failed"),
        (True, 5, 0, 5, "Failed"),
        (True, 0, 0, 0, "Failed"),
        (False, 0, 0, 0, "Failed"),
    ],
)
@played
async def test_a_stop_waits_for_its_grace(host: FakeHost, /, deaf: bool, asked: int | None, presses: int, seconds: int, phase: str) -> None:
    await host.make(machine(terminationGracePeriodSeconds=20))
    ran = await host.running()
    ran.deaf = deaf
    async with host.api.watch("/apis/kubevirt.io/v1/virtualmachineinstances?watch=true") as events:
        before = asyncio.get_running_loop().time()
        if asked is not None:
            # What the verb "stop" writes when it is given a grace.
            shorter = merge_patch({"spec": {"terminationGracePeriodSeconds": asked}})
            await host.api.client().patch(INSTANCES, Key("default", "web"), shorter)
        await host.change("web", {"spec": {"runStrategy": "Halted"}})
        while ran.observed.phase != "ended":
            await asyncio.sleep(0.1)
        took = asyncio.get_running_loop().time() - before
        assert seconds <= took <= seconds + 2 and ran.presses == presses
        await asyncio.sleep(5)
        assert (await _phases(events))[-1] == phase
    assert await host.status() == "Stopped"


async def _restart_required(host: FakeHost) -> str:
    await asyncio.sleep(2)
    conditions = (await host.vm())["status"]["conditions"]
    return next((str(each["message"]) for each in conditions if (each["type"], each["status"]) == ("RestartRequired", "True")), "")


@pytest.mark.spec("kubevirt", 84)
@played
async def test_what_cannot_be_added_while_it_runs_needs_a_restart(host: FakeHost, /) -> None:
    await host.make(machine(domain={"cpu": {"sockets": 1}, "memory": {"guest": "2Gi"}}))
    ran = await host.running()

    async def want(sockets: int, memory: str) -> None:
        wanted = {"cpu": {"sockets": sockets}, "memory": {"guest": memory}}
        await host.change("web", {"spec": {"template": {"spec": {"domain": wanted}}}})

    await want(2, "3Gi")
    assert await _restart_required(host) == ""
    assert (ran.observed.sockets, ran.observed.memory) == (2, 3 * GIB)
    for sockets, memory, word in ((1, "3Gi", "Reduction"), (5, "3Gi", "higher"), (2, "9Gi", "higher"), (2, "1Gi", "lower")):
        await want(sockets, memory)
        assert word in await _restart_required(host), (sockets, memory)
        assert (ran.observed.sockets, ran.observed.memory) == (2, 3 * GIB)
        await want(2, "3Gi")
        assert await _restart_required(host) == ""

    # What QEMU has no room for is refused by the machine itself.
    async def full(count: int) -> None:
        raise RequestRefused("cannot add 1 processor", reason="EmulationFull", why="there is no room for it")

    ran.set_sockets = full  # type: ignore[method-assign]
    await want(3, "3Gi")
    assert "there is no room for it" in await _restart_required(host)
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(10)
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    again = await host.running()
    assert again.id != ran.id and again.observed.sockets == 3
    assert await _restart_required(host) == ""
