"""The real virtctl starts, stops, changes and asks a real guest."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference.client import Api
from tests.reference.virtctl.conftest import CLAIMS, Guests, Virtctl, claim, holds, named, until

pytestmark = pytest.mark.long

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


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 39)
def test_versions_of_both_sides(virtctl: Virtctl) -> None:
    said = virtctl.ok("version")
    assert f'GitVersion:"v{virtctl.release}.0"' in said.splitlines()[0]
    assert said.splitlines()[1].startswith('Server Version: version.Info{GitVersion:"v1.9.0+paddock.')
    assert len(said.splitlines()) == 2


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 39)
def test_an_error_is_said_once_and_nothing_else(newest: Virtctl) -> None:
    """The newest virtctl is of the release that the server implements, so there is nothing to be warned of."""
    wrong = newest.refused("start", "nobody")
    assert wrong.splitlines() == ['Error starting VirtualMachine virtualmachine.kubevirt.io "nobody" not found']


def test_an_error_of_a_virtctl_of_another_release_is_said_once_after_its_warning(virtctl: Virtctl) -> None:
    wrong = virtctl.refused("start", "nobody")
    assert wrong.count('virtualmachine.kubevirt.io "nobody" not found') == 1
    # What KubeVirt's users read, too, when their virtctl is older than their cluster; it is true, and one line before the error.
    differs = "You are using a client virtctl version that is different from the KubeVirt version running in the cluster" in wrong
    assert differs is (virtctl.release == "1.0")
    assert "cannot parse" not in wrong.lower()


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 40)
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


@pytest.mark.spec("kubevirt", 40)
def test_a_start_that_waits_is_dry_or_paused(virtctl: Virtctl, guests: Guests, mine: str) -> None:
    # It is taken although the last stop may not be over to its last write, and starts nothing.
    virtctl.ok("start", mine, "--dry-run")
    until("the last instance is gone", lambda: guests.vmi(mine) == {})
    assert guests.vm(mine)["status"]["printableStatus"] == "Stopped"
    virtctl.ok("start", mine, "--paused")
    until("it is paused", lambda: holds(guests.vmi(mine), "Paused"), 120)
    virtctl.ok("unpause", "vm", mine)
    until("it runs", lambda: not holds(guests.vmi(mine), "Paused") and guests.phase(mine) == "Running")
    virtctl.ok("stop", mine, "--force", "--grace-period=0")
    until("it is down", lambda: guests.vm(mine)["status"]["printableStatus"] == "Stopped", 60)


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 28, 40)
def test_pause_and_unpause(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    for kind in ("vm", "vmi"):
        assert "was scheduled to pause" in virtctl.ok("pause", kind, tiny)
        until("it is paused", lambda: holds(guests.vmi(tiny), "Paused"))
        until("the machine says so", lambda: guests.vm(tiny)["status"]["printableStatus"] == "Paused")
        assert "VMI is already paused" in virtctl.refused("pause", kind, tiny)
        assert "was scheduled to unpause" in virtctl.ok("unpause", kind, tiny)
        until("it runs", lambda: guests.vm(tiny)["status"]["printableStatus"] == "Running")
        assert "VMI is not paused" in virtctl.refused("unpause", kind, tiny)


@pytest.mark.spec("kubevirt", 40)
def test_soft_reboot_and_reset(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    before = uid(guests, tiny)
    for command in ("soft-reboot", "reset") if virtctl.release != "1.0" else ("soft-reboot",):
        virtctl.ok(command, tiny)
        until("the agent has gone", lambda: not holds(guests.vmi(tiny), "AgentConnected"), 60)
        guests.until_up(tiny)
    # The instance is the same one.
    assert uid(guests, tiny) == before


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 40)
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


@pytest.mark.spec("kubevirt", 44)
def test_what_the_agent_tells(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    told = json.loads(virtctl.ok("guestosinfo", tiny))
    assert told["hostname"] == "tiny" and told["guestAgentVersion"] and told["os"]["kernelRelease"]
    assert {each["mountPoint"] for each in told["fsInfo"]["disks"]} >= {"/data"}
    assert json.loads(virtctl.ok("userlist", tiny))["items"] == told.get("userList", [])
    (mounted,) = [each for each in json.loads(virtctl.ok("fslist", tiny))["items"] if each["mountPoint"] == "/data"]
    assert mounted["fileSystemType"] == "ext4" and 0 < mounted["usedBytes"] < mounted["totalBytes"]


@pytest.mark.spec("kubevirt", 44)
def test_without_an_agent_there_is_an_error(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    virtctl.ok("soft-reboot", tiny)
    until("the agent has gone", lambda: not holds(guests.vmi(tiny), "AgentConnected"))
    assert "VMI does not have guest agent connected" in virtctl.refused("userlist", tiny)
    guests.until_up(tiny)
    for command in ("guestosinfo", "userlist", "fslist"):
        said = virtctl.refused(command, "nobody")
        # Of some answers virtctl reads no more than their code.
        generic = "the server could not find the requested resource" in said and "nobody" in said
        assert generic or 'virtualmachineinstance.kubevirt.io "nobody" not found' in said


# --- volumes --------------------------------------------------------------------------------------------------------------


def blank(api: Api, name: str, kind: str) -> None:
    """Something to plug in: a claim, or a DataVolume that fills one."""
    if kind == "claim":
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
        api.request("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": name}, "spec": spec})
        return
    body = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": name},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "16Mi"}}}},
    }
    api.request("POST", "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes", body)


@pytest.mark.spec("kubevirt", 45)
@pytest.mark.parametrize(("bus", "kind"), [("scsi", "datavolume"), ("scsi", "claim"), ("virtio", "datavolume")])
def test_a_volume_is_plugged_stays_and_is_unplugged(virtctl: Virtctl, guests: Guests, api: Api, tiny: str, bus: str, kind: str) -> None:
    guests.until_up(tiny)
    name = f"more-{bus}-{kind}-{virtctl.release.replace('.', '-')}"
    blank(api, name, kind)
    words = ["addvolume", tiny, f"--volume-name={name}"]
    if virtctl.release == "1.0":
        # It has no --bus: what it plugs is always SCSI.
        bus = "scsi"
    else:
        words.append(f"--bus={bus}")
    # What newer ones than these two do in any case.
    words.append("--persist")
    virtctl.ok(*words)

    def seen() -> dict[str, Any]:
        found = [each for each in (guests.vmi(tiny)["status"].get("volumeStatus") or ()) if each["name"] == name]
        return found[0] if found else {}

    until("it is ready", lambda: seen().get("phase") == "Ready", 90)
    assert seen()["target"] and "hotplugVolume" in seen()
    (volume,) = [each for each in guests.vmi(tiny)["spec"]["volumes"] if each["name"] == name]
    assert ("persistentVolumeClaim" in volume) is (kind == "claim")
    template = guests.vm(tiny)["spec"]["template"]["spec"]
    assert name in [each["name"] for each in template["volumes"]]
    (disk,) = [each for each in template["domain"]["devices"]["disks"] if each["name"] == name]
    assert (disk["disk"]["bus"], disk["serial"]) == (bus, name)
    assert "already exists" in virtctl.refused(*words)
    virtctl.ok("removevolume", tiny, f"--volume-name={name}", "--persist")
    until("it is gone", lambda: seen() == {}, 90)
    assert name not in [each["name"] for each in guests.vm(tiny)["spec"]["template"]["spec"]["volumes"]]


@pytest.mark.spec("kubevirt", 45)
def test_a_volume_that_is_not_plugged_cannot_be_unplugged(virtctl: Virtctl, tiny: str) -> None:
    assert "does not exist" in virtctl.refused("removevolume", tiny, "--volume-name=nothing")
    assert "not hotpluggable" in virtctl.refused("removevolume", tiny, "--volume-name=root")


# --- what is created ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 47)
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
    made = api.request("POST", "/apis/kubevirt.io/v1/namespaces/default/virtualmachines", yaml.safe_load(file.read_text()))
    assert made.ok, made.message
    again = json.loads(virtctl.ok("expand", f"--vm={name}", "--output=json"))
    assert again["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "96Mi"
    guests.delete(name)


@pytest.mark.spec("kubevirt", 47)
def test_instancetypes_preferences_and_clones_are_created_as_the_server_takes_them(virtctl: Virtctl, api: Api) -> None:
    release = virtctl.release.replace(".", "-")
    kinds = [
        ("instancetype", ["--cpu=2", "--memory=256Mi", f"--name=size-{release}"], "virtualmachineclusterinstancetypes"),
        ("preference", [f"--name=wish-{release}"], "virtualmachineclusterpreferences"),
    ]
    for kind, words, plural in kinds:
        manifest = yaml.safe_load(virtctl.ok("create", kind, *words))
        made = api.request("POST", f"/apis/{manifest['apiVersion']}/{plural}", manifest, query={"fieldValidation": "Strict"})
        assert made.ok, made.message
    if virtctl.release == "1.0":
        # What it prints of a clone has the names of Go's fields, and no server takes it.
        return
    manifest = yaml.safe_load(virtctl.ok("create", "clone", "--source-name=nobody", "--target-name=copy", f"--name=clone-{release}"))
    made = api.request("POST", f"/apis/{manifest['apiVersion']}/namespaces/default/virtualmachineclones", manifest)
    assert made.ok, made.message


@pytest.mark.spec("kube-api", 132)
@pytest.mark.spec("kubevirt", 47)
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


@pytest.mark.spec("kubevirt", 50)
def test_guestfs_says_what_to_use_instead(virtctl: Virtctl, api: Api) -> None:
    name = named("look", virtctl)
    claim(api, name, "16Mi")
    assert "look into its disk on the host, with qemu-img and guestfish" in virtctl.refused("guestfs", name)
    api.request("DELETE", f"{CLAIMS}/{name}")


def test_guestfs_leaves_the_disk_of_a_running_machine_alone(virtctl: Virtctl, tiny: str) -> None:
    assert f"PVC {tiny} is used by another pod" in virtctl.refused("guestfs", tiny)


# What `virtctl usbredir` starts in place of usbredirect: it only reads what the machine says first, QEMU's side of usbredir's handshake.
USBREDIRECT = """#!/usr/bin/python3
import socket, sys
host, _, port = sys.argv[sys.argv.index("--to") + 1].rpartition(":")
with socket.create_connection((host, int(port)), 30) as machine:
    open(sys.argv[0] + ".said", "wb").write(machine.recv(80))
"""


@pytest.mark.spec("kubevirt", 50)
def test_a_usb_device_reaches_the_machine(virtctl: Virtctl, guests: Guests, tiny: str) -> None:
    guests.until_up(tiny)
    program = virtctl.home / "usbredirect"
    program.write_text(USBREDIRECT)
    program.chmod(0o755)
    virtctl.run("usbredir", "0951:1666", tiny)
    said = program.with_name("usbredirect.said").read_bytes()
    # A packet of type 0 (hello) that names its version.
    assert said[:4] == bytes(4) and b"qemu usb-redir guest" in said
    wrong = virtctl.refused("usbredir", "0951:1666", "nobody")
    assert wrong
