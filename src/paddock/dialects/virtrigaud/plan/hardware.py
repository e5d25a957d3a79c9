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
from paddock.dialects.virtrigaud.kinds.machine import GPUConfig, VirtualMachineResources
from paddock.dialects.virtrigaud.kinds.vmclass import (
    DiskDefaults,
    EncryptionPolicy,
    PerformanceProfile,
    SecurityProfile,
    VMClassSpec,
    VMResourceLimits,
)
from paddock.dialects.virtrigaud.plan.resizing import MachineSizes, mebibytes

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


def _disk_defaults(disk_defaults: DiskDefaults | None) -> DiskDefaultsPayload | None:
    if disk_defaults is None:
        return None
    return DiskDefaultsPayload(
        type=disk_defaults.type,
        size_gib=gibibytes(disk_defaults.size),
        iops=disk_defaults.iops or UNSET,
        storage_class=disk_defaults.storageClass or UNSET,
    )


def _gpu(gpu: GPUConfig | None) -> GpuPayload | UnsetType:
    return UNSET if gpu is None else GpuPayload(count=gpu.count, type=gpu.type or "", memory_mib=gpu.memory or 0)


def _performance(performance_profile: PerformanceProfile | None) -> PerformancePayload | None:
    if performance_profile is None:
        return None
    return PerformancePayload(
        latency_sensitivity=performance_profile.latencySensitivity,
        cpu_hot_add_enabled=performance_profile.cpuHotAddEnabled,
        memory_hot_add_enabled=performance_profile.memoryHotAddEnabled,
        virtualization_based_security=performance_profile.virtualizationBasedSecurity,
        nested_virtualization=performance_profile.nestedVirtualization,
        hyper_threading_policy=performance_profile.hyperThreadingPolicy,
    )


def _security(security_profile: SecurityProfile | None) -> SecurityPayload | None:
    if security_profile is None:
        return None
    encryption = security_profile.encryptionPolicy or EncryptionPolicy()
    return SecurityPayload(
        secure_boot=security_profile.secureBoot,
        tpm_enabled=security_profile.tpmEnabled,
        tpm_version=security_profile.tpmVersion or "",
        vtd_enabled=security_profile.vtdEnabled,
        encryption_enabled=encryption.enabled,
        key_provider=encryption.keyProvider or "",
        require_encryption=encryption.requireEncryption,
    )


def _limits(limits: VMResourceLimits | None) -> LimitsPayload | None:
    if limits is None:
        return None
    return LimitsPayload(
        cpu_limit=limits.cpuLimit,
        cpu_reservation=limits.cpuReservation,
        memory_limit_mib=mebibytes(limits.memoryLimit) if limits.memoryLimit is not None else None,
        memory_reservation_mib=mebibytes(limits.memoryReservation) if limits.memoryReservation is not None else None,
        cpu_shares=limits.cpuShares,
    )
