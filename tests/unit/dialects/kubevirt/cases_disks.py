"""V42 to V60: disks."""

from typing import Any

from paddock.schema.finding import CauseType, Severity
from tests.unit.dialects.kubevirt.cases import Case, disk

_DISK = "P.domain.devices.disks[1]"
_CLAIM = {"P.volumes[1]": {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}}


def _blocks(**custom: int) -> dict[str, Any]:
    return disk(disk={"bus": "virtio"}, blockSize={"custom": custom})


CASES = (
    Case(42, "no volume", {_DISK: {"name": "data"}}, f"{_DISK}.name", 'Invalid value: "data": no volume of this name', disk()),
    Case(
        42,
        "in the words of Kubermatic",
        {_DISK: {"name": "data"}},
        f"{_DISK}.name",
        'Invalid value: "data": no volume of this name',
        {_DISK: {"name": "data", "cdrom": {"bus": "sata"}}},
    ),
    Case(
        43,
        "no disk",
        {"P.volumes[1]": {"name": "data", "emptyDisk": {"capacity": "1Gi"}}},
        "P.volumes[1].name",
        "no disk or filesystem of this name",
        {"P.volumes[1]": {"name": "data", "memoryDump": {"claimName": "dump"}}},
        severity=Severity.NOTE,
    ),
    Case(
        43,
        "a filesystem will do",
        {"P.volumes[1]": {"name": "data", "configMap": {"name": "x"}}},
        "P.volumes[1].name",
        "no disk or filesystem of this name",
        {"P.volumes[1]": {"name": "data", "configMap": {"name": "x"}}, "P.domain.devices.filesystems": [{"name": "data", "virtiofs": {}}]},
        severity=Severity.NOTE,
    ),
    Case(44, "twice", {_DISK: {"name": "root"}}, f"{_DISK}.name", "must not have the same Name", disk(), cause=CauseType.DUPLICATE),
    Case(
        45,
        "two targets",
        disk(disk={}, cdrom={"bus": "sata"}),
        _DISK,
        "can only have a single target type defined",
        disk(cdrom={"bus": "sata"}),
    ),
    Case(
        46,
        "not a claim",
        disk(lun={"bus": "scsi"}),
        f"{_DISK}.lun",
        "persistentVolumeClaim or dataVolume",
        {**disk(lun={"bus": "scsi"}), **_CLAIM},
    ),
    Case(
        47,
        "bus",
        disk(disk={"bus": "sata", "pciAddress": "0000:81:01.0"}),
        "P.domain.devices.disks.disk[1].pciAddress",
        "virtio",
        disk(disk={"bus": "virtio", "pciAddress": "0000:81:01.0"}),
    ),
    Case(
        47,
        "malformed",
        disk(disk={"bus": "virtio", "pciAddress": "81:01.0"}),
        "P.domain.devices.disks.disk[1].pciAddress",
        "malformed",
        disk(disk={"bus": "virtio", "pciAddress": "0000:81:01.7"}),
    ),
    Case(48, "zero", disk(bootOrder=0), f"{_DISK}.bootOrder", "must have a boot order > 0", disk(bootOrder=1)),
    Case(
        49,
        "two disks",
        {**disk(bootOrder=1), "P.domain.devices.disks[0].bootOrder": 1},
        f"{_DISK}.bootOrder",
        "already set for",
        disk(bootOrder=1),
        cause=CauseType.DUPLICATE,
    ),
    Case(
        49,
        "disk and card",
        {**disk(bootOrder=1), "P.domain.devices.interfaces[0].bootOrder": 1},
        "P.domain.devices.interfaces[0].bootOrder",
        "Duplicate value: 1",
        {**disk(bootOrder=1), "P.domain.devices.interfaces[0].bootOrder": 2},
        cause=CauseType.DUPLICATE,
    ),
    *(
        Case(
            50,
            f"{name} on a cluster",
            disk(**{name: {"bus": "ide"}}),
            f"{_DISK}.{name}.bus",
            "IDE bus is not supported; use sata",
            disk(**{name: {"bus": "ide"}}),
            settings={"target": "cluster"},
            good_settings={},
        )
        for name in ("disk", "cdrom")
    ),
    Case(
        51,
        "on a cluster",
        disk(cdrom={"bus": "virtio"}),
        f"{_DISK}.cdrom.bus",
        "Bus type virtio is invalid for CD-ROM device",
        disk(cdrom={"bus": "virtio"}),
        settings={"target": "cluster"},
        good_settings={},
    ),
    Case(
        52,
        "read-only",
        disk(disk={"bus": "sata", "readonly": True}),
        f"{_DISK}.disk.bus",
        "read-only",
        disk(cdrom={"bus": "sata", "readonly": True}),
    ),
    Case(52, "by default", disk(disk={"readonly": True}), f"{_DISK}.disk.bus", "read-only", disk(disk={"bus": "virtio", "readonly": True})),
    *(
        Case(
            53,
            name,
            disk(**{name: {"bus": "fdc"}}),
            f"{_DISK}.{name}.bus",
            'Unsupported value: "fdc"',
            {**disk(**{name: {"bus": "scsi"}}), **_CLAIM},
            cause=CauseType.NOT_SUPPORTED,
        )
        for name in ("disk", "lun", "cdrom")
    ),
    Case(
        54,
        "usb",
        disk(disk={"bus": "usb"}, dedicatedIOThread=True),
        _DISK,
        "IOThreads are not supported",
        disk(disk={"bus": "virtio"}, dedicatedIOThread=True),
    ),
    Case(
        54, "by default", disk(dedicatedIOThread=True), _DISK, "on a sata bus", {**disk(dedicatedIOThread=True), "P.architecture": "arm64"}
    ),
    Case(55, "letters", disk(serial="a b"), f"{_DISK}.serial", "must consist of", disk(serial="WD-1.a_b+c")),
    Case(55, "long", disk(serial="x" * 257), f"{_DISK}.serial", "no more than 256", disk(serial="x" * 256), cause=CauseType.TOO_LONG),
    Case(
        56,
        "cache",
        disk(cache="unsafe"),
        f"{_DISK}.cache",
        'Unsupported value: "unsafe"',
        disk(cache="writeback"),
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        57,
        "on a cluster",
        disk(io="io_uring"),
        f"{_DISK}.io",
        'Unsupported value: "io_uring"',
        disk(io="io_uring"),
        settings={"target": "cluster"},
        good_settings={},
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(57, "unknown", disk(io="fast"), f"{_DISK}.io", 'Unsupported value: "fast"', disk(io="native"), cause=CauseType.NOT_SUPPORTED),
    Case(
        58,
        "error policy",
        disk(errorPolicy="retry"),
        f"{_DISK}.errorPolicy",
        'Unsupported value: "retry"',
        disk(errorPolicy="enospace"),
        cause=CauseType.NOT_SUPPORTED,
    ),
    Case(
        59,
        "letters",
        {"P.domain.devices.disks[1]": {"name": "Data_1"}, "P.volumes[1]": {"name": "Data_1", "emptyDisk": {"capacity": "1Gi"}}},
        f"{_DISK}.name",
        "DNS-1123 label",
        disk(),
    ),
    Case(
        59,
        "long",
        {"P.domain.devices.disks[1]": {"name": "d" * 64}, "P.volumes[1]": {"name": "d" * 64, "emptyDisk": {"capacity": "1Gi"}}},
        f"{_DISK}.name",
        "DNS-1123 label",
        disk(),
    ),
    Case(
        60,
        "small",
        _blocks(logical=256, physical=512),
        f"{_DISK}.blockSize.custom.logical",
        "between 512 and 2097152",
        _blocks(logical=512, physical=4096),
    ),
    Case(
        60,
        "large",
        _blocks(logical=512, physical=4194304),
        f"{_DISK}.blockSize.custom.physical",
        "between 512 and 2097152",
        _blocks(logical=512, physical=2097152),
    ),
    Case(
        60,
        "odd",
        _blocks(logical=1000, physical=4096),
        f"{_DISK}.blockSize.custom.logical",
        "power of 2",
        _blocks(logical=1024, physical=4096),
    ),
    Case(
        60,
        "logical over physical",
        _blocks(logical=4096, physical=512),
        f"{_DISK}.blockSize.custom.logical",
        "must not be greater than physical",
        _blocks(logical=4096, physical=4096),
    ),
    Case(
        60,
        "sata",
        disk(disk={"bus": "sata"}, blockSize={"custom": {"logical": 4096, "physical": 4096}}),
        f"{_DISK}.blockSize.custom.logical",
        "must be 512",
        disk(disk={"bus": "sata"}, blockSize={"custom": {"logical": 512, "physical": 4096}}),
    ),
    Case(
        60,
        "both",
        disk(disk={"bus": "virtio"}, blockSize={"custom": {"logical": 512, "physical": 512}, "matchVolume": {}}),
        f"{_DISK}.blockSize",
        "mutually exclusive",
        disk(disk={"bus": "virtio"}, blockSize={"custom": {"logical": 512, "physical": 512}, "matchVolume": {"enabled": False}}),
    ),
    Case(
        60,
        "granularity",
        _blocks(logical=4096, physical=4096, discardGranularity=512),
        f"{_DISK}.blockSize.custom.discardGranularity",
        "multiple of logical",
        _blocks(logical=512, physical=4096, discardGranularity=4096),
    ),
)
