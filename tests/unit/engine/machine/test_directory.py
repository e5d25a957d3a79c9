"""A machine's files: whole at every moment, bounded, and nothing that QEMU could turn against us."""

import errno
import os
from pathlib import Path

import pytest
from msgspec import structs

from paddock.engine.machine import programs
from paddock.engine.machine.config import (
    CpuConfig,
    DiskConfig,
    DiskLayer,
    MachineConfig,
    MemoryConfig,
    Nic,
    StreamNetwork,
    Tap,
    UserNetwork,
)
from paddock.engine.machine.directory import (
    LOG_LIMIT,
    SERIAL_LIMIT,
    Directory,
    RunRecord,
    Stopping,
    UnreadableState,
    decode_config,
    encode_config,
    tame,
)
from paddock.engine.machine.observation import RunEnd

LAYER = DiskLayer(Path("/a.qcow2"), "qcow2", DiskLayer(Path("/b"), "raw"))
CONFIG = MachineConfig(
    "ns_vm",
    CpuConfig(features=(("x", True),)),
    MemoryConfig(1, 2),
    disks=(DiskConfig("root", LAYER), DiskConfig("cd", None, role="cdrom")),
    nics=(
        Nic("a", "m", Tap("t", 2)),
        Nic("b", "m", UserNetwork("n", "g", "a", "d", forwards=(("tcp", "h", 1, 2),))),
        Nic("c", "m", StreamNetwork(Path("/s"))),
    ),
    limits={"cpu.max": "max"},
)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    found = Directory(tmp_path / "m" / "a")
    found.make()
    return found


def test_configs_come_back_as_they_were(directory: Directory) -> None:
    assert directory.read_config() is None
    directory.write_config(CONFIG)
    assert directory.read_config() == CONFIG == decode_config(encode_config(CONFIG))
    directory.write_config(structs.replace(CONFIG, label="other"))
    assert directory.read_config() == structs.replace(CONFIG, label="other")


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version":1}', b"\xff", b"[]"])
def test_damage_is_said_and_a_damaged_record_is_none(directory: Directory, damage: bytes) -> None:
    for name in ("config.json", "process.json", "started.json"):
        (directory.path / name).write_bytes(damage)
    with pytest.raises(UnreadableState, match="damaged"):
        directory.read_config()
    assert directory.read_record() in (None, RunRecord()) and directory.read_started() is None


def test_a_version_that_is_not_known_is_refused(directory: Directory) -> None:
    (directory.path / "config.json").write_bytes(encode_config(CONFIG).replace(b'"version":1', b'"version":2', 1))
    with pytest.raises(UnreadableState):
        directory.read_config()


def test_fields_of_a_newer_paddock_are_passed_over(directory: Directory) -> None:
    data = encode_config(CONFIG).replace(b'"label":', b'"new":[1],"label":', 1)
    assert decode_config(data) == CONFIG


def test_records(directory: Directory) -> None:
    record = RunRecord(
        run=3, boot="b", active=True, pid=7, ticks=9, stop=Stopping(1.0, 2.0), evidence=("killed",), end=RunEnd("killed", "x", 1.0)
    )
    directory.write_record(record)
    assert directory.read_record() == record
    assert {name for name in os.listdir(directory.path) if name.endswith(".new")} == set()


def test_the_lock_is_inherited_with_its_descriptor(directory: Directory) -> None:
    assert not directory.locked()
    handle = directory.take_lock()
    assert handle is not None and not os.get_inheritable(handle)
    assert directory.locked() and directory.take_lock() is None
    copy = os.dup(handle)
    os.close(handle)
    assert directory.locked()
    os.close(copy)
    assert not directory.locked()


def test_private(directory: Directory) -> None:
    directory.write_config(CONFIG)
    os.close(directory.open_log(1))
    assert directory.run.stat().st_mode & 0o777 == 0o700
    for name in ("config.json", "qemu.log"):
        assert (directory.path / name).stat().st_mode & 0o777 == 0o600


def test_logs_tell_the_last_run_and_end(directory: Directory) -> None:
    assert directory.log_tail() == ""
    for run, text in ((1, b"old\n"), (2, b"\n".join(b"line %d" % n for n in range(20)) + b"\nbad \x1b[31m\r\n")):
        handle = directory.open_log(run)
        os.write(handle, text)
        os.close(handle)
    tail = directory.log_tail(lines=3)
    assert tail == "line 18\nline 19\nbad ?[31m"
    assert "old" not in directory.log_tail(lines=100)
    directory.log.write_bytes(b"x" * 99 + b"\n" + b"y\n" * LOG_LIMIT)
    os.close(directory.open_log(3))
    assert directory.log.stat().st_size < LOG_LIMIT


def test_a_serial_log_stays_small_while_it_is_written(directory: Directory) -> None:
    path = directory.run / "serial.log"
    with path.open("ab", buffering=0) as writer:
        for _ in range(3):
            writer.write(b"0123456789abcde\n" * (SERIAL_LIMIT // 16 + 1))
            directory.bound_logs()
            assert path.stat().st_size <= SERIAL_LIMIT // 4
        writer.write(b"the end")
    assert path.read_bytes().endswith(b"0123456789abcde\nthe end") and path.read_bytes().startswith(b"0123456789abcde\n")
    assert directory.serial_tail(7) == b"the end"


def test_links_that_a_guest_s_qemu_left_are_not_followed(directory: Directory, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"v" * (SERIAL_LIMIT + 1))
    (directory.run / "serial.log").symlink_to(victim)
    directory.bound_logs()
    assert directory.serial_tail(10) == b"" and victim.stat().st_size == SERIAL_LIMIT + 1
    (directory.run / "tree").symlink_to(tmp_path)
    directory.sweep()
    assert victim.exists() and not (directory.run / "tree").is_symlink()


def test_a_sweep_leaves_logs(directory: Directory) -> None:
    for name in ("qmp.sock", "serial.log", "efi-vars.fd"):
        (directory.run / name).write_bytes(b"")
    (directory.run / "tpm").mkdir()
    directory.sweep()
    assert os.listdir(directory.run) == ["serial.log"]


@pytest.mark.parametrize(("name", "good"), [("0f-a", True), ("a.b_c", True), ("", False), ("..", False), ("a/b", False), (".a", False)])
def test_names(name: str, good: bool) -> None:
    assert tame(name) is good


def test_what_is_beside_takes_the_place_of_the_first(directory: Directory) -> None:
    (directory.run / "old.sock").touch()
    first = directory.take_lock()
    other = directory.beside
    other.run.mkdir()
    (other.run / "new.sock").touch()
    second = other.take_lock()
    assert first is not None and second is not None and directory.locked() and other.locked()
    os.close(first)
    # The machine may not be started as long as either lives.
    assert directory.take_lock() is None
    directory.promote()
    directory.promote()
    assert [path.name for path in directory.run.iterdir()] == ["new.sock"] and not other.run.exists()
    assert directory.locked() and not (directory.path / "next.lock").exists()
    os.close(second)
    assert not directory.locked()


def test_a_lock_beside_that_is_held_stays_when_the_rest_goes(directory: Directory) -> None:
    other = directory.beside
    other.run.mkdir()
    held = other.take_lock()
    assert held is not None
    directory.sweep()
    assert not other.run.exists() and directory.locked()
    os.close(held)
    directory.sweep()
    assert not directory.locked() and not (directory.path / "next.lock").exists()


def test_a_promotion_that_was_cut_short_is_finished(directory: Directory) -> None:
    other = directory.beside
    other.run.mkdir()
    (other.run / "new.sock").touch()
    held = other.take_lock()
    assert held is not None
    directory.run.rmdir()
    directory.promote()
    assert [path.name for path in directory.run.iterdir()] == ["new.sock"] and directory.locked()
    os.close(held)


def test_a_program_that_was_replaced_is_another(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    assert programs.identify(str(program)) is None
    program.write_bytes(b"old")
    record = RunRecord(active=True, program=programs.identify(str(program)))
    assert record.program is not None and not programs.is_outdated(record)
    program.write_bytes(b"newer")
    assert programs.is_outdated(record) and not programs.is_outdated(structs.replace(record, active=False))
    assert not programs.is_outdated(structs.replace(record, program=None))
    # Without a QEMU there is none to move into.
    program.unlink()
    assert not programs.is_outdated(record)


def test_a_disk_that_is_full_in_the_middle_of_a_record_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write may take a part first, and fail with the rest."""
    directory = Directory(tmp_path / "vm")
    directory.make()
    directory.write_config(CONFIG)
    taken: list[int] = []

    def write(handle: int, data: memoryview) -> int:
        if taken:
            raise OSError(errno.ENOSPC, "no space left on device")
        taken.append(written(handle, data[:100]))
        return taken[0]

    written = os.write
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="no space"):
        directory.write_config(structs.replace(CONFIG, memory=MemoryConfig(5, 6)))
    assert directory.read_config() == CONFIG
