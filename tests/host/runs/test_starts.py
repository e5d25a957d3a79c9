"""Starts on real machines: a QEMU that cannot start, a host that came up again, probes of a guest, and the accelerator of each firmware."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from paddock.engine.machine.directory import Directory
from tests.coroutines import played
from tests.host.conftest import wait_until
from tests.host.runs.conftest import PROMPT, VMIS, VMS, Data, Host, Talk, condition, machine, perform, phase

pytestmark = pytest.mark.needs("qemu")
# More than the address space of a processor that is emulated, and than any host has.
HUGE = {"memory": {"guest": "1100Gi"}}


@pytest.mark.spec("kubevirt", 21)
def test_a_qemu_that_cannot_start_is_tried_again_later(host: Host) -> None:
    def failure(found: Data) -> Data:
        return found.get("status", {}).get("startFailure") or {}

    async def script(talk: Talk) -> None:
        await talk.make(VMS, machine("web", domain=HUGE))
        found = await talk.until(f"{VMS}/web", failure, "its start failed")
        first = failure(found)
        assert first["consecutiveFailCount"] == 1 and host.qemus() == {}
        await talk.until(f"{VMS}/web", lambda seen: seen["status"]["printableStatus"] == "CrashLoopBackOff", "it says so")
        second = await talk.until(
            f"{VMIS}/web",
            lambda seen: seen.get("metadata", {}).get("uid", first["lastFailedVMIUID"]) != first["lastFailedVMIUID"],
            "it is tried again",
        )
        assert second["metadata"]["creationTimestamp"] >= first["retryAfterTimestamp"]
        await talk.until(f"{VMS}/web", lambda seen: failure(seen).get("consecutiveFailCount") == 2, "it failed again")
        # Stopped, and started with what can be had, it has no failure behind it.
        await talk.change(f"{VMS}/web", {"spec": {"runStrategy": "Halted"}})
        await talk.until(f"{VMS}/web", lambda seen: seen["status"]["printableStatus"] == "Stopped", "it is stopped")
        small = {"spec": {"runStrategy": "Always", "template": {"spec": {"domain": {"memory": {"guest": "32Mi"}}}}}}
        await talk.change(f"{VMS}/web", small)
        await talk.running("web")
        assert failure(await talk.get(f"{VMS}/web")) == {}

    host.options = ("--memory-overcommit=100",)
    perform(host, script)


@pytest.mark.spec("kubevirt", 31)
def test_after_a_reboot_of_the_host_machines_run_as_their_strategy_says(host: Host) -> None:
    strategies = ("Always", "RerunOnFailure", "Manual", "Halted")
    runs: dict[str, str] = {}

    async def before(talk: Talk) -> None:
        for strategy in strategies:
            await talk.make(VMS, machine(strategy.lower(), strategy=strategy))
        await talk.until(f"{VMS}/manual", lambda found: found.get("status", {}).get("printableStatus") == "Stopped", "it is known")
        await talk.verb("manual", "start")
        for name in ("always", "rerunonfailure", "manual"):
            runs[name] = (await talk.running(name))["metadata"]["uid"]

    async def after(talk: Talk) -> None:
        for name in ("always", "rerunonfailure"):

            def runs_again(found: Data, run: str = runs[name]) -> bool:
                return phase(found) == "Running" and found["metadata"]["uid"] != run

            await talk.until(f"{VMIS}/{name}", runs_again, "it runs again")
        for name in ("manual", "halted"):
            await talk.until(f"{VMS}/{name}", lambda found: found["status"]["printableStatus"] == "Stopped", "it stays down")
        assert len(host.qemus()) == 2

    perform(host, before)
    host.stop()
    reboot(host)
    perform(host, after)


def reboot(host: Host) -> None:
    """No process survives, and the kernel has another boot id."""
    for pids in host.qemus().values():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    for place in (host.root / "engine" / "machines").iterdir():
        directory = Directory(place)
        wait_until("QEMU has let its directory go", partial(_is_free, directory))
        if (record := directory.read_record()) is not None:
            directory.write_record(structs.replace(record, boot="another"))


def _is_free(directory: Directory) -> bool:
    return not directory.locked()


@pytest.mark.spec("kubevirt", 27)
@played
async def test_a_guest_is_ready_as_its_probe_says_and_ended_when_it_is_dead(talk: Talk, /, tiny_disk_image: str) -> None:
    probe: Data = {"guestAgentPing": {}, "periodSeconds": 2, "failureThreshold": 3}
    probes: Data = {"readinessProbe": probe, "livenessProbe": {**probe, "failureThreshold": 15, "initialDelaySeconds": 5}}
    domain = {"memory": {"guest": "192Mi"}}
    await talk.make(VMS, machine("web", tiny_disk_image, domain=domain, terminationGracePeriodSeconds=0, **probes))
    first = await talk.running("web")
    async with talk.console("web") as console:
        await console.write(b"\r")
        await console.until(PROMPT, 120)
        found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "True", "it is ready")
        assert found["metadata"]["uid"] == first["metadata"]["uid"], "the liveness probe waited until the guest was up"
        await console.shell("kill -STOP $(pidof qemu-ga)")
        found = await talk.until(f"{VMIS}/web", lambda found: condition(found, "Ready").get("status") == "False", "it is not ready")
        assert (found["metadata"]["uid"], found["status"]["phase"]) == (first["metadata"]["uid"], "Running")
    again = await talk.until(
        f"{VMIS}/web", lambda found: found.get("metadata", {}).get("uid", "") not in ("", first["metadata"]["uid"]), "it was ended"
    )
    await talk.running("web")
    assert set(talk.host.qemus()) == {again["metadata"]["uid"]}


@pytest.mark.spec("kubevirt", 83, "Accelerator probe picks KVM or TCG per firmware kind", "SoftwareEmulation is shown")
@played
async def test_the_accelerator_of_each_firmware_is_that_of_its_qemu(talk: Talk, /) -> None:
    firmwares: dict[str, Data] = {
        "bios": {},
        "efi": {"firmware": {"bootloader": {"efi": {"secureBoot": False}}}},
        "secure": {"firmware": {"bootloader": {"efi": {}}}, "features": {"smm": {"enabled": True}}},
    }
    for name, domain in firmwares.items():
        await talk.make(VMS, machine(name, domain=domain))
    for name in firmwares:
        found = await talk.running(name)
        (pid,) = talk.host.qemus()[found["metadata"]["uid"]]
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        chosen = argv[argv.index("-accel") + 1].partition(",")[0]
        assert chosen == "tcg" or (chosen == "kvm" and os.access("/dev/kvm", os.W_OK))
        said = condition(found, "SoftwareEmulation")
        assert bool(said) == (chosen == "tcg") and (not said or said["message"])
