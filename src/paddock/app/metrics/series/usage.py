"""Series of what a machine used, from the engine's statistics and the guest agent's word."""

from collections.abc import Iterable, Iterator

from paddock.app.metrics.series.page import Sample, labels, sample
from paddock.base.metrics import escaped, number
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.guest import GuestFilesystem
from paddock.engine.machine.observation import MemoryStatistics, Statistics
from paddock.kubevirt.plan.views import launchers

_CPU = "kubevirt_vmi_"
_MEMORY = "kubevirt_vmi_memory_"
_STORAGE = "kubevirt_vmi_storage_"
_NETWORK = "kubevirt_vmi_network_"
_OF_MEMORY = {
    "domain": "domain_bytes",
    "balloon": "actual_balloon_bytes",
    "resident": "resident_bytes",
    "available": "available_bytes",
    "usable": "usable_bytes",
    "unused": "unused_bytes",
    "cached": "cached_bytes",
    "swap_in": "swap_in_traffic_bytes",
    "swap_out": "swap_out_traffic_bytes",
    "major_faults": "pgmajfault_total",
    "minor_faults": "pgminfault_total",
}
_OF_DISKS = {
    "reads": "iops_read_total",
    "writes": "iops_write_total",
    "read_bytes": "read_traffic_bytes_total",
    "written_bytes": "write_traffic_bytes_total",
    "read_seconds": "read_times_seconds_total",
    "write_seconds": "write_times_seconds_total",
    "flushes": "flush_requests_total",
    "flush_seconds": "flush_times_seconds_total",
}
_OF_CARDS = {
    f"{ours}_{member}": f"{theirs}_{name}_total"
    for ours, theirs in (("received", "receive"), ("sent", "transmit"))
    for member, name in (("bytes", "bytes"), ("packets", "packets"), ("errors", "errors"), ("dropped", "packets_dropped"))
}
_OF_MEMORY = {member: _MEMORY + name for member, name in _OF_MEMORY.items()}
_OF_DISKS = {member: _STORAGE + name for member, name in _OF_DISKS.items()}
_OF_CARDS = {member: _NETWORK + name for member, name in _OF_CARDS.items()}
_LOADS = ("1m", "5m", "15m")


def samples(at: str, used: Statistics) -> Iterator[Sample]:
    """Yield the usage; `at` is the labels of the machine."""
    yield sample(_CPU + "cpu_usage_seconds_total", at, used.cpu_seconds)
    yield sample(_CPU + "cpu_user_usage_seconds_total", at, used.cpu_user_seconds)
    yield sample(_CPU + "cpu_system_usage_seconds_total", at, used.cpu_system_seconds)
    for vcpu in used.vcpus:
        about = f'{at},id="{vcpu.number}"'
        yield sample(_CPU + "vcpu_seconds_total", f'{about},state="{vcpu.state}"', vcpu.seconds)
        yield sample(_CPU + "vcpu_wait_seconds_total", about, vcpu.wait_seconds)
        yield sample(_CPU + "vcpu_delay_seconds_total", about, vcpu.delay_seconds)
    yield from _memory(at, used.memory)
    for disk, counts in used.disks.items():
        about = f'{at},drive="{escaped(disk)}"'
        for member, name in _OF_DISKS.items():
            yield name, f"{name}{{{about}}} {number(getattr(counts, member))}"
    for nic, seen in used.nics.items():
        about = f'{at},interface="{escaped(nic)}"'
        for member, name in _OF_CARDS.items():
            yield name, f"{name}{{{about}}} {number(getattr(seen, member))}"
        yield sample(_NETWORK + "traffic_bytes_total", f'{about},type="rx"', seen.received_bytes)
        yield sample(_NETWORK + "traffic_bytes_total", f'{about},type="tx"', seen.sent_bytes)


def container(namespace: str, pod: str, used: Statistics) -> Iterator[Sample]:
    """Yield the use as that of the container of the Pod that shows the machine: dashboards look for it."""
    about = labels(container=launchers.CONTAINER, namespace=namespace, pod=pod)
    yield sample("container_cpu_usage_seconds_total", about, used.cpu_seconds)
    yield sample("container_memory_working_set_bytes", about, used.memory.resident)
    yield sample("container_memory_rss", about, used.memory.resident)


def _memory(at: str, memory: MemoryStatistics) -> Iterator[Sample]:
    for member, name in _OF_MEMORY.items():
        value = getattr(memory, member)
        if value is not None:
            yield name, f"{name}{{{at}}} {number(value)}"
    if memory.available is not None and memory.usable is not None:
        for name in (_MEMORY + "used_bytes", "vmi:kubevirt_vmi_memory_used_bytes:sum"):
            yield sample(name, at, max(0, memory.available - memory.usable))


def affinity(at: str, config: MachineConfig, sockets: int, cpus: int) -> Sample:
    """Pairs of processors, virtual and real; a pinned one has one."""
    count = max(1, sockets) * config.cpu.cores * config.cpu.threads
    return sample(_CPU + "node_cpu_affinity", at, count if config.cpu.pinned else count * cpus)


def filesystems(at: str, mounted: Iterable[GuestFilesystem]) -> Iterator[Sample]:
    """Sizes of the guest's file systems. Names are the guest's, so none comes twice."""
    seen = set()
    for each in mounted:
        about = labels(disk_name=each.disk, mount_point=each.mount_point, file_system_type=each.type)
        if about not in seen and each.total_bytes:
            seen.add(about)
            yield sample("kubevirt_vmi_filesystem_capacity_bytes", f"{at},{about}", each.total_bytes)
            yield sample("kubevirt_vmi_filesystem_used_bytes", f"{at},{about}", each.used_bytes)


def loads(at: str, averages: Iterable[float]) -> Iterator[Sample]:
    """The guest's load over one, five and fifteen minutes."""
    for span, load in zip(_LOADS, averages, strict=False):
        yield sample(f"kubevirt_vmi_guest_load_{span}", at, load)
