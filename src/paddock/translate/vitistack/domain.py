"""Mainboard, features, firmware and clock of a machine."""

from paddock.dialects.kubevirt import domain as kubevirt
from paddock.dialects.kubevirt.devices import Devices
from paddock.dialects.kubevirt.features import (
    APIC,
    Clock,
    ClockUTC,
    Features,
    FeatureState,
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
from paddock.dialects.kubevirt.firmware import EFI, Bootloader, Firmware
from paddock.dialects.vitistack import machinetypes
from paddock.dialects.vitistack.fields import Domain
from paddock.dialects.vitistack.fields import Features as Wanted
from paddock.translate.vitistack.resolved import Resolved

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
HYPERV_CLOCK = Clock(
    utc=ClockUTC(),
    timer=Timer(
        hpet=HPETTimer(present=False),
        hyperv=PresentTimer(present=True),
        pit=PITTimer(tickPolicy="delay"),
        rtc=RTCTimer(tickPolicy="catchup"),
    ),
)


def requested_type(resolved: Resolved) -> str | None:
    """The machine type as the machine names it."""
    domain = resolved.machine.spec.domain
    return domain.machine.type if domain and domain.machine else None


def sent_type(resolved: Resolved) -> str | None:
    """The machine type as KubeVirt is given it."""
    requested = requested_type(resolved)
    if requested is None or resolved.rendering.literal:
        return requested
    return machinetypes.sent(requested)


def build(resolved: Resolved, devices: Devices) -> kubevirt.DomainSpec:
    """The hardware."""
    wanted = resolved.machine.spec.domain or Domain()
    merged, machine_type = resolved.effective, sent_type(resolved)
    features = wanted.features or Wanted()
    return kubevirt.DomainSpec(
        cpu=kubevirt.CPU(cores=merged.cores, threads=merged.threads, sockets=merged.sockets),
        memory=kubevirt.Memory(guest=merged.memory),
        machine=kubevirt.Machine(type=machine_type) if machine_type else None,
        firmware=_firmware(wanted),
        clock=HYPERV_CLOCK if features.hyperv else None,
        features=_features(features, secure=is_secure(wanted)),
        devices=devices,
    )


def is_secure(wanted: Domain) -> bool:
    """Whether Secure Boot is asked for."""
    return wanted.firmware is not None and wanted.firmware.bootloader is not None and wanted.firmware.bootloader.secureBoot


def _features(wanted: Wanted, *, secure: bool) -> Features:
    apic = wanted.hyperv or wanted.apic
    return Features(
        acpi=FeatureState() if wanted.acpi else FeatureState(enabled=False),
        apic=None if apic is None else APIC(enabled=apic),
        smm=FeatureState(enabled=True) if secure else None,
        hyperv=HYPERV if wanted.hyperv else None,
    )


def _firmware(wanted: Domain) -> Firmware | None:
    bootloader = wanted.firmware.bootloader if wanted.firmware else None
    if bootloader is None or not bootloader.efi:
        return None
    # KubeVirt's own default is Secure Boot; a machine has a switch for it.
    return Firmware(bootloader=Bootloader(efi=EFI(secureBoot=bootloader.secureBoot)))
