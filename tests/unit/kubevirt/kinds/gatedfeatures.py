"""A machine for every feature that KubeVirt has behind a gate; `tests/reference/operators/test_gates.py` shows them to KubeVirt itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.unit.kubevirt.kinds.cases import network, volume

_DEVICES = "P.domain.devices"
_SECURE_BOOT = {"P.domain.firmware": {"bootloader": {"efi": {"secureBoot": False}}}}
_CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}


@dataclass(frozen=True)
class GatedFeature:
    """Changes of a good machine, and the place of what needs the gate."""

    gate: str
    changes: Mapping[str, Any]
    path: str
    # the gates that the machine needs beside that
    beside: frozenset[str] = frozenset()


def _device(gate: str, name: str, value: Any, path: str = "", **more: Any) -> GatedFeature:
    return GatedFeature(gate, {f"{_DEVICES}.{name}": value}, path or f"{_DEVICES}.{name}", **more)


def _shared(gate: str, **source: Any) -> GatedFeature:
    changes = {f"{_DEVICES}.filesystems": [{"name": "data", "virtiofs": {}}], "P.volumes[1]": {"name": "data", **source}}
    return GatedFeature(gate, changes, f"{_DEVICES}.filesystems[0]")


_CLAIMED = {"name": "d", "claimName": "c", "requestName": "r"}
_CLAIMS = {"P.resourceClaims": [{"name": "c", "resourceClaimName": "x"}]}
FEATURES = (
    GatedFeature("DeclarativeHotplugVolumes", {f"{_DEVICES}.disks[1]": {"name": "cd", "cdrom": {"bus": "sata"}}}, f"{_DEVICES}.disks[1]"),
    _device("DownwardMetrics", "downwardMetrics", {}),
    GatedFeature("DownwardMetrics", volume(downwardMetrics={}), "P.volumes[1]"),
    _shared("EnableVirtioFsConfigVolumes", configMap={"name": "c"}),
    _shared("EnableVirtioFsStorageVolumes", **_CLAIM),
    GatedFeature(
        "ExperimentalIgnitionSupport", {"M.annotations": {"kubevirt.io/ignitiondata": "{}"}}, "M.annotations[kubevirt.io/ignitiondata]"
    ),
    _device("GPU", "gpus", [{"name": "g", "deviceName": "x/y"}]),
    GatedFeature("GPUsWithDRA", {f"{_DEVICES}.gpus": [_CLAIMED], **_CLAIMS}, f"{_DEVICES}.gpus[0].claimName", beside=frozenset({"GPU"})),
    _device("HostDevices", "hostDevices", [{"name": "d", "deviceName": "x/y"}]),
    GatedFeature(
        "HostDevicesWithDRA",
        {f"{_DEVICES}.hostDevices": [_CLAIMED], **_CLAIMS},
        f"{_DEVICES}.hostDevices[0].claimName",
        beside=frozenset({"HostDevices"}),
    ),
    GatedFeature("HostDisk", volume(hostDisk={"path": "/data/disk.img", "type": "Disk"}), "P.volumes[1].hostDisk"),
    GatedFeature("MultiArchitecture", {"P.architecture": "arm64"}, "P.architecture"),
    GatedFeature(
        "NUMA",
        {
            "P.domain.cpu": {"cores": 2, "dedicatedCpuPlacement": True, "numa": {"guestMappingPassthrough": {}}},
            "P.domain.memory": {"hugepages": {"pageSize": "2Mi"}, "guest": "1Gi"},
        },
        "P.domain.cpu.numa.guestMappingPassthrough",
    ),
    GatedFeature(
        "NetworkBindingPlugins",
        network({"multus": {"networkName": "lan"}}, binding={"name": "l2bridge"}),
        f"{_DEVICES}.interfaces[1].binding",
    ),
    GatedFeature(
        "NetworkDevicesWithDRA",
        {**network({"resourceClaim": {"claimName": "c", "requestName": "r"}}, sriov={}), **_CLAIMS},
        "P.networks[1].resourceClaim",
    ),
    _device("PanicDevices", "panicDevices", [{"model": "isa"}]),
    GatedFeature(
        "PasstBinding", {f"{_DEVICES}.interfaces[0]": {"name": "default", "passtBinding": {}}}, f"{_DEVICES}.interfaces[0].passtBinding"
    ),
    GatedFeature(
        "PersistentReservation",
        {f"{_DEVICES}.disks[1]": {"name": "data", "lun": {"bus": "scsi", "reservation": True}}, "P.volumes[1]": {"name": "data", **_CLAIM}},
        f"{_DEVICES}.disks[1].lun.reservation",
    ),
    GatedFeature(
        "PortRangesSpec",
        {f"{_DEVICES}.interfaces[0]": {"name": "default", "masquerade": {}, "portRanges": [{"start": 80, "end": 90, "protocol": "TCP"}]}},
        f"{_DEVICES}.interfaces[0].portRanges",
    ),
    GatedFeature("RebootPolicy", {"P.domain.rebootPolicy": "Terminate"}, "P.domain.rebootPolicy"),
    GatedFeature(
        "ReservedOverheadMemlock", {"P.domain.memory.reservedOverhead": {"addedOverhead": "1Gi"}}, "P.domain.memory.reservedOverhead"
    ),
    GatedFeature("Sidecar", {"M.annotations": {"hooks.kubevirt.io/hookSidecars": "[]"}}, "M.annotations[hooks.kubevirt.io/hookSidecars]"),
    _device("VMPersistentState", "tpm", {"persistent": True}, f"{_DEVICES}.tpm.persistent"),
    GatedFeature(
        "VMPersistentState",
        {"P.domain.firmware": {"bootloader": {"efi": {"secureBoot": False, "persistent": True}}}},
        "P.domain.firmware.bootloader.efi.persistent",
    ),
    _device("VSOCK", "autoattachVSOCK", value=True),
    _device("VideoConfig", "video", {"type": "vga"}),
    GatedFeature("WorkloadEncryptionSEV", {"P.domain.launchSecurity": {"sev": {}}, **_SECURE_BOOT}, "P.domain.launchSecurity"),
    GatedFeature(
        "WorkloadEncryptionTDX",
        {"P.domain.launchSecurity": {"tdx": {}}, **_SECURE_BOOT},
        "P.domain.launchSecurity",
    ),
)
