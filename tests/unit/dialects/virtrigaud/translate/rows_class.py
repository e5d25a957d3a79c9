"""The rows of the class."""

from typing import Any

from tests.unit.dialects.virtrigaud.translate.rows import CLASS, DATA, DEVICES, DOMAIN, IMAGE, PROVIDER, ROOT, VM, Row

CPU, MEMORY, FIRMWARE = f"{DOMAIN}.cpu", f"{DOMAIN}.memory", f"{DOMAIN}.firmware.bootloader"
ARM = {IMAGE: {".metadata": {"architecture": "aarch64"}}}
DISK = {VM: {".disks": [{"name": "data", "sizeGiB": 5}]}}


def row(what: str, changes: dict[str, Any], machine: dict[str, Any], *lost: str, **others: Any) -> Row:
    return Row(what, {CLASS: changes, **others.get("others", {})}, machine, lost=tuple(f"VMClass/small spec{each}" for each in lost))


ROWS = (
    row("cpu", {".cpu": 6}, {f"{CPU}.cores": 6, f"{CPU}.sockets": 1, f"{CPU}.threads": 1, f"{CPU}.maxSockets": 1}),
    row(
        "cpuHotAddEnabled",
        {".cpu": 6, ".performanceProfile.cpuHotAddEnabled": True},
        {f"{CPU}.cores": 1, f"{CPU}.sockets": 6, f"{CPU}.threads": 1, f"{CPU}.maxSockets": None},
    ),
    row("memory", {".memory": "4Gi"}, {f"{MEMORY}.guest": "4Gi", f"{MEMORY}.maxGuest": "4Gi"}),
    row("memory in bytes", {".memory": 4294967296}, {f"{MEMORY}.guest": 4294967296}),
    row("memory with a rest", {".memory": "4G"}, {f"{MEMORY}.guest": "3814Mi"}, ".memory"),
    row("memory below a mebibyte", {".memory": 4096}, {f"{MEMORY}.guest": "1Mi", f"{MEMORY}.maxGuest": None}, ".memory"),
    row("memoryHotAddEnabled", {".performanceProfile.memoryHotAddEnabled": True}, {f"{MEMORY}.guest": "2Gi", f"{MEMORY}.maxGuest": None}),
    row(
        "memoryHotAddEnabled where memory cannot grow",
        {".memory": "512Mi", ".performanceProfile.memoryHotAddEnabled": True},
        {f"{MEMORY}.maxGuest": None},
        ".performanceProfile.memoryHotAddEnabled",
    ),
    row("little memory cannot grow anyway", {".memory": "512Mi"}, {f"{MEMORY}.guest": "512Mi", f"{MEMORY}.maxGuest": None}),
    row("memory on arm64 cannot grow", {}, {f"{MEMORY}.maxGuest": None}, others=ARM),
    row("firmware BIOS", {}, {FIRMWARE: {"bios": {}}, f"{DOMAIN}.features": None}),
    row("firmware UEFI", {".firmware": "UEFI"}, {FIRMWARE: {"efi": {"secureBoot": False}}, f"{DOMAIN}.features": None}),
    row("firmware EFI", {".firmware": "EFI"}, {FIRMWARE: {"efi": {"secureBoot": False}}}),
    row("arm64 boots with EFI", {}, {FIRMWARE: {"efi": {"secureBoot": False}}}, others=ARM),
    row(
        "secureBoot",
        {".firmware": "UEFI", ".securityProfile.secureBoot": True},
        {FIRMWARE: {"efi": {"secureBoot": True}}, f"{DOMAIN}.features": {"smm": {"enabled": True}}},
    ),
    row("secureBoot with BIOS", {".securityProfile.secureBoot": True}, {FIRMWARE: {"efi": {"secureBoot": True}}}),
    row(
        "secureBoot on arm64",
        {".securityProfile.secureBoot": True},
        {FIRMWARE: {"efi": {"secureBoot": False}}, f"{DOMAIN}.features": None},
        ".securityProfile.secureBoot",
        others=ARM,
    ),
    row("tpmEnabled", {".securityProfile.tpmEnabled": True}, {f"{DEVICES}.tpm": {"persistent": True}}),
    row("tpmVersion 2.0", {".securityProfile": {"tpmEnabled": True, "tpmVersion": "2.0"}}, {f"{DEVICES}.tpm": {"persistent": True}}),
    row(
        "tpmVersion 1.2",
        {".securityProfile": {"tpmEnabled": True, "tpmVersion": "1.2"}},
        {f"{DEVICES}.tpm": {"persistent": True}},
        ".securityProfile.tpmVersion",
    ),
    row("tpmVersion without TPM", {".securityProfile.tpmVersion": "2.0"}, {f"{DEVICES}.tpm": None}, ".securityProfile.tpmVersion"),
    row("nestedVirtualization", {".performanceProfile.nestedVirtualization": True}, {f"{CPU}.model": "host-passthrough"}),
    row("latencySensitivity high", {".performanceProfile.latencySensitivity": "high"}, {f"{CPU}.dedicatedCpuPlacement": True}),
    row(
        "latencySensitivity low",
        {".performanceProfile.latencySensitivity": "low"},
        {CPU: {"cores": 2, "sockets": 1, "threads": 1, "maxSockets": 1}},
        ".performanceProfile.latencySensitivity",
    ),
    row("size of the root disk", {".diskDefaults.size": "100Gi"}, {f"{ROOT}.storage.resources.requests.storage": "100Gi"}),
    row("no size of the root disk", {}, {f"{ROOT}.storage.resources.requests.storage": "40Gi"}),
    row("a size below 1Mi", {".diskDefaults.size": 1000}, {f"{ROOT}.storage.resources.requests.storage": "1Mi"}, ".diskDefaults.size"),
    row("thick root disk", {".diskDefaults.type": "thick"}, {f"{ROOT}.preallocation": True}),
    row("thin root disk", {".diskDefaults.type": "thin"}, {f"{ROOT}.preallocation": None}),
    row("eager root disk", {".diskDefaults.type": "eagerzeroedthick"}, {f"{ROOT}.preallocation": True}, ".diskDefaults.type"),
    *(
        row(f"root disk on {kind}", {".diskDefaults.type": kind}, {f"{ROOT}.preallocation": None}, ".diskDefaults.type")
        for kind in ("ssd", "hdd", "nvme")
    ),
    row(
        "storage class of the disks",
        {".diskDefaults.storageClass": "fast"},
        {f"{ROOT}.storage.storageClassName": "fast", f"{DATA}.storage.storageClassName": "fast"},
        others=DISK,
    ),
    row(
        "a storage class that cannot be one",
        {".diskDefaults.storageClass": "Very Fast"},
        {f"{ROOT}.storage.storageClassName": None},
        ".diskDefaults.storageClass",
    ),
    row("memoryLimit", {".resourceLimits.memoryLimit": "3Gi"}, {f"{DOMAIN}.resources": {"limits": {"memory": "3Gi"}}}),
    row(
        "memoryLimit below the memory", {".resourceLimits.memoryLimit": "1Gi"}, {f"{DOMAIN}.resources": None}, ".resourceLimits.memoryLimit"
    ),
    row("memoryReservation", {".resourceLimits.memoryReservation": "1Gi"}, {f"{DOMAIN}.resources": {"requests": {"memory": "1Gi"}}}),
    row(
        "memoryReservation of almost nothing",
        {".resourceLimits.memoryReservation": 1000},
        {f"{DOMAIN}.resources": None},
        ".resourceLimits.memoryReservation",
    ),
    row(
        "memoryReservation above the limit",
        {".resourceLimits": {"memoryLimit": "3Gi", "memoryReservation": "4Gi"}},
        {f"{DOMAIN}.resources": {"limits": {"memory": "3Gi"}}},
        ".resourceLimits.memoryReservation",
    ),
    row(
        "memoryReservation of a pinned machine",
        {".resourceLimits": {"memoryLimit": "3Gi", "memoryReservation": "1Gi"}, ".performanceProfile.latencySensitivity": "high"},
        {f"{DOMAIN}.resources": {"limits": {"memory": "3Gi"}}},
        ".resourceLimits.memoryReservation",
    ),
    *(
        row(path, {path: value}, {}, lost)
        for path, value, lost in (
            (".diskDefaults.iops", 1000, ".diskDefaults.iops"),
            (".guestToolsPolicy", "skip", ".guestToolsPolicy"),
            (".resourceLimits.cpuLimit", 1000, ".resourceLimits"),
            (".resourceLimits.cpuReservation", 1000, ".resourceLimits"),
            (".resourceLimits.cpuShares", 1000, ".resourceLimits"),
            (".performanceProfile.virtualizationBasedSecurity", True, ".performanceProfile.virtualizationBasedSecurity"),
            (".performanceProfile.hyperThreadingPolicy", "avoid", ".performanceProfile.hyperThreadingPolicy"),
            (".securityProfile.vtdEnabled", True, ".securityProfile.vtdEnabled"),
            (".securityProfile.encryptionPolicy.enabled", True, ".securityProfile.encryptionPolicy"),
            (".extraConfig", {"vsphere.hardwareVersion": "21"}, ".extraConfig"),
        )
    ),
    Row(
        "the provider of another hypervisor",
        {PROVIDER: {".type": "libvirt", ".endpoint": "qemu+ssh://host/system", ".rateLimit": {"qps": 1}}},
        lost=("Provider/local spec.endpoint",),
    ),
    Row(
        "the provider's defaults",
        {
            PROVIDER: {".defaults": {"cluster": "c", "storagePod": "p", "folder": "f"}},
            VM: {".placement": {"cluster": "own", "datastore": "d"}},
        },
        lost=("Provider/local spec.defaults.folder", "VirtualMachine/web spec.placement"),
    ),
)
