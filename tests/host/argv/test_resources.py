"""Huge pages and CPUs of a machine's own, with a real QEMU."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddock.engine.host import capacity
from paddock.engine.host.capacity import Shortage
from paddock.engine.host.facts import HostFacts
from paddock.engine.host.kvm import Kvm
from paddock.engine.machine.config import CpuConfig, MemoryConfig
from paddock.engine.machine.process import holders
from tests.coroutines import played_by
from tests.host.argv.conftest import Start
from tests.host.argv.test_accepted import PLAIN
from tests.host.machines.conftest import Place, bare, run, until_phase

pytestmark = pytest.mark.needs("qemu")

PAGE, COUNT = 2 << 20, 16
POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
HUGE = replace(PLAIN, memory=MemoryConfig(COUNT * PAGE, COUNT * PAGE, hugepage=PAGE), hotplug=False)


def facts() -> HostFacts:
    return HostFacts("amd64", {}, {}, Kvm("absent"), tuple(sorted(os.sched_getaffinity(0))), 1 << 30, is_root=True)


@pytest.fixture
def pages() -> Iterator[None]:
    """Some huge pages more than there are."""
    before = int(POOL.read_text())
    POOL.write_text(str(before + COUNT))
    try:
        if int(POOL.read_text()) < before + COUNT:
            pytest.skip("needs hugepages: the memory is too scattered")
        yield
    finally:
        POOL.write_text(str(before))


@pytest.mark.spec("kubevirt", 88)
@pytest.mark.needs("root")
def test_huge_pages_are_taken_and_given_back(start: Start, pages: None) -> None:
    free = facts().hugepages()[PAGE].free
    capacity.admit_hugepages(HUGE, facts().hugepages())
    qemu = start(HUGE)
    assert free - facts().hugepages()[PAGE].free == COUNT
    (backend,) = qemu.ask("query-memdev")
    assert (backend["size"], backend["prealloc"]) == (COUNT * PAGE, True)
    more = replace(HUGE, memory=MemoryConfig((free + 1) * PAGE, (free + 1) * PAGE, hugepage=PAGE))
    with pytest.raises(Shortage, match="huge pages of 2Mi"):
        capacity.admit_hugepages(more, facts().hugepages())
    qemu.end()
    assert facts().hugepages()[PAGE].free == free


@pytest.fixture
def place() -> Iterator[Place]:
    root = Path(tempfile.mkdtemp(prefix="pdkr-", dir="/tmp"))
    yield Place(root)
    for lock in root.glob("machines/*/lock"):
        for pid in holders(lock):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)


def affinities(pid: int) -> dict[int, set[int]]:
    return {int(thread): os.sched_getaffinity(int(thread)) for thread in os.listdir(f"/proc/{pid}/task")}


@pytest.mark.spec("kubevirt", 88)
@played_by(run)
async def test_vcpus_and_the_rest_sit_where_they_were_given_a_place(place: Place) -> None:
    cpus = facts().cpus
    if len(cpus) < 2:
        pytest.skip("needs cpus: one is too few")
    machines = place.open()
    await machines.adopt()
    given = capacity.dedicate(cpus, {}, 1, isolate=False)
    assert given.vcpus == (cpus[1],)
    config = replace(bare(), cpu=CpuConfig(model="qemu64", pinned=given.vcpus, emulator_pinned=(cpus[0],)))
    machine = await machines.define("a", config)
    await machine.start()
    await until_phase(machine, "running", "ended")
    found = affinities(machine.observed.pid)
    pinned = [where for where in found.values() if where == {cpus[1]}]
    assert len(pinned) == 1
    assert all(where in ({cpus[0]}, {cpus[1]}) for where in found.values())
    # While it runs its CPU is nobody else's; afterwards it is free.
    with pytest.raises(Shortage):
        capacity.dedicate(cpus, {"a": given}, len(cpus) - 1, isolate=False)
    await machine.stop(0)
    await until_phase(machine, "ended")
    await machine.forget()
    assert capacity.dedicate(cpus, {}, len(cpus) - 1, isolate=False).vcpus == cpus[1:]
