"""Finds the fields of an instance that nothing carries out (docs/design/0014-unread-fields.md)."""

from collections.abc import Mapping

from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.translate.limits import Code, LimitCollector

# By the part that carries them out: fields by their place below `spec`, each with everything below.
READ_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "admission": ("domain.devices.autoattachInputDevice", "domain.devices.autoattachPodInterface", "domain.resources"),
    "disks": (
        "domain.firmware.kernelBoot.container",
        "volumes.cloudInitConfigDrive",
        "volumes.cloudInitNoCloud",
        "volumes.configMap",
        "volumes.containerDisk",
        "volumes.dataVolume",
        "volumes.downwardAPI",
        "volumes.emptyDisk",
        "volumes.ephemeral",
        "volumes.hostDisk",
        "volumes.memoryDump",
        "volumes.persistentVolumeClaim",
        "volumes.secret",
        "volumes.serviceAccount",
        "volumes.sysprep",
    ),
    "networks": (
        "dnsConfig",
        "dnsPolicy",
        "domain.devices.interfaces.binding",
        "domain.devices.interfaces.bridge",
        "domain.devices.interfaces.dhcpOptions",
        "domain.devices.interfaces.macvtap",
        "domain.devices.interfaces.masquerade",
        "domain.devices.interfaces.passt",
        "domain.devices.interfaces.passtBinding",
        "domain.devices.interfaces.portRanges",
        "domain.devices.interfaces.ports",
        "domain.devices.interfaces.slirp",
        "hostname",
        "networks.multus",
        "networks.name",
        "networks.pod",
        "subdomain",
    ),
    "placement": (
        "affinity",
        "nodeSelector",
        "priorityClassName",
        "schedulerName",
        "serviceAccountName",
        "tolerations",
        "topologySpreadConstraints",
    ),
    "life cycle": ("accessCredentials", "evictionStrategy", "livenessProbe", "readinessProbe", "terminationGracePeriodSeconds"),
    "the seed": (
        "domain.devices.disks.tag",
        "domain.devices.gpus.tag",
        "domain.devices.hostDevices.tag",
        "domain.devices.interfaces.tag",
    ),
    # What is read only beside something else, and says nothing without it.
    "the translation, where it counts": (
        "domain.cpu.maxSockets",
        "domain.devices.blockMultiQueue",
        "domain.devices.disks.blockSize.matchVolume",
        "domain.devices.disks.disk",
        "domain.devices.disks.lun",
        "domain.devices.gpus.deviceName",
        "domain.devices.gpus.name",
        "domain.devices.gpus.requestName",
        "domain.devices.hostDevices.deviceName",
        "domain.devices.hostDevices.name",
        "domain.devices.hostDevices.requestName",
        "domain.devices.interfaces.acpiIndex",
        "domain.devices.interfaces.bootOrder",
        "domain.devices.interfaces.macAddress",
        "domain.devices.interfaces.model",
        "domain.devices.interfaces.pciAddress",
        "domain.devices.networkInterfaceMultiqueue",
        "domain.devices.sound.name",
        "domain.devices.watchdog.i6300esb",
        "domain.devices.watchdog.name",
        "domain.features.hyperv.spinlocks.spinlocks",
        "domain.features.hyperv.vendorid.vendorid",
        "domain.firmware.kernelBoot.kernelArgs",
        "domain.ioThreads",
        "domain.memory.reservedOverhead",
        "volumes.containerPath",
        "volumes.downwardMetrics",
    ),
}
_ELSEWHERE = tuple(f"{field}." for fields in READ_ELSEWHERE.values() for field in fields)


def note_unread(record: FieldRecord[VirtualMachineInstance], limits: LimitCollector) -> None:
    """Add a limit for each field that neither the translation nor another part reads. A limit speaks for everything below its place."""
    for limit in limits.found:
        record.take_whole(*limit.path)
    for loss in record.settle():
        field = ".".join(part for part in loss.path[1:] if isinstance(part, str))
        if not f"{field}.".startswith(_ELSEWHERE):
            limits.add(Code.FIELD_UNREAD, *loss.path)
