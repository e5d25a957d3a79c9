"""The page that Prometheus reads, of a whole host."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from paddock.app.metrics import wiring
from paddock.app.metrics.collector import MetricsCollector
from paddock.app.subresources.sessions import Sessions
from paddock.engine.machine.guest import GuestFilesystem
from paddock.engine.machine.observation import DiskStatistics, MemoryStatistics, NicStatistics, Statistics, VcpuStatistics
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.server.edge.http import HttpResponse
from tests.coroutines import played, played_by
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.kit.prometheus import Family, read
from tools.referencepages import metrics

SPECIFICATION = Path(__file__).parents[3] / "docs/spec/kubevirt.md"
MIGRATION = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstanceMigration",
    "metadata": {"name": "away"},
    "spec": {"vmiName": "web"},
}
SNAPSHOT = {
    "apiVersion": "snapshot.kubevirt.io/v1beta1",
    "kind": "VirtualMachineSnapshot",
    "metadata": {"name": "before"},
    "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}},
}
TEMPLATE = {"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}}
DISK = [{"name": "root", "dataVolume": {"name": "disk"}}]
HARDWARE = {
    "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
    "interfaces": [{"name": "default", "masquerade": {}}],
}
CARDS: Data = {
    "networks": [{"name": "default", "pod": {}}],
    "domain": {"devices": HARDWARE, "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}},
}
# Nothing of this sort is on the host of the test.
EMPTY = {
    "kubevirt_vmi_phase_transition_time_from_deletion_seconds",
    "kubevirt_cdi_clone_progress_total",
    "kubevirt_cdi_dataimportcron_outdated",
    # No second host is there, so the migration fails before it begins.
    "kubevirt_vmi_migration_end_time_seconds",
    "kubevirt_vmi_migration_start_time_seconds",
    "kubevirt_vmi_migration_succeeded",
}
MEASURED = re.compile(r"kubevirt_vmi_(cpu|vcpu|node_cpu|guest_load|memory|storage|filesystem|network)_")
USED = Statistics(
    cpu_user_seconds=2.5,
    cpu_system_seconds=0.5,
    vcpus=(VcpuStatistics(0, 1.5, 0.25, 0.125),),
    memory=MemoryStatistics(1 << 27, 1 << 27, 5000, 4096, 1024, 512, 256, 1, 2, 3, 4),
    disks={"root": DiskStatistics(1, 2, 3, 4, 5, 0.5, 0.25, 0.125)},
    nics={"default": NicStatistics(1, 2, 3, 4, 5, 6, 7, 8)},
)


class Page:
    """A host's page, read as Prometheus would."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.sessions = Sessions(host.api.clock)
        self.collector = MetricsCollector(host.control.program, host.control.engine, self.sessions, lambda: True, "v1.9.0")

        async def before(*_: object) -> HttpResponse:
            return HttpResponse(200, b"# HELP up Whether.\n# TYPE up gauge\nup 1\n")

        host.api.api.paths[wiring.PATH] = before
        wiring.install(host.api.api, self.collector)

    async def read(self) -> dict[str, Family]:
        answer = await self._host.api.answer("GET", wiring.PATH)
        assert isinstance(answer, HttpResponse) and answer.status == 200
        found = read(answer.body.decode())
        assert sorted(found.keys() - metrics.names()) == ["up"], "docs/reference/metrics.md has the others"
        return found


@asynccontextmanager
async def page_of(host: FakeHost) -> AsyncIterator[Page]:
    page = Page(host)
    try:
        yield page
    finally:
        await page.collector.close()


# What the section shortens with an ellipsis.
SHORTENED = {
    "kubevirt_vmi_cpu_user_usage_seconds_total",
    "kubevirt_vmi_cpu_system_usage_seconds_total",
    "kubevirt_vmi_network_receive_packets_dropped_total",
    "kubevirt_vmi_network_transmit_packets_dropped_total",
    "kubevirt_vmi_phase_transition_time_from_creation_seconds",
    "kubevirt_vmi_phase_transition_time_from_deletion_seconds",
    "kubevirt_vmi_migration_data_processed_bytes",
    "kubevirt_vmi_migration_data_remaining_bytes",
    "kubevirt_vmi_migration_data_total_bytes",
    "kubevirt_workqueue_adds_total",
    "kubevirt_workqueue_depth",
    "kubevirt_workqueue_retries_total",
    "kubevirt_workqueue_queue_duration_seconds",
    "kubevirt_workqueue_work_duration_seconds",
}


def specified() -> set[str]:
    """Every name of section 8, braces expanded."""
    names = set(SHORTENED)
    for written in _written():
        if "…" not in written and "*" not in written and re.match(r"kubevirt|node:|namespace:|_", written):
            names |= set(_expanded("kubevirt_vmi" + written if written.startswith("_") else written))
    return names


def _written() -> Iterator[str]:
    section = SPECIFICATION.read_text(encoding="utf-8").partition("\n## 8.")[2].partition("\n## 9.")[0]
    for line in section.splitlines():
        if line.startswith("| ") and "Names" not in line:
            yield from re.findall(r"`([^`]+)`", line.split("|")[2])


def labelled() -> dict[str, set[str]]:
    """The labels that the section gives to names."""
    found = {}
    for written in _written():
        if match := re.fullmatch(r"(kubevirt\w*[a-z])\{(.*)\}", written):
            found[match[1]] = {re.sub(r" \(.*\)", "", each.strip()) for each in match[2].split(",")}
    return found


def _expanded(name: str) -> list[str]:
    """`a_{b,c}_d{label}`: braces at the end, and those with names of labels, are labels."""
    found = re.search(r"\{([^{}]*)\}", name)
    if found is None:
        return [name]
    if found.end() == len(name) and not name[: found.start()].endswith("_"):
        return _expanded(name[: found.start()])
    return [each for part in found[1].split(",") for each in _expanded(name[: found.start()] + part.strip() + name[found.end() :])]


async def prepared(host: FakeHost, page: Page) -> None:
    """A machine that has one of everything, and runs."""
    document = machine(volumes=DISK, templates=[TEMPLATE], **CARDS)
    document["metadata"]["labels"] = {"app.kubernetes.io/name": "shop"}
    document["spec"]["template"]["metadata"] = {"labels": {"team": "one", "a.b": "1", "a-b": "2"}}
    await host.make(document)
    running = await host.running(seconds=30)
    running.told = USED
    running.agent.told_filesystems = (GuestFilesystem("vda1", 'C:\\"x"\n', "ext4", 5, 10),) * 2
    running.agent.told_load = (0.5, 0.25, 0.125)
    running.agent.connect()
    await host.make(SNAPSHOT)
    await host.make(MIGRATION)
    machinery = host.control.program.machinery
    machinery.observe_request("GET", "virtualmachines.kubevirt.io", 200, 0.1)
    machinery.metrics.counter("paddock_workqueue_retries_total", "Keys that came back after a failure.", ("queue",)).inc("virtualmachines")
    with page.sessions.during("vnc", VirtualMachineInstance(metadata=ObjectMeta(name="web", uid=running.id))):
        pass
    await asyncio.sleep(30)


@pytest.mark.spec("kubevirt", 104, "present with exact names and labels", "stable when VMs vanish")
@played_by("play", common=True)
async def test_every_name_is_there_and_series_go_with_their_machine(host: FakeHost, /) -> None:
    # Controllers that race over the common instancetypes are those that try again.
    async with page_of(host) as page:
        at = {"node": "host", "namespace": "default", "name": "web"}
        await prepared(host, page)
        await page.read()
        await asyncio.sleep(1)
        uid = (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"]
        volumes = host.engine.volumes.volumes
        volumes[uid] = structs.replace(volumes[uid], allocated=4096)
        full = await page.read()
        assert specified() - set(full) == set()
        assert len(specified()) > 80
        empty = {name for name in specified() if not full[name].series}
        assert empty == EMPTY
        for name, wanted in labelled().items():
            assert all(wanted <= set(each) for each in full[name].labels()), name
        for name in (each for each in full if MEASURED.match(each)):
            assert all(each.items() >= at.items() for each in full[name].labels()), name
        labels = {**at, "kubernetes_vmi_label_team": "one"}
        assert full["kubevirt_vmi_vcpu_seconds_total"].values(**labels, id="0", state="RUNNING") == [1.5]
        assert full["kubevirt_vmi_cpu_usage_seconds_total"].values(**labels) == [3.0]
        assert full["kubevirt_vmi_storage_iops_write_total"].values(**labels, drive="root") == [2]
        assert full["kubevirt_vmi_network_transmit_bytes_total"].values(**labels, interface="default") == [5]
        assert full["kubevirt_vmi_memory_used_bytes"].values(**labels) == [3072]
        assert full["kubevirt_vmi_filesystem_used_bytes"].values(mount_point='C:\\"x"\n', disk_name="vda1", file_system_type="ext4") == [5]
        assert full["kubevirt_vmi_migration_failed"].values(vmi="web", vmim="away", namespace="default") == [1]
        assert full["kubevirt_vm_info"].values(name="web", status="running", status_group="running") == [1]
        assert full["kubevirt_vm_labels"].values(name="web", label_app_kubernetes_io_name="shop") == [1]
        assert full["kubevirt_vm_disk_allocated_size_bytes"].values(persistentvolumeclaim="disk", device="root")[0] >= 1 << 30
        assert full["kubelet_volume_stats_used_bytes"].values(namespace="default", persistentvolumeclaim="disk") == [4096]
        assert "kubelet_volume_stats_used_bytes{" not in await page.collector.text(["kubevirt_info"])
        assert full["kubevirt_vm_running_status_last_transition_timestamp_seconds"].values(name="web")[0] > 0
        assert full["kubevirt_vm_error_status_last_transition_timestamp_seconds"].values(name="web") == [0]
        assert full["kubevirt_vmi_phase_transition_time_seconds"].values(phase="Running")[-1] == 1
        await host.delete("VirtualMachineSnapshot", "snapshot.kubevirt.io/v1beta1", "before")
        await host.delete("VirtualMachineInstanceMigration", "kubevirt.io/v1", "away")
        await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
        await asyncio.sleep(120)
        gone = await page.read()
        assert set(gone) == set(full)
        assert [each for family in gone.values() for each in family.labels() if "web" in each.values()] == []
        assert gone["kubevirt_vmi_phase_transition_time_from_deletion_seconds"].values(phase="Succeeded")[-1] == 1


@played
async def test_a_machine_that_hangs_does_not_hang_the_page(host: FakeHost, /) -> None:
    async with page_of(host) as page:
        await host.make(machine(), machine("db"))
        stuck = await host.running()
        hangs, asked = asyncio.Event(), []

        async def never() -> Statistics:
            asked.append(1)
            await hangs.wait()
            return USED

        stuck.statistics = never  # type: ignore[method-assign]
        began = asyncio.get_running_loop().time()
        found = await page.read()
        assert 1.9 < asyncio.get_running_loop().time() - began < 2.5
        seen = found["kubevirt_vmi_cpu_usage_seconds_total"]
        assert (len(seen.values(name="db")), seen.values(name="web")) == (1, [])
        await asyncio.sleep(5)
        began = asyncio.get_running_loop().time()
        await page.read()
        assert asyncio.get_running_loop().time() - began < 0.5
        assert len(asked) == 1
        hangs.set()
        await asyncio.sleep(1)
        found = await page.read()
        assert found["kubevirt_vmi_cpu_usage_seconds_total"].values(name="web") == [3.0]


@played
async def test_panics_and_sessions_are_counted(host: FakeHost, /) -> None:
    async with page_of(host) as page:
        await host.make(machine())
        running = await host.running()
        instance = VirtualMachineInstance(metadata=ObjectMeta(name="web", namespace="default", uid=running.id))
        with page.sessions.during("console", instance), page.sessions.during("portforward", instance):
            found = await page.read()
        assert found["kubevirt_console_active_connections"].values() == [1]
        assert found["kubevirt_portforward_active_tunnels"].values() == [1]
        assert found["kubevirt_vnc_active_connections"].values() == [0]
        assert len(found["kubevirt_vmi_last_api_connection_timestamp_seconds"].values(name="web")) == 1
        assert found["kubevirt_vmi_guest_os_panic_total"].values(name="web") == [0]
        running.end("panicked")
        await host.running(seconds=60)
        found = await page.read()
        assert found["kubevirt_vmi_guest_os_panic_total"].values(name="web") == [1]
        assert found["kubevirt_console_active_connections"].values() == [0]
