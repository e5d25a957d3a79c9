"""Reconfiguring: the whole desired state is compared with the machine, and the difference is carried out.

KubeVirt plugs in processors, memory and disks where it can. For the rest it sets the condition RestartRequired, and a describe says so.
"""

import asyncio

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit import description, refusals
from paddock_drivers.kubevirt import booting, differences, documents, marks, megahertz, observed, targets
from paddock_drivers.kubevirt.booting import BootDisk, BootKind
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of, is_owned
from paddock_drivers.kubevirt.differences import ClaimGrowth, NewDisk
from paddock_drivers.kubevirt.documents import MachineDocuments
from paddock_drivers.kubevirt.firewalls import FirewallControl
from paddock_drivers.kubevirt.identifiers import TaskGoal, TaskId
from paddock_drivers.kubevirt.inventory import MachineInventory

# Every version of KubeVirt plugs disks in on this bus.
_PLUGGED = {"disk": {"bus": "scsi"}}


class MachineReconfiguration:
    """Brings machines to their desired state."""

    def __init__(self, cluster: TargetCluster, inventory: MachineInventory) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._firewalls = FirewallControl(cluster)

    async def apply(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Carry out the difference. The task ends when it is there, or when only a restart can bring it."""
        machine = await self._cluster.machine(request.id, request.owner)
        given = description.of_desired(machine.metadata.name, request.desired_json)
        wanted = documents.build(given, _any_source(machine), await megahertz.informed(self._cluster, given.hardware))
        root = given.hardware.disk_defaults.size_gib if given.hardware.disk_defaults is not None else 0
        sizes = differences.sizes_after(machine, given.disks, root)
        # A disk that cannot have its size refuses the whole change, before anything of it is done.
        grown = await self._growth(machine, sizes)
        await self._belongings(machine, wanted)
        for each in grown:
            await self._grow(each)
        instance = await self._cluster.instance(machine)
        await self._change_disks(machine, instance, wanted.machine, given)
        await self._cluster.retried(lambda: self._change_spec(request.id, wanted, sizes))
        after = await self._cluster.machine(request.id)
        task = TaskId(TaskGoal.RECONFIGURED, id_of(after), str(after.metadata.generation or 0))
        return m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _change_spec(self, id: str, machine_documents: MachineDocuments, sizes: dict[str, int]) -> None:
        machine = await self._cluster.machine(id)
        raw = await self._cluster.raw(targets.MACHINES, machine.metadata.name)
        limits = (*machine_documents.limitations, *differences.unchangeable(machine, machine_documents.machine))
        aim = _noted(machine_documents.machine, marks.LIMITATIONS, msgspec.json.encode(limits).decode())
        change: Data = {}
        if notes := differences.note_changes(machine, aim, sizes):
            change["metadata"] = {"annotations": notes}
        if spec := differences.spec_changes(raw, machine_documents.machine):
            change["spec"] = spec
        if change:
            await self._cluster.merge(targets.MACHINES, machine, change)

    # --- what a machine needs beside itself -------------------------------------------------------------------------------

    async def _belongings(self, machine: VirtualMachine, machine_documents: MachineDocuments) -> None:
        """Make networks that are new, and write the guest's document, which counts from the next first boot on."""
        owners = owned_by(machine) or []
        for definition in machine_documents.definitions:
            metadata = msgspec.structs.replace(definition.metadata, namespace=self._cluster.namespace, ownerReferences=owners)
            found = await self._cluster.ensure(targets.DEFINITIONS, msgspec.structs.replace(definition, metadata=metadata))
            if not is_owned(found, machine):
                raise refusals.conflict(f"NetworkAttachmentDefinition {found.metadata.name} exists and is not the machine's")
            if found.spec != definition.spec:
                spec = {"config": definition.spec.config if definition.spec is not None else None}
                await self._cluster.merge(targets.DEFINITIONS, found, {"spec": spec})
        await self._firewalls.keep(machine, machine_documents.firewall)
        for secret in machine_documents.secrets:
            there = await self._cluster.find(targets.SECRETS, secret.metadata.name)
            if there is not None and is_owned(there, machine) and there.data != secret.data:
                await self._cluster.merge(targets.SECRETS, there, {"data": secret.data})

    # --- disks ------------------------------------------------------------------------------------------------------------

    async def _growth(self, machine: VirtualMachine, sizes: dict[str, int]) -> tuple[ClaimGrowth, ...]:
        claims = await self._inventory.claims_of(machine)
        volumes = await asyncio.gather(*(self._cluster.find(targets.DATA_VOLUMES, name) for name in claims))
        asked = {each.metadata.name: booting.asked_size(each.spec) for each in volumes if each is not None}
        return differences.growth(machine, sizes, claims, asked)

    async def _grow(self, growth: ClaimGrowth) -> None:
        """Write the new request and what it is measured by at once, so that the change can be repeated."""
        claim = await self._cluster.find(targets.CLAIMS, growth.claim)
        await self._check_may_grow(claim)
        change = {
            "metadata": {"annotations": growth.notes},
            "spec": {"resources": {"requests": {"storage": quantity.binary(growth.request)}}},
        }
        await self._cluster.client.patch_raw(targets.CLAIMS, Key(self._cluster.namespace, growth.claim), merge_patch(change))

    async def _check_may_grow(self, claim: PersistentVolumeClaim | None) -> None:
        named = claim.spec.storageClassName if claim is not None and claim.spec is not None else None
        found = await self._cluster.find(targets.STORAGE_CLASSES, named) if named else None
        if claim is not None and found is not None and not found.allowVolumeExpansion:
            why = f"StorageClass {named} does not allow it"
            raise refusals.not_supported(f"claim {claim.metadata.name} cannot grow", why=why, fix="set allowVolumeExpansion on it")

    async def _change_disks(
        self, machine: VirtualMachine, instance: VirtualMachineInstance | None, vm: VirtualMachine, description: MachineDescription
    ) -> None:
        added, removed = differences.disk_changes(machine, vm, description.disks)
        if observed.is_live(instance):
            for each in added:
                await self._plug(machine, each)
            hot = tuple(name for name in removed if differences.is_hot(machine, name))
            for name in hot:
                await self._cluster.act(targets.MACHINES, machine.metadata.name, "removevolume", {"name": name})
            added, removed = (), tuple(name for name in removed if name not in hot)
        if added or removed:
            await self._cluster.retried(lambda: self._edit_disks(str(id_of(machine)), added, removed))

    async def _edit_disks(self, id: str, added: tuple[NewDisk, ...], removed: tuple[str, ...]) -> None:
        machine = await self._cluster.machine(id)
        raw = await self._cluster.raw(targets.MACHINES, machine.metadata.name)
        there = {each.name for each in machine.spec.template.spec.volumes or ()}
        fresh = tuple(each for each in added if each.volume.name not in there)
        await self._cluster.merge(targets.MACHINES, machine, {"spec": differences.with_disks(raw, fresh, removed)})

    async def _plug(self, machine: VirtualMachine, disk: NewDisk) -> None:
        """Make a disk and plug it in."""
        name = documents.template_name(disk.template)
        wanted = DataVolume(
            apiVersion=targets.DATA_VOLUMES.api_version,
            kind=targets.DATA_VOLUMES.kind,
            metadata=ObjectMeta(name=name, namespace=self._cluster.namespace, ownerReferences=owned_by(machine)),
            spec=disk.template.spec,
        )
        found = await self._cluster.ensure(targets.DATA_VOLUMES, wanted)
        if not is_owned(found, machine):
            raise refusals.conflict(f"DataVolume {name} exists and does not belong to machine {machine.metadata.name}")
        options = {"name": disk.volume.name, "disk": {"name": disk.volume.name, **_PLUGGED}, "volumeSource": {"dataVolume": {"name": name}}}
        await self._cluster.act(targets.MACHINES, machine.metadata.name, "addvolume", options)


def _any_source(machine: VirtualMachine) -> BootDisk:
    """A machine keeps the disk it boots from; the translation only has to know that there is one."""
    first = (machine.metadata.annotations or {}).get(marks.BOOT_VOLUME) or differences.boot_name(machine)
    volume = next((each for each in machine.spec.template.spec.volumes or () if each.name == first), None)
    claim = observed.claim_of(volume) if volume is not None else ""
    return BootDisk(kind=BootKind.CLAIM, name=claim or machine.metadata.name, kept=True)


def _noted(machine: VirtualMachine, name: str, value: str) -> VirtualMachine:
    annotations = {**(machine.metadata.annotations or {}), name: value}
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, annotations=annotations))
