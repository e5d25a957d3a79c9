"""The features of machines that KubeVirt has behind feature gates (`kubevirt/kinds/gates.py`): V81, and V68 for clusters."""

from collections.abc import Iterator, Mapping

import msgspec

from paddock.kubernetes.releases import NEWEST
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.gates import ClusterGates
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_SIDECARS = "hooks.kubevirt.io/hookSidecars"
_IGNITION = "kubevirt.io/ignitiondata"
_ANNOTATIONS = {"Sidecar": _SIDECARS, "ExperimentalIgnitionSupport": _IGNITION}
_CONFIGURATION = ("configMap", "secret", "serviceAccount", "downwardAPI")
# Gates of the engine that are not simply on: whether they are where the server's KubeVirt object says nothing. A machine with a device by a
# claim is stored, as by KubeVirt; when it starts, it says that there are no claims here.
_ENGINE: Mapping[str, bool] = {
    "DownwardMetrics": False,
    "ExperimentalIgnitionSupport": False,
    "HostDevices": False,
    "NetworkDevicesWithDRA": False,
    "PersistentReservation": False,
    "RebootPolicy": True,
    "ReservedOverheadMemlock": False,
    "Sidecar": False,
    "VSOCK": False,
    "WorkloadEncryptionTDX": False,
}

_NOT_HERE = " in Paddock's engine, whatever the KubeVirt object says: "
# The KubeVirt object of the server itself.
_OWN = ClusterGates(name="KubeVirt kubevirt/kubevirt")
# What the engine lacks, so that the gate could open nothing.
_LACKS: Mapping[str, str] = {
    "DownwardMetrics": "guests get no metrics of their host",
    "NetworkDevicesWithDRA": "there are no resource claims (DRA)",
    "PersistentReservation": "persistent reservations are not passed on",
    "Sidecar": "a machine has no Pod for a sidecar",
    "WorkloadEncryptionTDX": "guests get no encrypted memory",
}

_GATED_DEVICES = (
    *("gpus", "hostDevices", "panicDevices", "autoattachVSOCK", "downwardMetrics", "video", "tpm.persistent", "filesystems"),
    *("disks[].lun.reservation", "disks[].cdrom", "interfaces[].portRanges", "interfaces[].binding", "interfaces[].passtBinding"),
)


class GateNeed(msgspec.Struct, frozen=True):
    """A feature that a machine uses, and the gate that it is behind."""

    gate: str
    # of what uses it
    path: Path
    # the field that KubeVirt names, where it is another one
    field: Path | None = None


def cluster_gates(settings: AdmissionSettings) -> ClusterGates:
    """Return the gates of the cluster that objects are judged for."""
    return ClusterGates(settings.kubevirt_release or NEWEST, settings.gates, settings.gates_off, settings.architecture)


def needs(hardware: HardwareContext) -> Iterator[GateNeed]:
    """Yield the features of a machine that are, or once were, behind a gate."""
    yield from _of_domain(hardware)
    yield from _of_devices(hardware)
    yield from _of_volumes(hardware)
    yield from _of_interfaces(hardware)
    yield from _claimed(hardware)
    for gate, annotation in _ANNOTATIONS.items():
        if hardware.annotations.get(annotation):
            field = (*hardware.metadata, "annotations")
            yield GateNeed(gate, (*field, annotation), field)


def _of_domain(hardware: HardwareContext) -> Iterator[GateNeed]:
    domain = hardware.spec.domain
    if hardware.foreign_architecture is not None:
        yield GateNeed("MultiArchitecture", hardware.at("architecture"))
    if domain.rebootPolicy is not None:
        yield GateNeed("RebootPolicy", hardware.at("domain", "rebootPolicy"))
    if domain.memory is not None and domain.memory.reservedOverhead is not None:
        yield GateNeed("ReservedOverheadMemlock", hardware.at("domain", "memory", "reservedOverhead"))
    if domain.cpu is not None and domain.cpu.numa is not None and domain.cpu.numa.guestMappingPassthrough is not None:
        yield GateNeed("NUMA", hardware.at("domain", "cpu", "numa", "guestMappingPassthrough"))
    security = domain.launchSecurity
    if security is not None and (security.sev is not None or security.snp is not None):
        yield GateNeed("WorkloadEncryptionSEV", hardware.at("domain", "launchSecurity"), hardware.at("launchSecurity"))
    if security is not None and security.tdx is not None:
        yield GateNeed("WorkloadEncryptionTDX", hardware.at("domain", "launchSecurity"), hardware.at("launchSecurity"))
    efi = domain.firmware.bootloader.efi if domain.firmware is not None and domain.firmware.bootloader is not None else None
    if efi is not None and efi.persistent:
        yield GateNeed("VMPersistentState", hardware.at("domain", "firmware", "bootloader", "efi", "persistent"))


def _of_devices(hardware: HardwareContext) -> Iterator[GateNeed]:
    devices = hardware.spec.domain.devices
    given = {
        "GPU": (devices.gpus, "gpus"),
        "HostDevices": (devices.hostDevices, "hostDevices"),
        "PanicDevices": (devices.panicDevices, "panicDevices"),
        "VSOCK": (devices.autoattachVSOCK, "autoattachVSOCK"),
    }
    for gate, (value, name) in given.items():
        if value:
            yield GateNeed(gate, hardware.at("domain", "devices", name))
    if devices.downwardMetrics is not None:
        yield GateNeed("DownwardMetrics", hardware.at("domain", "devices", "downwardMetrics"))
    if devices.video is not None:
        yield GateNeed("VideoConfig", hardware.at("domain", "devices", "video"))
    if devices.tpm is not None and devices.tpm.persistent:
        yield GateNeed("VMPersistentState", hardware.at("domain", "devices", "tpm", "persistent"))
    volumes = hardware.volumes()
    for index, disk in enumerate(devices.disks or ()):
        path = hardware.at("domain", "devices", "disks", index)
        if disk.lun is not None and disk.lun.reservation:
            field = hardware.at("domain", "devices", "disks", "luns", "reservation")
            yield GateNeed("PersistentReservation", (*path, "lun", "reservation"), field)
        if disk.cdrom is not None and disk.name not in volumes:
            yield GateNeed("DeclarativeHotplugVolumes", path, (*path, "name"))


def _of_volumes(hardware: HardwareContext) -> Iterator[GateNeed]:
    for index, volume in enumerate(hardware.spec.volumes or ()):
        if volume.downwardMetrics is not None:
            yield GateNeed("DownwardMetrics", hardware.at("volumes", index))
        if volume.hostDisk is not None:
            yield GateNeed("HostDisk", hardware.at("volumes", index, "hostDisk"), hardware.at("volumes", index))
    volumes = hardware.volumes()
    for index, shared in enumerate(hardware.spec.domain.devices.filesystems or ()):
        path, found = hardware.at("domain", "devices", "filesystems"), volumes.get(shared.name)
        if found is None:
            continue
        if found.persistentVolumeClaim is not None or found.dataVolume is not None:
            yield GateNeed("EnableVirtioFsStorageVolumes", (*path, index), path)
        elif any(getattr(found, name) is not None for name in _CONFIGURATION):
            yield GateNeed("EnableVirtioFsConfigVolumes", (*path, index), path)


def _of_interfaces(hardware: HardwareContext) -> Iterator[GateNeed]:
    for index, interface in enumerate(hardware.spec.domain.devices.interfaces or ()):
        path = hardware.at("domain", "devices", "interfaces", index)
        if interface.portRanges:
            yield GateNeed("PortRangesSpec", (*path, "portRanges"), (*path, "name"))
        if interface.binding is not None:
            yield GateNeed("NetworkBindingPlugins", (*path, "binding"), (*path, "name"))
        if interface.passtBinding is not None:
            yield GateNeed("PasstBinding", (*path, "passtBinding"), (*path, "name"))


def _claimed(hardware: HardwareContext) -> Iterator[GateNeed]:
    """Yield the devices by resource claims."""
    devices = hardware.spec.domain.devices
    for kind, gate in (("gpus", "GPUsWithDRA"), ("hostDevices", "HostDevicesWithDRA")):
        for index, device in enumerate(getattr(devices, kind) or ()):
            if device.claimName or device.requestName:
                yield GateNeed(gate, hardware.at("domain", "devices", kind, index, "claimName"))
    for index, network in enumerate(hardware.spec.networks or ()):
        if network.resourceClaim is not None:
            yield GateNeed("NetworkDevicesWithDRA", hardware.at("networks", index, "resourceClaim"))


@check(
    "kubevirt/V81",
    given=(
        "foreign_architecture",
        *(
            f"spec.domain.{each}"
            for each in ("rebootPolicy", "memory.reservedOverhead", "cpu.numa", "launchSecurity", "firmware.bootloader.efi.persistent")
        ),
        *(f"spec.domain.devices.{each}" for each in _GATED_DEVICES),
        *(f"spec.volumes[].{each}" for each in ("downwardMetrics", "hostDisk")),
        "spec.networks[].resourceClaim",
        *(f"annotations{{{each}}}" for each in _ANNOTATIONS.values()),
    ),
)
def gates_are_open(hardware: HardwareContext) -> Iterator[Finding]:
    """A feature behind a feature gate needs that gate."""
    judged = cluster_gates(hardware.settings) if hardware.settings.target == "cluster" else _OWN
    for need in needs(hardware):
        # That of disks of the host is V68.
        if need.gate != "HostDisk" and not is_open(need.gate, hardware.settings):
            what = "sidecar" if need.gate == "Sidecar" else need.gate
            message = f"Invalid value: {what} feature gate is not enabled"
            message += f"{_NOT_HERE}{_LACKS[need.gate]}" if judged is _OWN and need.gate in _LACKS else f"; {judged.remedy(need.gate)}"
            yield standing(Finding(path=need.field or need.path, message=message, rule="kubevirt/V81"), need.path)


def is_open(gate: str, settings: AdmissionSettings) -> bool:
    """Return whether a feature behind a gate can be used: as the cluster has it, or as the engine does, where the server's KubeVirt object
    turns it on or off; where the server is to be a release of KubeVirt, as that release has them. A server without controllers has no
    engine, and leaves that to whoever carries out what it stores."""
    if settings.target == "cluster":
        return cluster_gates(settings).has(gate)
    if settings.controllers and settings.kubevirt_release:
        return gate not in _LACKS and cluster_gates(settings).has(gate)
    return not settings.controllers or gate in settings.gates or (_ENGINE.get(gate, True) and gate not in settings.gates_off)


def offered(gates: frozenset[str]) -> frozenset[str]:
    """Those of some gates whose feature the engine has."""
    return frozenset(gates - _LACKS.keys())
