"""A guest whose memory was kept: which hosts it can go on on, and in which machines."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine import rehosting
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import (
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    KernelConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    Tap,
    Tpm,
)
from paddock.engine.machine.directory import SavedMachine

DISK = DiskConfig("root", DiskLayer(Path("/volumes/a/disk.img"), "qcow2"))
NIC = Nic("default", "02:00:00:00:00:01", Tap("pdk1"))
CONFIG = MachineConfig(
    "ns_a",
    CpuConfig(pinned=(1,)),
    MemoryConfig(1 << 30, 1 << 30),
    machine_type="pc-q35-7.2",
    firmware=FirmwareConfig(uuid="one"),
    kernel=KernelConfig(Path("/images/one")),
    disks=(DISK,),
    nics=(NIC,),
    devices=DeviceConfig(generation_id="a"),
    limits={"cpu.max": "1"},
)
SAVED = SavedMachine(1.0, 2, CONFIG, replace(CONFIG, nics=(replace(NIC, link_up=False),)), {}, [], "kvm", "Xeon", False, {})
HOST = HostView(Path("/qemu"), "kvm", version=(7, 2, 22), processor="Xeon")


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (HOST, []),
        (replace(HOST, version=(7, 2, 30)), []),
        (replace(HOST, version=(8, 0, 0)), ["it was taken with QEMU 7.2.22, and this host has 8.0.0"]),
        (replace(HOST, version=(7, 1, 22)), ["it was taken with QEMU 7.2.22, and this host has 7.1.22"]),
        (replace(HOST, accelerator="tcg"), ["it was taken under kvm, and this host has tcg"]),
        (replace(HOST, processor="Epyc"), ["it was taken on a processor Xeon, and this host has Epyc"]),
    ],
)
def test_hosts(host: HostView, why: list[str]) -> None:
    assert list(rehosting.mismatches(SAVED, "7.2.22", host)) == why


def test_an_emulated_guest_goes_on_on_another_processor() -> None:
    saved = replace(SAVED, accelerator="tcg")
    assert not list(rehosting.mismatches(saved, "7.2.22", replace(HOST, accelerator="tcg", processor="Epyc")))


@pytest.mark.parametrize(
    "change",
    [
        {"label": "ns_b"},
        {"limits": {}},
        {"cpu": replace(CONFIG.cpu, pinned=(2, 3), emulator_pinned=(1,))},
        {"disks": (replace(DISK, layer=DiskLayer(Path("/volumes/b/disk.img"), "qcow2")),)},
        {"nics": (replace(NIC, backend=Tap("pdk2"), link_up=False),)},
        {"kernel": KernelConfig(Path("/images/two"))},
        {"machine_type": "q35"},
        {"devices": replace(CONFIG.devices, generation_id="b")},
        {"firmware": replace(CONFIG.firmware, files=(("opt/x", Path("/x")),))},
    ],
)
def test_what_the_host_gives_anew_is_no_difference(change: dict[str, Any]) -> None:
    assert rehosting.differences(SAVED, replace(CONFIG, **change)) == ()


@pytest.mark.parametrize(
    ("change", "members"),
    [
        ({"memory": MemoryConfig(2 << 30, 2 << 30)}, ("memory",)),
        ({"cpu": replace(CONFIG.cpu, sockets=2)}, ("cpu",)),
        ({"disks": ()}, ("disks",)),
        ({"disks": (replace(DISK, bus="scsi"),)}, ("disks",)),
        ({"nics": (replace(NIC, mac="02:00:00:00:00:02"),)}, ("nics",)),
        ({"nics": (replace(NIC, backend=Tap("pdk1", queues=2)),)}, ("nics",)),
        ({"kernel": None}, ("kernel",)),
        ({"devices": replace(CONFIG.devices, generation_id="", rng=True)}, ("devices",)),
        ({"firmware": FirmwareConfig(kind="efi"), "smm": True}, ("firmware", "smm")),
    ],
)
def test_differences(change: dict[str, Any], members: tuple[str, ...]) -> None:
    assert rehosting.differences(SAVED, replace(CONFIG, **change)) == members


@pytest.mark.parametrize(
    ("change", "described"),
    [
        ({"memory": MemoryConfig(2 << 30, 2 << 30)}, ("memory (max_size, size)",)),
        ({"disks": ()}, ("disks",)),
        ({"nics": (replace(NIC, mac="02:00:00:00:00:02"),)}, (f"nics (MAC of {NIC.name})",)),
        ({"nics": (replace(NIC, backend=Tap("pdk1", queues=2)),)}, ("nics",)),
        ({"firmware": replace(CONFIG.firmware, kind="efi", serial="x")}, ("firmware (kind, serial)",)),
    ],
)
def test_differences_for_people(change: dict[str, Any], described: tuple[str, ...]) -> None:
    saved = replace(SAVED, agent=False)
    assert rehosting.described_differences(saved, replace(CONFIG, **change)) == described


def _keeping(folder: str) -> MachineConfig:
    firmware, devices = replace(CONFIG.firmware, variables=Path(folder, "efi")), replace(CONFIG.devices, tpm=Tpm(Path(folder, "tpm")))
    return replace(CONFIG, firmware=firmware, devices=devices)


@pytest.mark.spec("kubevirt", 266)
def test_a_tpm_and_variables_are_kept_in_any_file_or_in_none() -> None:
    saved = replace(SAVED, started=_keeping("/a"))
    assert rehosting.differences(saved, _keeping("/b")) == ()
    assert rehosting.differences(saved, CONFIG) == ("devices", "firmware")
    assert rehosting.differences(saved, replace(_keeping("/a"), devices=replace(CONFIG.devices, tpm=Tpm()))) == ("devices",)


def test_a_guest_gets_the_files_of_now_and_keeps_its_machine_type_and_links() -> None:
    fresh = replace(CONFIG, machine_type="q35", disks=(replace(DISK, layer=DiskLayer(Path("/new"), "qcow2")),), kernel=None)
    saved = rehosting.rehosted(SAVED, fresh)
    assert saved.started == replace(fresh, machine_type="pc-q35-7.2")
    assert saved.config.disks == fresh.disks and not saved.config.nics[0].link_up
