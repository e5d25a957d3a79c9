"""Describes machines: one, or all that the cluster has, foreign ones too.

The cluster lists all machines in one call, without their disks, interfaces and identities. These are read once for each machine, and again
when the cluster's summary of it has changed or the copy is old. Whatever acts on a machine reads it anew.
"""

import asyncio
import ipaddress
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind
from paddock_drivers.proxmox import failures, properties
from paddock_drivers.proxmox.api import ProxmoxRefusal
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine, ProxmoxResource
from paddock_drivers.proxmox.config import ProxmoxMachineConfig
from paddock_drivers.proxmox.power import ON, SUSPENDED, ProxmoxPowerControl, state_of

_GIB = 1 << 30
_AGENT_SECONDS = 8.0
# Keys that wait for a restart and mean nothing for the guest.
_SILENT = ("description", "tags", "name", "onboot", "protection", "startup", "digest")


class _Kept(NamedTuple):
    summary: tuple[Any, ...]
    read_at: float
    config: ProxmoxMachineConfig


class ProxmoxMachineInventory:
    def __init__(self, cluster: ProxmoxCluster, power: ProxmoxPowerControl) -> None:
        self._cluster = cluster
        self._power = power
        self._kept: dict[int, _Kept] = {}
        self._reads = asyncio.Semaphore(cluster.settings.most_reads)

    # --- one machine ------------------------------------------------------------------------------------------------------------

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state. It does not exist only if the cluster says so."""
        machine = await self._cluster.find(request.id)
        if machine is None:
            return m.DescribeResponse()
        status = await self._power.status(machine)
        state = state_of(status)
        live = state in (ON, SUSPENDED) and status.get("status") == "running"
        pending = await self._pending(machine) if live else ()
        asks = state == ON and properties.is_true(status.get("agent"))
        found = await self._addresses(machine) if asks else {}
        return m.DescribeResponse(
            exists=True,
            power_state=state,
            ips=tuple(address for each in found.values() for address in each),
            console_url=self._console(machine),
            provider_raw_json=json.dumps(details(machine, status, pending), sort_keys=True),
        )

    async def _pending(self, machine: ProxmoxLocatedMachine) -> tuple[str, ...]:
        """The keys whose change waits for the next start."""
        listed = await self._cluster.api.get(self._cluster.of(machine, "pending"))
        waits = [str(each.get("key")) for each in listed or () if "pending" in each or each.get("delete")]
        return tuple(sorted(key for key in waits if key not in _SILENT))

    async def _addresses(self, machine: ProxmoxLocatedMachine) -> dict[str, tuple[str, ...]]:
        """The addresses that the guest's agent tells, by MAC address; none while it does not answer."""
        try:
            target = self._cluster.of(machine, "agent", "network-get-interfaces")
            answer = await self._cluster.api.get(target, seconds=_AGENT_SECONDS)
        except PaddockError:
            # An agent that is not there yet is no trouble of the machine's.
            return {}
        return agent_addresses(answer)

    def _console(self, machine: ProxmoxLocatedMachine) -> str:
        server, config = self._cluster.settings.server.rstrip("/"), machine.config
        if not server:
            return ""
        return f"{server}/?console=kvm&novnc=1&vmid={config.vmid}&vmname={quote(config.name, safe='')}&node={quote(machine.node, safe='')}"

    # --- all machines -----------------------------------------------------------------------------------------------------------

    async def every(self) -> m.ListVMsResponse:
        """Return all machines that the user may see, without templates."""
        listed = [each for each in await self._cluster.machines() if not each.template]
        configs = await asyncio.gather(*(self._config(each) for each in listed))
        self._kept = {each.vmid: self._kept[each.vmid] for each in listed if each.vmid in self._kept}
        found = [(each, config) for each, config in zip(listed, configs, strict=True) if config is not None]
        return m.ListVMsResponse(vms=tuple(listed_machine(each, config) for each, config in sorted(found, key=lambda pair: pair[0].vmid)))

    async def _config(self, listed: ProxmoxResource) -> ProxmoxMachineConfig | None:
        """The configuration of a listed machine; None for one that has gone meanwhile, or is not there yet."""
        summary = _summary(listed)
        now, kept = asyncio.get_running_loop().time(), self._kept.get(listed.vmid)
        if kept is not None and kept.summary == summary and now - kept.read_at < self._cluster.settings.list_seconds:
            return kept.config
        async with self._reads:
            try:
                config = await self._cluster.config(listed.node, listed.vmid)
            except ProxmoxRefusal as error:
                if failures.is_gone(error):
                    return None
                if failures.kind_of(error) is not ErrorKind.UNAVAILABLE:
                    raise
                # Its node does not answer: what was known of it is better than nothing, and the rest of the list better than none.
                return kept.config if kept is not None else None
        if config.is_being_made:
            return None
        self._kept[listed.vmid] = _Kept(summary, now, config)
        return config

    def forget(self, vmid: int) -> None:
        """Read a machine again for the next list."""
        self._kept.pop(vmid, None)


def _summary(listed: ProxmoxResource) -> tuple[Any, ...]:
    return (
        listed.node,
        listed.name,
        listed.tags,
        listed.lock,
        listed.maxcpu,
        listed.maxmem,
        listed.maxdisk,
        listed.status,
        listed.template,
    )


def listed_machine(listed: ProxmoxResource, config: ProxmoxMachineConfig) -> m.VMInfo:
    """Return a machine as a list has it."""
    root = config.root
    ordered = sorted(config.drives, key=lambda each: each != root)
    disks = tuple(m.VMDiskInfo(id=each.slot, path=each.volume, size_gib=-(-each.size // _GIB), format=each.format) for each in ordered)
    raw = {
        "vmid": str(config.vmid),
        "node": listed.node,
        "pool": listed.pool,
        "tags": ";".join(config.tags),
        "lock": config.lock,
        "managed": "true" if config.note.key else "false",
        m.OWNER_UID: config.note.key,
        "guestOS": config.text("ostype"),
    }
    return m.VMInfo(
        id=str(config.id),
        name=config.name or listed.name,
        power_state=state_of({"status": listed.status, "qmpstatus": listed.qmpstatus, "lock": config.lock}),
        cpu=config.cpus,
        memory_mib=config.memory_mib,
        disks=disks,
        networks=tuple(m.VMNetworkInfo(name=each.slot, mac=each.mac.lower()) for each in config.nics),
        provider_raw={key: value for key, value in raw.items() if value},
    )


def details(machine: ProxmoxLocatedMachine, status: Mapping[str, Any], pending: tuple[str, ...]) -> dict[str, str]:
    """Return what else is known of a machine, all texts."""
    config = machine.config
    disks = [{"name": each.serial or each.slot, "slot": each.slot, "volume": each.volume, "size": each.size} for each in config.drives]
    found = {
        "vmid": str(config.vmid),
        "node": machine.node,
        "name": config.name,
        "owner": config.note.key,
        "status": str(status.get("qmpstatus") or status.get("status") or ""),
        "lock": str(status.get("lock") or ""),
        "cpus": str(config.cpus),
        "memoryMiB": str(config.memory_mib),
        "restartRequired": "true" if pending else "false",
        "restartReason": f"{', '.join(pending)} change at the next start" if pending else "",
        "disks": json.dumps(disks, sort_keys=True),
        "limitations": json.dumps(config.note.limitations) if config.note.limitations else "",
        "incomplete": "true" if config.note.key and not config.note.complete else "",
    }
    return {key: value for key, value in found.items() if value}


def agent_addresses(answer: object) -> dict[str, tuple[str, ...]]:
    """Return the addresses of a guest by MAC address, from an agent's answer; a guest may say anything."""
    listed = answer.get("result") if isinstance(answer, dict) else answer
    found: dict[str, tuple[str, ...]] = {}
    for each in _dicts(listed):
        mac = str(each.get("hardware-address") or "").lower()
        good = tuple(filter(None, (_address(entry.get("ip-address")) for entry in _dicts(each.get("ip-addresses")))))
        if good and mac != "00:00:00:00:00:00":
            found[mac] = found.get(mac, ()) + good
    return found


def _dicts(value: object) -> Iterable[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _address(text: object) -> str:
    try:
        found = ipaddress.ip_address(str(text))
    except ValueError:
        return ""
    return "" if found.is_loopback or found.is_link_local or found.is_unspecified else str(found)
