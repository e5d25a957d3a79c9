"""Looking at the host: programs, firmware, files, users; and a QEMU that is asked once."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from paddock.engine.host import disks, efi, facts, programs, qemu
from paddock.engine.host.errors import HostError
from paddock.engine.host.facts import HostFacts
from paddock.engine.host.kvm import Kvm
from paddock.engine.machine.argv.view import FileView
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig
from tests.unit.engine.host.test_kvm import program

# --- firmware -------------------------------------------------------------------------------------------------------------


def describe(folder: Path, name: str, features: list[str], **changes: Any) -> None:
    """A descriptor as packages bring it."""
    code, variables = folder / f"{name}.code", folder / f"{name}.vars"
    code.touch()
    variables.touch()
    document = {
        "interface-types": ["uefi"],
        "mapping": {
            "device": "flash",
            "executable": {"filename": str(code), "format": "raw"},
            "nvram-template": {"filename": str(variables), "format": "raw"},
        },
        "targets": [{"architecture": "x86_64", "machines": ["pc-q35-*"]}],
        "features": features,
        **changes,
    }
    (folder / f"{name}.json").write_text(json.dumps(document))


def test_the_first_that_suits_is_taken(tmp_path: Path) -> None:
    describe(tmp_path, "10-arm", [], targets=[{"architecture": "aarch64", "machines": ["virt-*"]}])
    describe(tmp_path, "20-bios", [], **{"interface-types": ["bios"]})
    describe(tmp_path, "30-memory", [], mapping={"device": "memory"})
    describe(tmp_path, "40-secure", ["secure-boot", "requires-smm", "enrolled-keys"])
    describe(tmp_path, "50-keyless", ["secure-boot", "requires-smm"])
    describe(tmp_path, "60-plain", ["acpi-s3"])
    describe(tmp_path, "70-plain", [])
    (tmp_path / "00-broken.json").write_text("{")
    (tmp_path / "01-list.json").write_text("[]")
    found = efi.find("amd64", [tmp_path])
    assert found.plain is not None and found.secure is not None
    assert (found.plain.code.name, found.secure.code.name) == ("60-plain.code", "40-secure.code")
    arm = efi.find("arm64", [tmp_path])
    assert arm.plain is not None and arm.plain.code.name == "10-arm.code"


def test_etc_takes_the_place_of_usr(tmp_path: Path) -> None:
    usr, etc = tmp_path / "usr", tmp_path / "etc"
    for folder in (usr, etc):
        folder.mkdir()
        describe(folder, "60-x", [])
    found = efi.find("amd64", [usr, etc, tmp_path / "missing"])
    assert found.plain is not None and found.plain.code.parent == etc


def test_files_that_are_not_there_describe_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efi, "_USUAL", {"amd64": ()})
    monkeypatch.setattr(efi, "_USUAL_SECURE", {"amd64": ()})
    describe(tmp_path, "60-x", [])
    (tmp_path / "60-x.vars").unlink()
    assert efi.find("amd64", [tmp_path]) == efi.EfiFirmware()


# --- QEMU -----------------------------------------------------------------------------------------------------------------

ANSWERS = [
    {"QMP": {}},
    {"return": {}},
    {"return": {"qemu": {"major": 8, "minor": 1, "micro": 2}}},
    {"return": [{"name": "pc-q35-8.1", "alias": "q35", "cpu-max": 1024}, {"name": "none"}]},
    {"return": [{"name": "qemu64"}]},
    {"return": [{"name": "virtio-net-pci"}, {"name": "igb"}]},
    {"return": {"model": {"name": "max", "props": {"aes": True, "vmx": False, "family": 6, "realized": False}}}},
    {"return": {}},
    {"event": "SHUTDOWN"},
]


def fake(folder: Path, answers: list[Any], more: str = "") -> Path:
    text = "\n".join(json.dumps(answer) for answer in answers)
    return program(folder, f"echo x >> {folder}/asked; cat <<'E'\n{text}\nE\n{more}")


def test_a_qemu_is_asked_once(tmp_path: Path) -> None:
    path = fake(tmp_path, ANSWERS)
    for _ in range(3):
        found = asyncio.run(qemu.inspect("amd64", path, tmp_path / "cache"))
        assert found.version == (8, 1, 2)
        assert found.models == {"qemu64"}
        assert found.devices == {"virtio-net-pci", "igb"}
        assert found.processors == {"pc-q35-8.1": 1024, "none": 0}
        assert found.features == {"aes": True, "vmx": False}
        assert (found.resolve("q35"), found.resolve("pc-q35-8.1"), found.resolve("pc")) == ("pc-q35-8.1", "pc-q35-8.1", None)
    assert (tmp_path / "asked").read_text() == "x\n"
    os.utime(path, (1, 1))
    asyncio.run(qemu.inspect("amd64", path, tmp_path / "cache"))
    assert (tmp_path / "asked").read_text() == "x\nx\n"
    (tmp_path / "cache" / "qemu-amd64.json").write_text("[]")
    asyncio.run(qemu.inspect("amd64", path, tmp_path / "cache"))
    assert (tmp_path / "asked").read_text() == "x\nx\nx\n"


def test_a_qemu_that_does_not_start_says_why(tmp_path: Path) -> None:
    path = fake(tmp_path, [], "echo 'libfoo is missing' >&2; exit 127")
    with pytest.raises(HostError, match="libfoo is missing"):
        asyncio.run(qemu.inspect("amd64", path, tmp_path / "cache"))


# --- files ----------------------------------------------------------------------------------------------------------------


def test_files_are_looked_at(tmp_path: Path) -> None:
    full, sparse = tmp_path / "full", tmp_path / "sparse"
    full.write_bytes(b"x" * 8192)
    sparse.touch()
    os.truncate(sparse, 1 << 20)
    assert disks.view(full).solid
    assert not disks.view(sparse).solid
    assert disks.view(tmp_path / "missing") == FileView()
    layer = DiskLayer(full, "qcow2", backing=DiskLayer(sparse, "raw"))
    assert set(disks.look_at_all([DiskConfig("a", layer), DiskConfig("b", None)])) == {full, sparse}


def test_a_file_system_without_direct_io(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"x")

    def refuse(path: object, flags: int) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.open", refuse)
    assert not disks.view(tmp_path / "x").direct


# --- the rest -------------------------------------------------------------------------------------------------------------


def host(**changes: Any) -> HostFacts:
    given: dict[str, Any] = {
        "architecture": "amd64",
        "qemus": {},
        "efi": {},
        "kvm": Kvm("absent"),
        "cpus": (0,),
        "memory_bytes": 1,
        "is_root": False,
    }
    return HostFacts(**{**given, **changes})


def test_a_missing_qemu_is_named() -> None:
    with pytest.raises(HostError, match="there is no qemu-system-aarch64"):
        host().qemu_for("arm64")
    with pytest.raises(HostError, match="qemu-system-x86_64"):
        _ = host().qemu


def test_the_view_is_of_one_machine(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"x" * 4096)
    found = qemu.Qemu("amd64", Path("/q"), (8, 1, 2), devices=frozenset({"igb"}))
    config = MachineConfig("x", CpuConfig(), MemoryConfig(1, 1), disks=(DiskConfig("d", DiskLayer(tmp_path / "disk", "raw")),))
    view = host(qemus={"amd64": found}).view(config)
    assert (view.qemu, view.accelerator, view.version) == (Path("/q"), "tcg", (8, 1, 2))
    assert view.devices == {"igb"}
    assert view.file(tmp_path / "disk").solid


@pytest.mark.parametrize(
    ("name", "known"),
    [("UTC", True), ("No/Where", False), ("../passwd", False), ("", False), ("/etc/passwd", False), ("x" * 3000, False), ("a\0b", False)],
)
def test_time_zones(name: str, known: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "UTC").touch()
    monkeypatch.setattr(facts, "_ZONES", tmp_path)
    assert HostFacts.has_timezone(name) == known


def test_hugepages_by_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "hugepages-2048kB"
    folder.mkdir()
    (folder / "nr_hugepages").write_text("8\n")
    (folder / "free_hugepages").write_text("5\n")
    monkeypatch.setattr(facts, "_HUGEPAGES", tmp_path)
    assert host().hugepages() == {2 << 20: facts.HugepagePool(8, 5)}


@pytest.mark.parametrize(
    ("root", "mapped", "expected"),
    [
        (True, "0 0 4294967295", range(1_900_000_000, 1_900_065_536)),
        (True, "0 100000 65536", range(50_000, 58_192)),
        (True, "0 1000 1", range(0)),
        (False, "0 0 4294967295", range(0)),
    ],
)
def test_users_for_machines(root: bool, mapped: str, expected: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(Path, "read_text", lambda path: mapped)
    assert facts.user_ids() == expected


def test_programs_beside_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = program(tmp_path, "", "virtiofsd")
    assert programs.find("virtiofsd", [str(tmp_path)]) == found
    assert programs.find("no-such-program", [str(tmp_path)]) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    modern = programs.virtiofsd()
    assert modern is not None and modern.program == found and not modern.classic


def test_flags_of_the_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A: 1\nflags\t\t: fpu aes\nprocessor : 1\nflags : other\n")
    monkeypatch.setattr(facts, "_CPUINFO", tmp_path / "cpuinfo")
    assert facts._cpuinfo("flags", "Features") == "fpu aes"
    assert facts._cpuinfo("model name", "CPU part") == "A: 1"
    monkeypatch.setattr(facts, "_CPUINFO", tmp_path / "missing")
    assert facts._cpuinfo("flags", "Features") == ""


def test_collecting_asks_nothing_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = fake(tmp_path, ANSWERS)
    monkeypatch.setattr(programs, "find", lambda name, *extra: path if name == "qemu-system-x86_64" else None)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("paddock.engine.host.kvm.probe", AsyncMock(return_value=Kvm("absent")))
    found = asyncio.run(facts.collect(tmp_path / "cache"))
    assert (found.architecture, set(found.qemus), found.passt) == ("amd64", {"amd64"}, None)
    assert found.memory_bytes > 0
    assert found.cpus
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(HostError, match="riscv64"):
        asyncio.run(facts.collect(tmp_path / "cache"))
