"""The detection of KVM: the probe's answer, the result for each kind of firmware, and that it runs once for each boot."""

import asyncio
import json
import stat
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from paddock.engine.host import kvm
from paddock.engine.host.efi import EfiFirmware
from paddock.engine.host.facts import Acceleration, HostFacts
from paddock.engine.host.kvm import Kvm
from paddock.engine.host.qemu import Qemu
from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import CpuConfig, FirmwareConfig, MachineConfig, MemoryConfig


def facts(found: Kvm) -> HostFacts:
    return HostFacts(architecture="amd64", qemus={}, efi={}, kvm=found, cpus=(0,), memory_bytes=1, is_root=False)


REAL = Kvm("real", mips=3000.0, works=frozenset({"bios", "efi"}), why={"smm": "System Management Mode not supported by this hypervisor"})
EMULATED = Kvm("emulated", "it carries out 1.1 million instructions per second", 1.1)


@pytest.mark.parametrize(
    ("found", "firmware", "smm", "verdict"),
    [
        (REAL, "bios", False, Acceleration("kvm")),
        (REAL, "efi", False, Acceleration("kvm")),
        (
            REAL,
            "efi",
            True,
            Acceleration(
                "tcg",
                "KVM on this host cannot run guests with System Management Mode, which Secure Boot needs: "
                "System Management Mode not supported by this hypervisor",
            ),
        ),
        (
            EMULATED,
            "bios",
            False,
            Acceleration("tcg", "KVM on this host interprets instructions in software: it carries out 1.1 million instructions per second"),
        ),
        (Kvm("absent", "there is no /dev/kvm"), "bios", False, Acceleration("tcg", "this host has no KVM: there is no /dev/kvm")),
        (Kvm("forbidden", "ask"), "efi", False, Acceleration("tcg", "KVM may not be used: ask")),
        (Kvm("broken"), "efi", False, Acceleration("tcg", "KVM does not work on this host")),
    ],
)
def test_a_verdict_for_each_kind_of_firmware(found: Kvm, firmware: str, smm: bool, verdict: Acceleration) -> None:
    assert facts(found).accelerator_for(firmware, smm) == verdict


def test_another_architecture_is_emulated() -> None:
    verdict = facts(REAL).accelerator_for("efi", False, "arm64")
    assert verdict.accelerator == "tcg"
    assert "arm64" in verdict.reason


@pytest.mark.spec("kubevirt", 83, "Accelerator probe picks KVM or TCG per firmware kind")
def test_secure_boot_needs_smm() -> None:
    config = MachineConfig("x", CpuConfig(), MemoryConfig(1, 1), firmware=FirmwareConfig(kind="efi", secure_boot=True))
    assert facts(REAL).verdict(config).accelerator == "tcg"


def program(folder: Path, text: str, name: str = "qemu") -> Path:
    """A program that stands for QEMU."""
    path, script = folder / name, f"#!/bin/sh\n{text}\n"
    if path.exists() and path.read_text() == script:
        return path
    path.write_text(script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def qemu(path: Path) -> Qemu:
    return Qemu("amd64", path, (7, 2, 0))


def efi(folder: Path) -> EfiFirmware:
    for name in ("code", "vars"):
        if not (folder / name).exists():
            (folder / name).write_bytes(b"x")
    files = EfiFiles(folder / "code", folder / "vars")
    return EfiFirmware(plain=files, secure=files)


def boots(path: Path, folder: Path, kind: kvm.Kind, seconds: float = 10) -> str:
    return asyncio.run(kvm.boots(qemu(path), efi(folder), kind, seconds=seconds))


def test_firmware_that_gets_through_works(tmp_path: Path) -> None:
    path = program(tmp_path, 'echo "SeaBIOS (version x)"; echo "No bootable device."; exec sleep 60')
    assert boots(path, tmp_path, "bios") == ""


def test_qemu_that_ends_says_why(tmp_path: Path) -> None:
    path = program(tmp_path, 'echo "qemu: System Management Mode not supported" >&2; exit 1')
    assert boots(path, tmp_path, "smm") == "QEMU ended: qemu: System Management Mode not supported"
    assert boots(program(tmp_path, "exit 1", "silent"), tmp_path, "efi") == "QEMU ended without a word"


def test_firmware_that_hangs_is_ended(tmp_path: Path) -> None:
    path = program(tmp_path, "echo SeaBIOS; exec sleep 60")
    assert boots(path, tmp_path, "bios", seconds=0.2) == "the firmware did not finish within 0.2 seconds"


def test_firmware_that_is_not_there(tmp_path: Path) -> None:
    assert asyncio.run(kvm.boots(qemu(tmp_path / "x"), EfiFirmware(), "efi")) == "the firmware is not installed"
    arm = Qemu("arm64", tmp_path / "x", (7, 2, 0))
    assert "no BIOS" in asyncio.run(kvm.boots(arm, EfiFirmware(), "bios"))


def test_the_machine_that_is_tried(tmp_path: Path) -> None:
    """Flash, SMM and the guard of the variables are as they are for real machines."""
    path = program(tmp_path, 'echo "$@"; echo BdsDxe')
    seen = tmp_path / "seen"
    path.write_text(f'#!/bin/sh\necho "$@" > {seen}; echo BdsDxe\n')
    assert boots(path, tmp_path, "smm") == ""
    words = seen.read_text()
    assert "-machine q35,smm=on,pflash0=code,pflash1=vars" in words
    assert "cfi.pflash01,property=secure,value=on" in words
    assert "-accel kvm -cpu host" in words


def probe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answers: list[Kvm]) -> list[Kvm]:
    """Probes as often as there are answers to the speed test; tells what came of each."""

    async def speed() -> Kvm:
        return answers.pop(0)

    monkeypatch.setattr(kvm, "speed", speed)
    path = program(tmp_path, "echo No bootable device BdsDxe; exec sleep 60")
    return [asyncio.run(kvm.probe(qemu(path), efi(tmp_path), tmp_path / "cache")) for _ in range(len(answers))]


def test_it_is_asked_once_for_each_boot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = probe(monkeypatch, tmp_path, [EMULATED, REAL])
    assert first == second == EMULATED
    monkeypatch.setattr(kvm, "_boot_id", lambda: "another")
    (third,) = probe(monkeypatch, tmp_path, [Kvm("real", mips=2000.0)])
    assert third.works == {"bios", "efi", "smm"}
    assert probe(monkeypatch, tmp_path, [EMULATED]) == [third]


def test_what_was_kept_and_cannot_be_read_is_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    probe(monkeypatch, tmp_path, [EMULATED])
    for text in ("", "{", json.dumps({"key": 1}), json.dumps([])):
        (tmp_path / "cache" / "kvm.json").write_text(text)
        assert probe(monkeypatch, tmp_path, [EMULATED]) == [EMULATED]


def test_no_firmware_is_started_where_kvm_is_not_real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kvm, "boots", AsyncMock(side_effect=AssertionError))
    assert probe(monkeypatch, tmp_path, [EMULATED]) == [EMULATED]


def test_a_probe_that_says_nothing_is_a_broken_kvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.executable", str(program(tmp_path, "echo oops >&2; exit 3")))
    found = asyncio.run(kvm.speed())
    assert (found.state, found.detail) == ("broken", "the test ended without a result: oops")


def test_the_probe_gives_an_answer_here() -> None:
    """On any host: it ends by itself, and its answer is one of the known ones."""
    found = asyncio.run(kvm.speed())
    assert found.state in ("real", "emulated", "broken", "absent", "forbidden")
    assert found.state == "real" or found.detail
