"""A guest goes to another host: what that lacks, what it finds there, and who may run it, on each side and after each power cut."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine import livefiles, startup
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig
from paddock.engine.machine.directory import Directory, RunRecord, UnreadableState
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.livefiles import DecidedMigrations, HandedGuest, ReceivedGuest
from paddock.engine.machine.livelinks import Credentials
from paddock.engine.machine.livesource import SendRequest
from paddock.engine.machine.livetarget import LeavingGuest, contents_of, expected, lacks, other_sizes, sizes_of
from paddock.engine.machine.observation import Observation
from tests.unit.engine.machine.test_rehosting import CONFIG, HOST, NIC, SAVED

OTHER_HARDWARE = replace(CONFIG, memory=replace(CONFIG.memory, size=2 << 30))


@pytest.mark.parametrize(
    ("config", "host", "contents", "found"),
    [
        (CONFIG, HOST, {"seed": "a"}, []),
        (replace(CONFIG, label="other_name"), HOST, {"seed": "a"}, []),
        (OTHER_HARDWARE, HOST, {"seed": "a"}, ["the machine there is another one: memory (size) differs"]),
        # No fork: others know it by its addresses.
        (
            replace(CONFIG, label="other_name", nics=(replace(NIC, mac="02:00:00:00:00:02"),)),
            HOST,
            {"seed": "a"},
            [f"the machine there is another one: nics (MAC of {NIC.name}) differs"],
        ),
        (CONFIG, replace(HOST, version=(8, 0, 0)), {"seed": "a"}, ["it runs with QEMU 7.2.22, and this host has 8.0.0"]),
        (CONFIG, replace(HOST, processor="Epyc"), {"seed": "a"}, ["it runs on a processor Xeon, and this host has Epyc"]),
        (CONFIG, HOST, {"seed": "b"}, ["disk seed is only read and has another content there"]),
        (CONFIG, HOST, {"seed": ""}, ["disk seed is only read and too large to compare"]),
        (CONFIG, HOST, {}, ["disk seed is only read and too large to compare"]),
    ],
)
def test_what_a_target_lacks(config: MachineConfig, host: Any, contents: Mapping[str, str], found: list[str]) -> None:
    assert list(lacks(LeavingGuest(SAVED, "7.2.22", {"seed": "a"}), config, host, contents)) == found


def test_a_guest_finds_the_hosts_files_and_keeps_what_it_has_seen() -> None:
    disk = replace(CONFIG.disks[0], layer=DiskLayer(Path("/there/disk.img"), "raw"))
    fresh = replace(CONFIG, label="other_name", disks=(disk,), devices=replace(CONFIG.devices, generation_id="fresh"))
    found = expected(SAVED, fresh)
    assert found.started.disks == found.config.disks == (disk,) and found.started.label == found.config.label == "other_name"
    # It is no clone, and must not think that it is one; a cable that was pulled stays so.
    assert found.started.devices.generation_id == "a" and not found.config.nics[0].link_up and found.identity is None


def test_contents_of_what_is_only_read(tmp_path: Path) -> None:
    seed, long = tmp_path / "seed", tmp_path / "long"
    seed.write_bytes(b"seed")
    with long.open("wb") as file:
        file.truncate((64 << 20) + 1)
    disks = (
        DiskConfig("seed", DiskLayer(seed, "raw"), readonly=True),
        DiskConfig("image", DiskLayer(seed, "qcow2"), role="cdrom"),
        DiskConfig("long", DiskLayer(long, "raw"), readonly=True),
        DiskConfig("gone", DiskLayer(tmp_path / "gone", "raw"), readonly=True),
        DiskConfig("empty", None, role="cdrom"),
        DiskConfig("written", DiskLayer(seed, "raw")),
    )
    found = contents_of(replace(CONFIG, disks=disks))
    assert found == {"seed": "19b25856e1c150ca834cffc8b59b23adbd0ec0389e58eb22b3b64768098d002b", "image": "", "long": "", "gone": ""}


def test_who_may_run_the_guest_is_in_files(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    assert livefiles.handed_of(directory) == "" and livefiles.read_arrival(directory) is None
    livefiles.write_handed(directory, HandedGuest("m1"))
    assert livefiles.handed_of(directory) == startup.over(directory, Observation()).handed == "offered"
    livefiles.write_handed(directory, HandedGuest("m1", decided=True))
    assert livefiles.handed_of(directory) == "decided"
    livefiles.drop_handed(directory)
    livefiles.drop_handed(directory)
    assert livefiles.handed_of(directory) == ""
    livefiles.write_arrival(directory, ReceivedGuest("m1", SAVED, "taken"))
    assert livefiles.read_arrival(directory) == ReceivedGuest("m1", SAVED, "taken")
    # Nobody runs a guest because a file cannot be read.
    (tmp_path / "handed.json").write_bytes(b"{")
    assert livefiles.handed_of(directory) == "offered"
    (tmp_path / "arrival.json").write_bytes(b'{"version": 2}')
    with pytest.raises(UnreadableState):
        livefiles.read_arrival(directory)


@pytest.mark.parametrize(
    ("handed", "command", "refused"),
    [("", "cont", False), ("offered", "cont", True), ("decided", "cont", True), ("offered", "quit", False)],
)
def test_a_guest_that_was_handed_over_is_never_told_to_go_on(handed: Any, command: str, refused: bool) -> None:
    seen = Observation(phase="stopping", handed=handed)
    if refused:
        with pytest.raises(RequestRefused, match="handed over"):
            startup.demand_here("a", seen, command)
    else:
        startup.demand_here("a", seen, command)


def test_a_guest_on_its_way(tmp_path: Path) -> None:
    arrival = str(livefiles.arrival_of(Directory(tmp_path)))
    assert RunRecord(restore=arrival).arriving and not RunRecord(restore=arrival, begun=True).arriving
    assert not RunRecord(restore=str(tmp_path / "saved.state")).arriving
    # It stands still because it is sent, and nobody paused it.
    assert RunRecord(sending="m1").goes_on
    # Its disks are nobody else's while it may come back.
    assert Observation(phase="ended", handed="offered").holds_disks and not Observation(phase="ended", handed="decided").holds_disks


def test_no_key_is_ever_printed() -> None:
    receiver_address: Any = None
    said = repr(SendRequest("m1", receiver_address, Credentials(b"certificate", b"secret", b"authorities")))
    assert "secret" not in said and "Credentials(...)" in said


@pytest.mark.spec("kubevirt", 283)
def test_a_disk_of_another_size_is_named(tmp_path: Path) -> None:
    raw, qcow2, short = (tmp_path / name for name in ("raw", "qcow2", "short"))
    raw.write_bytes(bytes(4096))
    qcow2.write_bytes(b"QFI\xfb" + bytes(20) + (1 << 30).to_bytes(8, "big") + bytes(8))
    short.write_bytes(b"QFI\xfb")
    disks = (
        DiskConfig("raw", DiskLayer(raw, "raw")),
        DiskConfig("qcow2", DiskLayer(qcow2, "qcow2")),
        DiskConfig("short", DiskLayer(short, "qcow2")),
        DiskConfig("gone", DiskLayer(tmp_path / "gone", "raw")),
        DiskConfig("read", DiskLayer(raw, "raw"), readonly=True),
    )
    sizes = sizes_of(replace(CONFIG, disks=disks))
    assert sizes == {"raw": 4096, "qcow2": 1 << 30}
    guest = LeavingGuest(SAVED, "7.2.22", {}, {"raw": 8192, "qcow2": 1 << 30, "short": 1})
    assert list(other_sizes(guest, sizes)) == ["disk raw has 8192 bytes, and that of the target has 4096"]


@pytest.mark.spec("kubevirt", 287)
def test_the_end_of_a_migration_outlives_its_machine(tmp_path: Path) -> None:
    decided = DecidedMigrations(tmp_path / "migrations")
    assert decided.state("target", "../m") == ""
    decided.note("target", "../m", "taken")
    decided.note("source", "../m", "sent")
    again = DecidedMigrations(tmp_path / "migrations")
    assert (again.state("target", "../m"), again.state("source", "../m"), again.state("target", "m")) == ("taken", "sent", "")
    assert len(list(tmp_path.rglob("*.json"))) == 2
    for file in (tmp_path / "migrations").iterdir():
        file.write_bytes(b"{")
    with pytest.raises(UnreadableState):
        again.state("target", "../m")
