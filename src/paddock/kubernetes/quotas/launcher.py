"""The resources that the launcher Pod of an instance requests, and its limits, by KubeVirt's rules. Pure.

They depend on the instance alone, so the same machine takes the same part of a quota here and on a cluster. Amounts are in billionths.
"""

import hashlib
from typing import NamedTuple

from paddock.base import quantity
from paddock.base.jsondata import Data

Amounts = dict[str, int]
CPU_ALLOCATION_RATIO = 10
PREFIX = "virt-launcher-"
# What names of Pods are made of: no vowels, and nothing that looks like them.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX, _LONGEST = 5, 63
# Without a limit of its own, a launcher in a namespace with a quota of limits may take so many times the memory that it requests.
_MEMORY_LIMIT_RATIO = 2
_MIB = 1 << 20
# The programs beside the guest, and its I/O thread.
_PROGRAMS = (25 + 100 + 25 + 40 + 30 + 8) * _MIB
_VCPU, _VIDEO, _TPM = 8 * _MIB, 32 * _MIB, 53 * _MIB
_ARM_FIRMWARE, _PASSED_THROUGH, _METRICS = 128 * _MIB, 1024 * _MIB, 1 * _MIB
_PROBES, _PROBE = 100 * _MIB, 10 * _MIB
_ENCRYPTED, _GUARANTEED = 256 * _MIB, 100 * _MIB
_EPHEMERAL = 50_000_000


class Launcher(NamedTuple):
    """Requests and limits of the container `compute`, and the limits that it gets where a quota asks for some."""

    requests: Amounts
    limits: Amounts
    implied: Amounts


def prefix_of(name: str) -> str:
    """Return what the names of an instance's Pods begin with."""
    return f"{PREFIX}{name}-"[: _LONGEST - _SUFFIX]


def name_of(name: str, instance_uid: str) -> str:
    """Return the name of the Pod of an instance; one instance after another of a machine has another."""
    digest = hashlib.sha256(instance_uid.encode()).digest()
    return prefix_of(name) + "".join(_LETTERS[each % len(_LETTERS)] for each in digest[:_SUFFIX])


def is_name_of(name: str, pod: str) -> bool:
    """Return whether a Pod may be one of an instance, by its name."""
    return pod[:-_SUFFIX] == prefix_of(name)


def vcpus_of(spec: Data) -> int:
    """Return the processors that the guest has."""
    domain = spec.get("domain") or {}
    cpu = domain.get("cpu")
    if cpu:
        return (cpu.get("cores") or 1) * (cpu.get("sockets") or 1) * (cpu.get("threads") or 1)
    resources = domain.get("resources") or {}
    amount = (resources.get("limits") or {}).get("cpu") or (resources.get("requests") or {}).get("cpu")
    return max(quantity.whole(amount), 1) if amount is not None else 1


def guest_memory(spec: Data) -> int:
    """Return the bytes that the guest has."""
    domain = spec.get("domain") or {}
    memory, resources = domain.get("memory") or {}, domain.get("resources") or {}
    pages = (memory.get("hugepages") or {}).get("pageSize")
    requested = (resources.get("requests") or {}).get("memory") or (resources.get("limits") or {}).get("memory")
    amount = memory.get("guest") or requested or pages
    return quantity.whole(amount) if amount is not None else 0


def resources_of(spec: Data) -> Launcher:
    """Return what the launcher of an instance with this spec requests."""
    domain = spec.get("domain") or {}
    resources, memory, cpu = domain.get("resources") or {}, domain.get("memory") or {}, domain.get("cpu") or {}
    requests = _parsed(resources.get("requests"))
    limits = _parsed(resources.get("limits"))
    if not requests.get("memory"):
        requests["memory"] = limits.get("memory") or guest_memory(spec) * quantity.UNIT
    vcpus = (vcpus_of(spec) if cpu else 0) + _pool_threads(domain)
    implied: Amounts = {}
    if cpu.get("dedicatedCpuPlacement"):
        _pin(requests, limits, vcpus * quantity.UNIT, isolated=bool(cpu.get("isolateEmulatorThread")))
    else:
        vcpus = vcpus or vcpus_of(spec)
        implied["cpu"] = vcpus * quantity.UNIT
        requests.setdefault("cpu", limits.get("cpu") or vcpus * quantity.UNIT // CPU_ALLOCATION_RATIO)
    overhead = memory_overhead(spec) * quantity.UNIT
    if memory.get("hugepages"):
        _take_hugepages(memory, requests, limits, overhead)
    else:
        requests["memory"] += 0 if resources.get("overcommitGuestOverhead") else overhead
        if "memory" in limits:
            limits["memory"] += overhead
    implied["memory"] = requests["memory"] * _MEMORY_LIMIT_RATIO
    requests["ephemeral-storage"] = requests.get("ephemeral-storage", 0) + _EPHEMERAL * quantity.UNIT
    if "ephemeral-storage" in limits:
        limits["ephemeral-storage"] += _EPHEMERAL * quantity.UNIT
    devices = domain.get("devices") or {}
    for device in (*(devices.get("gpus") or ()), *(devices.get("hostDevices") or ())):
        if name := device.get("deviceName"):
            requests[name] = limits[name] = requests.get(name, 0) + quantity.UNIT
    return Launcher(requests, limits, {name: amount for name, amount in implied.items() if name not in limits})


def memory_overhead(spec: Data) -> int:
    """Return the bytes that KubeVirt reckons with beside the memory of the guest."""
    domain = spec.get("domain") or {}
    devices, resources, cpu = domain.get("devices") or {}, domain.get("resources") or {}, domain.get("cpu") or {}
    requested = (resources.get("requests") or {}).get("memory")
    # It reckons in thousands of bytes.
    pages = -(-quantity.whole(requested) // 1000) * 1000 // 512 if requested is not None else 0
    found = pages + _PROGRAMS + _VCPU * vcpus_of(spec)
    probes = sum(1 for each in ("livenessProbe", "readinessProbe") if (spec.get(each) or {}).get("exec") is not None)
    tpm = devices.get("tpm")
    reserved = ((domain.get("memory") or {}).get("reservedOverhead") or {}).get("addedOverhead")
    passed = devices.get("gpus") or devices.get("hostDevices") or any(each.get("sriov") for each in devices.get("interfaces") or ())
    parts = (
        (devices.get("autoattachGraphicsDevice") is not False, _VIDEO),
        (spec.get("architecture") == "arm64", _ARM_FIRMWARE),
        (passed, _PASSED_THROUGH),
        (any("downwardMetrics" in each for each in spec.get("volumes") or ()), _METRICS),
        (probes, _PROBES + _PROBE * probes),
        (any(each in (domain.get("launchSecurity") or {}) for each in ("sev", "snp")), _ENCRYPTED),
        (tpm is not None and tpm.get("enabled") is not False, _TPM),
        (cpu.get("dedicatedCpuPlacement") or _is_guaranteed(resources), _GUARANTEED),
        (reserved is not None, quantity.whole(reserved) if reserved is not None else 0),
    )
    return found + sum(size for holds, size in parts if holds)


def _parsed(amounts: Data | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (amounts or {}).items() if quantity.is_quantity(amount)}


def _pool_threads(domain: Data) -> int:
    if domain.get("ioThreadsPolicy") != "supplementalPool":
        return 0
    return int((domain.get("ioThreads") or {}).get("supplementalPoolThreadCount") or 0)


def _is_guaranteed(resources: Data) -> bool:
    """Return whether requests and limits are the same, of processors and of memory."""
    requests, limits = _parsed(resources.get("requests")), _parsed(resources.get("limits"))
    return all(limits.get(name) and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory"))


def _pin(requests: Amounts, limits: Amounts, cpus: int, *, isolated: bool) -> None:
    """Whole processors, one more for the emulator, and no more memory than was requested."""
    cpus = cpus or limits.get("cpu") or requests.get("cpu") or quantity.UNIT
    requests["cpu"] = limits["cpu"] = cpus + (quantity.UNIT if isolated else 0)
    limits["memory"] = requests["memory"]


def _take_hugepages(memory: Data, requests: Amounts, limits: Amounts, overhead: int) -> None:
    """The guest is in huge pages; what is requested beyond it, and the overhead, is ordinary memory."""
    guest = quantity.parse(memory["guest"]) if memory.get("guest") is not None else None
    whole, name = requests["memory"], f"hugepages-{memory['hugepages'].get('pageSize', '')}"
    requests[name] = limits[name] = whole if guest is None else min(whole, guest)
    requests["memory"] = overhead + (max(whole - guest, 0) if guest is not None else 0)
    if "memory" in limits:
        limits["memory"] = overhead + (max(limits["memory"] - guest, 0) if guest is not None else 0)
