"""The machines that can be cloned, and the parts of a clone. tests/host/clones wakes real ones."""

import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine import clones
from paddock.engine.machine.clones import Clone, CloneNic, CloneTemplate
from paddock.engine.machine.config import (
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    SharedDirectory,
    Tpm,
    UserNetwork,
)
from paddock.engine.machine.directory import encode_config
from paddock.engine.machine.errors import RequestRefused

GIB = 1 << 30
FOLDER = Path("/templates/a")
BELOW = DiskLayer(Path("/volumes/a.qcow2"), "qcow2")
SEED = DiskConfig("seed", DiskLayer(Path("/seeds/a.iso"), "raw"), readonly=True)
NETWORK = UserNetwork(network="10.0.2.0/24", gateway="10.0.2.2", address="10.0.2.15", dns="10.0.2.3")
FORWARDING = UserNetwork(
    network="10.0.2.0/24", gateway="10.0.2.2", address="10.0.2.15", dns="10.0.2.3", forwards=(("tcp", "127.0.0.1", 1, 22),)
)
CONFIG = MachineConfig(
    "ns_a",
    CpuConfig(),
    MemoryConfig(GIB, 4 * GIB),
    disks=(DiskConfig("root", BELOW), SEED, DiskConfig("drive", None, role="cdrom")),
    nics=(Nic("default", "02:00:00:00:00:01", NETWORK),),
)
OWN = DiskLayer(Path("/scratch/b.qcow2"), "qcow2", BELOW)
CLONE = Clone("ns_b", {"root": OWN}, {"default": CloneNic("02:00:00:00:00:02", NETWORK)}, "8e7d3c1c-7c8e-4a5f-9a52-111111111111", "b")


def devices(**changed: Any) -> MachineConfig:
    return replace(CONFIG, devices=replace(CONFIG.devices, **changed))


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (devices(tpm=Tpm()), "TPM"),
        (devices(pci=("0000:01:00.0",)), "passed through"),
        (devices(shared=(SharedDirectory("x", Path("/x")),)), "shares directories"),
        (devices(agent=False), "guest agent"),
        (replace(CONFIG, memory=replace(CONFIG.memory, hugepage=2 << 20)), "huge pages"),
        (replace(CONFIG, cpu=CpuConfig(pinned=(1,))), "pinned"),
        (replace(CONFIG, firmware=FirmwareConfig(kind="efi", variables=Path("/x"))), "variables"),
        (replace(CONFIG, disks=(DiskConfig("data", BELOW, shareable=True),)), "disk data is written by several"),
        (replace(CONFIG, disks=(DiskConfig("lun", BELOW, role="lun"),)), "disk lun is a device"),
    ],
)
def test_what_cannot_be_cloned_is_said_beforehand(config: MachineConfig, word: str) -> None:
    assert any(word in reason for reason in clones.obstacles(config))
    with pytest.raises(RequestRefused, match=word) as refused:
        clones.freezable(config, FOLDER)
    assert refused.value.reason == "NotClonable"


def test_an_ordinary_machine_can_be_cloned() -> None:
    assert clones.obstacles(CONFIG) == ()
    prepared = clones.freezable(CONFIG, FOLDER)
    assert prepared.memory.file == FOLDER / "live" and not prepared.memory.private
    assert prepared.devices.generation_id
    assert clones.cold(prepared).memory == CONFIG.memory


def test_a_clone_has_its_own_disks_cards_and_generation() -> None:
    template = CloneTemplate(FOLDER, clones.freezable(CONFIG, FOLDER))
    config = clones.config_of(template, CLONE)
    assert config.label == "ns_b"
    assert config.memory.file == template.memory == FOLDER / "memory" and config.memory.private
    assert config.devices.generation_id == CLONE.generation_id
    assert [disk.layer for disk in config.disks] == [OWN, SEED.layer, None]
    (nic,) = config.nics
    assert (nic.mac, nic.link_up) == ("02:00:00:00:00:02", False)
    # Everything else is as it was: QEMU's state fits one command line only.
    same = replace(config, label="", disks=(), nics=(), memory=CONFIG.memory, devices=DeviceConfig())
    assert same == replace(CONFIG, label="", disks=(), nics=(), devices=DeviceConfig())


@pytest.mark.parametrize(
    ("clone", "reason"),
    [
        (replace(CLONE, disks={}), "NoLayer"),
        (replace(CLONE, disks={"root": replace(OWN, backing=None)}), "NoLayer"),
        (replace(CLONE, disks={"root": BELOW}), "NoLayer"),
        (replace(CLONE, nics={}), "NoCard"),
        (replace(CLONE, nics={"default": CloneNic("02:00:00:00:00:02", FORWARDING)}), "KeepMac"),
    ],
)
def test_a_clone_that_would_share_something_is_refused(clone: Clone, reason: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        clones.config_of(CloneTemplate(FOLDER, CONFIG), clone)
    assert refused.value.reason == reason


def test_a_template_is_found_again_or_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(RequestRefused, match="none that is whole"):
        clones.load(tmp_path)
    (tmp_path / "template.json").write_bytes(encode_config(CONFIG))
    assert clones.load(tmp_path) == CloneTemplate(tmp_path, CONFIG)
    (tmp_path / "template.json").write_bytes(encode_config(CONFIG)[:-9])
    with pytest.raises(RequestRefused, match="none that is whole"):
        clones.load(tmp_path)


@pytest.mark.parametrize("script", ["identity.sh", "lease.sh"])
def test_the_guests_scripts_are_plain_sh(script: str) -> None:
    text = files("paddock.engine.machine").joinpath(script).read_bytes()
    subprocess.run(["sh", "-n"], input=text, check=True)
