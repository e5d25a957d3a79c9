"""The room of this host for one more machine. Pure: its resources and the allocated ones are parameters.

Memory is allocated whole: a machine is admitted when its memory and QEMU's own fit into the rest, so that no guest is ended for want
of memory because of another one. CPUs are shared, unless a machine wants dedicated ones.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from paddock.base import reasons
from paddock.base.errors import Transient
from paddock.engine.host.facts import HugepagePool
from paddock.engine.machine.argv.processors import boot_size, translation_buffer
from paddock.engine.machine.config import MachineConfig

_MIB = 1 << 20
# Measured with QEMU 7.2: 29 MiB with KVM, 41 with TCG for a small machine that has done nothing yet.
_QEMU = {"kvm": 32 * _MIB, "tcg": 44 * _MIB}
_VCPU = 2 * _MIB
_IOTHREAD = 1 * _MIB
_VIDEO = 20 * _MIB
_TPM = 8 * _MIB
_SHARE = 16 * _MIB
_PASSED_THROUGH = 1024 * _MIB
_DISK = 2 * _MIB
_CARD = 1 * _MIB
# The host keeps this for itself: a part of its memory within bounds.
_KEPT_SHARE, _KEPT_LEAST, _KEPT_MOST = 20, 256 * _MIB, 4096 * _MIB

What = Literal["memory", "hugepages", "cpus"]
_REASONS: Mapping[What, str] = {"memory": reasons.NO_MEMORY, "hugepages": reasons.NO_HUGEPAGES, "cpus": reasons.NO_CPUS}


class Shortage(Transient):
    """The host has no room now; it may have when another machine ends."""

    def __init__(self, what: What, why: str, fix: str) -> None:
        super().__init__("cannot start the machine on this host", why=why, fix=fix)
        self.resource: What = what
        self.reason_code = _REASONS[what]


class Room(Struct, frozen=True):
    """Memory that machines may have in all."""

    memory: int

    @classmethod
    def of(cls, memory_bytes: int, *, kept: int | None = None, overcommit: float = 1.0) -> "Room":
        """The room on a host with this much memory. `overcommit`: guests may be promised that many times what is there."""
        if kept is None:
            kept = min(max(memory_bytes // _KEPT_SHARE, _KEPT_LEAST), _KEPT_MOST)
        return cls(max(int((memory_bytes - kept) * overcommit), 0))


def overhead(config: MachineConfig, accelerator: Literal["kvm", "tcg"]) -> int:
    """Bytes of the host that a machine needs besides its guest's memory."""
    devices = config.devices
    found = _QEMU[accelerator] + _VCPU * config.cpu.max_sockets * config.cpu.cores * config.cpu.threads
    # page tables of the largest memory the guest can get
    found += max(config.memory.max_size, config.memory.size) // 512
    found += _IOTHREAD * config.iothreads + _DISK * len(config.disks) + _CARD * len(config.nics)
    if accelerator == "tcg":
        found += translation_buffer(config.memory.size) * _MIB
    if devices.graphics:
        found += _VIDEO
    if devices.tpm is not None:
        found += _TPM
    if devices.pci:
        found += _PASSED_THROUGH
    return found + _SHARE * len(devices.shared)


def needed(config: MachineConfig, accelerator: Literal["kvm", "tcg"]) -> int:
    """Bytes of ordinary memory that a machine takes from the host: huge pages are accounted for on their own."""
    if config.memory.hugepage or (config.memory.file is not None and config.memory.private):
        # Of a private copy only what the guest writes is new. Half of it is what guests were seen to write after a warm start.
        own = 0 if config.memory.hugepage else boot_size(config) // 2
        return own + overhead(config, accelerator)
    return boot_size(config) + overhead(config, accelerator)


def admit(need: int, reserved: int, room: Room) -> None:
    """Let a machine in that needs so many bytes, or raise `Shortage`. `reserved` is what the others have."""
    left = room.memory - reserved
    if need > left:
        why = f"it needs {_size(need)} of memory, and {_size(max(left, 0))} of {_size(room.memory)} are free"
        fix = "stop another machine or give this one less memory"
        if need > room.memory:
            fix = "give it less memory"
        raise Shortage("memory", why, fix)


def admit_hugepages(config: MachineConfig, pages: Mapping[int, HugepagePool]) -> None:
    """The same for huge pages."""
    size = config.memory.hugepage
    if not size:
        return
    have, want = pages.get(size), boot_size(config) // size
    where = f"/sys/kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages"
    if have is None:
        sizes = ", ".join(_size(known) for known in sorted(pages)) or "none"
        raise Shortage("hugepages", f"this host has no huge pages of {_size(size)} (it has: {sizes})", "use another page size")
    if have.free < want:
        why = f"it needs {want} huge pages of {_size(size)}, and {have.free} of {have.total} are free"
        raise Shortage("hugepages", why, f"stop another machine, or reserve more by {where}")


class PinnedCpus(Struct, frozen=True):
    """CPUs of the host for one machine alone."""

    vcpus: tuple[int, ...]
    emulator: tuple[int, ...] = ()


def dedicate(cpus: Sequence[int], pinned_cpus: Mapping[str, PinnedCpus], count: int, *, isolate: bool) -> PinnedCpus:
    """CPUs for a machine that wants `count` for itself, and one more for QEMU's other threads if `isolate`; or `Shortage`.

    One CPU always stays for everybody: the host and the machines that share need it.
    """
    taken = {cpu for placement in pinned_cpus.values() for cpu in (*placement.vcpus, *placement.emulator)}
    free = [cpu for cpu in cpus[1:] if cpu not in taken]
    want = count + (1 if isolate else 0)
    if want > len(free):
        why = f"it wants {want} CPUs of its own, and {len(free)} of {len(cpus)} can be given away"
        raise Shortage("cpus", why, "leave dedicatedCpuPlacement out, or stop a machine that has CPUs of its own")
    return PinnedCpus(tuple(free[:count]), tuple(free[count:want]))


def _size(number: int) -> str:
    for unit, name in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
        if number >= unit:
            return f"{number / unit:.1f}".removesuffix(".0") + name
    return str(number)
