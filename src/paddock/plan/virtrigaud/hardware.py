"""The class of a machine with its own overrides, as the provider contract has it (docs/spec/virtrigaud.md 3.4)."""

from msgspec import UNSET, UnsetType

from paddock.base import quantity
from paddock.contract.payloads import (
    ClassPayload,
    DiskDefaultsPayload,
    GpuPayload,
    LimitsPayload,
    PerformancePayload,
    SecurityPayload,
)
from paddock.dialects.virtrigaud.machine import GPUConfig, VirtualMachineResources
from paddock.dialects.virtrigaud.vmclass import (
    DiskDefaults,
    EncryptionPolicy,
    PerformanceProfile,
    SecurityProfile,
    VMClassSpec,
    VMResourceLimits,
)
from paddock.plan.virtrigaud.resizing import MachineSizes, mebibytes

_GIB = 2**30


def class_payload(spec: VMClassSpec, sizes: MachineSizes, own: VirtualMachineResources | None = None) -> ClassPayload:
    """The hardware of a machine with these sizes; `own` are the resources of the machine itself."""
    return ClassPayload(
        cpu=sizes.cpu,
        memory_mib=sizes.memory_mib,
        firmware="UEFI" if spec.firmware == "EFI" else spec.firmware,
        disk_defaults=_disk_defaults(spec.diskDefaults),
        guest_tools_policy=spec.guestToolsPolicy,
        extra_config=dict(spec.extraConfig) if spec.extraConfig else None,
        performance_profile=_performance(spec.performanceProfile),
        security_profile=_security(spec.securityProfile),
        resource_limits=_limits(spec.resourceLimits),
        gpu=_gpu(own.gpu if own is not None else None),
    )


def gibibytes(amount: str | int) -> int:
    """A quantity in GiB, rounded up: a disk is never smaller than its class says."""
    return -(-quantity.whole(amount) // _GIB)


def _disk_defaults(given: DiskDefaults | None) -> DiskDefaultsPayload | None:
    if given is None:
        return None
    return DiskDefaultsPayload(
        type=given.type, size_gib=gibibytes(given.size), iops=given.iops or UNSET, storage_class=given.storageClass or UNSET
    )


def _gpu(given: GPUConfig | None) -> GpuPayload | UnsetType:
    return UNSET if given is None else GpuPayload(count=given.count, type=given.type or "", memory_mib=given.memory or 0)


def _performance(given: PerformanceProfile | None) -> PerformancePayload | None:
    if given is None:
        return None
    return PerformancePayload(
        latency_sensitivity=given.latencySensitivity,
        cpu_hot_add_enabled=given.cpuHotAddEnabled,
        memory_hot_add_enabled=given.memoryHotAddEnabled,
        virtualization_based_security=given.virtualizationBasedSecurity,
        nested_virtualization=given.nestedVirtualization,
        hyper_threading_policy=given.hyperThreadingPolicy,
    )


def _security(given: SecurityProfile | None) -> SecurityPayload | None:
    if given is None:
        return None
    encryption = given.encryptionPolicy or EncryptionPolicy()
    return SecurityPayload(
        secure_boot=given.secureBoot,
        tpm_enabled=given.tpmEnabled,
        tpm_version=given.tpmVersion or "",
        vtd_enabled=given.vtdEnabled,
        encryption_enabled=encryption.enabled,
        key_provider=encryption.keyProvider or "",
        require_encryption=encryption.requireEncryption,
    )


def _limits(given: VMResourceLimits | None) -> LimitsPayload | None:
    if given is None:
        return None
    return LimitsPayload(
        cpu_limit=given.cpuLimit,
        cpu_reservation=given.cpuReservation,
        memory_limit_mib=mebibytes(given.memoryLimit) if given.memoryLimit is not None else None,
        memory_reservation_mib=mebibytes(given.memoryReservation) if given.memoryReservation is not None else None,
        cpu_shares=given.cpuShares,
    )
