"""Machines as they are described and listed."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from paddock.contract import messages as m
from paddock_drivers.firecracker import apifacts, processes
from paddock_drivers.firecracker.processes import VmmProcess
from paddock_drivers.firecracker.records import BUILDING, MicroVmFolder, MicroVmRecord
from paddock_drivers.firecracker.runs import MicroVmRuns
from paddock_drivers.firecracker.store import MicroVmStore

_GIB = 1 << 30
ON, OFF, SUSPENDED, UNKNOWN = "On", "Off", "Suspended", "Unknown"
_STATES = {apifacts.RUNNING: ON, apifacts.PAUSED: SUSPENDED, apifacts.NOT_STARTED: OFF}
_ADDRESSES = "ips: they are those that the host's table of neighbours has, so a silent guest has none"


class MicroVmInventory:
    """Describes machines. It changes nothing and waits for nobody."""

    def __init__(self, store: MicroVmStore, runs: MicroVmRuns, version: Callable[[], Awaitable[tuple[int, ...]]]) -> None:
        self._store = store
        self._runs = runs
        self._version = version

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        found = self._store.find(request.id)
        if found is None:
            return m.DescribeResponse(exists=False)
        folder, record = found
        process = processes.find(folder.path)
        state = OFF if process is None else await self._power(folder, record, process)
        addresses = await asyncio.to_thread(self._runs.network.addresses)
        raw = details(folder, record, process)
        version = await self._version()
        if version:
            raw["firecrackerVersion"] = ".".join(map(str, version))
        return m.DescribeResponse(
            exists=True, power_state=state, ips=_ips(record, addresses) if process is not None else (), provider_raw_json=json.dumps(raw)
        )

    async def _power(self, folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess) -> str:
        if record.paused:
            # For a copy of its disks, and not for long.
            return ON
        state = await self._runs.state(folder, record, process)
        if not state and processes.find(folder.path) is None:
            return OFF
        return _STATES.get(state, UNKNOWN)

    async def every(self) -> m.ListVMsResponse:
        """Return all machines. Which of them run is seen from their processes; the VMMs are not asked."""
        return await asyncio.to_thread(self._every)

    def _every(self) -> m.ListVMsResponse:
        addresses = self._runs.network.addresses()
        return m.ListVMsResponse(vms=tuple(_listed(folder, record, addresses) for folder, record in self._store.every()))


def _listed(folder: MicroVmFolder, record: MicroVmRecord, addresses: Mapping[str, str]) -> m.VMInfo:
    process = processes.find(folder.path)
    # A VMM that is not the record's own yet is being started.
    state = OFF if process is None else ON if process.id == record.process else UNKNOWN
    spec = record.seen if process is not None else record.spec
    seen = addresses if process is not None else {}
    return m.VMInfo(
        id=record.id,
        name=record.name,
        power_state=state,
        ips=_ips(record, seen),
        cpu=spec.cpu,
        memory_mib=spec.memory_mib,
        disks=tuple(
            m.VMDiskInfo(id=each.name, path=str(folder.disk(each)), size_gib=-(-each.size // _GIB), format="raw") for each in spec.disks
        ),
        networks=tuple(m.VMNetworkInfo(name=each.name, mac=each.mac, ip_address=seen.get(each.mac, "")) for each in spec.nics),
        provider_raw={
            **details(folder, record, process),
            "managed": "true" if record.owner or record.cloned_for else "false",
            m.OWNER_UID: record.owner,
        },
    )


def details(folder: MicroVmFolder, record: MicroVmRecord, process: VmmProcess | None) -> dict[str, str]:
    """Return what a machine has beside its state."""
    spec = record.seen if process is not None else record.spec
    raw = {
        "cpus": str(spec.cpu),
        "memoryMiB": str(spec.memory_mib),
        "disks": ",".join(f"{each.name}={each.size}" for each in spec.disks),
        "consoleLog": str(folder.path / "console.log"),
        "directory": str(folder.path),
    }
    if process is not None:
        raw["pid"] = str(process.pid)
        if record.restart_required:
            raw["restartRequired"] = "true"
        if record.balloon:
            raw["balloonMiB"] = str(record.balloon)
    if record.state == BUILDING:
        raw["incomplete"] = "true"
    if record.detached:
        raw["detachedDisks"] = ",".join(each.name for each in record.detached)
    if record.tags:
        raw["tags"] = ",".join(record.tags)
    limited = (*record.limitations, *((_ADDRESSES,) if spec.nics else ()))
    if limited:
        raw["limitations"] = json.dumps(limited)
    return raw


def _ips(record: MicroVmRecord, addresses: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(addresses[each.mac] for each in record.seen.nics if each.mac in addresses)
