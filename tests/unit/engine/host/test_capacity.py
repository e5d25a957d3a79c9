"""Room for machines: memory, huge pages and CPUs, with figures in each refusal."""

from pathlib import Path

import pytest

from paddock.engine.host import capacity
from paddock.engine.host.capacity import PinnedCpus, Room, Shortage
from paddock.engine.host.facts import HugepagePool
from paddock.engine.machine.config import CpuConfig, DeviceConfig, DiskConfig, DiskLayer, MachineConfig, MemoryConfig, SharedDirectory, Tpm

GIB, MIB = 1 << 30, 1 << 20


def machine(size: int = GIB, **changes: object) -> MachineConfig:
    memory = changes.pop("memory", MemoryConfig(size, size))
    return MachineConfig("x", CpuConfig(), memory, **changes)  # type: ignore[arg-type]


def test_memory_is_given_out_once() -> None:
    room = Room(10 * GIB)
    capacity.admit(4 * GIB, 6 * GIB, room)
    with pytest.raises(Shortage, match=r"it needs 4Gi of memory, and 3\.5Gi of 10Gi are free; stop another machine"):
        capacity.admit(4 * GIB, 6 * GIB + 512 * MIB, room)


def test_what_can_never_fit_is_said_so() -> None:
    with pytest.raises(Shortage) as caught:
        capacity.admit(11 * GIB, 0, Room(10 * GIB))
    assert caught.value.fix == "give it less memory"
    assert caught.value.resource == "memory"


@pytest.mark.parametrize(("memory", "expected"), [(GIB, GIB - 256 * MIB), (20 * GIB, 19 * GIB), (1024 * GIB, 1020 * GIB), (100 * MIB, 0)])
def test_the_host_keeps_something(memory: int, expected: int) -> None:
    assert Room.of(memory).memory == expected


def test_overcommit() -> None:
    assert Room.of(10 * GIB, kept=2 * GIB, overcommit=1.5).memory == 12 * GIB


def test_overhead_counts_what_is_there() -> None:
    plain = capacity.overhead(machine(), "kvm")
    layer = DiskLayer(Path("/x"), "raw")
    more = {
        "tcg": capacity.overhead(machine(), "tcg"),
        "memory": capacity.overhead(machine(4 * GIB), "kvm"),
        "tpm": capacity.overhead(machine(devices=DeviceConfig(tpm=Tpm())), "kvm"),
        "share": capacity.overhead(machine(devices=DeviceConfig(shared=(SharedDirectory("t", Path("/t")),))), "kvm"),
        "vfio": capacity.overhead(machine(devices=DeviceConfig(pci=("0000:01:00.0",))), "kvm"),
        "disk": capacity.overhead(machine(disks=(DiskConfig("d", layer),)), "kvm"),
    }
    assert all(value > plain for value in more.values()), more
    assert capacity.overhead(machine(devices=DeviceConfig(graphics=False)), "kvm") < plain
    assert 32 * MIB < plain < 80 * MIB


def test_huge_pages_are_not_counted_twice() -> None:
    config = machine(memory=MemoryConfig(GIB, GIB, hugepage=2 * MIB))
    assert capacity.needed(config, "kvm") == capacity.overhead(config, "kvm")
    assert capacity.needed(machine(), "kvm") == GIB + capacity.overhead(machine(), "kvm")


def test_a_warm_copy_counts_in_part() -> None:
    config = machine(memory=MemoryConfig(GIB, GIB, file=Path("/ram"), private=True))
    assert capacity.needed(config, "kvm") == GIB // 2 + capacity.overhead(config, "kvm")


@pytest.mark.parametrize(
    ("pages", "text"),
    [
        ({}, r"no huge pages of 2Mi \(it has: none\)"),
        ({GIB: HugepagePool(1, 1)}, r"it has: 1Gi"),
        ({2 * MIB: HugepagePool(600, 511)}, "needs 512 huge pages of 2Mi, and 511 of 600 are free"),
    ],
)
def test_huge_pages_absent(pages: dict[int, HugepagePool], text: str) -> None:
    with pytest.raises(Shortage, match=text):
        capacity.admit_hugepages(machine(memory=MemoryConfig(GIB, GIB, hugepage=2 * MIB)), pages)


def test_huge_pages_present() -> None:
    capacity.admit_hugepages(machine(memory=MemoryConfig(GIB, GIB, hugepage=2 * MIB)), {2 * MIB: HugepagePool(512, 512)})
    capacity.admit_hugepages(machine(), {})


@pytest.mark.spec("kubevirt", 88)
def test_dedicated_cpus_are_taken_and_released() -> None:
    cpus = (0, 1, 2, 3, 4, 5)
    given: dict[str, PinnedCpus] = {}
    given["a"] = capacity.dedicate(cpus, given, 2, isolate=True)
    assert given["a"] == PinnedCpus((1, 2), (3,))
    given["b"] = capacity.dedicate(cpus, given, 2, isolate=False)
    assert given["b"] == PinnedCpus((4, 5))
    with pytest.raises(Shortage, match="it wants 1 CPUs of its own, and 0 of 6"):
        capacity.dedicate(cpus, given, 1, isolate=False)
    del given["a"]
    assert capacity.dedicate(cpus, given, 3, isolate=False) == PinnedCpus((1, 2, 3))


def test_the_last_cpu_is_nobodys() -> None:
    with pytest.raises(Shortage):
        capacity.dedicate((0,), {}, 1, isolate=False)
