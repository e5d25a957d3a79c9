"""The usage of a machine: from QEMU where it knows, from the kernel where that is cheaper."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine import namespace
from paddock.engine.machine.argv import names
from paddock.engine.machine.config import MachineConfig, Tap
from paddock.engine.machine.observation import DiskStatistics, MemoryStatistics, NicStatistics, Statistics, VcpuStatistics
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import cpu_seconds

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_BALLOON = f"/machine/peripheral/{names.BALLOON}"
# The guest tells about its memory as often.
_BALLOON_SECONDS = 10
_UNKNOWN = 2**64 - 1
_GUEST_MEMORY = {
    "available": "stat-total-memory",
    "usable": "stat-available-memory",
    "unused": "stat-free-memory",
    "cached": "stat-disk-caches",
    "swap_in": "stat-swap-in",
    "swap_out": "stat-swap-out",
    "major_faults": "stat-major-faults",
    "minor_faults": "stat-minor-faults",
}


async def collect(owner: MachineOwner) -> Statistics:
    """All of it, with two or three questions to QEMU."""
    user, system = cpu_seconds(owner.observed.pid)
    blocks = disks(owner.config, await owner.execute("query-blockstats"))
    threads = [(int(cpu["cpu-index"]), int(cpu["thread-id"])) for cpu in await owner.execute("query-cpus-fast")]
    return Statistics(
        cpu_user_seconds=user,
        cpu_system_seconds=system,
        vcpus=tuple(_vcpu(owner.observed.pid, number, thread) for number, thread in threads),
        memory=await _memory(owner),
        disks=blocks,
        nics={nic.name: tap(nic.backend.device) for nic in owner.config.nics if isinstance(nic.backend, Tap)},
    )


def disks(config: MachineConfig, answer: Iterable[Mapping[str, Any]]) -> dict[str, DiskStatistics]:
    """`query-blockstats`, by the names of the disks."""
    stats = {_device(str(one.get("qdev", ""))): one.get("stats", {}) for one in answer}
    found = {}
    for disk in config.disks:
        if (one := stats.get(names.device(disk.name))) is not None:
            found[disk.name] = DiskStatistics(
                reads=int(one.get("rd_operations", 0)),
                writes=int(one.get("wr_operations", 0)),
                flushes=int(one.get("flush_operations", 0)),
                read_bytes=int(one.get("rd_bytes", 0)),
                written_bytes=int(one.get("wr_bytes", 0)),
                read_seconds=one.get("rd_total_time_ns", 0) / 1e9,
                write_seconds=one.get("wr_total_time_ns", 0) / 1e9,
                flush_seconds=one.get("flush_total_time_ns", 0) / 1e9,
            )
    return found


def _device(path: str) -> str:
    parts = path.split("/")
    return parts[3] if len(parts) > 3 else path


def _vcpu(pid: int, number: int, thread: int) -> VcpuStatistics:
    delay = 0.0
    with contextlib.suppress(OSError, ValueError, IndexError):
        # time on a CPU, time in a queue for one, time slices
        delay = int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[1]) / 1e9
    ran, waited, letter = 0.0, 0.0, b""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/task/{thread}/stat").read_bytes().rpartition(b")")[2].split()
        letter = fields[0]
        ran = (int(fields[11]) + int(fields[12])) / _TICKS
        # 0 where the kernel does not account for delays (kernel.task_delayacct)
        waited = int(fields[39]) / _TICKS
    return VcpuStatistics(number, ran, delay, waited, "BLOCKED" if letter == b"D" else "RUNNING")


async def _memory(owner: MachineOwner) -> MemoryStatistics:
    resident = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        resident = int(Path(f"/proc/{owner.observed.pid}/statm").read_text().split()[1]) * _PAGE
    found = MemoryStatistics(domain=owner.observed.memory, balloon=owner.observed.memory, resident=resident)
    if not owner.started.devices.balloon:
        return found
    with contextlib.suppress(PaddockError):
        actual = int((await owner.execute("query-balloon"))["actual"])
        stats = await owner.execute("qom-get", {"path": _BALLOON, "property": "guest-stats"})
        if not stats.get("last-update"):
            interval = {"path": _BALLOON, "property": "guest-stats-polling-interval", "value": _BALLOON_SECONDS}
            await owner.execute("qom-set", interval)
        return MemoryStatistics(domain=owner.observed.memory, balloon=actual, resident=resident, **guest_memory(stats.get("stats", {})))
    return found


def guest_memory(stats: Mapping[str, Any]) -> dict[str, int]:
    """Return the values of the guest's balloon driver. They are the guest's word, so only whole numbers of a plausible size count."""
    found = {}
    for member, name in _GUEST_MEMORY.items():
        value = stats.get(name)
        if isinstance(value, int) and 0 <= value < _UNKNOWN:
            found[member] = value
    return found


def tap(device: str) -> NicStatistics:
    """Counters of a tap device. What the host sends into it is what the guest receives."""
    try:
        # Not /sys, which shows the network namespace that mounted it.
        lines = namespace.call(Path("/proc/thread-self/net/dev").read_text).splitlines()
    except OSError:
        lines = []
    said = next((line.partition(":")[2].split() for line in lines if line.strip().startswith(f"{device}:")), ["0"] * 16)
    host_received, host_sent = [int(each) for each in said[:4]], [int(each) for each in said[8:12]]
    return NicStatistics(
        **dict(zip(("received_bytes", "received_packets", "received_errors", "received_dropped"), host_sent, strict=True)),
        **dict(zip(("sent_bytes", "sent_packets", "sent_errors", "sent_dropped"), host_received, strict=True)),
    )
