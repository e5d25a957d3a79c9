"""Rules of processors: V5 and V27 to V34 (docs/spec/kubevirt.md section 2.11)."""

from collections.abc import Iterator

from paddock.base import quantity
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import Cel
from paddock.kubevirt.kinds.domain import CPU
from paddock.kubevirt.rules.place import HardwareContext, check, standing

_REQUEST = ("domain", "resources", "requests", "cpu")
_LIMIT = ("domain", "resources", "limits", "cpu")


def _cpu(hardware: HardwareContext) -> CPU:
    return hardware.spec.domain.cpu or CPU()


def _pinned(hardware: HardwareContext) -> bool:
    return bool(_cpu(hardware).dedicatedCpuPlacement)


def _topology(cpu: CPU) -> int:
    """The number of vCPUs, or 0 when the machine does not give one."""
    if not (cpu.sockets or cpu.cores or cpu.threads):
        return 0
    return (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1)


@check("kubevirt/V5", given=("spec.domain.cpu.maxSockets",))
def sockets_fit_their_maximum(hardware: HardwareContext) -> Iterator[Finding]:
    """There are not more sockets than the machine may ever have."""
    cpu = _cpu(hardware)
    if cpu.sockets is not None and cpu.maxSockets and cpu.sockets > cpu.maxSockets:
        why = f"is greater than the maximum sockets allowed ({cpu.maxSockets})"
        yield finding.invalid(hardware.at("domain", "cpu", "sockets"), cpu.sockets, why, "kubevirt/V5")


@check("kubevirt/vcpus")
def vcpus_are_limited(hardware: HardwareContext) -> Iterator[Finding]:
    """The vCPUs of a topology stay within the limit of the installation. A machine that only asks for more finds no place."""
    cpu, most = _cpu(hardware), hardware.settings.max_vcpus
    count = _topology(cpu)
    if count > most and min(cpu.sockets or 1, cpu.cores or 1, cpu.threads or 1) > 0 and not _is_asked(hardware, count):
        yield finding.invalid(hardware.at("domain", "cpu"), count, f"{count} vCPUs exceed the limit of {most}", "kubevirt/vcpus")


def _is_asked(hardware: HardwareContext, count: int) -> bool:
    """Return whether a running machine has so many because it asks for them or is limited to them."""
    written = hardware.written(_LIMIT if hardware.limit("cpu") is not None else _REQUEST)
    return hardware.running and written is not None and quantity.whole(written) == count


@check("kubevirt/V27", given=("spec.domain.resources.requests", "spec.domain.resources.limits"))
def cpu_amounts_make_sense(hardware: HardwareContext) -> Iterator[Finding]:
    """Requests and limits of CPU are not negative, and the request fits the limit."""
    request, limit = hardware.request("cpu"), hardware.limit("cpu")
    for path, amount in ((_REQUEST, request), (_LIMIT, limit)):
        if amount is not None and amount < 0:
            yield finding.invalid(hardware.at(*path), hardware.written(path), "must be greater than or equal to 0", "kubevirt/V27")
    if request is not None and limit is not None and request > limit > 0:
        why = f"is greater than limits.cpu ({hardware.written(_LIMIT)})"
        yield finding.invalid(hardware.at(*_REQUEST), hardware.written(_REQUEST), why, "kubevirt/V27")


@check("kubevirt/V28", given=("spec.domain.cpu.dedicatedCpuPlacement",))
def pinned_cpus_are_whole(hardware: HardwareContext) -> Iterator[Finding]:
    """A pinned machine asks for whole processors."""
    if not _pinned(hardware):
        return
    for path, amount in ((_REQUEST, hardware.request("cpu")), (_LIMIT, hardware.limit("cpu"))):
        if amount is not None and amount > 0 and amount % quantity.UNIT:
            why = "must be a whole number when dedicatedCpuPlacement is true"
            yield finding.invalid(hardware.at(*path), hardware.written(path), why, "kubevirt/V28")


@check("kubevirt/V29", given=("spec.domain.cpu.dedicatedCpuPlacement",))
def pinned_memory_is_fixed(hardware: HardwareContext) -> Iterator[Finding]:
    """A pinned machine asks for exactly the memory it may have."""
    request, limit = hardware.request("memory"), hardware.limit("memory")
    if _pinned(hardware) and request and limit and request != limit:
        path = hardware.at("domain", "resources", "requests", "memory")
        why = "must be equal to limits.memory when dedicatedCpuPlacement is true"
        yield finding.invalid(path, hardware.written(("domain", "resources", "requests", "memory")), why, "kubevirt/V29")


@check("kubevirt/V30", given=("spec.domain.cpu.dedicatedCpuPlacement",))
def pinned_cpus_are_counted_once(hardware: HardwareContext) -> Iterator[Finding]:
    """A pinned machine says once how many processors it has."""
    if not _pinned(hardware):
        return
    cpu, path = _cpu(hardware), hardware.at("domain", "cpu", "dedicatedCpuPlacement")
    # Without a word of how many, it is one.
    request, limit, count = hardware.request("cpu") or 0, hardware.limit("cpu") or 0, _topology(cpu)
    if request and limit and request != limit:
        yield finding.invalid(path, True, "requests.cpu and limits.cpu must be equal", "kubevirt/V30")
    if (request or limit) and count and count * quantity.UNIT not in (request, limit):
        why = "cpu in resources must not be given together with cpu.cores, cpu.sockets or cpu.threads, unless they agree"
        yield finding.invalid(path, True, why, "kubevirt/V30")
    if cpu.threads is not None and cpu.threads > 2:
        why = f"not more than two threads per core are possible, got {cpu.threads}"
        yield standing(finding.invalid(path, True, why, "kubevirt/V30"), hardware.at("domain", "cpu", "threads"))


@check(
    "kubevirt/V31",
    Cel(
        "domain.cpu",
        "!has(self.isolateEmulatorThread) || !self.isolateEmulatorThread || "
        "(has(self.dedicatedCpuPlacement) && self.dedicatedCpuPlacement)",
        "isolateEmulatorThread needs dedicatedCpuPlacement",
        ".isolateEmulatorThread",
    ),
    given=("spec.domain.cpu.isolateEmulatorThread",),
)
def isolation_needs_pinning(hardware: HardwareContext) -> Iterator[Finding]:
    """The emulator's threads can be set apart only on a pinned machine."""
    if _cpu(hardware).isolateEmulatorThread and not _pinned(hardware) and not hardware.sized:
        path = hardware.at("domain", "cpu", "isolateEmulatorThread")
        yield finding.invalid(path, True, "isolateEmulatorThread needs dedicatedCpuPlacement", "kubevirt/V31")


def _numa(hardware: HardwareContext) -> Path:
    return hardware.at("domain", "cpu", "numa", "guestMappingPassthrough")


@check("kubevirt/V32", given=("spec.domain.cpu.numa",))
def numa_needs_pinning_and_pages(hardware: HardwareContext) -> Iterator[Finding]:
    """The host's NUMA topology needs a pinned machine and huge pages."""
    cpu, memory = _cpu(hardware), hardware.spec.domain.memory
    if cpu.numa is None or cpu.numa.guestMappingPassthrough is None or hardware.sized:
        return
    if not _pinned(hardware):
        yield finding.invalid(_numa(hardware), {}, "needs cpu.dedicatedCpuPlacement", "kubevirt/V32")
    if memory is None or memory.hugepages is None:
        yield finding.invalid(_numa(hardware), {}, "needs memory.hugepages", "kubevirt/V32")


@check("kubevirt/V34", given=("spec.domain.cpu.realtime",))
def realtime_needs_pinning_and_numa(hardware: HardwareContext) -> Iterator[Finding]:
    """Real-time work needs a pinned machine with the host's NUMA topology."""
    cpu = _cpu(hardware)
    if cpu.realtime is None or hardware.sized:
        return
    at = hardware.at("domain", "cpu", "realtime")
    if not _pinned(hardware):
        path = hardware.at("domain", "cpu", "dedicatedCpuPlacement")
        yield standing(finding.required(path, "kubevirt/V34", "must be true when cpu.realtime is used"), at)
    if cpu.numa is None or cpu.numa.guestMappingPassthrough is None:
        yield standing(finding.required(_numa(hardware), "kubevirt/V34", "must be given when cpu.realtime is used"), at)


CHECKS = (
    sockets_fit_their_maximum,
    vcpus_are_limited,
    cpu_amounts_make_sense,
    pinned_cpus_are_whole,
    pinned_memory_is_fixed,
    pinned_cpus_are_counted_once,
    isolation_needs_pinning,
    numa_needs_pinning_and_pages,
    realtime_needs_pinning_and_numa,
)
