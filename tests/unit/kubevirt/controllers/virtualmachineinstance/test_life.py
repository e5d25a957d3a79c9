"""The life of a running machine: from its object to its process and back."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.host.kvm import Kvm
from paddock.engine.machine.guest import GuestInterface
from paddock.engine.machine.observation import GuestFault
from paddock.kubevirt.controllers.virtualmachineinstance.sweeper import UPGRADE_SECONDS
from tests.coroutines import played
from tests.kit.engine.enginefakes import EveryStart
from tests.unit.kubevirt.controllers.virtualmachineinstance.conftest import VMIS, Host


@played
async def test_an_instance_runs_with_few_writes(host: Host, /) -> None:
    async with host.api.watch(f"{VMIS}?watch=true") as seen:
        made = await host.make()
        await asyncio.sleep(1)
        status = await host.status()
        assert status["phase"] == "Running"
        assert [each["phase"] for each in status["phaseTransitionTimestamps"]] == ["Pending", "Scheduling", "Scheduled", "Running"]
        assert (await host.conditions())["Ready"] == ("True", None)
        assert host.machine(made["metadata"]["uid"]).config.memory.size == 128 << 20
        kinds = [(await seen.next())["type"] for _ in range(2)]
        assert kinds == ["ADDED", "MODIFIED"]
        await asyncio.sleep(60)
        assert await seen.quiet()
        assert (await host.get())["metadata"]["resourceVersion"] == (await host.get())["metadata"]["resourceVersion"]
    assert [reason for reason, _ in await host.events()] == ["Created", "Started"]


@pytest.mark.parametrize(("seconds", "phases"), [(0.04, ["Pending", "Running"]), (0.06, ["Pending", "Scheduled", "Running"])])
@played
async def test_a_phase_that_lasts_is_seen(host: Host, /, seconds: float, phases: list[str]) -> None:
    host.engine.machines.held = EveryStart()
    async with host.api.watch(f"{VMIS}?watch=true") as seen:
        made = await host.make()
        await asyncio.sleep(seconds)
        host.engine.machines.release(made["metadata"]["uid"])
        await asyncio.sleep(1)
        assert [(await seen.next())["object"]["status"]["phase"] for _ in phases] == phases
        assert await seen.quiet()


@played
async def test_a_quiet_machine_is_not_written_about(host: Host, /) -> None:
    await host.running()
    before = (await host.get())["metadata"]["resourceVersion"]
    await asyncio.sleep(3600)
    assert (await host.get())["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("end", "phase", "event"),
    [
        ("guest-shutdown", "Succeeded", ("Stopped", "The VirtualMachineInstance was shut down.")),
        ("crashed", "Failed", ("Stopped", "The VirtualMachineInstance crashed. crashed: last words")),
        ("panicked", "Failed", ("Stopped", "The VirtualMachineInstance crashed. panicked: last words")),
        ("internal-error", "Failed", ("Stopped", "The VirtualMachineInstance crashed. internal-error: last words")),
    ],
)
@played
async def test_an_end_is_told_and_what_was_held_is_let_go(host: Host, /, end: str, phase: str, event: tuple[str, str]) -> None:
    volumes = [{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}]
    machine = await host.running(volumes=volumes)
    machine.end(end, "last words")  # type: ignore[arg-type]
    await asyncio.sleep(1)
    assert (await host.status())["phase"] == phase
    assert (await host.events())[-1] == event
    assert host.engine.machines.get(machine.id) is None
    assert host.engine.networks.cards == {}
    assert machine.id in host.engine.volumes.dropped
    # It is one run, and not begun again.
    await asyncio.sleep(600)
    assert (await host.status())["phase"] == phase
    assert list(host.engine.machines) == []


@played
async def test_the_console_log_outlives_the_run_and_goes_with_the_object(host: Host, /) -> None:
    machine = await host.running()
    machine.directory.serial = b"its last words"
    machine.end("guest-shutdown")
    await asyncio.sleep(1)
    assert host.engine.machines.get(machine.id) is None
    assert host.engine.consoles.kept(machine.id) == b"its last words"
    assert (await host.api.call("DELETE", f"{VMIS}/web")).status == 200
    await asyncio.sleep(5)
    assert host.engine.consoles.kept(machine.id) is None


@pytest.mark.spec(
    "kubevirt",
    83,
    "Accelerator probe picks KVM or TCG per firmware kind",
    "SoftwareEmulation is shown",
    "`internal-error` becomes Failed with text",
)
@played
async def test_the_accelerator_is_chosen_by_firmware_and_what_it_cannot_do_is_told(host: Host, /) -> None:
    secure: dict[str, Any] = {"firmware": {"bootloader": {"efi": {}}}, "features": {"smm": {"enabled": True}}}
    efi: dict[str, Any] = {"firmware": {"bootloader": {"efi": {"secureBoot": False}}}}
    firmwares: tuple[dict[str, Any], ...] = ({}, efi, secure)
    why = {"smm": "System Management Mode not supported by this hypervisor"}
    for kvm, expected in (
        (Kvm("real", mips=3000.0, works=frozenset({"bios", "efi"}), why=why), ("kvm", "kvm", "tcg")),
        (Kvm("real", mips=3000.0, works=frozenset({"bios"}), why={**why, "efi": "KVM internal error"}), ("kvm", "tcg", "tcg")),
        (Kvm("emulated", "it carries out 1.1 million instructions per second", 1.1), ("tcg", "tcg", "tcg")),
    ):
        facts = replace(host.engine.facts, kvm=kvm)
        host.engine.facts = facts
        for firmware, accelerator in zip(firmwares, expected, strict=True):
            machine = await host.running(domain=firmware)
            verdict = facts.verdict(machine.config)
            assert verdict.accelerator == accelerator
            machine.observe(accelerator=accelerator)
            await asyncio.sleep(1)
            found = {each["type"]: each for each in (await host.status())["conditions"]}
            assert ("SoftwareEmulation" in found) == (accelerator == "tcg")
            if accelerator == "tcg":
                assert found["SoftwareEmulation"]["message"].endswith(verdict.reason) and verdict.reason
            assert (await host.status())["machine"]["type"] == "pc-q35-7.2"
            machine.end("internal-error", "KVM internal error. Suberror: 1")
            await asyncio.sleep(1)
            assert (await host.status())["phase"] == "Failed"
            assert "KVM internal error. Suberror: 1" in (await host.events())[-1][1]
            await host.api.delete(f"{VMIS}/web")
            await asyncio.sleep(5)
            assert await host.get() == {}


@played
async def test_deletion_asks_the_guest_and_waits_for_it(host: Host, /) -> None:
    machine = await host.running()
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(1)
    assert machine.presses == 1
    assert list(host.engine.machines) == []
    # Who looks every second sees how it ended.
    assert (await host.status())["phase"] == "Succeeded"
    await asyncio.sleep(3)
    assert await host.get() == {}
    assert [reason for reason, _ in await host.events()][-2:] == ["ShuttingDown", "Stopped"]


@played
async def test_a_guest_that_does_not_listen_is_ended_after_its_grace(host: Host, /) -> None:
    machine = await host.running(terminationGracePeriodSeconds=20)
    machine.deaf = True
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(15)
    assert (await host.status())["phase"] == "Running"
    assert (await host.conditions())["Ready"] == ("False", "PodTerminating")
    await asyncio.sleep(10)
    assert await host.get() == {}
    assert (await host.events())[-1] == ("Deleted", "Signaled Deletion")


@played
async def test_no_grace_means_at_once(host: Host, /) -> None:
    machine = await host.running(terminationGracePeriodSeconds=0)
    machine.deaf = True
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(1)
    assert machine.presses == 0
    assert await host.get() == {}


@played
async def test_one_that_never_ran_goes_at_once(host: Host, /) -> None:
    await host.make(nodeSelector={"no": "where"})
    await asyncio.sleep(1)
    assert (await host.conditions())["PodScheduled"] == ("False", "Unschedulable")
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(1)
    assert await host.get() == {}


@played
async def test_a_start_that_fails_says_why(host: Host, /) -> None:
    made = await host.make(nodeSelector={"no": "where"})
    host.engine.machines.fail(made["metadata"]["uid"], "qemu: no such device")
    await host.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "host", "labels": {"no": "where"}}})
    await asyncio.sleep(1)
    status = await host.status()
    assert status["phase"] == "Failed"
    assert [each["phase"] for each in status["phaseTransitionTimestamps"]] == ["Pending", "Scheduling", "Scheduled", "Failed"]
    assert "qemu: no such device" in (await host.events())[-1][1]


@played
async def test_started_paused_and_resumed(host: Host, /) -> None:
    machine = await host.running(startStrategy="Paused")
    assert (await host.conditions())["Paused"] == ("True", "PausedByUser")
    assert (await host.conditions())["Ready"][0] == "False"
    await machine.resume()
    await asyncio.sleep(1)
    assert "Paused" not in await host.conditions()
    assert (await host.conditions())["Ready"][0] == "True"


@played
async def test_a_full_disk_pauses_and_says_so(host: Host, /) -> None:
    machine = await host.running(volumes=[{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}])
    machine.io_error("scratch")
    await asyncio.sleep(1)
    assert (await host.conditions())["Paused"] == ("True", "PausedIOError")
    await machine.resume()
    await asyncio.sleep(1)
    assert "Paused" not in await host.conditions()


# --- when Paddock is away -------------------------------------------------------------------------------------------------


@played
async def test_guests_outlive_paddock_and_nothing_is_written(host: Host, /) -> None:
    card = {"interfaces": [{"name": "default", "masquerade": {}}]}
    machine = await host.running(devices=card, networks=[{"name": "default", "pod": {}}])
    machine.agent.told_interfaces = (GuestInterface("eth0", machine.config.nics[0].mac, (("10.0.2.2", 24),)),)
    machine.agent.connect()
    await asyncio.sleep(60)
    before = await host.get()
    assert before["status"]["interfaces"][0]["ipAddress"].startswith("10.112.")
    await host.again()
    await asyncio.sleep(5)
    assert await host.get() == before
    assert machine.observed.run == 1


@played
async def test_an_end_while_paddock_was_away_is_noticed(host: Host, /) -> None:
    machine = await host.running()
    await host.end()
    machine.crash("a line")
    await host.begin()
    assert (await host.status())["phase"] == "Failed"


@played
async def test_one_whose_directory_is_gone_is_lost_and_not_begun_again(host: Host, /) -> None:
    machine = await host.running()
    await host.end()
    host.engine.machines.drop(machine.id)
    await host.begin()
    assert (await host.status())["phase"] == "Failed"
    assert "the directory of the machine is gone" in str(await host.events())
    assert list(host.engine.machines) == []


@played
async def test_a_machine_that_nothing_asks_for_is_ended(host: Host, /) -> None:
    machine = await host.running()
    await host.end()
    patch = {"metadata": {"finalizers": None}}
    await host.api.merge(f"{VMIS}/web", patch)
    await host.api.delete(f"{VMIS}/web?gracePeriodSeconds=0")
    await host.begin()
    await asyncio.sleep(5)
    assert machine.observed.phase == "ended"
    assert list(host.engine.machines) == []
    assert host.engine.networks.owners() == set()


@played
async def test_a_stop_that_was_under_way_goes_on(host: Host, /) -> None:
    machine = await host.running(terminationGracePeriodSeconds=60)
    machine.deaf = True
    await host.api.delete(f"{VMIS}/web")
    await asyncio.sleep(5)
    await host.again()
    assert machine.observed.phase == "stopping"
    await asyncio.sleep(60)
    assert await host.get() == {}


@pytest.mark.spec("kubevirt", 183)
@played
async def test_a_guest_is_handed_the_ignition_data_of_its_annotation(host: Host, /) -> None:
    configuration = {"developerConfiguration": {"featureGates": ["ExperimentalIgnitionSupport"]}}
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt"},
        "spec": {"configuration": configuration},
    }
    await host.api.namespace("kubevirt")
    await host.post("/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts", body)
    machine = await host.running(annotations={"kubevirt.io/ignitiondata": '{"ignition": {"version": "3.4.0"}}'})
    ((name, path),) = machine.config.firmware.files
    assert (name, path.read_text()) == ("opt/com.coreos/config", '{"ignition": {"version": "3.4.0"}}')


@played
async def test_a_machine_on_a_qemu_that_was_replaced_says_so_until_it_was_renewed(host: Host, /) -> None:
    label = "kubevirt.io/outdatedLauncherImage"
    machine = await host.running()
    machine.outdated = True
    # No event tells of an upgrade: it is looked at now and then.
    await asyncio.sleep(UPGRADE_SECONDS + 1)
    assert (await host.conditions())["Outdated"] == ("True", "QemuReplaced")
    said = {each["type"]: each.get("message") for each in (await host.status())["conditions"]}
    assert "`paddock renew web -n default`" in said["Outdated"]
    assert (await host.get())["metadata"]["labels"][label] == ""
    before = (await host.get())["metadata"]["resourceVersion"]
    await asyncio.sleep(10 * UPGRADE_SECONDS)
    assert (await host.get())["metadata"]["resourceVersion"] == before
    await machine.renew()
    await asyncio.sleep(1)
    assert "Outdated" not in await host.conditions()
    assert label not in (await host.get())["metadata"]["labels"]
    machine.outdated, machine.immovable = True, ("its TPM is kept",)
    await asyncio.sleep(UPGRADE_SECONDS + 1)
    said = {each["type"]: each.get("message") for each in (await host.status())["conditions"]}
    assert "restart it" in said["Outdated"] and "its TPM is kept" in said["Outdated"]


@pytest.mark.parametrize("reason", ["ProcessStopped", "MonitorUnresponsive", "GuestRebootLoop"])
@played
async def test_a_guest_that_hangs_is_not_ready_and_its_recovery_is_told(host: Host, /, reason: Any) -> None:
    machine = await host.running()
    machine.observe(fault=GuestFault(reason, "It hangs."))
    await asyncio.sleep(1)
    assert (await host.conditions())["Ready"] == ("False", reason)
    assert (await host.conditions())["NeedsAttention"] == ("True", reason)
    assert (await host.events())[-1] == (reason, "It hangs.")
    told = len(await host.events())
    # The same again is no news.
    machine.observe(resets=machine.observed.resets + 1)
    await asyncio.sleep(60)
    assert len(await host.events()) == told
    machine.observe(fault=None)
    await asyncio.sleep(1)
    assert (await host.conditions())["Ready"] == ("True", None)
    assert (await host.events())[-1][0] == "GuestResponding"


@played
async def test_a_defect_does_not_end_what_follows_a_machine(host: Host, /) -> None:
    machine = await host.running()
    whole, machine.agent.told_os = machine.agent.told_os, None  # type: ignore[assignment]
    machine.agent.connect()
    await asyncio.sleep(5)
    assert not (await host.status()).get("guestOSInfo", {}).get("name")
    machine.agent.told_os = whole
    await asyncio.sleep(40)
    assert (await host.status())["guestOSInfo"]["name"] == "Paddock Test Linux"


@played
async def test_a_machine_waits_for_its_start_with_the_priority_of_its_class(host: Host, /) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for name, value, default in (("databases", 1000, False), ("usual", 5, True)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await host.post(path, {**body, "value": value, "globalDefault": default})
    assert (await host.running("web")).priority == 5
    assert (await host.running("db", priorityClassName="databases")).priority == 1000
