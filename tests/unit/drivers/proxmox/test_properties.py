"""Property strings, ids of tasks and machines, notes, names."""

import pytest

from paddock_drivers.proxmox import marks, naming, properties
from paddock_drivers.proxmox.config import ProxmoxMachineConfig
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, ProxmoxTaskGoal, ProxmoxTaskId, machine_uuid
from paddock_drivers.proxmox.marks import ProxmoxMachineNote
from paddock_drivers.proxmox.upid import Upid

UPID = "UPID:pve1:00001003:0B0468DF:6B0468D9:qmclone:9000:root@pam!driver:"


@pytest.mark.parametrize(
    ("text", "first", "found"),
    [
        ("local-lvm:vm-100-disk-0,size=8G", "file", {"file": "local-lvm:vm-100-disk-0", "size": "8G"}),
        ("virtio=BC:24:11:00:00:01,bridge=vmbr0", "model", {"virtio": "BC:24:11:00:00:01", "bridge": "vmbr0"}),
        ("", "file", {}),
        ("1", "enabled", {"enabled": "1"}),
    ],
)
def test_property_strings_are_read(text: str, first: str, found: dict[str, str]) -> None:
    assert properties.parse(text, first) == found
    assert properties.render(found, first) == text


@pytest.mark.parametrize(("text", "size"), [("8G", 8 << 30), ("528K", 528 << 10), ("4M", 4 << 20), ("1.5T", 3 << 39), ("7", 7), ("x", 0)])
def test_sizes_are_read(text: str, size: int) -> None:
    assert properties.size(text) == size


def test_a_task_id_survives_a_restart() -> None:
    task = ProxmoxTaskId(
        ProxmoxTaskGoal.CREATED, Upid.parse(UPID), ProxmoxMachineId(100, machine_uuid("uid", 100)), "local:import/a|b.qcow2"
    )
    assert ProxmoxTaskId.parse(str(task)) == task
    assert ProxmoxTaskId.parse(str(ProxmoxTaskId(ProxmoxTaskGoal.DELETED))) == ProxmoxTaskId(ProxmoxTaskGoal.DELETED)


@pytest.mark.parametrize("text", ["", "x", "create|UPID:broken|100/none|", "nothing|||", "on||100|", "run-unknown"])
def test_what_is_no_task_is_unknown(text: str) -> None:
    assert ProxmoxTaskId.parse(text) is None


@pytest.mark.parametrize("text", ["", "100", "99/none", "100/x", "100/none/none", "0100/none", "../100/none"])
def test_what_is_no_machine_is_none(text: str) -> None:
    assert ProxmoxMachineId.parse(text) is None


def test_an_owner_has_another_uuid_under_another_vmid() -> None:
    assert machine_uuid("a", 100) == machine_uuid("a", 100)
    assert len({machine_uuid("a", 100), machine_uuid("b", 100), machine_uuid("a", 101)}) == 3


def test_a_note_stands_below_the_words_of_people() -> None:
    note = ProxmoxMachineNote(vmid=100, uuid="u", key="--> tricky", limitations=("x" * 1000,) * 30)
    text = marks.write("Web server\nof the shop", note)
    assert text.startswith("Web server\nof the shop\n\n<!-- paddock ") and len(text) < 8192
    again = marks.write(text, ProxmoxMachineNote(vmid=100, uuid="u", key="other"))
    assert marks.read(text).key == "--> tricky" and marks.read(again).key == "other"
    assert again.count("<!--") == 1 and again.startswith("Web server\nof the shop")


@pytest.mark.parametrize("text", ["", "<!-- paddock {broken -->", '<!-- paddock {"vmid":"x"} -->', "paddock"])
def test_a_broken_note_is_none(text: str) -> None:
    assert marks.read(text) == ProxmoxMachineNote()


def test_the_note_of_a_copy_does_not_count() -> None:
    text = marks.write("", ProxmoxMachineNote(vmid=100, uuid="u", key="owner", complete=True))
    assert ProxmoxMachineConfig(100, {"description": text}).note.key == "owner"
    assert ProxmoxMachineConfig(101, {"description": text}).note == ProxmoxMachineNote()


@pytest.mark.parametrize(
    ("hint", "name"),
    [("before", "before"), ("", "snapshot"), ("vm.1/x", "vm-1-x-2c6dd55c"), ("current", "current-e8a7fbdc"), ("7days", "s-7days-")],
)
def test_snapshots_get_names_that_the_cluster_takes(hint: str, name: str) -> None:
    found = naming.snapshot(hint)
    assert found.startswith(name[:6]) and len(found) <= 40 and found == naming.snapshot(hint)


def test_long_names_stay_apart() -> None:
    assert naming.snapshot("a" * 60) != naming.snapshot("a" * 61)
    assert naming.serial("d" * 40) != naming.serial("d" * 41)
    assert len(naming.serial("d" * 63)) == 20 and naming.serial("data") == "data"


def test_tags_are_what_the_cluster_takes() -> None:
    assert naming.tags(("Team=Shop", "prod", "prod", " ", "-x", "ä")) == ("team-shop", "prod", "x")
