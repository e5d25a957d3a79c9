"""Reconfigures machines: the cluster changes what it can while the guest runs, and keeps the rest for the next start.

A kept change is no failure: the machine is described with `restartRequired`, and lists have the sizes that the guest has now.
"""

import msgspec

from paddock.contract import messages as m
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock_drivers.kit import description, refusals
from paddock_drivers.proxmox import diskplans, hardware, naming, networking, placing
from paddock_drivers.proxmox.api import FormValue
from paddock_drivers.proxmox.building import ProxmoxMachineBuilder
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine
from paddock_drivers.proxmox.diskplans import ProxmoxDiskChange
from paddock_drivers.proxmox.identifiers import ProxmoxTaskGoal, ProxmoxTaskId
from paddock_drivers.proxmox.marks import ProxmoxMachineNote

_HOTPLUG = "hotplug problem"


class ProxmoxMachineChange(msgspec.Struct, frozen=True):
    """Everything that a reconfigure does."""

    form: dict[str, FormValue]
    disks: ProxmoxDiskChange
    note: ProxmoxMachineNote

    @property
    def is_empty(self) -> bool:
        """True if the machine is as it is wanted."""
        return not self.form and self.disks.is_empty


class ProxmoxMachineReconfiguration:
    """Brings machines to the desired state."""

    def __init__(self, cluster: ProxmoxCluster, builder: ProxmoxMachineBuilder) -> None:
        self._cluster = cluster
        self._builder = builder

    async def apply(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Change what differs. A repeated call joins the work that is under way."""
        machine = await self._cluster.machine(request.id)
        given = description.of_desired(machine.config.name, request.desired_json)
        hardware.check(given.hardware)
        if machine.config.lock == "suspended":
            raise refusals.conflict("the machine cannot be changed", why="its memory is on disk", fix="power it on or off first")
        change = await self._change(machine, given)
        if change.is_empty:
            if change.note != machine.config.note:
                await self._builder.note(machine, change.note)
            return m.TaskResponse()
        task = ProxmoxTaskId(ProxmoxTaskGoal.RECONFIGURED, None, machine.id)
        if self._cluster.works.is_under_way(str(task)):
            raise refusals.retry_later(f"machine {machine.config.name} is being changed already")
        self._cluster.works.begin(str(task), lambda: self._carry_out(machine, change), self._cluster.settings.work_seconds)
        return m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _change(self, machine: ProxmoxLocatedMachine, description: MachineDescription) -> ProxmoxMachineChange:
        config, note = machine.config, machine.config.note
        storage = config.root.storage if config.root is not None else ""
        storage = description.placement.datastore or self._cluster.settings.storage or storage
        disks = diskplans.change(description, config, storage)
        if disks.added and not storage:
            storage = placing.storage(await self._cluster.resources("storage"), placing.IMAGES, machine.node)
            disks = diskplans.change(description, config, storage)
        wanted = hardware.change(description.hardware, config, await self._builder.facts(machine.node), storage=storage)
        nics, gone = networking.change(description.networks, config, self._cluster.settings.bridge, machine.id.uuid)
        form: dict[str, FormValue] = {**wanted.form, **nics}
        tags = self._tags(description, note, config.tags)
        if set(tags) != set(config.tags):
            form["tags"] = ";".join(tags)
        if wanted.deleted or gone:
            form["delete"] = ",".join((*wanted.deleted, *gone))
        said = (*wanted.limitations, *disks.limitations, *networking.limitations(description.networks))
        return ProxmoxMachineChange(form, disks, _noted(note, description, disks, machine, said, tags))

    def _tags(self, description: MachineDescription, note: ProxmoxMachineNote, have: tuple[str, ...]) -> tuple[str, ...]:
        """The tags that others have set stay; of those of the manager the ones that it names."""
        others = [each for each in have if each not in note.tags or each.startswith("paddock-")]
        return tuple(dict.fromkeys((*others, *naming.tags(description.tags))))

    async def _carry_out(self, machine: ProxmoxLocatedMachine, change: ProxmoxMachineChange) -> None:
        """Each step is one task of the cluster. The note comes first, so that a detached disk is never forgotten."""
        await self._builder.note(machine, change.note)
        await self._tolerant(machine, change.form)
        if change.disks.detached:
            await self._tolerant(machine, {"delete": ",".join(change.disks.detached.values())})
        machine = await self._cluster.reread(machine)
        await self._builder.grow_and_add(machine, change.disks)

    async def _tolerant(self, machine: ProxmoxLocatedMachine, form: dict[str, FormValue]) -> None:
        """Change a machine; a part that cannot be plugged waits for the next start, and the cluster keeps it."""
        try:
            await self._cluster.change(machine, form)
        except ProviderError as error:
            if _HOTPLUG not in str(error):
                raise


def _noted(
    note: ProxmoxMachineNote,
    description: MachineDescription,
    disks: ProxmoxDiskChange,
    machine: ProxmoxLocatedMachine,
    limitations: tuple[str, ...],
    tags: tuple[str, ...],
) -> ProxmoxMachineNote:
    """The note of a machine after a change. A machine of others has none, unless a disk has to be remembered."""
    names = tuple(dict.fromkeys((*note.disks, *(each.name for each in description.disks))))
    detached = {name: volume for name, volume in note.detached.items() if name not in {each.name for each in description.disks}}
    for name, slot in disks.detached.items():
        drive = machine.config.drive(slot)
        if drive is not None:
            detached[name] = drive.volume
    own = tuple(each for each in tags if each in naming.tags(description.tags) or each.startswith("paddock-"))
    if not (note.key or names or description.tags):
        return note
    return msgspec.structs.replace(
        note,
        vmid=machine.config.vmid,
        disks=names,
        detached=detached,
        tags=own,
        limitations=tuple(dict.fromkeys(limitations)),
    )
