"""What a suspended machine needs to go on: decisions by tables, and its files on disk."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from paddock.engine.machine import startup
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig, Nic, Tap
from paddock.engine.machine.directory import Directory, SavedMachine, UnreadableState
from paddock.engine.machine.observation import Observation, RunEnd, SuspendedState
from paddock.engine.machine.suspension import mismatches, taken, with_host_parts, written

CONFIG = MachineConfig("ns_web", CpuConfig(), MemoryConfig(64 << 20, 64 << 20))
SAVED = SavedMachine(
    at=1_800_000_000.0,
    size=4,
    started=CONFIG,
    config=structs.replace(CONFIG, disks=(DiskConfig("root", DiskLayer(Path("/d/root"), "qcow2", DiskLayer(Path("/d/base"), "raw"))),)),
    places={"ua-root": {"bus": "rp1"}},
    processors=[{"driver": "qemu64-x86_64-cpu", "id": "cpu1"}],
    accelerator="kvm",
    processor="Model A",
    paused=False,
    disks={"/d/root": (10, 7), "/d/base": (20, 0)},
)


@pytest.mark.parametrize(
    ("saved", "accelerator", "processor", "disks", "expected"),
    [
        ({}, "kvm", "Model A", {}, []),
        ({}, "tcg", "Model A", {}, ["it was suspended under kvm, and this host has tcg"]),
        ({}, "kvm", "Model B", {}, ["it was suspended on a processor Model A, and this host has Model B"]),
        ({"accelerator": "tcg"}, "tcg", "Model B", {}, []),
        ({}, "kvm", "Model A", {"/d/root": (10, 8)}, ["its disk /d/root was written since"]),
        ({}, "kvm", "Model A", {"/d/root": (11, 7)}, ["its disk /d/root was written since"]),
        ({}, "kvm", "Model A", {"/d/base": (30, 0)}, []),
        ({}, "kvm", "Model A", {"/d/base": (19, 0)}, ["its disk /d/base was written since"]),
        ({}, "kvm", "Model A", {"/d/base": None}, ["its disk /d/base is gone"]),
        ({}, "tcg", "", {"/d/base": None}, ["it was suspended under kvm, and this host has tcg", "its disk /d/base is gone"]),
    ],
)
def test_where_a_guest_goes_on(saved: dict[str, Any], accelerator: str, processor: str, disks: dict[str, Any], expected: list[str]) -> None:
    there = {path: seen for path, seen in {**SAVED.disks, **disks}.items() if seen is not None}
    assert list(mismatches(structs.replace(SAVED, **saved), accelerator, processor, there)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name:\tqemu\nVmPeak:\t 9000 kB\nVmRSS:\t 100 kB\nVmSwap:\t 20 kB\nHugetlbPages:\t 2048 kB\n", 2168 * 1024),
        ("VmRSS:\t 1 kB\n", 1024),
        ("", 0),
    ],
)
def test_the_room_that_a_state_may_take(text: str, expected: int) -> None:
    assert taken(text) == expected


def test_only_what_the_guest_writes_has_a_time(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("root", "base", "cd")]
    for path in paths:
        path.write_bytes(b"xx")
        os.utime(path, ns=(5, 5))
    root = DiskConfig("root", DiskLayer(paths[0], "qcow2", DiskLayer(paths[1], "raw")))
    disks = (root, DiskConfig("cd", DiskLayer(paths[2], "raw"), role="cdrom"), DiskConfig("gone", DiskLayer(tmp_path / "gone", "raw")))
    assert written(structs.replace(CONFIG, disks=disks)) == {str(paths[0]): (2, 5), str(paths[1]): (2, 0), str(paths[2]): (2, 0)}


def test_a_host_gives_processors_and_taps_anew() -> None:
    old = structs.replace(
        CONFIG, cpu=CpuConfig(sockets=2, pinned=(0, 1)), nics=(Nic("a", "02::1", Tap("tap1")), Nic("gone", "02::2", Tap("tap2")))
    )
    fresh = structs.replace(CONFIG, cpu=CpuConfig(sockets=9, pinned=(2, 3)), nics=(Nic("a", "02::9", Tap("tap7")),))
    found = with_host_parts(old, fresh)
    assert found.cpu == CpuConfig(sockets=2, pinned=(2, 3))
    assert found.nics == (Nic("a", "02::1", Tap("tap7")), Nic("gone", "02::2", Tap("tap2")))


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    made = Directory(tmp_path / "a")
    made.make()
    return made


def _write(directory: Directory) -> None:
    (directory.path / "saved.state.new").write_bytes(b"data")
    directory.write_saved(SAVED)


def test_a_state_is_found_again_until_it_is_dropped(directory: Directory) -> None:
    assert directory.read_saved() is None and not directory.is_saved
    _write(directory)
    directory.sweep()
    assert directory.read_saved() == SAVED and directory.saved_state.read_bytes() == b"data"
    directory.drop_saved()
    assert directory.read_saved() is None and not directory.is_saved
    for half in ("saved.state.new", "saved.json.new"):
        (directory.path / half).write_bytes(b"half")
    directory.sweep()
    assert not list(directory.path.glob("saved*"))
    directory.drop_saved()


@pytest.mark.parametrize("text", ["", "{}", "not json"])
def test_a_damaged_one_is_still_no_reason_to_boot(directory: Directory, text: str) -> None:
    _write(directory)
    (directory.path / "saved.json").write_text(text)
    with pytest.raises(UnreadableState, match=r"saved\.json is damaged.*discard the state"):
        directory.read_saved()
    seen = startup.over(directory, Observation(end=RunEnd("saved")))
    assert seen.phase == "suspended" and seen.end is not None and "damaged" in seen.end.text


def test_a_state_of_a_later_paddock_is_not_read(directory: Directory) -> None:
    (directory.path / "saved.state.new").write_bytes(b"data")
    directory.write_saved(structs.replace(SAVED, version=2))
    with pytest.raises(UnreadableState, match="of version 2"):
        directory.read_saved()


@pytest.mark.parametrize(("saved", "stopped", "phase"), [(True, False, "suspended"), (True, True, "ended"), (False, False, "ended")])
def test_the_end_of_a_run(directory: Directory, saved: bool, stopped: bool, phase: str) -> None:
    if saved:
        _write(directory)
    seen = startup.clear(directory, Observation("running", end=RunEnd("saved")), stopped=stopped)
    assert seen.phase == phase and directory.is_saved is (phase == "suspended")
    assert seen.suspended == (SuspendedState(1_800_000_000.0, 4) if phase == "suspended" else None)


def test_a_guest_of_a_snapshot_takes_a_header_that_was_corrected(tmp_path: Path) -> None:
    """A merge below an empty layer writes its header; what a guest writes makes the file larger."""
    path = tmp_path / "disk.qcow2"
    path.write_bytes(b"header")
    config = MachineConfig("ns_a", CpuConfig(), MemoryConfig(1, 1), disks=(DiskConfig("root", DiskLayer(path, "qcow2")),))
    before, exact = written(config, times=False), written(config)
    os.utime(path, (1, 1))
    assert written(config, times=False) == before and written(config) != exact
    path.write_bytes(b"header and a cluster")
    assert written(config, times=False) != before
