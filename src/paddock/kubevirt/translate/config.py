"""`machine_config`: the instance, with all defaults filled in, as a machine of the engine."""

from typing import Literal, cast

import msgspec

from paddock.base import quantity
from paddock.engine.machine.config import MachineConfig
from paddock.kubernetes.meta.fieldrecord import FieldRecord
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.translate import devices, disks, firmware, processors
from paddock.kubevirt.translate.context import TranslationContext
from paddock.kubevirt.translate.limits import Code, Limit, Weight
from paddock.kubevirt.translate.resolved import MachineInputs
from paddock.kubevirt.translate.unread import note_unread

_DEFAULT_TYPES = {"amd64": "q35", "arm64": "virt"}
_BEFORE_VIRTIO_1 = ("pc-q35-2.4",)
_ROOT_COMPLEX = "kubevirt.io/placePCIDevicesOnRootComplex"
_NO_HOLE = "kubevirt.io/disablePCIHole64"
# microseconds, the length of a turn in which a limit of CPU time counts
_PERIOD = 100_000


class MachineTranslation(msgspec.Struct, frozen=True):
    """The machine and what cannot be done for it. With a limit that is more than a note it must not be started."""

    config: MachineConfig
    limits: tuple[Limit, ...]
    # the machine type's full name, for the status; "" where it is not known
    machine_type: str = ""
    # bytes of the host that the manifest sets aside besides guest and QEMU
    reserved: int = 0

    def of(self, weight: Weight) -> tuple[Limit, ...]:
        """The limits that mean this."""
        return tuple(limit for limit in self.limits if limit.code.weight is weight)

    @property
    def startable(self) -> bool:
        """True if all limits are notes."""
        return len(self.of(Weight.NOTE)) == len(self.limits)


def machine_config(instance: VirtualMachineInstance, resolved: MachineInputs) -> MachineTranslation:
    """The machine. Limits have names; the config is complete all the same, so that commands can show it."""
    record = FieldRecord(instance)
    place = TranslationContext(record.view, resolved)
    architecture = _architecture(place)
    machine_type = _machine_type(place, architecture)
    placed, threads = disks.disks(place)
    given, features = place.domain.devices, place.domain.features
    config = MachineConfig(
        label=f"{instance.metadata.namespace or 'default'}_{instance.metadata.name}",
        cpu=processors.cpu(place),
        memory=processors.memory(place),
        architecture=architecture,
        machine_type=machine_type,
        firmware=firmware.firmware(place),
        kernel=firmware.kernel(place),
        disks=placed,
        nics=devices.cards(place),
        devices=devices.devices(place),
        clock=processors.clock(place),
        acpi=features is None or features.acpi is None or processors.is_on(features.acpi),
        smm=firmware.smm(place),
        iothreads=threads,
        reboot_ends=place.domain.rebootPolicy == "Terminate",
        boot_menu=place.spec.startStrategy == "Paused",
        hotplug=given.disableHotplug is not True,
        on_root_complex=place.annotations.get(_ROOT_COMPLEX) == "true",
        pci_hole64=place.annotations.get(_NO_HOLE) != "true",
        limits=_cpu_limit(place),
    )
    _refuse_the_rest(place)
    note_unread(record, place.limits)
    full = place.host.machine_types.get(machine_type, "")
    return MachineTranslation(config=config, limits=place.limits.found, machine_type=full, reserved=_reserved(place))


def _architecture(translation: TranslationContext) -> Literal["amd64", "arm64"]:
    architecture = translation.spec.architecture or "amd64"
    if architecture not in _DEFAULT_TYPES or architecture not in translation.host.architectures:
        translation.limits.add(Code.ARCHITECTURE_MISSING, "spec", "architecture", detail=architecture)
    return cast(Literal["amd64", "arm64"], architecture if architecture in _DEFAULT_TYPES else "amd64")


def _machine_type(translation: TranslationContext, architecture: str) -> str:
    given = translation.domain.machine.type if translation.domain.machine is not None else None
    found = given or _DEFAULT_TYPES[architecture]
    known = translation.host.machine_types
    if known and found not in known:
        translation.limits.add(Code.MACHINE_TYPE_UNKNOWN, "spec", "domain", "machine", "type", detail=found)
    elif found in _BEFORE_VIRTIO_1:
        translation.limits.add(Code.MACHINE_TYPE_TOO_OLD, "spec", "domain", "machine", "type", detail=found)
    return found


def _cpu_limit(translation: TranslationContext) -> dict[str, str]:
    thousandths = translation.limit("cpu")
    cpu = translation.domain.cpu
    if not thousandths or (cpu is not None and cpu.dedicatedCpuPlacement):
        return {}
    return {"cpu.max": f"{thousandths * _PERIOD // 1000} {_PERIOD}"}


def _reserved(translation: TranslationContext) -> int:
    memory = translation.domain.memory
    overhead = memory.reservedOverhead if memory is not None else None
    return quantity.whole(overhead.addedOverhead) if overhead is not None and overhead.addedOverhead is not None else 0


def _refuse_the_rest(translation: TranslationContext) -> None:
    if translation.domain.launchSecurity is not None:
        translation.limits.add(Code.CONFIDENTIAL_MISSING, "spec", "domain", "launchSecurity")
    if translation.spec.resourceClaims:
        translation.limits.add(Code.CLAIM_REFUSED, "spec", "resourceClaims")
    dns = translation.spec.dnsConfig
    if dns is not None and dns.options:
        translation.limits.add(Code.RESOLVER_OPTIONS, "spec", "dnsConfig", "options")
    for index, _ in enumerate(translation.spec.utilityVolumes or ()):
        translation.limits.add(Code.UTILITY_IGNORED, "spec", "utilityVolumes", index)
