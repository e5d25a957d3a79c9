"""The table for disks, network cards and the other devices."""

from paddock.kubevirt.translate.limits import Code
from tools.kubevirtsupport.row import SupportRow, card, disk

_DISK = "domain.devices.disks[]"
_CARD = "domain.devices.interfaces[]"
_LONG = "x" * 30

DISKS = (
    SupportRow(f"{_DISK}.name", "QEMU", "The volume of this name; the device's id.", disk(name="root"), '"id":"ua-root"'),
    SupportRow(f"{_DISK}.disk", "QEMU", "A hard disk.", disk(), '"driver":"ide-hd"'),
    *(
        SupportRow(f"{_DISK}.disk.bus", "QEMU", f"{bus}.", disk(bus=bus), shows)
        for bus, shows in (
            ("virtio", '"driver":"virtio-blk-pci-non-transitional"'),
            ("sata", '"driver":"ide-hd"'),
            ("scsi", '"driver":"scsi-hd"'),
            ("usb", '"driver":"usb-storage"'),
            ("ide", '"driver":"piix3-ide"'),
        )
    ),
    SupportRow(
        f"{_DISK}.disk.readonly", "QEMU", "The guest cannot write.", disk(bus="virtio", target={"readonly": True}), '"read-only":true'
    ),
    SupportRow(
        f"{_DISK}.disk.pciAddress",
        "QEMU",
        "Bus 00 is the root bus. Another one is a root port, with slot 00, or from 02 on a bridge. What is not there ends the start.",
        disk(bus="virtio", target={"pciAddress": "0000:05:00.0"}),
        '"bus":"pci.5","addr":"0x0.0x0"',
    ),
    SupportRow(f"{_DISK}.lun", "QEMU", "A SCSI device of the host.", disk(kind="lun", bus="scsi", name="device"), '"driver":"scsi-block"'),
    SupportRow(
        f"{_DISK}.lun.bus",
        "no effect",
        "A file is no SCSI device: the guest sees a plain disk.",
        disk(kind="lun", bus="scsi"),
        Code.LUN_IS_DISK,
    ),
    SupportRow(
        f"{_DISK}.lun.readonly",
        "QEMU",
        "The guest cannot write.",
        disk(kind="lun", bus="scsi", target={"readonly": True}),
        '"read-only":true',
    ),
    SupportRow(
        f"{_DISK}.lun.reservation",
        "no effect",
        "Persistent reservations stay with the host.",
        disk(kind="lun", bus="scsi", name="device", target={"reservation": True}),
        Code.RESERVATION_MISSING,
    ),
    *(
        SupportRow(f"{_DISK}.cdrom.bus", "QEMU", f"{bus}.", disk(kind="cdrom", bus=bus), shows)
        for bus, shows in (
            ("sata", '"driver":"ide-cd"'),
            ("scsi", '"driver":"scsi-cd"'),
            ("usb", '"driver":"usb-bot"'),
            ("ide", '"bus":"ide9.0"'),
        )
    ),
    SupportRow(f"{_DISK}.cdrom.bus", "QEMU", "virtio: a disk that is only read.", disk(kind="cdrom", bus="virtio"), Code.CDROM_IS_DISK),
    SupportRow(
        f"{_DISK}.cdrom.readonly",
        "QEMU",
        "A drive is only read, whatever it says.",
        disk(kind="cdrom", target={"readonly": False}),
        '"read-only":true',
    ),
    SupportRow(
        f"{_DISK}.cdrom.tray", "QEMU", "open: no medium at the start.", disk(kind="cdrom", target={"tray": "open"}), lacks='"drive":'
    ),
    SupportRow(f"{_DISK}.bootOrder", "QEMU", "Place among the boot devices.", disk(bootOrder=7), '"bootindex":7'),
    SupportRow(f"{_DISK}.serial", "QEMU", "Serial number of the disk.", disk(serial="abc"), '"serial":"abc"'),
    SupportRow(
        f"{_DISK}.serial", "QEMU", "The first 20 characters on virtio, sata and ide.", disk(bus="virtio", serial=_LONG), Code.SERIAL_CUT
    ),
    SupportRow(f"{_DISK}.serial", "refused", "More than 36 characters on scsi.", disk(bus="scsi", serial=_LONG * 2), Code.SERIAL_TOO_LONG),
    SupportRow(
        f"{_DISK}.dedicatedIOThread",
        "QEMU",
        "An I/O thread of its own.",
        disk(bus="virtio", dedicatedIOThread=True),
        '"iothread":"iothread1"',
    ),
    SupportRow(f"{_DISK}.cache", "QEMU", "none: past the host's cache.", disk(cache="none"), '"cache":{"direct":true'),
    SupportRow(f"{_DISK}.cache", "QEMU", "writethrough.", disk(cache="writethrough"), '"write-cache":"off"'),
    SupportRow(f"{_DISK}.cache", "QEMU", "writeback.", disk(cache="writeback"), '"cache":{"direct":false,"no-flush":false}'),
    SupportRow(f"{_DISK}.io", "QEMU", "native, threads, io_uring.", disk(cache="none", io="native"), '"aio":"native"'),
    SupportRow(f"{_DISK}.io", "QEMU", "io_uring where the kernel has it.", disk(io="io_uring"), '"aio":"io_uring"'),
    SupportRow(
        f"{_DISK}.io", "no effect", "io_uring where it has not.", disk(io="io_uring"), Code.IO_URING_MISSING, host={"io_uring": False}
    ),
    SupportRow(f"{_DISK}.tag", "no effect", "The metadata of the config drive names cards and host devices."),
    *(
        SupportRow(
            f"{_DISK}.blockSize.custom.{member}",
            "QEMU",
            "Sizes of blocks.",
            disk(bus="virtio", blockSize={"custom": {"logical": 512, "physical": 4096, "discardGranularity": 65536}}),
            shows,
        )
        for member, shows in (
            ("logical", '"logical_block_size":512'),
            ("physical", '"physical_block_size":4096'),
            ("discardGranularity", '"discard_granularity":65536'),
        )
    ),
    SupportRow(
        f"{_DISK}.blockSize.matchVolume.enabled",
        "QEMU",
        "The sizes of the device of the host; a file has none of its own.",
        disk(bus="virtio", name="device", blockSize={"matchVolume": {}}),
        '"logical_block_size":4096,"physical_block_size":4096',
    ),
    SupportRow(f"{_DISK}.shareable", "QEMU", "Several machines may write.", disk(shareable=True), '"share-rw":true'),
    SupportRow(f"{_DISK}.errorPolicy", "QEMU", "What an I/O error does.", disk(errorPolicy="enospace"), '"werror":"enospc"'),
    SupportRow(
        f"{_DISK}.changedBlockTracking",
        "no effect",
        "Disks on claims are followed in any case, others never.",
        disk(changedBlockTracking=True, shareable=True),
        Code.TRACKING_MISSING,
    ),
    SupportRow(f"{_DISK}.name", "refused", "The volume cannot be used.", disk(name="missing"), Code.VOLUME_FAILED),
)

CARDS = (
    SupportRow(f"{_CARD}.name", "QEMU", "The network of this name; the device's id.", card(name="web"), '"id":"net-web"'),
    *(
        SupportRow(f"{_CARD}.model", "QEMU", f"{model}.", card(model=model), f'"driver":"{driver}"')
        for model, driver in (
            ("virtio", "virtio-net-pci-non-transitional"),
            ("e1000", "e1000"),
            ("e1000e", "e1000e"),
            ("rtl8139", "rtl8139"),
            ("pcnet", "pcnet"),
            ("ne2k_pci", "ne2k_pci"),
            ("igb", "igb"),
        )
    ),
    SupportRow(
        f"{_CARD}.masquerade",
        "networks",
        "Behind an address of its own; a tap, or user-mode networking without root.",
        card(),
        '"type":"tap"',
    ),
    SupportRow(f"{_CARD}.bridge", "networks", "On the network itself.", card(bridge={}), '"type":"tap"'),
    SupportRow(
        f"{_CARD}.passtBinding",
        "networks",
        "User-mode networking by passt.",
        card(passtBinding={}),
        '"netdev":"n-default"',
    ),
    SupportRow(
        f"{_CARD}.binding.name",
        "networks",
        "passt, l2bridge and managedtap are known.",
        card(binding={"name": "passt"}),
        '"netdev":"n-default"',
    ),
    SupportRow(
        f"{_CARD}.sriov", "QEMU", "The guest gets the virtual function itself.", card(sriov={}, name="function"), '"driver":"vfio-pci"'
    ),
    SupportRow(f"{_CARD}.sriov", "refused", "No function is free.", card(sriov={}, name="missing"), Code.SRIOV_MISSING),
    *(SupportRow(f"{_CARD}.{name}", "refused", "Refused by the API since v1.3.") for name in ("slirp", "passt", "macvtap")),
    SupportRow(f"{_CARD}.ports.**", "networks", "Only these ports are forwarded under masquerade."),
    SupportRow(f"{_CARD}.portRanges.**", "networks", "Only these ports are forwarded under masquerade."),
    SupportRow(f"{_CARD}.macAddress", "QEMU", "The hardware address.", card(macAddress="02:00:00:00:00:aa"), '"mac":"02:00:00:00:00:aa"'),
    SupportRow(
        f"{_CARD}.bootOrder", "QEMU", "Place among the boot devices; the card gets its boot ROM.", card(bootOrder=5), '"bootindex":5'
    ),
    SupportRow(f"{_CARD}.pciAddress", "QEMU", "As with disks.", card(pciAddress="0000:06:01.0"), '"bus":"pci.6"'),
    SupportRow(f"{_CARD}.acpiIndex", "QEMU", "The index by which the guest names the card.", card(acpiIndex=4), '"acpi-index":4'),
    SupportRow(f"{_CARD}.dhcpOptions.**", "networks", "Told by the DHCP server."),
    SupportRow(f"{_CARD}.tag", "seed disk", "In the config drive's metadata."),
    SupportRow(f"{_CARD}.state", "QEMU", "down: without a link. absent: the card is taken out.", card(state="down"), "set_link"),
    SupportRow(
        f"{_CARD}.state", "QEMU", "absent.", card(bridge={}, state="absent", network={"multus": {"networkName": "x"}}), lacks='"netdev":'
    ),
    SupportRow(f"{_CARD}.name", "refused", "The network cannot be connected.", card(name="missing"), Code.CARD_FAILED),
)


def _devices(member: str, value: object) -> dict[str, object]:
    return {f"domain.devices.{member}": value}


_SHARE = {"domain.devices.filesystems": [{"name": "v", "virtiofs": {}}], "volumes": [{"name": "v", "configMap": {"name": "c"}}]}
_PATH = {"domain.devices.filesystems": [{"name": "v", "virtiofs": {}}], "volumes": [{"name": "v", "containerPath": {"path": "/x"}}]}
_TABLET = {"name": "t", "type": "tablet"}
_GPU = {"name": "gpu", "deviceName": "maker/gpu"}
_CLAIMED = {"name": "gpu", "claimName": "c", "requestName": "r"}
CLAIMS = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}

OTHERS = (
    SupportRow("domain.devices.filesystems[].**", "QEMU", "A directory by virtiofs, with memory that is shared.", _SHARE, '"tag":"v"'),
    SupportRow(
        "domain.devices.inputs[].name", "no effect", "Names are for people.", _devices("inputs", [_TABLET]), '"driver":"usb-tablet"'
    ),
    SupportRow("domain.devices.inputs[].type", "QEMU", "A tablet.", _devices("inputs", [_TABLET]), '"driver":"usb-tablet"'),
    SupportRow(
        "domain.devices.inputs[].bus",
        "QEMU",
        "usb or virtio.",
        _devices("inputs", [{**_TABLET, "bus": "virtio"}]),
        '"driver":"virtio-tablet-pci"',
    ),
    SupportRow("domain.devices.watchdog.name", "no effect", "Names are for people."),
    SupportRow(
        "domain.devices.watchdog.i6300esb",
        "QEMU",
        "Intel 6300ESB.",
        _devices("watchdog", {"name": "w", "i6300esb": {}}),
        '"driver":"i6300esb"',
    ),
    SupportRow(
        "domain.devices.watchdog.i6300esb.action",
        "QEMU",
        "What it does when it is not fed.",
        _devices("watchdog", {"name": "w", "i6300esb": {"action": "poweroff"}}),
        "-action watchdog=poweroff",
    ),
    SupportRow(
        "domain.devices.watchdog.diag288.**",
        "refused",
        "s390x only.",
        _devices("watchdog", {"name": "w", "diag288": {}}),
        Code.WATCHDOG_MISSING,
    ),
    SupportRow(
        "domain.devices.rng", "QEMU", "Random numbers of the host.", _devices("rng", {}), '"driver":"virtio-rng-pci-non-transitional"'
    ),
    SupportRow("domain.devices.tpm", "QEMU", "TPM 2.0 by swtpm.", _devices("tpm", {}), '"driver":"tpm-tis"'),
    SupportRow("domain.devices.tpm.enabled", "QEMU", "false: none.", _devices("tpm", {"enabled": False}), lacks="tpm-"),
    SupportRow(
        "domain.devices.tpm.persistent",
        "QEMU",
        "Its state is kept over restarts.",
        _devices("tpm", {"persistent": True}),
        '"driver":"tpm-crb"',
    ),
    SupportRow("domain.devices.sound.name", "no effect", "Names are for people."),
    SupportRow(
        "domain.devices.sound.model", "QEMU", "ich9 or ac97, unheard.", _devices("sound", {"name": "s", "model": "ac97"}), '"driver":"AC97"'
    ),
    *(
        SupportRow("domain.devices.video.type", "QEMU", f"{kind}.", _devices("video", {"type": kind}), f'"driver":"{driver}"')
        for kind, driver in (
            ("vga", "VGA"),
            ("cirrus", "cirrus-vga"),
            ("virtio", "virtio-vga"),
            ("bochs", "bochs-display"),
            ("ramfb", "ramfb"),
        )
    ),
    *(
        row
        for kind in ("gpus", "hostDevices")
        for row in (
            SupportRow(
                f"domain.devices.{kind}[].name", "no effect", "Names are for people.", _devices(kind, [_GPU]), '"driver":"vfio-pci"'
            ),
            SupportRow(
                f"domain.devices.{kind}[].deviceName",
                "QEMU",
                "A permitted PCI device of the host.",
                _devices(kind, [_GPU]),
                '"host":"0000:01:00.0"',
            ),
            SupportRow(
                f"domain.devices.{kind}[].deviceName",
                "refused",
                "None is free or permitted.",
                _devices(kind, [{**_GPU, "name": "missing"}]),
                Code.DEVICE_MISSING,
            ),
            SupportRow(
                f"domain.devices.{kind}[].claimName", "refused", "No DRA.", {**_devices(kind, [_CLAIMED]), **CLAIMS}, Code.CLAIM_REFUSED
            ),
            SupportRow(
                f"domain.devices.{kind}[].requestName",
                "refused",
                "No DRA.",
                {**_devices(kind, [_CLAIMED]), **CLAIMS},
                Code.CLAIM_REFUSED,
            ),
            SupportRow(f"domain.devices.{kind}[].tag", "seed disk", "In the config drive's metadata."),
        )
    ),
    SupportRow(
        "domain.devices.gpus[].virtualGPUOptions.**",
        "no effect",
        "A GPU's own display is not shown.",
        _devices("gpus", [{**_GPU, "virtualGPUOptions": {"display": {}}}]),
        Code.DISPLAY_MISSING,
    ),
    SupportRow(
        "domain.devices.panicDevices[].model",
        "QEMU",
        "isa and pvpanic.",
        _devices("panicDevices", [{"model": "isa"}]),
        '"driver":"pvpanic"',
    ),
    SupportRow(
        "domain.devices.panicDevices[].model", "QEMU", "hyperv.", _devices("panicDevices", [{"model": "hyperv"}]), "hv-crash=on", kvm=True
    ),
    SupportRow(
        "domain.devices.clientPassthrough",
        "QEMU",
        "Four ports for USB devices of clients.",
        _devices("clientPassthrough", {}),
        '"id":"redir3"',
    ),
    SupportRow(
        "domain.devices.downwardMetrics",
        "no effect",
        "Metrics of the host stay with it.",
        _devices("downwardMetrics", {}),
        Code.METRICS_MISSING,
    ),
    SupportRow(
        "domain.devices.autoattachPodInterface", "QEMU", "false: no card.", _devices("autoattachPodInterface", False), lacks="-netdev"
    ),
    SupportRow(
        "domain.devices.autoattachGraphicsDevice",
        "QEMU",
        "false: no card, no VNC.",
        _devices("autoattachGraphicsDevice", False),
        "-display none",
    ),
    SupportRow(
        "domain.devices.autoattachSerialConsole",
        "QEMU",
        "false: no console.",
        _devices("autoattachSerialConsole", False),
        lacks="isa-serial",
    ),
    SupportRow("domain.devices.logSerialConsole", "QEMU", "false: no log of it.", _devices("logSerialConsole", False), lacks="logfile"),
    SupportRow(
        "domain.devices.autoattachMemBalloon", "QEMU", "false: no balloon.", _devices("autoattachMemBalloon", False), lacks="virtio-balloon"
    ),
    SupportRow(
        "domain.devices.autoattachInputDevice", "QEMU", "true: a tablet.", _devices("autoattachInputDevice", True), '"driver":"usb-tablet"'
    ),
    SupportRow("domain.devices.autoattachVSOCK", "QEMU", "A VSOCK.", _devices("autoattachVSOCK", True), '"guest-cid":42'),
    SupportRow(
        "domain.devices.autoattachVSOCK",
        "refused",
        "The host has none.",
        _devices("autoattachVSOCK", True),
        Code.VSOCK_MISSING,
        host={"vsock": False},
    ),
    SupportRow(
        "domain.devices.blockMultiQueue",
        "QEMU",
        "A queue for each vCPU.",
        {**disk(bus="virtio"), "domain.cpu.cores": 4, "domain.devices.blockMultiQueue": True},
        '"num-queues":4',
    ),
    SupportRow(
        "domain.devices.networkInterfaceMultiqueue",
        "QEMU",
        "A queue for each vCPU.",
        {**card(name="queues"), "domain.cpu.cores": 4, "domain.devices.networkInterfaceMultiqueue": True},
        '"mq":true,"vectors":10',
    ),
    SupportRow(
        "domain.devices.networkInterfaceMultiqueue",
        "no effect",
        "User-mode networking has one queue.",
        {**card(name="user"), "domain.cpu.cores": 4, "domain.devices.networkInterfaceMultiqueue": True},
        Code.QUEUES_MISSING,
    ),
    SupportRow(
        "domain.devices.disableHotplug",
        "QEMU",
        "No empty ports, no SCSI controller.",
        _devices("disableHotplug", True),
        lacks="virtio-scsi",
    ),
    SupportRow(
        "domain.devices.useVirtioTransitional",
        "QEMU",
        "Virtio that old guests understand.",
        _devices("useVirtioTransitional", True),
        '"driver":"virtio-serial-pci-transitional"',
    ),
    SupportRow("volumes[].containerPath.**", "refused", "There is no launcher container.", _PATH, Code.CONTAINER_PATH_REFUSED),
)

ROWS = (*DISKS, *CARDS, *OTHERS)
