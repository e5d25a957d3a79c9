"""The real virtctl starts, stops, changes and asks a real guest."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.client import Api
from tests.reference.virtctl.conftest import Guests, Virtctl, holds, until

EVENTS = "/api/v1/namespaces/default/events"
MIGRATIONS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations"


@pytest.fixture(scope="module")
def mine(guests: Guests) -> Iterator[str]:
    """A machine that these tests stop and start; up at the beginning."""
    guests.make("mine", runStrategy="Manual")
    until("the machine is there", lambda: "printableStatus" in (guests.vm("mine").get("status") or {}))
    yield "mine"
    guests.delete("mine")


def uid(guests: Guests, name: str) -> str:
    return str(guests.vmi(name).get("metadata", {}).get("uid", ""))


# --- versions and life cycle ----------------------------------------------------------------------------------------------


def test_versions_of_both_sides(virtctl: Virtctl) -> None:
    said = virtctl.ok("version")
    assert f'GitVersion:"v{virtctl.release}.0"' in said.splitlines()[0]
    assert said.splitlines()[1].startswith('Server Version: version.Info{GitVersion:"v1.9.0+paddock.')
    # What a client of another version is warned of is its own affair; the error is said once, and as it is.
    wrong = virtctl.refused("start", "nobody")
    assert wrong.count('virtualmachine.kubevirt.io "nobody" not found') == 1
    assert "cannot parse" not in wrong.lower()


def test_start_stop_and_restart(virtctl: Virtctl, guests: Guests, mine: str) -> None:
    assert "was scheduled to start" in virtctl.ok("start", mine)
    guests.until_up(mine)
    first = uid(guests, mine)
    assert "VM is already running" in virtctl.refused("start", mine)
    assert "was scheduled to restart" in virtctl.ok("restart", mine)
    until("another instance runs", lambda: uid(guests, mine) not in ("", first) and guests.phase(mine) == "Running", 120)
    guests.until_up(mine)
    second = uid(guests, mine)
    assert "was scheduled to restart" in virtctl.ok("restart", mine, "--force", "--grace-period=0")
    until("yet another instance runs", lambda: uid(guests, mine) not in ("", second) and guests.phase(mine) == "Running", 120)
    assert "was scheduled to stop" in virtctl.ok("stop", mine, "--force", "--grace-period=0")
    until("it is down", lambda: guests.vm(mine)["status"]["printableStatus"] == "Stopped", 60)
    assert "VM is not running" in virtctl.refused("stop", mine)


def test_a_start_that_waits_is_dry_or_paused(virtctl: Virtctl, guests: Guests, mine: str) -> None:
    virtctl.ok("start", mine, "--dry-run")
    assert guests.vmi(mine) == {}
    virtctl.ok("start", mine, "--paused")
    until("it is paused", lambda: holds(guests.vmi(mine), "Paused"), 120)
    virtctl.ok("unpause", "vm", mine)
    until("it runs", lambda: not holds(guests.vmi(mine), "Paused") and guests.phase(mine) == "Running")
    virtctl.ok("stop", mine, "--force", "--grace-period=0")
    until("it is down", lambda: guests.vm(mine)["status"]["printableStatus"] == "Stopped", 60)


def test_pause_and_unpause(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    for kind in ("vm", "vmi"):
        assert "was scheduled to pause" in virtctl.ok("pause", kind, tiny)
        until("it is paused", lambda: holds(guests.vmi(tiny), "Paused"))
        until("the machine says so", lambda: guests.vm(tiny)["status"]["printableStatus"] == "Paused")
        assert "VMI is already paused" in virtctl.refused("pause", kind, tiny)
        assert "was scheduled to unpause" in virtctl.ok("unpause", kind, tiny)
        until("it runs", lambda: guests.vm(tiny)["status"]["printableStatus"] == "Running")
        assert "VMI is not paused" in virtctl.refused("unpause", kind, tiny)


def test_soft_reboot_and_reset(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    before = uid(guests, tiny)
    for command in ("soft-reboot", "reset") if virtctl.release != "1.0" else ("soft-reboot",):
        virtctl.ok(command, tiny)
        until("the agent has gone", lambda: not holds(guests.vmi(tiny), "AgentConnected"), 60)
        guests.until_up(tiny)
    # The instance is the same one.
    assert uid(guests, tiny) == before


def test_a_migration_is_taken_and_fails_with_the_reason(virtctl: Virtctl, guests: Guests, api: Api, tiny: str) -> None:
    guests.until_up(tiny)
    virtctl.ok("migrate", tiny)

    def newest() -> dict[str, Any]:
        items = api.request("GET", MIGRATIONS).body["items"]
        return max(items, key=lambda each: int(each["metadata"]["resourceVersion"]), default={})

    until("the migration has failed", lambda: (newest().get("status") or {}).get("phase") == "Failed")
    assert newest()["metadata"]["labels"]["kubevirt.io/vmi-name"] == tiny
    assert guests.phase(tiny) == "Running"
    # All are over: there is none to cancel, and virtctl says that.
    assert "Found no migration to cancel" in virtctl.refused("migrate-cancel", tiny)


# --- what the agent tells -------------------------------------------------------------------------------------------------


def test_what_the_agent_tells(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    told = json.loads(virtctl.ok("guestosinfo", tiny))
    assert told["hostname"] == "tiny" and told["guestAgentVersion"] and told["os"]["kernelRelease"]
    assert {each["mountPoint"] for each in told["fsInfo"]["disks"]} >= {"/data"}
    assert json.loads(virtctl.ok("userlist", tiny))["items"] == told.get("userList", [])
    (mounted,) = [each for each in json.loads(virtctl.ok("fslist", tiny))["items"] if each["mountPoint"] == "/data"]
    assert mounted["fileSystemType"] == "ext4" and 0 < mounted["usedBytes"] < mounted["totalBytes"]


def test_without_an_agent_there_is_an_error(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    virtctl.ok("soft-reboot", tiny)
    until("the agent has gone", lambda: not holds(guests.vmi(tiny), "AgentConnected"))
    assert "VMI does not have guest agent connected" in virtctl.refused("userlist", tiny)
    guests.until_up(tiny)
    for command in ("guestosinfo", "userlist", "fslist"):
        said = virtctl.refused(command, "nobody")
        # An old virtctl reads no more of some answers than their code.
        generic = virtctl.release == "1.0" and "the server could not find the requested resource" in said
        assert generic or 'virtualmachineinstance.kubevirt.io "nobody" not found' in said


# --- volumes --------------------------------------------------------------------------------------------------------------


def blank(api: Api, name: str) -> None:
    body = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "16Mi"}}}},
    }
    api.request("POST", "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes", body)


@pytest.mark.parametrize("bus", ["scsi", "virtio"])
def test_a_volume_is_plugged_stays_and_is_unplugged(virtctl: Virtctl, guests: Guests, api: Api, tiny: str, bus: str) -> None:
    guests.until_up(tiny)
    name = f"more-{bus}-{virtctl.release.replace('.', '-')}"
    blank(api, name)
    words = ["addvolume", tiny, f"--volume-name={name}"]
    if bus != "scsi":
        if virtctl.release == "1.0":
            pytest.skip("virtctl 1.0 knows no --bus")
        words.append(f"--bus={bus}")
    if virtctl.release == "1.0":
        words.append("--persist")
    virtctl.ok(*words)

    def seen() -> dict[str, Any]:
        found = [each for each in (guests.vmi(tiny)["status"].get("volumeStatus") or ()) if each["name"] == name]
        return found[0] if found else {}

    until("it is ready", lambda: seen().get("phase") == "Ready", 90)
    assert seen()["target"] and "hotplugVolume" in seen()
    template = guests.vm(tiny)["spec"]["template"]["spec"]
    assert name in [each["name"] for each in template["volumes"]]
    (disk,) = [each for each in template["domain"]["devices"]["disks"] if each["name"] == name]
    assert (disk["disk"]["bus"], disk["serial"]) == (bus, name)
    assert "already exists" in virtctl.refused(*words)
    virtctl.ok("removevolume", tiny, f"--volume-name={name}", *(["--persist"] if virtctl.release == "1.0" else []))
    until("it is gone", lambda: seen() == {}, 90)
    assert name not in [each["name"] for each in guests.vm(tiny)["spec"]["template"]["spec"]["volumes"]]


def test_a_volume_that_is_not_plugged_cannot_be_unplugged(virtctl: Virtctl, tiny: str) -> None:
    assert "does not exist" in virtctl.refused("removevolume", tiny, "--volume-name=nothing")
    assert "not hotpluggable" in virtctl.refused("removevolume", tiny, "--volume-name=root")


# --- what is created ------------------------------------------------------------------------------------------------------


def test_a_machine_is_created_expanded_and_applied(virtctl: Virtctl, guests: Guests, api: Api, tmp_path: Path) -> None:
    name = f"made-{virtctl.release.replace('.', '-')}"
    size = {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype"}
    spec = {"cpu": {"guest": 2}, "memory": {"guest": "96Mi"}}
    api.request(
        "POST",
        "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes",
        {**size, "metadata": {"name": "small"}, "spec": spec},
    )
    file = tmp_path / "vm.yaml"
    file.write_text(virtctl.ok("create", "vm", f"--name={name}", "--instancetype=small", "--run-strategy=Halted"))
    expanded = json.loads(virtctl.ok("expand", f"--file={file}", "--output=json"))
    assert expanded["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"] == 2
    assert "instancetype" not in expanded["spec"]
    import yaml  # noqa: PLC0415 - for this document alone

    made = api.request("POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachines", yaml.safe_load(file.read_text()))
    assert made.ok, made.message
    again = json.loads(virtctl.ok("expand", f"--vm={name}", "--output=json"))
    assert again["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "96Mi"
    guests.delete(name)


def test_a_service_is_created_and_reaches_the_guest(virtctl: Virtctl, guests: Guests, api: Api, tiny: str) -> None:
    guests.until_up(tiny)
    name = f"web-{virtctl.release.replace('.', '-')}"
    virtctl.ok("expose", "vm", tiny, "--port=80", f"--name={name}", "--type=NodePort")
    service = api.request("GET", f"/api/v1/namespaces/default/services/{name}").body
    assert service["spec"]["ports"][0]["port"] == 80
    where = service["spec"]["ports"][0]["nodePort"]

    def answers() -> bool:
        done = subprocess.run(["curl", "-s", "-m", "3", f"http://127.0.0.1:{where}/"], capture_output=True, text=True)
        return done.stdout.strip() == "tiny"

    try:
        until("the guest answers at its node port", answers)
    finally:
        api.request("DELETE", f"/api/v1/namespaces/default/services/{name}")


# --- what is refused ------------------------------------------------------------------------------------------------------


def test_guestfs_says_what_to_use_instead(virtctl: Virtctl, tiny: str) -> None:
    assert "look into its disk on the host, with qemu-img and guestfish" in virtctl.refused("guestfs", tiny)
