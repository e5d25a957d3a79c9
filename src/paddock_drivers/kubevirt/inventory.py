"""What is known of machines: one, or all that the target has, foreign ones too."""

import asyncio
import json
from collections.abc import Mapping

from paddock.contract import messages as m
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kubevirt import marks, observed, targets
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of
from paddock_drivers.kubevirt.identifiers import ObjectId

_GIB = 1 << 30


class MachineInventory:
    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state. It does not exist only if the target says so."""
        machine = await self._cluster.find_id(targets.MACHINES, ObjectId.parse(request.id))
        if machine is None:
            return m.DescribeResponse()
        instance = await self._cluster.instance(machine)
        claims = await self.claims_of(machine)
        return m.DescribeResponse(
            exists=True,
            power_state=observed.power_state(instance),
            ips=observed.addresses(instance),
            console_url=self._console(machine) if observed.is_live(instance) else "",
            provider_raw_json=json.dumps(observed.details(machine, instance, claims), sort_keys=True),
        )

    async def claims_of(self, machine: VirtualMachine) -> dict[str, PersistentVolumeClaim]:
        """The claims of a machine's disks, by their names."""
        names = [name for each in machine.spec.template.spec.volumes or () if (name := observed.claim_of(each))]
        found = await asyncio.gather(*(self._cluster.find(targets.CLAIMS, name) for name in names))
        return {each.metadata.name: each for each in found if each is not None}

    async def every(self) -> m.ListVMsResponse:
        """Return all machines of the namespace."""
        machines, instances, claims = await asyncio.gather(
            self._cluster.every(targets.MACHINES), self._cluster.every(targets.INSTANCES), self._cluster.every(targets.CLAIMS)
        )
        runs = {each.metadata.name: each for each in instances}
        disks = {each.metadata.name: each for each in claims}
        listed = sorted(machines, key=lambda each: each.metadata.name)
        return m.ListVMsResponse(vms=tuple(listed_machine(each, runs.get(each.metadata.name), disks) for each in listed))

    def _console(self, machine: VirtualMachine) -> str:
        """The address of the guest's screen, which KubeVirt serves over a WebSocket."""
        server = self._cluster.settings.server.rstrip("/")
        if not server:
            return ""
        address = server.replace("https://", "wss://", 1).replace("http://", "ws://", 1)
        place = f"namespaces/{self._cluster.namespace}/{targets.INSTANCES.plural}/{machine.metadata.name}"
        return f"{address}{targets.ACTIONS}/{place}/vnc"


def listed_machine(
    machine: VirtualMachine, instance: VirtualMachineInstance | None, claims: Mapping[str, PersistentVolumeClaim]
) -> m.VMInfo:
    """Return a machine as a list has it."""
    size = observed.size(machine, instance)
    disks = tuple(
        m.VMDiskInfo(id=each.name, path=each.claim, size_gib=-(-each.size // _GIB), format="raw")
        for each in observed.disks(machine, instance, claims)
    )
    raw = observed.details(machine, instance, claims)
    # Also by another controller of the target, as a pool.
    controlled = any(each.controller for each in machine.metadata.ownerReferences or ())
    owner = (machine.metadata.labels or {}).get(marks.OWNER_UID, "")
    raw |= {"managed": "true" if controlled or owner else "false", m.OWNER_UID: owner}
    return m.VMInfo(
        id=str(id_of(machine)),
        name=machine.metadata.name,
        power_state=observed.power_state(instance),
        ips=observed.addresses(instance),
        cpu=size.cpus,
        memory_mib=size.memory_mib,
        disks=disks,
        networks=_interfaces(machine, instance),
        provider_raw=raw,
    )


def _interfaces(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> tuple[m.VMNetworkInfo, ...]:
    seen = {each.name: each for each in observed.instance_status(instance).interfaces or () if each.name}
    found = []
    for each in machine.spec.template.spec.domain.devices.interfaces or ():
        status = seen.get(each.name)
        mac = (status.mac if status is not None else None) or each.macAddress or ""
        found.append(m.VMNetworkInfo(name=each.name, mac=mac, ip_address=(status.ipAddress if status is not None else None) or ""))
    return tuple(found)
