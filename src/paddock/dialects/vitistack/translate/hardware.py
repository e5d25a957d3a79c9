"""Processors, memory, power and the installation CD-ROM of a KubeVirt machine as a Machine says them."""

import msgspec

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import boot, marks
from paddock.dialects.vitistack.kinds.fields import MachineCpu
from paddock.dialects.vitistack.translate.storage import address
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

# The memory of the smallest template: for machines that do not say theirs.
ASSUMED_MEMORY = "2Gi"
LEAST_MEMORY = "1Mi"
_MOST_CORES, _MOST_THREADS, _MOST_SOCKETS = 256, 8, 16
_MEMORY: Path = ("spec", "template", "spec", "domain", "memory")


class Iso(msgspec.Struct, frozen=True):
    """An installation image in a CD-ROM drive."""

    device: Disk
    address: str
    annotations: dict[str, str]


def iso(vm: VirtualMachine) -> Iso | None:
    """The first CD-ROM whose image the machine imports."""
    templates = {each.metadata.name: each.spec for each in vm.spec.dataVolumeTemplates or () if each.metadata}
    volumes = {each.name: each for each in vm.spec.template.spec.volumes or ()}
    for device in vm.spec.template.spec.domain.devices.disks or ():
        volume = volumes.get(device.name)
        content = templates.get(volume.dataVolume.name) if volume and volume.dataVolume else None
        found = address(content.source) if content else ""
        if device.cdrom is None or content is None or not found:
            continue
        annotations = {marks.BOOT_SOURCE: marks.DATA_VOLUME, marks.BOOT_SOURCE_TYPE: "registry" if found.startswith("docker:") else "http"}
        storage = content.storage or content.pvc
        size = (storage.resources.requests or {}).get("storage") if storage and storage.resources else None
        if size is not None and size != boot.UNKNOWN_ISO_SIZE:
            # The size of which this is a tenth more.
            annotations[marks.BOOT_SOURCE_SIZE] = str(quantity.whole(size) * 10 // 11)
        return Iso(device, found, annotations)
    return None


def is_stopped(vm: VirtualMachine) -> bool:
    """Return whether the machine is declared to be off."""
    return vm.spec.running is False or vm.spec.runStrategy == "Halted"


def cpu(hardware: DomainSpec) -> MachineCpu:
    """The processors; where the topology is larger than a Machine's may be, the same number of cores as far as that goes."""
    given = hardware.cpu
    cores, threads, sockets = (given.cores or 1, given.threads or 1, given.sockets or 1) if given else (1, 1, _from_resources(hardware))
    if cores <= _MOST_CORES and threads <= _MOST_THREADS and sockets <= _MOST_SOCKETS:
        return MachineCpu(cores=cores, threads=threads, sockets=sockets)
    return MachineCpu(cores=min(cores * threads * sockets, _MOST_CORES), threads=1, sockets=1)


def _from_resources(hardware: DomainSpec) -> int:
    resources = hardware.resources
    for amounts in (resources.limits, resources.requests) if resources else ():
        if amounts and "cpu" in amounts:
            return max(1, quantity.whole(amounts["cpu"]))
    return 1


def memory(hardware: DomainSpec, ledger: LossCollector) -> int | str:
    """The memory that the guest sees, in whole bytes."""
    resources = hardware.resources
    given = hardware.memory.guest if hardware.memory else None
    for amounts in (resources.requests, resources.limits) if resources else ():
        given = given if given is not None else (amounts or {}).get("memory")
    if given is None:
        ledger.lose(_MEMORY, None, "the machine does not say how much memory it has", f"the Machine has {ASSUMED_MEMORY}")
        return ASSUMED_MEMORY
    if quantity.parse(given) < quantity.parse(LEAST_MEMORY):
        return LEAST_MEMORY
    return quantity.binary(quantity.whole(given)) if quantity.parse(given) % quantity.UNIT else given
