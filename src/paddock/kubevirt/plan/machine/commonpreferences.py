"""The preferences that are there from the start: how guests of the usual operating systems like their hardware. Data.

A row is a name, what the guest needs at least, and the groups of wishes that it has; later groups win.
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data, copied
from paddock.kubevirt.plan.machine.commoninstancetypes import API_VERSION, GROUP, VERSION

_VIRTIO: Data = {
    "devices": {
        "preferredDiskBus": "virtio",
        "preferredInterfaceModel": "virtio",
        "preferredRng": {},
        "preferredNetworkInterfaceMultiQueue": True,
    }
}
_LINUX: Data = {**_VIRTIO, "cpu": {"preferredCPUTopology": "sockets"}}
_EFI: Data = {"firmware": {"preferredEfi": {"secureBoot": False}}}
_SECURE: Data = {"firmware": {"preferredEfi": {"secureBoot": True}}, "features": {"preferredSmm": {}}}
_DESKTOP: Data = {"devices": {"preferredInputBus": "virtio", "preferredInputType": "tablet", "preferredVideoType": "virtio"}}
_OLD: Data = {"devices": {"preferredUseVirtioTransitional": True}}
_ARM: Data = {"preferredArchitecture": "arm64", "requirements": {"architecture": "arm64"}, "machine": {"preferredMachineType": "virt"}}
_S390X: Data = {
    "preferredArchitecture": "s390x",
    "requirements": {"architecture": "s390x"},
    "machine": {"preferredMachineType": "s390-ccw-virtio"},
}
_DPDK: Data = {"cpu": {"preferredCPUFeatures": [{"name": "invtsc", "policy": "require"}]}}
_REALTIME: Data = {"devices": {"preferredAutoattachGraphicsDevice": False, "preferredAutoattachMemBalloon": False}}
_ON: Data = {}
_WINDOWS: Data = {
    "clock": {
        "preferredClockOffset": {"utc": {}},
        "preferredTimer": {
            "hpet": {"present": False},
            "hyperv": {},
            "pit": {"tickPolicy": "delay"},
            "rtc": {"tickPolicy": "catchup"},
        },
    },
    "cpu": {"preferredCPUTopology": "sockets"},
    "devices": {
        "preferredDiskBus": "sata",
        "preferredInterfaceModel": "e1000e",
        "preferredInputBus": "usb",
        "preferredInputType": "tablet",
        "preferredAutoattachInputDevice": True,
    },
    "features": {
        "preferredAcpi": _ON,
        "preferredApic": _ON,
        "preferredHyperv": {
            "frequencies": _ON,
            "ipi": _ON,
            "relaxed": _ON,
            "reset": _ON,
            "runtime": _ON,
            "spinlocks": {"spinlocks": 8191},
            "synic": _ON,
            "synictimer": {"direct": _ON},
            "tlbflush": _ON,
            "vapic": _ON,
            "vpindex": _ON,
        },
    },
    "preferredTerminationGracePeriodSeconds": 3600,
}
_WINDOWS_VIRTIO: Data = {"devices": {"preferredDiskBus": "virtio", "preferredInterfaceModel": "virtio", "preferredTPM": {}}}
_TPM: Data = {"devices": {"preferredTPM": {"persistent": True}}}
# name -> (vCPUs, memory, wishes)
_Row = tuple[int, str, tuple[Data, ...]]
_GUESTS: dict[str, _Row] = {
    "alpine": (1, "512Mi", (_LINUX,)),
    "centos.7": (1, "1Gi", (_LINUX,)),
    "centos.7.desktop": (1, "1536Mi", (_LINUX, _DESKTOP)),
    "centos.stream8": (1, "1536Mi", (_LINUX,)),
    "centos.stream8.desktop": (1, "1536Mi", (_LINUX, _DESKTOP)),
    "centos.stream8.dpdk": (1, "1536Mi", (_LINUX, _DPDK)),
    "centos.stream9": (1, "1536Mi", (_LINUX, _EFI)),
    "centos.stream9.desktop": (1, "1536Mi", (_LINUX, _EFI, _DESKTOP)),
    "centos.stream9.dpdk": (1, "1536Mi", (_LINUX, _EFI, _DPDK)),
    "centos.stream10": (1, "1536Mi", (_LINUX, _EFI)),
    "centos.stream10.desktop": (1, "1536Mi", (_LINUX, _EFI, _DESKTOP)),
    "cirros": (1, "64Mi", (_LINUX,)),
    "debian": (1, "1Gi", (_LINUX, _EFI)),
    "fedora": (1, "2Gi", (_LINUX, _SECURE)),
    "fedora.arm64": (1, "2Gi", (_LINUX, _ARM)),
    "fedora.s390x": (1, "2Gi", (_LINUX, _S390X)),
    "legacy": (1, "64Mi", ({"devices": {"preferredDiskBus": "sata", "preferredInterfaceModel": "rtl8139"}},)),
    "linux": (1, "256Mi", (_LINUX,)),
    "linux.efi": (1, "256Mi", (_LINUX, _EFI)),
    "linux.virtiotransitional": (1, "256Mi", (_LINUX, _OLD)),
    "opensuse.leap": (1, "2Gi", (_LINUX, _EFI)),
    "opensuse.tumbleweed": (1, "1Gi", (_LINUX, _EFI)),
    "oraclelinux": (1, "2Gi", (_LINUX, _EFI)),
    "rhel.7": (1, "1Gi", (_LINUX,)),
    "rhel.7.desktop": (1, "1536Mi", (_LINUX, _DESKTOP)),
    "rhel.8": (1, "1536Mi", (_LINUX,)),
    "rhel.8.desktop": (1, "1536Mi", (_LINUX, _DESKTOP)),
    "rhel.8.dpdk": (1, "1536Mi", (_LINUX, _DPDK)),
    "rhel.9": (1, "1536Mi", (_LINUX, _SECURE)),
    "rhel.9.arm64": (1, "1536Mi", (_LINUX, _ARM)),
    "rhel.9.desktop": (1, "1536Mi", (_LINUX, _SECURE, _DESKTOP)),
    "rhel.9.dpdk": (1, "1536Mi", (_LINUX, _SECURE, _DPDK)),
    "rhel.9.realtime": (1, "1536Mi", (_LINUX, _EFI, _REALTIME)),
    "rhel.9.s390x": (1, "1536Mi", (_LINUX, _S390X)),
    "rhel.10": (1, "1536Mi", (_LINUX, _SECURE)),
    "rhel.10.arm64": (1, "1536Mi", (_LINUX, _ARM)),
    "rhel.10.s390x": (1, "1536Mi", (_LINUX, _S390X)),
    "sles": (1, "1Gi", (_LINUX, _EFI)),
    "ubuntu": (1, "2Gi", (_LINUX, _EFI)),
    "windows.10": (1, "2Gi", (_WINDOWS, _EFI)),
    "windows.10.virtio": (1, "2Gi", (_WINDOWS, _EFI, _WINDOWS_VIRTIO)),
    "windows.11": (2, "4Gi", (_WINDOWS, _SECURE, _TPM)),
    "windows.11.virtio": (2, "4Gi", (_WINDOWS, _SECURE, _WINDOWS_VIRTIO, _TPM)),
    "windows.2k12": (1, "512Mi", (_WINDOWS,)),
    "windows.2k12.virtio": (1, "512Mi", (_WINDOWS, _WINDOWS_VIRTIO, _OLD)),
    "windows.2k16": (1, "512Mi", (_WINDOWS, _EFI)),
    "windows.2k16.virtio": (1, "512Mi", (_WINDOWS, _EFI, _WINDOWS_VIRTIO)),
    "windows.2k19": (1, "512Mi", (_WINDOWS, _EFI)),
    "windows.2k19.virtio": (1, "512Mi", (_WINDOWS, _EFI, _WINDOWS_VIRTIO)),
    "windows.2k22": (1, "512Mi", (_WINDOWS, _SECURE)),
    "windows.2k22.virtio": (1, "512Mi", (_WINDOWS, _SECURE, _WINDOWS_VIRTIO)),
    "windows.2k25": (1, "512Mi", (_WINDOWS, _SECURE)),
    "windows.2k25.virtio": (1, "512Mi", (_WINDOWS, _SECURE, _WINDOWS_VIRTIO)),
}


def preferences() -> Iterator[Data]:
    """All of them, of cluster scope."""
    for name, (cpus, memory, groups) in _GUESTS.items():
        spec: Data = {"requirements": {"cpu": {"guest": cpus}, "memory": {"guest": memory}}}
        for group in groups:
            _merge(spec, group)
        family = name.partition(".")[0]
        labels = {f"{GROUP}/os-type": "windows" if family == "windows" else "linux", f"{GROUP}/common-instancetypes-version": VERSION}
        metadata = {"name": name, "labels": labels}
        yield {"apiVersion": API_VERSION, "kind": "VirtualMachineClusterPreference", "metadata": metadata, "spec": spec}


def _merge(spec: Data, group: Data) -> None:
    for key, value in group.items():
        if isinstance(value, dict) and isinstance(spec.get(key), dict):
            _merge(spec[key], value)
        else:
            spec[key] = copied(value)
