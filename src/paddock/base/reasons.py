"""Reason codes: what went wrong, in one word that the emitter and `paddock why` share (docs/design/0016-reason-codes.md).

An error carries its code in `reason_code`. A controller writes it as the reason of the condition Ready, whose other conditions have
the words that KubeVirt and CDI prescribe (ErrImagePull, Unschedulable, Error), each of which covers several causes. Every code has a
rule in `cli/diagnosis/rules.toml`, or a line there that says why it needs none.
"""

from typing import Final

# --- images ---------------------------------------------------------------------------------------------------------------
IMAGE_CHECKSUM: Final = "ImageChecksumMismatch"
IMAGE_UNSAFE: Final = "ImageUnsafe"
IMAGE_TOO_LARGE: Final = "ImageTooLarge"
IMAGE_ENCRYPTED: Final = "ImageEncrypted"
IMAGE_ARCHITECTURE: Final = "ImageArchitectureMissing"
IMAGE_NEVER_PULLED: Final = "ErrImageNeverPull"
IMAGE_NOT_AUTHORIZED: Final = "ImageNotAuthorized"
IMAGE_NOT_FOUND: Final = "ImageNotFound"
IMAGE_SERVER_UNKNOWN: Final = "ImageServerUnknown"
IMAGE_CERTIFICATE: Final = "ImageServerCertificate"
IMAGE_DENIED: Final = "ImageServerDenied"
IMAGE_SERVER_FAILING: Final = "ImageServerFailing"
IMAGE_SERVER_BUSY: Final = "ImageServerBusy"
IMAGE_TOO_SLOW: Final = "ImageServerSlow"
IMAGE_UNREACHABLE: Final = "ImageServerUnreachable"
IMAGE_MALFORMED: Final = "ImageMalformed"
IMAGE_UNSUPPORTED: Final = "ImageUnsupported"
IMAGE_SOURCE_REFUSED: Final = "ImageSourceRefused"
IMAGE_LIMIT: Final = "ImageLimitExceeded"
IMAGE_CANCELLED: Final = "ImageImportCancelled"

# --- disks of the host ----------------------------------------------------------------------------------------------------
HOST_DISK_FULL: Final = "HostDiskFull"
HOST_DISK_READ_ONLY: Final = "HostDiskReadOnly"
HOST_DISK_FAILED: Final = "HostDiskFailed"
VOLUME_TOO_SMALL: Final = "VolumeTooSmall"
VOLUME_TOO_LARGE: Final = "VolumeTooLarge"
VOLUME_LOST: Final = "VolumeLost"
VOLUME_DAMAGED: Final = "VolumeDamaged"

SECRET_MISSING: Final = "SecretNotFound"

# --- room on the host -----------------------------------------------------------------------------------------------------
NO_MEMORY: Final = "InsufficientMemory"
NO_HUGEPAGES: Final = "InsufficientHugepages"
NO_CPUS: Final = "InsufficientCpus"
PRIORITY_CLASS_MISSING: Final = "PriorityClassNotFound"

# --- networks -------------------------------------------------------------------------------------------------------------
NETWORK_MISSING: Final = "NetworkNotFound"
NETWORK_MALFORMED: Final = "NetworkMalformed"
NETWORK_TYPE: Final = "NetworkTypeUnknown"
ADDRESSES_DAMAGED: Final = "AddressesDamaged"
NETWORK_VLAN: Final = "NetworkVlanUnusable"
BINDING_UNKNOWN: Final = "BindingUnavailable"
SRIOV_MISSING: Final = "SriovMissing"

SOURCE_UNSUPPORTED: Final = "SourceUnsupported"
VOLUME_PLUGGING: Final = "VolumePlugging"

# --- ends of a run --------------------------------------------------------------------------------------------------------
GUEST_PANICKED: Final = "GuestPanicked"
GUEST_WATCHDOG: Final = "GuestWatchdogFired"
QEMU_NOT_STARTED: Final = "QemuNotStarted"
QEMU_KILLED: Final = "QemuKilled"
QEMU_CRASHED: Final = "QemuCrashed"
PROCESSOR_ERROR: Final = "ProcessorError"
HOST_REBOOTED: Final = "HostRebooted"
MACHINE_KILLED: Final = "MachineKilled"

# --- providers and their hypervisors ----------------------------------------------------------------------------------------
PROVIDER_UNAUTHORIZED: Final = "ProviderUnauthorized"
PROVIDER_UNAVAILABLE: Final = "ProviderUnavailable"
PROVIDER_TIMEOUT: Final = "ProviderTimeout"
PROVIDER_RATE_LIMITED: Final = "ProviderRateLimited"
PROVIDER_QUOTA: Final = "ProviderQuotaExceeded"
PROVIDER_BUSY: Final = "ProviderBusy"
PROVIDER_PAUSED: Final = "ProviderCallsPaused"
PROVIDER_CERTIFICATE: Final = "ProviderCertificate"
PROVIDER_OUTDATED: Final = "ProviderOutdated"
PROVIDER_TASK_LOST: Final = "ProviderTaskLost"
PROVIDER_FULL: Final = "ProviderStorageFull"
PROVIDER_CAPACITY: Final = "ProviderCapacityExhausted"
ADDRESS_UNKNOWN: Final = "AddressUnknown"
HYPERVISOR_UNREACHABLE: Final = "HypervisorUnreachable"
HYPERVISOR_HOST_KEY: Final = "HypervisorHostKey"
HYPERVISOR_PROGRAM: Final = "HypervisorProgramMissing"
TEMPLATE_MISSING: Final = "ProviderImageNotFound"
POOL_MISSING: Final = "StoragePoolNotFound"
VOLUME_MISSING: Final = "VolumeNotFound"
STAGING_UNREADABLE: Final = "StagingUnreadable"
STAGING_UNAUTHORIZED: Final = "StagingNotAuthorized"
MACHINE_LOST: Final = "MachineLost"
ADOPTED_LOST: Final = "AdoptedMachineLost"
DISK_SHRINKS: Final = "DiskShrinks"

# --- snapshots with memory ------------------------------------------------------------------------------------------------
MEMORY_REFUSED: Final = "MemoryNotPossible"
MEMORY_LOST: Final = "MemoryLost"
MEMORY_MISMATCH: Final = "MemoryMismatch"

# --- suspension to disk ---------------------------------------------------------------------------------------------------
SUSPEND_FAILED: Final = "SuspendFailed"
RESUME_FAILED: Final = "ResumeFailed"


def ended_by(signal: str) -> str:
    """Return the first words about a QEMU that a signal ended; SIGKILL has a code of its own."""
    return f"QEMU was ended by signal {signal}"


def codes() -> frozenset[str]:
    """Every code of this module."""
    return frozenset(value for name, value in globals().items() if name.isupper())
