"""Mainboard, features, firmware and clock of a machine, to KubeVirt and back."""

from paddock.dialects.vitistack.kinds import machinetypes
from paddock.dialects.vitistack.kinds.fields import Domain, MachineType
from paddock.dialects.vitistack.kinds.fields import MachineBootloader as WantedBootloader
from paddock.dialects.vitistack.kinds.fields import MachineFeatures as Wanted
from paddock.dialects.vitistack.kinds.fields import MachineFirmware as WantedFirmware
from paddock.dialects.vitistack.translate.resolved import VitistackInputs
from paddock.kubernetes.meta.residue import residue
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds import domain as kubevirt
from paddock.kubevirt.kinds.devices import Devices
from paddock.kubevirt.kinds.features import (
    APIC,
    ClockUTC,
    Features,
    FeatureState,
    GuestClock,
    HPETTimer,
    HyperV,
    PITTimer,
    PresentTimer,
    RTCTimer,
    Spinlocks,
    SyNICTimer,
    Timer,
    TLBFlush,
)
from paddock.kubevirt.kinds.firmware import EFI, Bootloader, Firmware

DOMAIN: Path = ("spec", "template", "spec", "domain")

HYPERV = HyperV(
    relaxed=FeatureState(),
    vapic=FeatureState(),
    spinlocks=Spinlocks(spinlocks=8191),
    vpindex=FeatureState(),
    runtime=FeatureState(),
    synic=FeatureState(),
    synictimer=SyNICTimer(direct=FeatureState()),
    reset=FeatureState(),
    frequencies=FeatureState(),
    tlbflush=TLBFlush(),
    ipi=FeatureState(),
)
# Windows keeps time with Hyper-V's clock.
HYPERV_CLOCK = GuestClock(
    utc=ClockUTC(),
    timer=Timer(
        hpet=HPETTimer(present=False),
        hyperv=PresentTimer(present=True),
        pit=PITTimer(tickPolicy="delay"),
        rtc=RTCTimer(tickPolicy="catchup"),
    ),
)


def requested_type(resolved: VitistackInputs) -> str | None:
    """The machine type as the machine names it."""
    domain = resolved.machine.spec.domain
    return domain.machine.type if domain and domain.machine else None


def sent_type(resolved: VitistackInputs) -> str | None:
    """The machine type as KubeVirt is given it."""
    requested = requested_type(resolved)
    if requested is None or resolved.rendering.literal:
        return requested
    return machinetypes.sent(requested)


def architecture(resolved: VitistackInputs) -> str | None:
    """The architecture of the guest, in KubeVirt's words."""
    given = resolved.machine.spec.os.architecture if resolved.machine.spec.os else None
    return "amd64" if given == "x86_64" else given


def build(resolved: VitistackInputs, devices: Devices) -> kubevirt.DomainSpec:
    wanted = resolved.machine.spec.domain or Domain()
    merged, machine_type = resolved.effective, sent_type(resolved)
    features = wanted.features or Wanted()
    return kubevirt.DomainSpec(
        cpu=kubevirt.CPU(cores=merged.cores, threads=merged.threads, sockets=merged.sockets),
        memory=kubevirt.Memory(guest=merged.memory),
        machine=kubevirt.MachineChipset(type=machine_type) if machine_type else None,
        firmware=_firmware(wanted),
        clock=HYPERV_CLOCK if features.hyperv else None,
        features=_features(features, secure=is_secure(wanted)),
        devices=devices,
    )


def is_secure(domain: Domain) -> bool:
    """Return whether Secure Boot is requested."""
    return domain.firmware is not None and domain.firmware.bootloader is not None and domain.firmware.bootloader.secureBoot


def _features(features: Wanted, *, secure: bool) -> Features:
    apic = features.apic
    return Features(
        acpi=FeatureState() if features.acpi else FeatureState(enabled=False),
        apic=APIC(enabled=True) if features.hyperv else None if apic is None else APIC(enabled=apic),
        smm=FeatureState(enabled=True) if secure else None,
        hyperv=HYPERV if features.hyperv else None,
    )


def _firmware(domain: Domain) -> Firmware | None:
    bootloader = domain.firmware.bootloader if domain.firmware else None
    if bootloader is None or not bootloader.efi:
        return None
    # KubeVirt's own default is Secure Boot; a machine has a switch for it.
    return Firmware(bootloader=Bootloader(efi=EFI(secureBoot=bootloader.secureBoot)))


def read(hardware: kubevirt.DomainSpec, requested: str | None, ledger: LossCollector) -> Domain | None:
    """Mainboard, features and firmware as a machine says them; `requested` is the machine type that was asked for."""
    machine_type = _read_type(hardware, requested)
    features = _read_features(hardware.features or Features(), ledger)
    bootloader = _read_bootloader(hardware, machine_type)
    if machine_type is None and features is None and bootloader is None:
        return None
    return Domain(
        machine=MachineType(type=machine_type) if machine_type else None,
        features=features,
        firmware=WantedFirmware(bootloader=bootloader) if bootloader else None,
    )


def _read_type(hardware: kubevirt.DomainSpec, requested: str | None) -> str | None:
    given = hardware.machine.type if hardware.machine else None
    if requested and machinetypes.is_known(requested) and machinetypes.sent(requested) == given:
        return requested
    return given if given and machinetypes.is_known(given) else None


def _is_on(state: FeatureState | APIC) -> bool:
    return state.enabled is not False


def _read_features(features: Features, ledger: LossCollector) -> Wanted | None:
    hyperv = features.hyperv is not None
    if features.hyperv is not None and residue(HYPERV, features.hyperv):
        path = (*DOMAIN, "features", "hyperv")
        ledger.lose(path, to_data(features.hyperv), "a Machine has one set of Hyper-V enlightenments", "the whole set is switched on")
    wanted = Wanted(
        acpi=features.acpi is None or _is_on(features.acpi),
        apic=None if features.apic is None or hyperv else _is_on(features.apic),
        hyperv=hyperv,
    )
    return None if wanted == Wanted() else wanted


def _read_bootloader(hardware: kubevirt.DomainSpec, machine_type: str | None) -> WantedBootloader | None:
    efi = hardware.firmware.bootloader.efi if hardware.firmware and hardware.firmware.bootloader else None
    if efi is None:
        return None
    secure = efi.secureBoot is not False and not machinetypes.is_i440fx(machine_type or "")
    return WantedBootloader(efi=True, secureBoot=secure)
