"""The hosts of a vCenter: what their guests leave free, their clusters, their CPUs. Pure.

vCenter moves machines between hosts by itself, so no call needs a host and the provider is not clustered. Hosts are for whoever places
machines by rules.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from paddock.contract import messages as m
from paddock_drivers.vsphere.inventory import InventoryRow
from paddock_drivers.vsphere.target import SeenMachine

_MIB = 1 << 20
PATHS = (
    "name",
    "parent",
    "datastore",
    "summary.hardware",
    "summary.config.product.fullName",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "summary.maxEVCModeKey",
)
GUESTS = ("runtime.host", "runtime.powerState", "config.hardware.numCPU", "config.hardware.memoryMB")
_CLUSTER, _VENDOR = "virtrigaud.io/cluster", "virtrigaud.io/vendor"
_TAINT = "virtrigaud.io/taint/maintenance"


def used(machines: Iterable[SeenMachine]) -> dict[Any, tuple[int, int]]:
    """Return the CPUs and MiB that the running guests of each host have."""
    found: dict[Any, tuple[int, int]] = {}
    for each in machines:
        host = each.get("runtime.host")
        if host is not None and str(each.get("runtime.powerState")) == "poweredOn":
            cpus, memory = found.get(host, (0, 0))
            found[host] = (cpus + int(each.get("config.hardware.numCPU", 0)), memory + int(each.get("config.hardware.memoryMB", 0)))
    return found


def host_of(row: InventoryRow, guests: Mapping[Any, tuple[int, int]], stores: Mapping[Any, int], clusters: Mapping[Any, str]) -> m.HostInfo:
    """Return a host, with what its guests leave of it."""
    hardware = row.get("summary.hardware")
    cpus, memory = guests.get(row.ref, (0, 0))
    maintenance = bool(row.get("runtime.inMaintenanceMode", False))
    threads = int(getattr(hardware, "numCpuThreads", 0) or getattr(hardware, "numCpuCores", 0) or 0)
    labels = {_CLUSTER: clusters.get(row.get("parent"), ""), _VENDOR: str(getattr(hardware, "vendor", "") or "")}
    if maintenance:
        labels[_TAINT] = ":NoSchedule"
    connected = str(row.get("runtime.connectionState")) == "connected"
    return m.HostInfo(
        id=row.name,
        address=row.name,
        allocatable_cpu=max(0, threads - cpus),
        allocatable_mem_mib=max(0, int(getattr(hardware, "memorySize", 0) or 0) // _MIB - memory),
        allocatable_storage=sum(stores.get(each, 0) for each in row.get("datastore", ())),
        health=m.HostHealth.READY if connected and not maintenance else m.HostHealth.NOT_READY,
        labels={key: value for key, value in labels.items() if value},
        cpu_model=str(getattr(hardware, "cpuModel", "") or ""),
        machine_types=tuple(filter(None, (str(row.get("summary.maxEVCModeKey", "")),))),
        emulator_version=str(row.get("summary.config.product.fullName", "")),
    )
