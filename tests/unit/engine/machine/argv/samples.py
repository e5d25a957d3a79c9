"""Machines and hosts for the tests of the command line."""

from pathlib import Path

from paddock.engine.machine.argv.view import EfiFiles, FileView, HostView, VirtioFs
from paddock.engine.machine.config import (
    ClockConfig,
    CpuConfig,
    DeviceConfig,
    DiskConfig,
    DiskLayer,
    FirmwareConfig,
    KernelConfig,
    MachineConfig,
    MemoryConfig,
    Nic,
    SharedDirectory,
    StreamNetwork,
    Tap,
    Tpm,
    UserNetwork,
)

MIB = 1 << 20
_OVMF = Path("/usr/share/OVMF")
EFI = EfiFiles(_OVMF / "OVMF_CODE_4M.fd", _OVMF / "OVMF_VARS_4M.fd")
SECURE_EFI = EfiFiles(_OVMF / "OVMF_CODE_4M.secboot.fd", _OVMF / "OVMF_VARS_4M.ms.fd")

TCG = HostView(
    qemu=Path("/usr/bin/qemu-system-x86_64"),
    accelerator="tcg",
    efi=EFI,
    secure_efi=SECURE_EFI,
    swtpm=Path("/usr/bin/swtpm"),
    virtiofs=VirtioFs(Path("/usr/libexec/virtiofsd")),
    files={Path("/volumes/slow.img"): FileView(direct=False), Path("/dev/sdz"): FileView(device=True, solid=True)},
)
KVM = HostView(
    qemu=TCG.qemu,
    accelerator="kvm",
    efi=EFI,
    secure_efi=SECURE_EFI,
    swtpm=TCG.swtpm,
    virtiofs=TCG.virtiofs,
    vhost_net=True,
    io_uring=True,
    files=TCG.files,
)
_AAVMF = EfiFiles(Path("/usr/share/AAVMF/AAVMF_CODE.fd"), Path("/usr/share/AAVMF/AAVMF_VARS.fd"))
ARM_TCG = HostView(qemu=Path("/usr/bin/qemu-system-aarch64"), accelerator="tcg", efi=_AAVMF, swtpm=TCG.swtpm)
ARM_KVM = HostView(qemu=ARM_TCG.qemu, accelerator="kvm", efi=_AAVMF, swtpm=TCG.swtpm)

UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"
ROOT = DiskLayer(Path("/volumes/root.img"), "raw")
OVERLAY = DiskLayer(Path("/scratch/over.qcow2"), "qcow2", backing=DiskLayer(Path("/images/base.qcow2"), "qcow2"))
USER = UserNetwork(
    network="10.0.2.0/24",
    gateway="10.0.2.1",
    address="10.0.2.2",
    dns="10.0.2.3",
    hostname="web",
    domain="svc.local",
    search=("ns.svc.local",),
    forwards=(("tcp", "127.0.0.1", 30022, 22),),
    network6="fd10:0:2::/64",
    gateway6="fd10:0:2::1",
    dns6="fd10:0:2::3",
)


def machine(**changes: object) -> MachineConfig:
    """The smallest machine, with changes."""
    given: dict[str, object] = {"label": "ns_vm", "cpu": CpuConfig(), "memory": MemoryConfig(128 * MIB, 128 * MIB), **changes}
    return MachineConfig(**given)  # type: ignore[arg-type]


PLAIN = machine(
    disks=(DiskConfig("rootdisk", OVERLAY), DiskConfig("cloudinit", DiskLayer(Path("/seeds/web.iso"), "raw"), readonly=True)),
    nics=(Nic("default", "02:00:00:00:00:01", Tap("tap0")),),
    firmware=FirmwareConfig(uuid=UUID, serial="s-1"),
)

FULL = machine(
    cpu=CpuConfig(
        sockets=2,
        cores=2,
        max_sockets=4,
        model="Skylake-Client",
        features=(("aes", False), ("avx2", True)),
        hyperv=(("hv-relaxed", "on"), ("hv-spinlocks", "0x1000")),
        kvm_hidden=True,
        pinned=(2, 3, 4, 5),
        emulator_pinned=(6,),
    ),
    memory=MemoryConfig(1024 * MIB, 4096 * MIB, shared=True),
    firmware=FirmwareConfig(
        kind="efi",
        secure_boot=True,
        variables=Path("/state/vars.fd"),
        uuid=UUID,
        serial="a,b=c",
        chassis=(("manufacturer", "M, Inc"), ("asset", "7")),
        acpi_tables=(Path("/seeds/slic.bin"),),
        files=(("opt/com.coreos/config", Path("/seeds/ignition.json")),),
    ),
    kernel=KernelConfig(Path("/images/vmlinuz"), Path("/images/initrd"), "console=ttyS0 root=/dev/vda,x"),
    disks=(
        DiskConfig("root", ROOT, boot_order=2, queues=4, iothread=1, cache="none", io="native", serial="r,1"),
        DiskConfig("shared", DiskLayer(Path("/volumes/slow.img"), "raw"), bus="scsi", shareable=True, error_policy="enospc"),
        DiskConfig("lun", DiskLayer(Path("/dev/sdz"), "raw"), bus="scsi", role="lun"),
        DiskConfig("install", DiskLayer(Path("/images/install.iso"), "raw"), bus="sata", role="cdrom", boot_order=1),
        DiskConfig("old", DiskLayer(Path("/volumes/old.img"), "raw"), bus="ide", logical_block=512, physical_block=4096),
        DiskConfig("stick", DiskLayer(Path("/volumes/stick.img"), "raw"), bus="usb", discard_granularity=4096),
        DiskConfig("placed", DiskLayer(Path("/volumes/placed.img"), "raw"), pci_address="0000:09:00.0"),
        DiskConfig("empty", None, bus="sata", role="cdrom"),
        DiskConfig("late", DiskLayer(Path("/volumes/late.img"), "raw"), hotplugged=True),
    ),
    nics=(
        Nic("default", "02:00:00:00:00:01", Tap("tap0", queues=4), mtu=1400, acpi_index=3),
        Nic("user", "02:00:00:00:00:02", USER, model="e1000e", boot_order=3),
        Nic("passt", "02:00:00:00:00:03", StreamNetwork(Path("passt.sock")), link_up=False),
        Nic("old", "02:00:00:00:00:04", USER, model="rtl8139"),
    ),
    devices=DeviceConfig(
        rng=True,
        tpm=Tpm(Path("/state/tpm")),
        watchdog="poweroff",
        inputs=(("tablet", "usb", "t0"), ("tablet", "virtio", "t1")),
        sound="ich9",
        panic=True,
        usb_redirections=4,
        generation_id=UUID,
        shared=(SharedDirectory("config", Path("/seeds/config"), readonly=True),),
        pci=("0000:03:00.0",),
    ),
    clock=ClockConfig(offset_seconds=5400, hpet=True, kvm=False, hyperv=True),
    smm=True,
    iothreads=2,
    reboot_ends=True,
    boot_menu=True,
)

BARE = machine(
    devices=DeviceConfig(serial=False, graphics=False, balloon=False, agent=False),
    hotplug=False,
    acpi=False,
    memory=MemoryConfig(64 * MIB, 256 * MIB, file=Path("/warm/ram"), private=True),
)

ARM = machine(
    architecture="arm64",
    machine_type="virt",
    disks=(DiskConfig("rootdisk", OVERLAY),),
    nics=(Nic("default", "02:00:00:00:00:01", Tap("tap0")),),
    devices=DeviceConfig(tpm=Tpm(), panic=True, watchdog="reset", inputs=(("tablet", "usb", "t"), ("keyboard", "usb", "k"))),
    firmware=FirmwareConfig(kind="efi", uuid=UUID),
)
