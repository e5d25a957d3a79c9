"""The parts of a machine's description that libvirt cannot do: refused, or named as a limitation. Pure."""

import re
from collections.abc import Iterator

from msgspec import UNSET

from paddock.base import reasons
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, LimitsPayload, NetworkPayload, PerformancePayload, SecurityPayload
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import interfaces
from paddock_drivers.libvirt.abilities import HypervisorAbilities

_MOST_DISKS = 20
_MAC = re.compile(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2}\Z", re.ASCII | re.IGNORECASE)
_MOST_VLAN = 4094
# Users of the names that networks and bridges have.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,254}\Z", re.ASCII)


def check(description: MachineDescription, abilities: HypervisorAbilities) -> None:
    """Raise InvalidSpec or NotSupported for a machine that cannot be made as it must be."""
    _check_hardware(description, abilities)
    if len(description.disks) > _MOST_DISKS:
        raise refusals.invalid(f'machine "{description.name}" has too many disks', why=f"there may be {_MOST_DISKS}")
    for disk in description.disks:
        if disk.scsi is not UNSET:
            raise refusals.not_supported(f"disk {disk.name} has no SCSI controller of its own", fix="remove scsi; disks are on virtio")
    for nic in description.networks:
        _check_card(nic)


def _check_hardware(description: MachineDescription, abilities: HypervisorAbilities) -> None:
    hardware, security = description.hardware, description.hardware.security_profile or SecurityPayload()
    if hardware.cpu > abilities.most_cpus:
        raise refusals.invalid(f'machine "{description.name}" has too many CPUs', why=f"the hypervisor gives at most {abilities.most_cpus}")
    if abilities.host_memory_mib and hardware.memory_mib > abilities.host_memory_mib * 16:
        what, why = f'machine "{description.name}" has too much memory', f"the host has {abilities.host_memory_mib} MiB"
        raise refusals.invalid(what, why=why, reason=reasons.PROVIDER_CAPACITY)
    if hardware.firmware.upper() not in ("", "BIOS", "UEFI", "EFI"):
        raise refusals.invalid("the firmware is unknown", fix="use BIOS or UEFI")
    if hardware.gpu is not UNSET:
        raise refusals.not_supported("machines on libvirt get no GPU", fix="remove spec.resources.gpu")
    if security.require_encryption:
        raise refusals.not_supported("the disks of machines on libvirt are not encrypted", fix="remove requireEncryption")
    efi = security.secure_boot or hardware.firmware.upper() in ("UEFI", "EFI")
    if efi and not abilities.efi:
        raise refusals.not_supported("the hypervisor has no UEFI firmware", fix="install OVMF there, or use BIOS")
    if security.secure_boot and not abilities.secure_boot:
        raise refusals.not_supported("the hypervisor has no firmware for Secure Boot", fix="install OVMF with enrolled keys there")
    if (security.tpm_enabled or security.tpm_version) and not abilities.tpm:
        raise refusals.not_supported("the hypervisor emulates no TPM", fix="install swtpm there")
    if security.tpm_version not in ("", "2.0"):
        raise refusals.not_supported("machines on libvirt have a TPM of version 2.0", fix="set tpmVersion to 2.0")


def _check_card(network: NetworkPayload) -> None:
    if network.model and network.model.lower() not in interfaces.MODELS:
        fix = f"use one of {', '.join(interfaces.MODELS)}"
        raise refusals.not_supported(f'network "{network.name}" has a model that QEMU lacks', fix=fix)
    if network.mac_address and not _MAC.match(network.mac_address):
        raise refusals.invalid(f'network "{network.name}" has no valid MAC address')
    if not 0 <= network.vlan <= _MOST_VLAN:
        raise refusals.invalid(f'network "{network.name}" has no valid VLAN', fix=f"use 1 to {_MOST_VLAN}")
    for value in (network.network_name, network.bridge, network.portgroup):
        if value and not _NAME.match(value):
            raise refusals.invalid(f'network "{network.name}" names a network or bridge that cannot be')
    if network.security is not UNSET and (network.security.firewall or network.security.isolation or network.security.encryption):
        fix = "remove firewall, isolation and encryption, or use a Provider that reports networks.security"
        raise refusals.not_supported(f'network "{network.name}" is not protected as asked on libvirt', fix=fix)


def limitations(description: MachineDescription, abilities: HypervisorAbilities) -> tuple[str, ...]:
    """Return what is made in another way than asked."""
    return (
        *_of_performance(description.hardware, abilities),
        *_of_limits(description.hardware.resource_limits or LimitsPayload(), abilities),
        *_of_class(description.hardware),
        *_of_place(description),
        *_of_networks(description.networks),
    )


def _of_performance(hardware: ClassPayload, abilities: HypervisorAbilities) -> Iterator[str]:
    profile = hardware.performance_profile or PerformancePayload()
    if profile.latency_sensitivity not in ("", "normal", "low"):
        yield f"latencySensitivity {profile.latency_sensitivity} has no effect on libvirt"
    if profile.nested_virtualization and not abilities.accelerated:
        yield "nestedVirtualization has no effect: the hypervisor emulates instructions"
    if profile.virtualization_based_security:
        yield "virtualizationBasedSecurity has no effect on libvirt; secureBoot and tpmEnabled do"
    if profile.hyper_threading_policy == "require" and hardware.cpu % 2:
        yield "hyperThreadingPolicy has no effect: the number of CPUs is odd"


def _of_limits(limits: LimitsPayload, abilities: HypervisorAbilities) -> Iterator[str]:
    if limits.cpu_limit and not abilities.mhz:
        yield "cpuLimit has no effect: the hypervisor does not say how fast its processors are"
    if limits.cpu_reservation:
        yield "cpuReservation has no effect on libvirt; cpuShares does"
    if limits.memory_limit_mib:
        yield "memoryLimit has no effect on libvirt: a machine has its memory, and no less"
    if limits.memory_reservation_mib:
        yield "memoryReservation has no effect on libvirt"


def _of_class(hardware: ClassPayload) -> Iterator[str]:
    security = hardware.security_profile or SecurityPayload()
    if security.encryption_enabled or security.key_provider:
        yield "encryptionPolicy has no effect: the disks of machines on libvirt are not encrypted"
    if hardware.guest_tools_policy in ("upgrade", "uninstall"):
        yield f"guestToolsPolicy {hardware.guest_tools_policy} has no effect; the machine has the channel of the QEMU guest agent"
    if hardware.extra_config:
        yield "extraConfig has no effect on libvirt"


def _of_place(description: MachineDescription) -> Iterator[str]:
    place = description.placement
    pool = place.resource_pool if place.resource_pool is not UNSET else ""
    for name, value in (("cluster", place.cluster), ("folder", place.folder), ("host", place.host), ("resourcePool", pool)):
        if value:
            yield f"placement.{name} has no effect: a libvirt Provider is one host"


def _of_networks(cards: tuple[NetworkPayload, ...]) -> Iterator[str]:
    for nic in cards:
        if nic.pci_slot_number is not None:
            yield f"pciSlotNumber of network {nic.name} has no effect on libvirt"
        if nic.qos is not UNSET and (nic.qos.priority is not None or nic.qos.dscp is not None):
            yield f"priority and dscp of network {nic.name} have no effect on libvirt"
        if nic.driver and (nic.model or "virtio").lower() != "virtio":
            yield f"driver of network {nic.name} has no effect: it is for the model virtio"
        elif nic.driver and nic.driver.get("name", "kvm") != "kvm":
            yield f"driver {nic.driver['name']} of network {nic.name} has no effect on libvirt"
        if nic.filter_ref and nic.security is not UNSET:
            yield f"security of network {nic.name} gives way to its filterRef"
        if nic.security is not UNSET and nic.security.forbid_promiscuous:
            yield f"promiscuous mode of network {nic.name} is not forbidden on libvirt"
