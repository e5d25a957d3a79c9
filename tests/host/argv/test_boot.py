"""Guests that begin: from every bus, by BIOS, EFI, Secure Boot or a kernel, in the order that was asked for.

The machines are written as manifests, and translated; what the engine's controllers would find for them is given here.
"""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.base.images.build import tiny
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskLayer, KernelConfig, MachineConfig, UserNetwork
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.defaults import InstallationDefaults, defaulted
from paddock.kubevirt.translate.config import machine_config
from paddock.kubevirt.translate.limits import Code
from paddock.kubevirt.translate.resolved import MachineInputs, ResolvedCard, ResolvedHost, ResolvedVolume
from tests.host.argv.conftest import Qemu, Start
from tests.host.bare import Bare
from tests.host.conftest import wait_until

pytestmark = pytest.mark.needs("qemu")

UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"
USER = UserNetwork(network="10.0.2.0/24", gateway="10.0.2.1", address="10.0.2.2", dns="10.0.2.3")


def speaker(path: Path, letter: str) -> DiskLayer:
    """A disk whose boot sector says a letter on the serial console."""
    code = b"\xba\xf8\x03" + b"".join(b"\xb0" + character.encode() + b"\xee" for character in f"<{letter}>") + b"\xf4\xeb\xfd"
    path.write_bytes(code.ljust(510, b"\0") + b"\x55\xaa" + b"\0" * ((1 << 20) - 512))
    return DiskLayer(path, "raw")


def machine(spec: Mapping[str, Any], found: MachineInputs) -> tuple[MachineConfig, set[Code]]:
    """The manifest's machine, and what was noted."""
    data = {"metadata": {"name": "vm", "namespace": "ns"}, "spec": spec}
    instance = msgspec.convert(data, VirtualMachineInstance)
    instance = msgspec.structs.replace(instance, spec=defaulted(instance.spec, InstallationDefaults()))
    result = machine_config(instance, found)
    assert result.startable, result.limits
    return result.config, {limit.code for limit in result.limits}


def hardware(memory: str = "32Mi", **domain: Any) -> dict[str, Any]:
    devices = {"autoattachGraphicsDevice": False, "autoattachPodInterface": False, "disableHotplug": True, **domain.pop("devices", {})}
    return {"domain": {"memory": {"guest": memory}, "devices": devices, **domain}}


def claims(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def volumes(**layers: DiskLayer) -> dict[str, ResolvedVolume]:
    return {name: ResolvedVolume(layer=layer) for name, layer in layers.items()}


def says(qemu: Qemu, text: str, seconds: float = 60) -> None:
    wait_until(f"the guest says {text}", lambda: text in qemu.console(), seconds)


ROWS: list[tuple[dict[str, Any], Code | None]] = [
    ({"disk": {"bus": "ide"}}, None),
    ({"cdrom": {"bus": "virtio"}}, Code.CDROM_IS_DISK),
    ({"disk": {"bus": "virtio"}, "io": "io_uring"}, None),
    ({"disk": {"bus": "virtio"}}, None),
    ({"disk": {"bus": "sata"}}, None),
    ({"disk": {"bus": "scsi"}}, None),
    ({"disk": {"bus": "usb"}}, None),
]


@pytest.mark.spec("kubevirt", 9)
def test_a_guest_boots_from_what_upstream_refuses_and_from_every_bus(start: Start, work: Path) -> None:
    for number, (device, note) in enumerate(ROWS):
        layer = speaker(work / str(number), str(number))
        spec = {**hardware(devices={"disks": [{"name": "root", **device}]}), "volumes": claims("root")}
        config, notes = machine(spec, MachineInputs(volumes=volumes(root=layer)))
        assert notes == ({note} if note else set())
        qemu = start(config)
        qemu.run()
        says(qemu, f"<{number}>")
        qemu.end()


def test_io_uring_falls_back_where_the_kernel_has_none(start: Start, work: Path) -> None:
    spec = {**hardware(devices={"disks": [{"name": "root", "disk": {"bus": "virtio"}, "io": "io_uring"}]}), "volumes": claims("root")}
    found = MachineInputs(volumes=volumes(root=speaker(work / "root", "u")), host=ResolvedHost(io_uring=False))
    config, notes = machine(spec, found)
    assert notes == {Code.IO_URING_MISSING}
    qemu = start(config)
    qemu.run()
    says(qemu, "<u>")


def ordered(work: Path, orders: Mapping[str, int | None], card: int | None = None) -> MachineConfig:
    """Two disks that say their names, on different buses, and a card; each with its place in the order."""
    disks: list[dict[str, Any]] = [{"name": name, "disk": {"bus": bus}} for name, bus in (("a", "sata"), ("b", "virtio"))]
    interface: dict[str, Any] = {"name": "default", "masquerade": {}}
    for device, order in ((disks[0], orders["a"]), (disks[1], orders["b"]), (interface, card)):
        if order is not None:
            device["bootOrder"] = order
    devices = {"disks": disks, "interfaces": [interface]}
    firmware = {"bootloader": {"bios": {"useSerial": True}}}
    spec = {**hardware(devices=devices, firmware=firmware), "volumes": claims("a", "b"), "networks": [{"name": "default", "pod": {}}]}
    found = MachineInputs(
        volumes=volumes(a=speaker(work / "a", "a"), b=speaker(work / "b", "b")),
        cards={"default": ResolvedCard(mac="02:00:00:00:00:01", backend=USER)},
    )
    return machine(spec, found)[0]


@pytest.mark.spec("kubevirt", 85)
@pytest.mark.parametrize(
    ("orders", "card", "first", "never"),
    [
        ({"a": 1, "b": 2}, None, "<a>", ("<b>", "iPXE")),
        ({"a": 2, "b": 1}, None, "<b>", ("<a>", "iPXE")),
        ({"a": None, "b": None}, None, "<a>", ("<b>", "iPXE")),
        ({"a": None, "b": 1}, None, "<b>", ("<a>", "iPXE")),
        ({"a": 2, "b": None}, 1, "iPXE", ("<a>", "<b>")),
    ],
)
def test_boot_order_across_disks_and_cards(start: Start, work: Path, orders: Any, card: int | None, first: str, never: Any) -> None:
    qemu = start(ordered(work, orders, card))
    qemu.run()
    says(qemu, first)
    assert not [text for text in never if text in qemu.console()]


# --- firmware and real guests ---------------------------------------------------------------------------------------------


def over(base: Path, path: Path) -> DiskLayer:
    """A layer over the tiny guest's disk."""
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", "qcow2", str(path)]
    subprocess.run(command, check=True)
    return DiskLayer(path, "qcow2", backing=DiskLayer(base, "qcow2"))


@pytest.mark.spec("kubevirt", 169)
def test_cards_are_where_they_are_to_be(start: Start, tiny_guest: tiny.TinyImage) -> None:
    wanted = {"one": ("e1000", "0000:02:01.0"), "two": ("virtio", "0000:03:00.0")}
    cards = [{"name": name, "masquerade": {}, "model": model, "pciAddress": at} for name, (model, at) in wanted.items()]
    boot = {"kernelArgs": "console=ttyS0 quiet", "container": {"image": "x", "kernelPath": "/k"}}
    spec = hardware("192Mi", firmware={"kernelBoot": boot, "uuid": UUID}, devices={"interfaces": cards})
    found = MachineInputs(
        kernel=KernelConfig(tiny_guest.bare, tiny_guest.initrd),
        cards={name: ResolvedCard(mac=f"02:00:00:00:00:0{index}", backend=USER) for index, name in enumerate(wanted)},
    )
    qemu = start(machine({**spec, "networks": [{"name": name, "pod": {}} for name in wanted]}, found)[0])
    qemu.run()
    says(qemu, "READY", 600)
    guest = Bare(qemu.directory / names.SERIAL_LOG, qemu.directory / names.AGENT, 600)
    vendors = [guest.shell(f"cat /sys/bus/pci/devices/{at}/vendor").strip() for _, at in wanted.values()]
    assert vendors == ["0x8086", "0x1af4"]


@pytest.mark.spec("kubevirt", 85)
def test_a_kernel_that_is_started_directly(start: Start, tiny_guest: tiny.TinyImage) -> None:
    firmware = {"kernelBoot": {"kernelArgs": "console=ttyS0 quiet", "container": {"image": "x", "kernelPath": "/k"}}, "uuid": UUID}
    config, _ = machine(hardware("192Mi", firmware=firmware), MachineInputs(kernel=KernelConfig(tiny_guest.bare, tiny_guest.initrd)))
    qemu = start(config)
    qemu.run()
    says(qemu, "READY")


def efi(secure: bool, persistent: bool = False) -> dict[str, Any]:
    return {
        "firmware": {"bootloader": {"efi": {"secureBoot": secure, "persistent": persistent}}, "uuid": UUID, "serial": "paddock-1"},
        "features": {"smm": {"enabled": secure}},
    }


@pytest.mark.spec("kubevirt", 85)
@pytest.mark.needs("ovmf")
def test_efi_boots_and_its_variables_stay_or_are_new(start: Start, work: Path, tiny_guest: tiny.TinyImage) -> None:
    kept = work / "state" / "vars.fd"
    kept.parent.mkdir()
    spec = {**hardware("256Mi", **efi(False, persistent=True), devices={"disks": [{"name": "root", "disk": {"bus": "virtio"}}]})}
    spec["volumes"] = claims("root")
    found = MachineInputs(volumes=volumes(root=over(tiny_guest.disk, work / "over.qcow2")), efi_variables=kept)
    config, _ = machine(spec, found)
    template = Path("/usr/share/OVMF/OVMF_VARS_4M.fd").read_bytes()
    qemu = start(config)
    assert kept.read_bytes() == template
    qemu.run()
    says(qemu, "READY", 120)
    qemu.end()
    first = kept.read_bytes()
    assert first != template
    # The next start finds what the last one left ...
    again = start(config)
    assert kept.read_bytes() == first
    again.end()
    # ... unless nothing is to be kept.
    fresh, _ = machine({**spec, "domain": {**spec["domain"], **efi(False)}}, found)
    qemu = start(fresh)
    assert (qemu.directory / "efi-vars.fd").read_bytes() == template


def secure(memory: str) -> dict[str, Any]:
    """A machine with Secure Boot and one disk."""
    spec = hardware(memory, **efi(True), devices={"disks": [{"name": "root", "disk": {"bus": "virtio"}}]})
    return {**spec, "volumes": claims("root")}


@pytest.mark.spec("kubevirt", 85)
@pytest.mark.needs("ovmf", "mtools")
def test_secure_boot_refuses_what_nobody_signed(start: Start, work: Path, tiny_guest: tiny.TinyImage) -> None:
    image = work / "esp.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    # A kernel is an EFI program, too, and this one was made here.
    commands = (["mkfs.vfat", "-F", "32", str(image)], ["mmd", "-i", str(image), "::EFI", "::EFI/BOOT"])
    for command in (*commands, ["mcopy", "-i", str(image), str(tiny_guest.kernel), "::EFI/BOOT/BOOTX64.EFI"]):
        subprocess.run(command, check=True, capture_output=True)
    config, _ = machine(secure("256Mi"), MachineInputs(volumes=volumes(root=DiskLayer(image, "raw"))))
    qemu = start(config)
    qemu.run()
    says(qemu, "Access Denied", 60)
    qemu.end()
    # Without Secure Boot the same disk starts: it fails later, for want of a root file system.
    spec = {**secure("256Mi"), "domain": {**secure("256Mi")["domain"], **efi(False)}}
    config, _ = machine(spec, MachineInputs(volumes=volumes(root=DiskLayer(image, "raw"))))
    qemu = start(config)
    qemu.run()
    wait_until("the firmware starts the program", lambda: "BdsDxe: starting Boot" in qemu.console(), 60)
    assert "Access Denied" not in qemu.console()


@pytest.mark.spec("kubevirt", 85)
@pytest.mark.needs("ovmf")
@pytest.mark.slow
def test_secure_boot_starts_what_is_signed(start: Start, work: Path, tiny_signed: tiny.TinyImage) -> None:
    config, _ = machine(secure("512Mi"), MachineInputs(volumes=volumes(root=over(tiny_signed.disk, work / "over.qcow2"))))
    qemu = start(config)
    qemu.run()
    says(qemu, "READY", 180)
