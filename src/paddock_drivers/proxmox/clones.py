"""Clones of machines. A clone is off, has disks, an identity and interfaces of its own, and is found again by whom it is for."""

import asyncio
from weakref import WeakValueDictionary

import msgspec

from paddock.base import names
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, ImagePayload, PlacementPayload
from paddock_drivers.kit import customization, refusals
from paddock_drivers.kit.customization import CloneCustomization
from paddock_drivers.proxmox import hardware, placing
from paddock_drivers.proxmox.building import ProxmoxBuildOrder, ProxmoxMachineBuilder
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine, ProxmoxResource
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.machines import ProxmoxOwnedMachines
from paddock_drivers.proxmox.making import ProxmoxBegunMachine, ProxmoxCloneOrder, ProxmoxMachineMaking
from paddock_drivers.proxmox.snapshots import ProxmoxSnapshotControl

_LONGEST_NAME = 63


class ProxmoxMachineCloning:
    def __init__(
        self, cluster: ProxmoxCluster, making: ProxmoxMachineMaking, builder: ProxmoxMachineBuilder, snapshots: ProxmoxSnapshotControl
    ) -> None:
        self._cluster = cluster
        self._making = making
        self._builder = builder
        self._snapshots = snapshots
        self._owned = ProxmoxOwnedMachines(cluster)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._begun: dict[str, tuple[ProxmoxMachineId, ProxmoxTaskId]] = {}

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine, or answer with the clone that an earlier call has made, also if the source has gone since."""
        if not names.is_subdomain(request.target_name) or len(request.target_name) > _LONGEST_NAME:
            raise refusals.invalid(f'a machine cannot be called "{request.target_name[:64]}"', fix="use lower-case letters, digits, '-'")
        given = customization.read(request.class_json, request.customize_json)
        place = payloads.decode(request.placement_json, PlacementPayload)
        key = _key(request)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key in self._begun:
                machine, task = self._begun[key]
                if self._cluster.works.is_under_way(str(task)):
                    return m.CloneResponse(target_vm_id=str(machine), task=m.TaskRef(id=str(task)))
                del self._begun[key]
            resources = await self._cluster.resources()
            found = await self._owned.find(key, request.target_name, await self._cluster.machines(resources))
            if found is not None and found.config.note.complete:
                return m.CloneResponse(target_vm_id=str(found.id))
            source = await self._cluster.find(request.source_vm_id)
            if found is None and source is None:
                raise refusals.not_found(f"there is no machine {request.source_vm_id[:64]} to clone")
            begun = await self._begin(request, given, place, source, resources) if found is None and source is not None else None
            if begun is None:
                assert found is not None
                begun = ProxmoxBegunMachine(found.id, found.node, None)
            order = _order(request, given, place, begun, key, source)
            return self._answer(key, order, begun)

    def _answer(self, key: str, order: ProxmoxBuildOrder, begun: ProxmoxBegunMachine) -> m.CloneResponse:
        task = ProxmoxTaskId(ProxmoxTaskGoal.CLONED, begun.upid, begun.id)
        self._begun = {name: each for name, each in self._begun.items() if self._cluster.works.is_under_way(str(each[1]))}
        self._begun[key] = (begun.id, task)
        self._cluster.works.begin(str(task), lambda: self._work(order, begun), self._cluster.settings.work_seconds)
        return m.CloneResponse(target_vm_id=str(begun.id), task=m.TaskRef(id=str(task)))

    async def _work(self, order: ProxmoxBuildOrder, begun: ProxmoxBegunMachine) -> None:
        if begun.upid is not None:
            await self._cluster.wait(begun.upid)
        if not order.storage:
            found = await self._cluster.locate(order.id)
            root = found.config.root if found is not None else None
            order = msgspec.structs.replace(order, storage=root.storage if root is not None else "")
        await self._builder.complete(order)

    async def _begin(
        self,
        request: m.CloneRequest,
        customization: CloneCustomization,
        placement: PlacementPayload,
        source: ProxmoxLocatedMachine,
        resources: tuple[ProxmoxResource, ...],
    ) -> ProxmoxBegunMachine:
        if request.linked and not source.config.is_template:
            raise refusals.not_supported(
                "the machine cannot have a linked clone", why="Proxmox VE links clones to templates only", fix="make a full clone"
            )
        if request.linked and customization.snapshot:
            raise refusals.not_supported("a linked clone cannot be of a snapshot", fix="make a full clone")
        if customization.snapshot and await self._snapshots.find(source, customization.snapshot) is None:
            raise refusals.not_found(f"machine {source.config.name} has no snapshot {customization.snapshot[:64]}")
        target = self._target(placement, source, resources)
        storage = placement.datastore if not request.linked else ""
        if storage:
            placing.storage(resources, placing.IMAGES, target or source.node, storage)
        pool = placement.resource_pool if isinstance(placement.resource_pool, str) else ""
        whose = request.target_vm
        words = f"Clone of {source.config.name}" + (f" for VirtualMachine {whose.namespace}/{whose.name}" if whose is not None else "")
        order = ProxmoxCloneOrder(
            key=_key(request),
            name=request.target_name,
            words=words,
            node=source.node,
            source=source.config.vmid,
            full=not request.linked,
            storage=storage,
            pool=pool,
            target=target,
            snapshot=customization.snapshot,
        )
        return await self._making.clone(order)

    def _target(self, placement: PlacementPayload, source: ProxmoxLocatedMachine, resources: tuple[ProxmoxResource, ...]) -> str:
        """The node of a clone, if it is another one than that of its source."""
        if not placement.host or placement.host == source.node:
            return ""
        if not placing.shared(resources, {each.storage for each in source.config.drives}):
            what = f'the clone cannot be made on node "{placement.host[:64]}"'
            raise refusals.invalid(what, why=f"the disks of its source are on a local storage of {source.node}")
        return placing.node(placing.nodes(resources, ()), placement.host, {placement.host})


def _key(request: m.CloneRequest) -> str:
    """Return what a clone is found by: the machine of the manager that it is for, or its name."""
    whose = request.target_vm
    if whose is not None and whose.name:
        return f"clone:{whose.namespace}/{whose.name}"
    return f"clone:{request.target_name}"


def _order(
    request: m.CloneRequest,
    customization: CloneCustomization,
    placement: PlacementPayload,
    begun: ProxmoxBegunMachine,
    key: str,
    source: ProxmoxLocatedMachine | None,
) -> ProxmoxBuildOrder:
    size = customization.hardware or ClassPayload()
    if customization.hardware is not None:
        hardware.check(customization.hardware)
    own = bool(customization.user_data or customization.hostname or customization.networks)
    limitations = list(customization.limitations)
    if source is not None and source.config.note.documents and not customization.user_data:
        limitations.append("customization.userData: the documents of the source are not copied; give the clone its own")
    if placement.folder or placement.cluster:
        limitations.append("placement: Proxmox VE has no folders, and a Provider is one cluster")
    described = MachineDescription(
        name=request.target_name,
        hardware=size,
        image=ImagePayload(),
        networks=customization.networks,
        user_data=customization.user_data,
        meta_data=f"local-hostname: {customization.hostname}\n".encode() if customization.hostname else b"",
    )
    return ProxmoxBuildOrder(
        id=begun.id,
        key=key,
        given=described,
        storage=placement.datastore,
        limitations=tuple(limitations),
        is_clone=True,
        documents=own,
    )
