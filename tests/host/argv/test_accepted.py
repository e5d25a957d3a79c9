"""QEMU takes the command lines, and has what they say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine.config import (
    ClockConfig,
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
from tests.host.argv.conftest import Refused, Start

pytestmark = pytest.mark.needs("qemu")

MIB = 1 << 20
UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"
USER = UserNetwork(network="10.0.2.0/24", gateway="10.0.2.1", address="10.0.2.2", dns="10.0.2.3")
PLAIN = MachineConfig("ns_vm", CpuConfig(), MemoryConfig(64 * MIB, 64 * MIB))


@pytest.fixture
def image(work: Path) -> Callable[[str], DiskLayer]:
    """Makes sparse files."""

    def make(name: str) -> DiskLayer:
        path = work / name
        with path.open("wb") as file:
            file.truncate(4 * MIB)
        return DiskLayer(path, "raw")

    return make


@pytest.mark.parametrize("cache", ["", "none", "writethrough", "writeback"])
@pytest.mark.parametrize("bus", ["virtio", "sata", "scsi", "usb", "ide"])
def test_every_bus_and_cache(start: Start, image: Callable[[str], DiskLayer], bus: Any, cache: Any) -> None:
    disks = [DiskConfig("hard", image("hard"), bus=bus, cache=cache, serial="s-1")]
    disks.append(DiskConfig("drive", image("drive"), bus=bus, role="cdrom", cache=cache))
    if bus != "virtio":
        disks.append(DiskConfig("empty", None, bus=bus, role="cdrom"))
    qemu = start(replace(PLAIN, disks=tuple(disks)))
    found = {block["inserted"]["file"]: block["inserted"]["ro"] for block in qemu.ask("query-block") if "inserted" in block}
    assert found == {str(disk.layer.path): disk.role == "cdrom" for disk in disks if disk.layer}
    assert qemu.get("ua-hard", "serial") == "s-1"
    nodes = {node["node-name"]: node for node in qemu.ask("query-named-block-nodes", flat=True)}
    written = [node["cache"]["direct"] for name, node in nodes.items() if name.startswith("b-hard")]
    assert written == [cache in ("", "none")]


@pytest.mark.parametrize("model", ["virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci"])
def test_every_card(start: Start, model: str) -> None:
    qemu = start(replace(PLAIN, nics=(Nic("n", "02:00:00:00:00:01", USER, model=model, boot_order=1, acpi_index=3),)))
    assert qemu.get("net-n", "mac") == "02:00:00:00:00:01"


@pytest.mark.parametrize("video", ["vga", "cirrus", "virtio", "bochs", "ramfb"])
def test_every_display(start: Start, video: str) -> None:
    start(replace(PLAIN, devices=DeviceConfig(video=video))).get("video0", "type")


@pytest.mark.needs("ovmf", "swtpm")
def test_everything_at_once(start: Start, image: Callable[[str], DiskLayer], work: Path) -> None:
    inputs = (("tablet", "usb", "t"), ("tablet", "virtio", "u"), ("keyboard", "usb", "k"))
    devices = DeviceConfig(
        rng=True, tpm=Tpm(work / "tpm"), watchdog="poweroff", inputs=inputs, sound="ich9", panic=True, usb_redirections=4
    )
    devices = replace(devices, generation_id=UUID)
    firmware = FirmwareConfig(
        kind="efi", secure_boot=True, variables=work / "vars.fd", uuid=UUID, serial="a,b=c", chassis=(("asset", "x,y"),)
    )
    config = MachineConfig(
        "ns_full",
        CpuConfig(sockets=1, cores=2, max_sockets=4, features=(("aes", False),)),
        MemoryConfig(1024 * MIB, 4096 * MIB),
        firmware=firmware,
        disks=(
            DiskConfig(
                "a", image("a"), iothread=1, queues=2, logical_block=512, physical_block=4096, discard_granularity=65536, boot_order=1
            ),
            DiskConfig("b", image("b"), bus="scsi", shareable=True, cache="none", error_policy="enospc"),
            DiskConfig("c", image("c"), pci_address="0000:09:00.0", io="native"),
            DiskConfig("d", image("d"), pci_address="0000:00:05.0", io="io_uring"),
        ),
        nics=(Nic("n", "02:00:00:00:00:01", USER, mtu=1400, link_up=False),),
        devices=devices,
        clock=ClockConfig(offset_seconds=3600, hpet=True, rtc_clock="vm", pit=False),
        smm=True,
        iothreads=2,
        reboot_ends=True,
        boot_menu=True,
        pci_hole64=False,
    )
    qemu = start(config)
    assert qemu.ask("query-uuid") == {"UUID": UUID}
    assert qemu.ask("query-status")["status"] == "prelaunch"
    assert {thread["id"] for thread in qemu.ask("query-iothreads")} == {"iothread1", "iothread2"}
    assert len(qemu.ask("query-hotpluggable-cpus")) == 8
    (memory,) = qemu.ask("query-memory-devices")
    assert memory["data"]["max-size"] == 3072 * MIB
    assert qemu.ask("query-tpm")[0]["model"] == "tpm-crb"
    for device, member, value in (
        ("ua-a", "bootindex", 1),
        ("ua-a", "num-queues", 2),
        ("ua-a", "physical_block_size", 4096),
        ("ua-b", "werror", "enospc"),
        ("net-n", "host_mtu", 1400),
        ("generation0", "guid", UUID),
    ):
        assert qemu.get(device, member) == value
    qemu.run()


def test_other_forms(start: Start, image: Callable[[str], DiskLayer], work: Path) -> None:
    ram = work / "ram"
    with ram.open("wb") as file:
        file.truncate(64 * MIB)
    disk = (DiskConfig("root", image("root")),)
    for config in (
        replace(PLAIN, devices=DeviceConfig(graphics=False, serial=False, balloon=False, agent=False), hotplug=False, acpi=False),
        replace(PLAIN, on_root_complex=True, disks=disk),
        replace(PLAIN, devices=DeviceConfig(virtio_transitional=True, rng=True), disks=disk, nics=(Nic("n", "02:00:00:00:00:01", USER),)),
        replace(PLAIN, memory=MemoryConfig(64 * MIB, 64 * MIB, file=ram, private=True)),
        replace(PLAIN, firmware=FirmwareConfig(serial_output=True), devices=DeviceConfig(sound="ac97")),
        replace(PLAIN, clock=ClockConfig(base="Europe/Oslo", rtc_policy="")),
        replace(PLAIN, cpu=CpuConfig(model="qemu64", features=(("sse4.2", True),), enforce=True)),
    ):
        qemu = start(config)
        qemu.run()
        assert qemu.ask("query-status")["status"] == "running"
        qemu.end()


@pytest.mark.needs("root")
def test_a_shared_directory(start: Start, work: Path) -> None:
    qemu = start(replace(PLAIN, devices=DeviceConfig(shared=(SharedDirectory("data,readonly=off", work),))))
    assert qemu.get("share0", "tag") == "data,readonly=off"


def test_a_processor_feature_that_cannot_be_emulated_ends_the_start(start: Start) -> None:
    with pytest.raises(Refused, match="TCG doesn't support requested feature"):
        start(replace(PLAIN, cpu=CpuConfig(features=(("vmx", True), ("avx512f", True)), enforce=True)))
