"""Power, hooks and sizes of VirtRigaud's machines (docs/spec/virtrigaud.md 2.1.4 to 2.1.7)."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.messages import PowerOp
from paddock_drivers.fake.settings import SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import WORLD, Rigaud, machine, rigaud


def operations(life: Rigaud) -> list[PowerOp]:
    return [each.op for each in life.driver.of("Power")]


async def power(life: Rigaud, state: str | None, name: str = "web") -> None:
    await life.merge(name, {"spec": {"powerState": state}})


@pytest.mark.spec("virtrigaud", 32)
@timeless
async def test_off_is_one_off() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        await power(life, "Off")
        assert (await life.ready())["phase"] == "Stopped"
        await asyncio.sleep(700)
        assert operations(life) == [PowerOp.ON, PowerOp.OFF]
        await power(life, None)
        assert (await life.ready())["phase"] == "Running"
        assert operations(life) == [PowerOp.ON, PowerOp.OFF, PowerOp.ON]


@pytest.mark.spec("virtrigaud", 32, 33)
@pytest.mark.parametrize(("given", "seconds"), [(None, 60), ("3m", 180), ("1500ms", 2)])
@timeless
async def test_a_graceful_shutdown_is_one_shutdown(given: str | None, seconds: int) -> None:
    async with rigaud() as life:
        lifecycle = {"gracefulShutdownTimeout": given} if given else None
        await life.make(machine(lifecycle=lifecycle))
        await life.ready()
        await power(life, "OffGraceful")
        assert (await life.ready())["phase"] == "Stopped"
        await asyncio.sleep(700)
        assert operations(life) == [PowerOp.ON, PowerOp.SHUTDOWN_GRACEFUL]
        assert life.driver.of("Power")[1].graceful_timeout_seconds == seconds


@pytest.mark.spec("virtrigaud", 34)
@timeless
async def test_a_guest_that_ignores_the_shutdown_is_forced_off() -> None:
    async with rigaud() as life:
        await life.make(machine(lifecycle={"gracefulShutdownTimeout": "90s"}))
        await life.ready()

        async def ignores(rpc: str, request: Any) -> m.TaskResponse | None:
            # As libvirt's: it returns at once, and knows no timeout.
            return m.TaskResponse() if rpc == "Power" and request.op == PowerOp.SHUTDOWN_GRACEFUL else None

        life.driver.script = ignores
        await power(life, "OffGraceful")
        await asyncio.sleep(80)
        assert operations(life) == [PowerOp.ON, PowerOp.SHUTDOWN_GRACEFUL]
        assert (await life.status())["powerState"] == "On" and (await life.said())[0] == "False"
        await asyncio.sleep(40)
        await life.ready()
        assert operations(life) == [PowerOp.ON, PowerOp.SHUTDOWN_GRACEFUL, PowerOp.OFF]
        assert "ShutdownTimedOut" in await life.events()


@timeless
async def test_a_restarted_manager_keeps_the_deadline_of_a_shutdown() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()

        async def ignores(rpc: str, request: Any) -> m.TaskResponse | None:
            return m.TaskResponse() if rpc == "Power" and request.op == PowerOp.SHUTDOWN_GRACEFUL else None

        life.driver.script = ignores
        await power(life, "OffGraceful")
        for _ in range(4):
            await asyncio.sleep(12)
            await life.restart()
        await asyncio.sleep(30)
        assert operations(life) == [PowerOp.ON, PowerOp.SHUTDOWN_GRACEFUL, PowerOp.OFF]


@pytest.mark.spec("virtrigaud", 35)
@timeless
async def test_a_machine_that_was_changed_behind_our_back_is_put_right() -> None:
    async with rigaud() as life:
        await life.make(machine(), machine("off", powerState="Off"))
        await life.ready()
        await life.ready("off")
        ids = {name: (await life.status(name))["id"] for name in ("web", "off")}
        await life.driver.driver.power(m.PowerRequest(id=ids["web"], op=PowerOp.OFF))
        await life.driver.driver.power(m.PowerRequest(id=ids["off"], op=PowerOp.ON))
        await asyncio.sleep(130)
        assert (await life.status())["powerState"] == "On"
        await asyncio.sleep(200)
        assert (await life.status("off"))["powerState"] == "Off"


@pytest.mark.spec("virtrigaud", 35)
@pytest.mark.parametrize(("wanted", "operation"), [("On", PowerOp.ON), ("Off", PowerOp.OFF)])
@timeless
async def test_a_machine_that_is_suspended_is_woken_or_powered_off(wanted: str, operation: PowerOp) -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        there = life.driver.driver._inventory.machines[(await life.status())["id"]]
        there.power = "Suspended"
        before = len(operations(life))
        await power(life, wanted)
        await asyncio.sleep(300)
        await life.ready()
        assert operations(life)[before:] == [operation]
        assert there.power == wanted == (await life.status())["powerState"]


@pytest.mark.spec("virtrigaud", 131)
@pytest.mark.parametrize("change", ["off", "gone"])
@timeless
async def test_what_happens_behind_a_providers_back_is_seen_within_seconds(change: str) -> None:
    """Its list is asked for all of its machines, and only those that have changed are described."""
    async with rigaud(world=False, tasks="sync") as life:

        async def told(rpc: str, request: Any) -> m.WireMessage | None:
            return x.GetFeaturesResponse(features=(features.LISTED_POWER,)) if rpc == "GetFeatures" else None

        life.driver.script = told
        await life.make(*WORLD, machine(), machine("other"))
        for name in ("web", "other"):
            await life.ready(name)
        await asyncio.sleep(300)
        inventory = life.driver.driver._inventory.machines
        before = life.driver.count("Describe")
        found = (await life.status())["id"]
        if change == "off":
            inventory[found].power = "Off"
        else:
            del inventory[found]

        async def seen() -> bool:
            return (await life.said())[0] == "False"

        await life.until(seen, seconds=15)
        await life.ready()
        assert [each.power_state for each in await life.machines()] == ["On", "On"]
        assert {each.id for each in life.driver.of("Describe")[before:]} <= {found, (await life.status())["id"]}


@timeless
async def test_a_power_state_that_nobody_knows_is_left_alone() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()

        async def unknown(rpc: str, request: Any) -> m.DescribeResponse | None:
            return m.DescribeResponse(exists=True, power_state="Paused?") if rpc == "Describe" else None

        life.driver.script = unknown
        await asyncio.sleep(130)
        await power(life, "Off")
        await asyncio.sleep(200)
        assert operations(life) == [PowerOp.ON]
        assert await life.said() == ("False", "PowerStateUnmanaged")
        assert "powerState" not in await life.status()


# --- hooks ------------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("virtrigaud", 36)
@timeless
async def test_hooks_run_once_per_transition() -> None:
    hook = {"httpGet": {"port": 8080, "path": "/ready", "host": "10.1.2.3"}}
    async with rigaud() as life:
        await life.make(machine(lifecycle={"preStop": hook, "postStart": hook}))
        await life.ready()
        await asyncio.sleep(400)
        assert life.http == [("10.1.2.3", 8080)]
        await power(life, "Off")
        await life.ready()
        assert len(life.http) == 2
        await power(life, "On")
        await life.ready()
        assert len(life.http) == 3
        await life.delete()
        await life.gone()
        assert len(life.http) == 4
        told = await life.events()
        # Events of one moment have one name in virtual time, so the power off is seen in the calls.
        assert [each for each in told if each.startswith("P")] == ["PoweringOn", "PostStartSucceeded", "PreStopSucceeded"]
        assert life.http_after == [1, 1, 3, 3]


@timeless
async def test_a_hook_that_was_interrupted_does_not_run_again() -> None:
    hook = {"httpGet": {"port": 8080, "host": "10.1.2.3"}}
    async with rigaud() as life:
        life.http_seconds = 30
        await life.make(machine(lifecycle={"postStart": hook}))

        async def runs() -> bool:
            return bool(life.http)

        await life.until(runs)
        await life.restart()
        await life.ready()
        assert await life.said("PostStart") == ("False", "Failed")
        await asyncio.sleep(500)
        assert len(life.http) == 1


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_the_hook_of_the_guest_uses_its_address_and_refuses_the_host() -> None:
    async with rigaud(address_seconds=0) as life:
        lifecycle = {"postStart": {"httpGet": {"port": 80}}}
        refused = {"postStart": {"httpGet": {"port": 80, "host": "127.0.0.1"}}}
        await life.make(machine(lifecycle=lifecycle), machine("b", lifecycle=refused))
        for name in ("web", "b"):
            await life.ready(name)
        assert life.http == [((await life.status())["ips"][0], 80)]
        assert await life.said("PostStart") == ("True", "Succeeded")
        assert "loopback" in (await life.condition("PostStart", "b"))["message"]


@pytest.mark.spec("virtrigaud", 126)
@pytest.mark.parametrize("fault", [ConnectionRefusedError(111, "Connection refused"), OSError(113, "No route to host"), None])
@timeless
async def test_the_hook_of_a_guest_that_has_only_started_is_repeated(fault: OSError | None) -> None:
    async with rigaud(address_seconds=12) as life:
        life.http_faults = [fault] * 3
        await life.make(machine(lifecycle={"postStart": {"httpGet": {"port": 80}}, "gracefulShutdownTimeout": "2m"}))
        status = await life.ready()
        assert life.http == [(status["ips"][0], 80)] * 4, await life.condition("PostStart")
        assert await life.said("PostStart") == ("True", "Succeeded")


@pytest.mark.spec("virtrigaud", 126)
@timeless
async def test_the_hook_finds_the_address_that_the_guest_has_by_now() -> None:
    """The first answers have the lease of its last start, and then both."""
    async with rigaud(address_seconds=0) as life:
        described: list[tuple[str, ...]] = [("10.9.9.9",), ("10.9.9.9",), ("10.9.9.9", "fe80::1", "10.0.0.7")]

        async def told(rpc: str, request: Any) -> m.WireMessage | None:
            if rpc != "Describe":
                return None
            answer = await life.driver.driver.describe(request)
            return msgspec.structs.replace(answer, ips=described.pop(0) if len(described) > 1 else described[0])

        life.driver.script = told
        life.http_faults = [OSError(113, "No route to host")]
        await life.make(machine(lifecycle={"postStart": {"httpGet": {"port": 80}}}))
        await life.ready()
        assert [host for host, _ in life.http] == ["10.9.9.9", "10.0.0.7"]
        assert await life.said("PostStart") == ("True", "Succeeded")


@pytest.mark.spec("virtrigaud", 126)
@timeless
async def test_the_hook_of_a_guest_that_never_answers_says_what_it_met() -> None:
    async with rigaud(address_seconds=0) as life:
        life.http_faults = [ConnectionRefusedError(111, "Connection refused")] * 1000
        await life.make(machine(lifecycle={"postStart": {"httpGet": {"port": 80}}, "gracefulShutdownTimeout": "20s"}))
        await life.ready()
        message = (await life.condition("PostStart"))["message"]
        assert "Connection refused; it was tried for 20 s" in message and 5 < len(life.http) < 25


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_a_hook_before_the_end_is_tried_once() -> None:
    async with rigaud(address_seconds=0) as life:
        life.http_faults = [ConnectionRefusedError(111, "Connection refused")] * 1000
        await life.make(machine(lifecycle={"preStop": {"httpGet": {"port": 80}}}))
        await life.ready()
        await life.delete()
        await life.gone()
        assert life.http == [("10.0.0.1", 80)]


@pytest.mark.spec("virtrigaud", 37)
@timeless
async def test_a_snapshot_hook_is_listed() -> None:
    async with rigaud() as life:
        hook = {"snapshot": {"name": "before-stop", "description": "as it was"}}
        await life.make(machine(lifecycle={"preStop": hook}), machine("memory", lifecycle={"preStop": hook}))
        await life.ready()
        await power(life, "Off")
        status = await life.ready()
        assert await life.said("PreStop") == ("True", "Succeeded"), status
        assert [(each["name"], each["description"], each["id"] != "") for each in status["snapshots"]] == [
            ("before-stop", "as it was", True)
        ]
        assert life.driver.names().index("SnapshotCreate") < len(life.driver.names()) - 1


@timeless
async def test_a_snapshot_hook_needs_the_capability() -> None:
    async with rigaud(without=("snapshots",)) as life:
        await life.make(machine(lifecycle={"preStop": {"snapshot": {"name": "s"}}}))
        await life.ready()
        await power(life, "Off")
        await life.ready()
        assert life.driver.count("SnapshotCreate") == 0
        assert "does not report that it supports snapshots" in (await life.condition("PreStop"))["message"]


@pytest.mark.spec("virtrigaud", 38)
@timeless
async def test_a_hook_that_hangs_does_not_hold_the_deletion() -> None:
    hook = {"httpGet": {"port": 80, "host": "10.1.2.3"}}
    async with rigaud() as life:
        life.http_seconds = 100_000
        await life.make(machine(lifecycle={"preStop": hook, "gracefulShutdownTimeout": "20s"}))
        await life.ready()
        await life.delete()
        await life.gone(seconds=60)
        assert await life.machines() == []


# --- sizes ------------------------------------------------------------------------------------------------------------------

HOT = {"cpuHotAddEnabled": True, "memoryHotAddEnabled": True}


@pytest.mark.spec("virtrigaud", 39)
@timeless
async def test_another_class_is_one_reconfigure() -> None:
    async with rigaud(task_seconds=SecondsRange(8.0, 8.0)) as life:
        await life.merge("small", {"spec": {"performanceProfile": HOT}}, "VMClass")
        await life.make(machine())
        await life.ready()
        await life.merge("small", {"spec": {"cpu": 4, "memory": "6Gi"}}, "VMClass")
        await asyncio.sleep(4)
        status = await life.status()
        assert status["phase"] == "Reconfiguring" and status["reconfigureTaskRef"]
        assert status["currentResources"] == {"cpu": 2, "memoryMiB": 4096}
        assert await life.said("Reconfiguring") == ("True", "Updating")
        status = await life.ready()
        assert status["currentResources"] == {"cpu": 4, "memoryMiB": 6144} and status["lastReconfigureTime"]
        assert status["phase"] == "Running" and "reconfigureTaskRef" not in status
        assert life.driver.count("Reconfigure") == 1
        await life.merge("web", {"spec": {"resources": {"cpu": 5}}})
        await life.ready()
        desired = [json.loads(each.desired_json)["Class"] for each in life.driver.of("Reconfigure")]
        assert [(each["CPU"], each["MemoryMiB"]) for each in desired] == [(4, 6144), (5, 6144)]
        assert operations(life) == [PowerOp.ON]


@pytest.mark.spec("virtrigaud", 132)
@pytest.mark.parametrize("tasks", ["sync", "async"])
@timeless
async def test_a_machine_that_is_ready_tells_the_sizes_of_now(tasks: Any) -> None:
    async with rigaud(tasks=tasks) as life:
        await life.merge("small", {"spec": {"performanceProfile": HOT}}, "VMClass")
        await life.make(machine(disks=[{"name": "data", "sizeGiB": 1}]))
        before = await life.ready()
        await life.merge("web", {"spec": {"resources": {"cpu": 4}, "disks": [{"name": "data", "sizeGiB": 1}, {"name": "b", "sizeGiB": 1}]}})
        after = await life.ready()
        assert [(each["provider"]["cpu"], each["provider"]["disks"]) for each in (before, after)] == [("2", "2"), ("4", "3")]


@pytest.mark.spec("virtrigaud", 41)
@pytest.mark.parametrize(
    ("without", "profile", "change"),
    [
        (("reconfigure_online",), HOT, {"cpu": 4}),
        ((), {}, {"cpu": 4}),
        ((), HOT, {"cpu": 1}),
        ((), {"cpuHotAddEnabled": True}, {"memory": "6Gi"}),
    ],
)
@timeless
async def test_what_needs_a_restart_waits_for_it(without: tuple[str, ...], profile: dict[str, bool], change: dict[str, Any]) -> None:
    async with rigaud(without=without) as life:
        await life.merge("small", {"spec": {"performanceProfile": profile}}, "VMClass")
        await life.make(machine())
        await life.ready()
        await life.merge("small", {"spec": change}, "VMClass")
        await asyncio.sleep(200)
        assert await life.said("RestartRequired") == ("True", "RestartRequired")
        assert await life.said() == ("True", "RestartRequired")
        assert (await life.status())["currentResources"] == {"cpu": 2, "memoryMiB": 4096}
        assert life.driver.count("Reconfigure") == 0
        await power(life, "Off")
        await life.ready()
        assert life.driver.count("Reconfigure") == 1
        assert await life.said("RestartRequired") == ("False", "ReconcileSuccess")
        await power(life, "On")
        await life.ready()
        assert life.driver.count("Reconfigure") == 1


@timeless
async def test_a_restart_that_is_allowed_applies_the_change() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()
        await life.merge("web", {"metadata": {"annotations": {"virtrigaud.io/allow-restart": "true"}}})
        await life.merge("small", {"spec": {"cpu": 1}}, "VMClass")
        await asyncio.sleep(60)
        status = await life.ready()
        assert status["currentResources"]["cpu"] == 1 and status["phase"] == "Running"
        assert operations(life) == [PowerOp.ON, PowerOp.SHUTDOWN_GRACEFUL, PowerOp.ON]


@timeless
async def test_disks_grow_online_where_that_is_possible() -> None:
    async with rigaud() as life:
        disks = [{"name": "live", "sizeGiB": 10, "expandPolicy": "Online"}, {"name": "calm", "sizeGiB": 5}]
        await life.make(machine(disks=disks))
        await life.ready()
        await life.merge("web", {"spec": {"disks": [{**disks[0], "sizeGiB": 12}, {**disks[1], "sizeGiB": 7}]}})
        await asyncio.sleep(30)
        (grown,) = life.driver.of("Reconfigure")
        sizes = {each["Name"]: each["SizeGiB"] for each in json.loads(grown.desired_json)["Disks"]}
        assert sizes == {"live": 12, "calm": 5}
        assert operations(life) == [PowerOp.ON]
        assert "disk calm 5 GiB to 7 GiB" in (await life.condition("RestartRequired"))["message"]
        await power(life, "Off")
        await life.ready()
        sizes = {each["Name"]: each["SizeGiB"] for each in json.loads(life.driver.of("Reconfigure")[1].desired_json)["Disks"]}
        assert sizes == {"live": 12, "calm": 7}


@timeless
async def test_a_resize_that_fails_does_not_keep_the_power_from_changing() -> None:
    async with rigaud() as life:
        await life.make(machine())
        await life.ready()

        async def fails(rpc: str, request: Any) -> None:
            if rpc == "Reconfigure":
                from paddock.contract.errors import ErrorKind, ProviderError  # noqa: PLC0415

                raise ProviderError(ErrorKind.INVALID_SPEC, "the host has no more processors")

        life.driver.script = fails
        await power(life, "Off")
        await life.ready()
        await life.merge("small", {"spec": {"cpu": 64}}, "VMClass")
        await asyncio.sleep(20)
        assert await life.said() == ("False", "ValidationError")
        assert "no more processors" in (await life.condition())["message"]
        await power(life, "On")
        await asyncio.sleep(30)
        assert (await life.status())["powerState"] == "On"
        assert (await life.status())["currentResources"]["cpu"] == 2
