"""pause, unpause, reset, softreboot, freeze and what an agent tells, over HTTP and with a machine in memory."""

import asyncio
import re
from typing import Any

import pytest

from paddock.engine.machine import guest
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.observation import RenewalResult
from tests.coroutines import scripted, timeless
from tests.kit.engine.agentfakes import COMMANDS
from tests.unit.app.subresources.world import World, hardware, path

VERBS = ("pause", "unpause", "reset", "renew", "softreboot", "freeze", "unfreeze")


def conflict(why: str) -> str:
    return f'Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "vm": {why}'


@pytest.mark.spec("kubevirt", 28)
@scripted
async def test_pause_and_unpause() -> None:
    async with World() as world:
        machine = await world.running()

        def paused_by() -> str:
            return machine.observed.paused

        assert (await world.put("vmi", "vm", "pause", {"dryRun": ["All"]})).status == 200
        assert paused_by() == ""
        paused = await world.put("vmi", "vm", "pause")
        assert (paused.status, paused.raw, paused_by()) == (200, b"", "user")
        again = await world.put("vmi", "vm", "pause")
        assert (again.status, again.data["message"]) == (409, conflict("VMI is already paused"))
        assert (await world.put("vmi", "vm", "unpause", {"dryRun": ["All"]})).status == 200
        assert paused_by() == "user"
        assert (await world.put("vmi", "vm", "unpause")).status == 200
        assert paused_by() == ""
        twice = await world.put("vmi", "vm", "unpause")
        assert (twice.status, twice.data["message"]) == (409, conflict("VMI is not paused"))


@pytest.mark.spec("kubevirt", 28)
@pytest.mark.parametrize(
    ("probe", "code"),
    [
        ({"exec": {"command": ["true"]}}, 403),
        ({"tcpSocket": {"port": 22}}, 403),
        ({"httpGet": {"port": 80}}, 403),
        ({"guestAgentPing": {}}, 200),
    ],
)
@scripted
async def test_a_guest_with_a_liveness_probe_is_not_paused(probe: dict[str, Any], code: int) -> None:
    async with World() as world:
        machine = await world.running(spec=hardware(livenessProbe=probe))
        reply = await world.put("vmi", "vm", "pause")
        assert reply.status == code
        assert bool(machine.observed.paused) is (code == 200)
        if code == 403:
            said = 'virtualmachineinstance.kubevirt.io "vm" is forbidden: Pausing VMIs with LivenessProbe is currently not supported'
            assert reply.data["message"] == said


@scripted
async def test_a_machine_whose_snapshot_is_taken_stays_paused() -> None:
    async with World() as world:
        await world.machine()
        machine = await world.running()
        await machine.pause()
        await world.set_machine_status("vm", snapshotInProgress="shot")
        reply = await world.put("vmi", "vm", "unpause")
        assert (reply.status, machine.observed.paused) == (409, "user")
        assert "VM snapshot is in progress" in reply.data["message"]


@pytest.mark.parametrize("verb", VERBS)
@scripted
async def test_what_does_not_run_takes_nothing(verb: str) -> None:
    async with World() as world:
        body = {"unfreezeTimeout": "5m0s"} if verb == "freeze" else None
        absent = await world.put("vmi", "vm", verb, body)
        assert (absent.status, absent.data["message"]) == (404, 'virtualmachineinstance.kubevirt.io "vm" not found')
        await world.instance(phase="Scheduled")
        reply = await world.put("vmi", "vm", verb, body)
        why = "Failed to reset non-running VMI with phase Scheduled" if verb == "reset" else "VMI is not running"
        assert (reply.status, reply.data["message"]) == (409, conflict(why))


@pytest.mark.parametrize("verb", VERBS)
@scripted
async def test_the_engine_knows_first_that_a_machine_has_ended(verb: str) -> None:
    async with World() as world:
        machine = await world.running()
        machine.crash()
        reply = await world.put("vmi", "vm", verb, {"unfreezeTimeout": "1s"} if verb == "freeze" else None)
        assert reply.status == 409


@scripted
async def test_reset() -> None:
    async with World() as world:
        machine = await world.running()
        assert (await world.put("vmi", "vm", "reset")).status == 200
        assert machine.observed.resets == 1


@scripted
async def test_soft_reboot_by_the_agent_or_by_the_button() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        assert (await world.put("vmi", "vm", "softreboot")).status == 200
        assert machine.agent.calls == [("shutdown", "reboot")]
        assert (machine.observed.resets, machine.observed.agent) == (1, False)
        assert (await world.put("vmi", "vm", "softreboot")).status == 200
        assert (machine.observed.resets, machine.presses) == (2, 1)
        # An agent that does not know how leaves the button.
        machine.agent.connect()
        machine.agent.refuse["shutdown"] = "disabled"
        assert (await world.put("vmi", "vm", "softreboot")).status == 200
        assert machine.presses == 2
        await machine.pause()
        reply = await world.put("vmi", "vm", "softreboot")
        assert (reply.status, reply.data["message"]) == (409, conflict("VMI is paused"))


@scripted
async def test_soft_reboot_needs_an_agent_or_acpi() -> None:
    async with World() as world:
        machine = await world.running(spec=hardware(domain={"features": {"acpi": {"enabled": False}}}))
        reply = await world.put("vmi", "vm", "softreboot")
        assert (reply.status, reply.data["message"]) == (409, conflict("VMI neither have the agent connected nor the ACPI feature enabled"))
        machine.agent.connect()
        assert (await world.put("vmi", "vm", "softreboot")).status == 200


@scripted
async def test_cancelling_an_evacuation() -> None:
    async with World() as world:
        await world.machine()
        await world.running()
        assert (await world.put("vmi", "vm", "evacuate/cancel")).status == 200
        for kind in ("vm", "vmi"):
            await world.set_status("vm", evacuationNodeName="node")
            assert (await world.put(kind, "vm", "evacuate/cancel", {"dryRun": ["All"]})).status == 200
            assert world.vmi()["status"]["evacuationNodeName"] == "node"
            assert (await world.put(kind, "vm", "evacuate/cancel")).status == 200
            assert "evacuationNodeName" not in world.vmi()["status"]


# --- freezing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (None, 400, "Request with no body"),
        ({}, 400, "Unfreeze timeout in freeze request is not set"),
        ({"unfreezeTimeout": "soon"}, 400, "is no duration"),
        ({"unfreezeTimeout": "5m0s"}, 200, ""),
    ],
)
@scripted
async def test_freeze(body: Any, code: int, words: str) -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        reply = await world.put("vmi", "vm", "freeze", body)
        assert reply.status == code
        assert machine.agent.is_frozen is (code == 200)
        assert words in reply.raw.decode()


@timeless
async def test_a_frozen_guest_thaws_by_itself() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        assert (await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "5m0s"})).status == 200
        await asyncio.sleep(200)
        # A second freeze begins the time anew, and freezes nothing twice.
        assert (await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "5m0s"})).status == 200
        assert machine.agent.calls.count(("freeze",)) == 1
        assert machine.guest_changes == 2
        await asyncio.sleep(299)
        assert machine.agent.is_frozen
        machine.agent.refuse["thaw"] = "busy"
        await asyncio.sleep(4)
        machine.agent.refuse.clear()
        await asyncio.sleep(10)
        assert not machine.agent.is_frozen


@timeless
async def test_an_unfreeze_ends_the_waiting_and_so_does_the_end_of_the_program() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "10s"})
        assert (await world.put("vmi", "vm", "unfreeze")).status == 200
        assert not machine.agent.is_frozen
        thaws = machine.agent.calls.count(("thaw",))
        await asyncio.sleep(60)
        assert machine.agent.calls.count(("thaw",)) == thaws
        await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "10s"})
    assert not machine.agent.is_frozen


@pytest.mark.spec("kubevirt", 173)
@scripted
async def test_what_an_agent_refuses_is_told_in_an_event() -> None:
    async with World() as world:
        machine = await world.running()
        reply = await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "10s"})
        assert reply.status == 500
        assert re.match("Internal error occurred: command Freeze failed: QEMU guest agent is not connected", reply.data["message"])
        unfrozen = await world.put("vmi", "vm", "unfreeze")
        assert re.match("Internal error occurred: command Unfreeze failed: QEMU guest agent is not connected", unfrozen.data["message"])
        machine.agent.connect()
        machine.agent.refuse["freeze"] = "a file system is busy"
        reply = await world.put("vmi", "vm", "freeze", {"unfreezeTimeout": "10s"})
        assert (reply.status, "a file system is busy" in reply.data["message"]) == (500, True)
        assert [(kind, reason) for kind, reason, _ in world.told] == [("Warning", "FreezeError")] * 2
        machine.agent.refuse["thaw"] = "no"
        assert (await world.put("vmi", "vm", "unfreeze")).status == 500


# --- what the agent tells -------------------------------------------------------------------------------------------------

FILESYSTEM = guest.GuestFilesystem("vda1", "/", "ext4", 100, 1000, (("disk-serial", "virtio"), ("", "scsi")))


@scripted
async def test_everything_the_agent_tells() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.told_users = (guest.GuestUser("ada", "", 1700000000.25), guest.GuestUser("bob", "CORP", 1.0))
        machine.agent.told_filesystems = (FILESYSTEM,)
        machine.agent.told_os = guest.GuestOs("Fedora", "6.1", "38 (Cloud)", "Fedora 38", "38", "#1 SMP", "x86_64", "fedora")
        reply = await world.get("vmi", "vm", "guestosinfo")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
        assert reply.data == {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstanceGuestAgentInfo",
            "metadata": {},
            "guestAgentVersion": "7.2.0",
            "supportedCommands": [{"name": name, "enabled": True} for name in COMMANDS],
            "hostname": "guest",
            "os": {
                "name": "Fedora",
                "kernelRelease": "6.1",
                "version": "38 (Cloud)",
                "prettyName": "Fedora 38",
                "versionId": "38",
                "kernelVersion": "#1 SMP",
                "machine": "x86_64",
                "id": "fedora",
            },
            "timezone": "UTC, 0",
            "userList": [{"userName": "ada", "loginTime": 1700000000.25}, {"userName": "bob", "domain": "CORP", "loginTime": 1.0}],
            "fsInfo": {
                "disks": [
                    {
                        "diskName": "vda1",
                        "mountPoint": "/",
                        "fileSystemType": "ext4",
                        "usedBytes": 100,
                        "totalBytes": 1000,
                        "disk": [{"serial": "disk-serial", "busType": "virtio"}, {"busType": "scsi"}],
                    }
                ]
            },
            "fsFreezeStatus": "thawed",
        }


@scripted
async def test_lists_of_users_and_file_systems() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.told_users = (guest.GuestUser("ada", "", 2.5),)
        machine.agent.told_filesystems = (FILESYSTEM,)
        users = (await world.get("vmi", "vm", "userlist")).data
        assert (users["kind"], users["apiVersion"]) == ("VirtualMachineInstanceGuestOSUserList", "kubevirt.io/v1")
        assert users["items"] == [{"userName": "ada", "loginTime": 2.5}]
        found = (await world.get("vmi", "vm", "filesystemlist")).data
        assert (found["kind"], found["items"][0]["mountPoint"]) == ("VirtualMachineInstanceFileSystemList", "/")


@scripted
async def test_agents_differ_in_what_they_tell() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.refuse = {"users": "disabled", "timezone": "disabled", "frozen": "disabled"}
        told = (await world.get("vmi", "vm", "guestosinfo")).data
        assert (told["userList"], told["hostname"], "timezone" in told) == ([], "guest", False)
        assert (await world.get("vmi", "vm", "userlist")).status == 500


@pytest.mark.spec("kubevirt", 199)
@pytest.mark.parametrize("what", ["guestosinfo", "userlist", "filesystemlist"])
@scripted
async def test_without_an_agent_nothing_is_told(what: str) -> None:
    async with World() as world:
        assert (await world.get("vmi", "vm", what)).status == 404
        await world.running()
        reply = await world.get("vmi", "vm", what)
        assert (reply.status, reply.raw.decode()) == (500, conflict("VMI does not have guest agent connected"))
        assert reply.headers["content-type"].startswith("text/plain")
        await world.instance("other", phase="Pending")
        assert "VMI is not running" in (await world.get("vmi", "other", what)).raw.decode()


@scripted
async def test_the_older_version_is_served_alike() -> None:
    async with World() as world:
        machine = await world.running()
        assert (await world.api.call("PUT", path("vmi", "vm", "pause", version="v1alpha3"))).status == 200
        assert machine.observed.paused == "user"


@scripted
async def test_renew_moves_a_guest_into_the_new_qemu_and_tells_how_long_it_stood_still() -> None:
    async with World() as world:
        machine = await world.running()
        machine.outdated = True
        assert (await world.put("vmi", "vm", "renew", {"dryRun": ["All"]})).status == 200
        assert machine.outdated
        reply = await world.put("vmi", "vm", "renew")
        assert (reply.status, reply.data) == (200, {"before": "7.2.0", "after": "9.1.0", "seconds": 0.5, "pauseSeconds": 0.0125})
        assert world.told == [("Normal", "Renewed", "the guest moved from QEMU 7.2.0 to 9.1.0 and stood still for 12 ms")]
        await machine.pause()
        paused = await world.put("vmi", "vm", "renew")
        assert (paused.status, paused.data["message"]) == (409, conflict("VMI is paused"))
        await machine.resume()
        machine.immovable = ("its TPM is kept",)
        refused = await world.put("vmi", "vm", "renew")
        assert refused.status == 409 and "its TPM is kept" in refused.data["message"]
        assert world.told[-1][:2] == ("Warning", "RenewalFailed") and "left where it was" in world.told[-1][2]


@scripted
async def test_a_failure_of_the_engine_is_not_the_askers() -> None:
    async with World() as world:
        machine = await world.running()

        async def fails() -> RenewalResult:
            raise Unanswered("cannot renew machine a", why="QEMU is silent")

        machine.renew = fails  # type: ignore[method-assign]
        reply = await world.put("vmi", "vm", "renew")
        assert reply.status == 500 and "QEMU is silent" in reply.data["message"]
        assert world.told[-1][1] == "RenewalFailed"
