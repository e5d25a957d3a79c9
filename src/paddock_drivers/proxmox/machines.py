"""Creating and deleting machines.

    nothing --clone, create--> incomplete --size, disks, documents--> complete

A create answers as soon as the first step has begun, and the rest is work of this process. A machine that is found incomplete is completed
by the next create of its owner.
"""

import asyncio
import hashlib
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET

from paddock.base import reasons
from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock_drivers.kit import description, refusals
from paddock_drivers.proxmox import diskplans, failures, guestdata, hardware, networking, placing
from paddock_drivers.proxmox.api import FormValue, ProxmoxRefusal
from paddock_drivers.proxmox.building import ProxmoxBuildOrder, ProxmoxMachineBuilder
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine, ProxmoxResource
from paddock_drivers.proxmox.config import ProxmoxMachineConfig
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, ProxmoxTaskGoal, ProxmoxTaskId, machine_uuid, owner_tag
from paddock_drivers.proxmox.images import ProxmoxImagePreparation
from paddock_drivers.proxmox.making import ProxmoxBegunMachine, ProxmoxCloneOrder, ProxmoxMachineMaking
from paddock_drivers.proxmox.power import ProxmoxPowerControl

_QEMU = "qemu"
_RUNNING = "running"


class ProxmoxOwnedMachines:
    """Finds machines by what they were made for, also those that a clone has not finished."""

    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster

    async def find(self, key: str, name: str, machines: tuple[ProxmoxResource, ...]) -> ProxmoxLocatedMachine | None:
        """The machine of a key; raises Conflict when the name belongs to another one."""
        tag, owned, stranger = owner_tag(key), [], None
        for each in machines:
            if each.template or not (each.name == name or tag in each.tags):
                continue
            try:
                found = ProxmoxLocatedMachine(each.node, await self._cluster.config(each.node, each.vmid))
            except ProxmoxRefusal as error:
                if failures.is_gone(error):
                    continue
                raise
            if is_of(found.config, key):
                owned.append(found)
            elif found.config.name == name:
                stranger = found
        if owned:
            return min(owned, key=lambda each: (not each.config.note.complete, each.config.vmid))
        if stranger is not None:
            what = f"machine {name} exists with VMID {stranger.config.vmid} and belongs to another owner, or to none"
            raise refusals.conflict(what, fix="choose another name, or adopt the machine")
        return None


def is_of(config: ProxmoxMachineConfig, key: str) -> bool:
    """Return whether a machine was made for a key, by its note or, where somebody has edited that, by its UUID."""
    return config.note.key == key or config.uuid == machine_uuid(key, config.vmid)


def key_of(request: m.CreateRequest) -> str:
    """Return what a machine is made for: its owner, or the request itself."""
    if request.owner is not None and request.owner.uid:
        return request.owner.uid
    documents = hashlib.sha256(request.user_data + b"\0" + request.meta_data).hexdigest()[:16]
    return f"request:{request.name}:{description.digest(request)}:{documents}"


class ProxmoxMachineLifecycle:
    def __init__(
        self,
        cluster: ProxmoxCluster,
        making: ProxmoxMachineMaking,
        builder: ProxmoxMachineBuilder,
        images: ProxmoxImagePreparation,
        power: ProxmoxPowerControl,
    ) -> None:
        self._cluster = cluster
        self._power = power
        self._making = making
        self._builder = builder
        self._images = images
        self._owned = ProxmoxOwnedMachines(cluster)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # by key: the machine whose work goes on here, and its task
        self._begun: dict[str, tuple[ProxmoxMachineId, ProxmoxTaskId]] = {}

    # --- create ---------------------------------------------------------------------------------------------------------------

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has."""
        given = description.of_create(request)
        hardware.check(given.hardware)
        _check(given)
        key = key_of(request)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if (begun := self._under_way(key)) is not None:
                return begun
            resources = await self._cluster.resources()
            machines = await self._cluster.machines(resources)
            found = await self._owned.find(key, given.name, machines)
            # The nodes' own lists are newer than what they have broadcast.
            resources = (*(each for each in resources if each.type != _QEMU), *machines)
            if found is not None and found.config.note.complete:
                return m.CreateResponse(id=str(found.id))
            if found is not None and found.config.note.key != key and found.config.uuid:
                # Somebody has removed the note of a machine that is ours by its UUID: nothing says that it is incomplete.
                return m.CreateResponse(id=str(found.id))
            words = _words(request)
            make = self._from_template if given.image.template_name else self._from_image
            order, machine = await make(given, key, resources, found, words)
            return self._answer(key, order, machine)

    def _under_way(self, key: str) -> m.CreateResponse | None:
        """The answer of a create whose work goes on, or has failed without anybody having asked."""
        if key not in self._begun:
            return None
        machine, task = self._begun[key]
        if self._cluster.works.is_under_way(str(task)):
            return m.CreateResponse(id=str(machine), task=m.TaskRef(id=str(task)))
        del self._begun[key]
        return None

    def _answer(self, key: str, order: ProxmoxBuildOrder, machine: ProxmoxBegunMachine) -> m.CreateResponse:
        task = ProxmoxTaskId(ProxmoxTaskGoal.CREATED, machine.upid, machine.id)
        self._begun = {name: each for name, each in self._begun.items() if self._cluster.works.is_under_way(str(each[1]))}
        self._begun[key] = (machine.id, task)
        self._cluster.works.begin(str(task), lambda: self._work(order, machine), self._cluster.settings.work_seconds)
        return m.CreateResponse(id=str(machine.id), task=m.TaskRef(id=str(task)))

    async def _work(self, order: ProxmoxBuildOrder, machine: ProxmoxBegunMachine) -> None:
        if machine.upid is not None:
            await self._cluster.wait(machine.upid)
        if order.given.image.url and not order.image:
            order = msgspec.structs.replace(order, image=await self._images.fetched(order.given.image, machine.node))
        await self._builder.complete(order)

    async def _from_template(
        self,
        description: MachineDescription,
        key: str,
        resources: tuple[ProxmoxResource, ...],
        located_machine: ProxmoxLocatedMachine | None,
        words: str,
    ) -> tuple[ProxmoxBuildOrder, ProxmoxBegunMachine]:
        """Begin a machine, unless an earlier call did, and return what is left to do."""
        template = _template(resources, description.image.template_name, description.image.node or "")
        config = await self._cluster.config(template.node, template.vmid)
        settings = self._cluster.settings
        own = config.root.storage if config.root is not None else ""
        full = settings.full_clones if description.image.full_clone is UNSET else description.image.full_clone
        named = description.datastore or (settings.storage if full else "")
        if located_machine is None:
            node = _node_for(description, resources, template, config, settings.nodes)
            if named:
                placing.storage(resources, placing.IMAGES, node, named)
            order = ProxmoxCloneOrder(
                key=key,
                name=description.name,
                words=words,
                node=template.node,
                source=template.vmid,
                full=full,
                storage=named if full else "",
                format=description.image.format if full and description.image.full_clone is not UNSET else "",
                pool=_pool(description),
                target=node if node != template.node else "",
            )
            begun = await self._making.clone(order)
        else:
            begun = ProxmoxBegunMachine(located_machine.id, located_machine.node, None)
        limitations = list(_limitations(description))
        if not full and description.datastore and description.datastore != own:
            limitations.append(f"placement.datastore: a linked clone stays on {own}, where its template is")
        storage = named or own or placing.storage(resources, placing.IMAGES, begun.node)
        return ProxmoxBuildOrder(id=begun.id, key=key, given=description, storage=storage, limitations=tuple(limitations)), begun

    async def _from_image(
        self,
        description: MachineDescription,
        key: str,
        resources: tuple[ProxmoxResource, ...],
        located_machine: ProxmoxLocatedMachine | None,
        words: str,
    ) -> tuple[ProxmoxBuildOrder, ProxmoxBegunMachine]:
        settings = self._cluster.settings
        image = diskplans.volume(description.image.path) if description.image.path else ""
        node = located_machine.node if located_machine is not None else self._node(description, image, resources)
        storage = placing.storage(resources, placing.IMAGES, node, description.datastore, settings.storage)
        if image and not (located_machine is not None and located_machine.config.root is not None):
            await self._images.check_there(node, image)
        for each in description.disks:
            if isinstance(each.storage_class, str) and each.storage_class:
                placing.storage(resources, placing.IMAGES, node, each.storage_class)
        blank = not (image or description.image.url)
        if located_machine is None:
            form = await self._fresh(description, node, storage)
            begun = await self._making.empty(key, node, words, form)
        else:
            begun = ProxmoxBegunMachine(located_machine.id, located_machine.node, None)
        order = ProxmoxBuildOrder(
            id=begun.id, key=key, given=description, storage=storage, image=image, blank=blank, limitations=_limitations(description)
        )
        return order, begun

    async def _fresh(self, description: MachineDescription, node: str, storage: str) -> dict[str, FormValue]:
        """The keys of a machine that has no template. What the class says comes with the rest of the machine."""
        facts = await self._builder.facts(node)
        wanted = hardware.fresh(description.hardware, storage, self._cluster.settings.cpu_type, facts)
        wanted |= {"name": description.name, "cores": description.hardware.cpu, "sockets": 1, "memory": description.hardware.memory_mib}
        if not description.networks:
            # As the machines of templates, it is on some network.
            wanted["net0"] = f"virtio,bridge={self._cluster.settings.bridge}"
        if pool := _pool(description):
            wanted["pool"] = pool
        return {**wanted, **hardware.extra(description.hardware)}

    def _node(self, description: MachineDescription, image: str, resources: tuple[ProxmoxResource, ...]) -> str:
        free = placing.nodes(resources, self._cluster.settings.nodes)
        named = description.datastore or self._cluster.settings.storage
        fits = {each.node for each in placing.storages(resources, placing.IMAGES) if not named or each.storage == named}
        if image:
            store = image.partition(":")[0]
            fits &= {each.node for each in resources if each.type == "storage" and each.storage == store}
        if named and not fits:
            raise refusals.invalid(f'storage "{named[:64]}" is on no node that is up, or takes no disks', fix="name another storage")
        return placing.node(free, description.placement.host, fits)

    # --- delete ---------------------------------------------------------------------------------------------------------------

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks. One that is gone is deleted."""
        found = await self._cluster.find(request.id)
        if found is None:
            return m.TaskResponse()
        if any(made == found.id and self._cluster.works.is_under_way(str(task)) for made, task in self._begun.values()):
            raise refusals.retry_later(f"machine {found.config.name or found.id.vmid} is still being made")
        task = ProxmoxTaskId(ProxmoxTaskGoal.DELETED, None, found.id)
        if not self._cluster.works.is_under_way(str(task)):
            self._cluster.works.begin(str(task), lambda: self._remove(found), self._cluster.settings.work_seconds)
        return m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _remove(self, machine: ProxmoxLocatedMachine) -> None:
        cluster = self._cluster
        if (await self._power.status(machine)).get("status") == _RUNNING:
            await self._power.stop(machine)
        # Before the machine, because nobody finds them without it.
        for volume in machine.config.own_files:
            await self._builder.drop(machine.node, volume)
        # Whatever the machine has not listed is not its own: a VMID may have been another machine's before. The purge removes it from HA.
        await cluster.finish(await cluster.api.delete(cluster.of(machine), purge=True, destroy_unreferenced_disks=False))


def _check(description: MachineDescription) -> None:
    """Raise `ProviderError` for what can be refused before anything is made."""
    for index, nic in enumerate(description.networks):
        networking.interface(nic, None, "vmbr0", networking.generated_mac(description.name, index))
    networking.addresses(description.networks)
    diskplans.change(description, ProxmoxMachineConfig(0, {}), "any")
    if not guestdata.is_native(description):
        cards = tuple((each.name, each.mac_address or networking.generated_mac(description.name, 0)) for each in description.networks)
        guestdata.disk(description, description.name, cards)
    if description.image.checksum and not description.image.url and not description.image.template_name and not description.image.path:
        raise refusals.invalid("the image has a checksum and no source")


def _words(request: m.CreateRequest) -> str:
    owner = request.owner
    return f"VirtualMachine {owner.namespace}/{owner.name}" if owner is not None and owner.name else f"Machine {request.name}"


def _pool(description: MachineDescription) -> str:
    pool = description.placement.resource_pool
    return pool if isinstance(pool, str) else ""


def _limitations(description: MachineDescription) -> tuple[str, ...]:
    place = description.placement
    return (
        *(("placement.cluster: a Provider of Proxmox VE is one cluster",) if place.cluster else ()),
        *(("placement.folder: Proxmox VE has no folders; use a pool as resourcePool",) if place.folder else ()),
        *(("placement.storagePod: Proxmox VE groups no storages; name one as datastore",) if place.storage_pod else ()),
    )


def _template(resources: tuple[ProxmoxResource, ...], name: str, node: str) -> ProxmoxResource:
    """The template of a VMID or a name, on a node if one is named."""
    machines = [each for each in resources if each.type == _QEMU and node in ("", each.node)]
    named = [each for each in machines if str(each.vmid) == name] or [each for each in machines if each.name == name and each.template]
    if not named:
        where = f" on node {node[:64]}" if node else ""
        raise refusals.not_found(
            f'the template "{name[:64]}" does not exist{where}',
            "name the VMID of a template, and let the user see it",
            reason=reasons.TEMPLATE_MISSING,
        )
    if len(named) > 1:
        numbers = ", ".join(str(each.vmid) for each in named)
        raise refusals.invalid(f'several templates are called "{name[:64]}"', why=f"they have the VMIDs {numbers}", fix="give the VMID")
    if not named[0].template:
        raise refusals.invalid(f"machine {name[:64]} is no template", fix="convert it to a template, or clone it")
    return named[0]


def _node_for(
    description: MachineDescription,
    resources: tuple[ProxmoxResource, ...],
    template: ProxmoxResource,
    config: ProxmoxMachineConfig,
    allowed: tuple[str, ...],
) -> str:
    """The node of a template's clone: its own, unless its disks are on shared storage."""
    free = placing.nodes(resources, allowed)
    used = {each.storage for each in config.drives}
    if not placing.shared(resources, used):
        host = description.placement.host
        if host and host != template.node:
            what = f'the machine cannot be made on node "{host[:64]}"'
            raise refusals.invalid(
                what, why=f"its template is on a local storage of {template.node}", fix="put the template on a shared one"
            )
        return template.node
    wanted = {description.datastore} if description.datastore else used
    have = placing.storages(resources, placing.IMAGES)
    fits = {node for node in free if wanted <= {each.storage for each in have if each.node == node}}
    return placing.node(free, description.placement.host, fits)
