"""Completes machines: everything between a clone, or an empty machine, and the machine that was asked for.

Each step looks at the machine first and does what is missing, so a machine that was left half made is completed by the next call.
"""

from collections.abc import AsyncIterator, Mapping

import msgspec

from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import diskplans, failures, guestdata, hardware, marks, naming, networking, placing, properties
from paddock_drivers.proxmox.api import FormValue, ProxmoxRefusal, ProxmoxUploadedFile, path
from paddock_drivers.proxmox.cluster import ProxmoxCluster, ProxmoxLocatedMachine
from paddock_drivers.proxmox.hardware import ProxmoxNodeFacts
from paddock_drivers.proxmox.identifiers import ProxmoxMachineId, owner_tag
from paddock_drivers.proxmox.marks import ProxmoxMachineNote

_MHZ = "mhz"
_CLOUD_INIT = "cloudinit"
_ISO_FIELDS = {"content": "iso"}


class ProxmoxBuildOrder(msgspec.Struct, frozen=True, kw_only=True):
    id: ProxmoxMachineId
    key: str
    given: MachineDescription
    # where new disks go, unless they say another place
    storage: str
    # the volume that the first disk is copied from; empty: the machine has one, or gets an empty one
    image: str = ""
    blank: bool = False
    limitations: tuple[str, ...] = ()
    # of a clone: the documents of its source are not its own
    is_clone: bool = False
    documents: bool = True


class ProxmoxMachineBuilder:
    def __init__(self, cluster: ProxmoxCluster) -> None:
        self._cluster = cluster
        self._facts: dict[str, ProxmoxNodeFacts] = {}

    async def complete(self, order: ProxmoxBuildOrder) -> None:
        """Bring a machine to what was asked for, and note that it is complete."""
        machine = await self._located(order.id)
        if machine.config.note.complete and machine.config.uuid == order.id.uuid:
            return
        machine, limitations = await self._base(machine, order)
        machine = await self._root(machine, order)
        wanted = diskplans.change(order.given, machine.config, order.storage)
        machine = await self.grow_and_add(machine, wanted)
        machine, documents = await self._documents(machine, order)
        taken = self._taken(order)
        note = msgspec.structs.replace(
            machine.config.note,
            complete=True,
            documents=documents,
            taken=taken,
            disks=tuple(each.name for each in order.given.disks),
            limitations=tuple(dict.fromkeys((*order.limitations, *limitations, *wanted.limitations))),
        )
        await self.note(machine, note)
        for volume in taken:
            await self.drop(machine.node, volume)

    async def _applied(
        self, machine: ProxmoxLocatedMachine, form: Mapping[str, FormValue], *, disks: bool = False
    ) -> ProxmoxLocatedMachine:
        """The machine after a change. One that makes disks is a task of the cluster, others are done at once."""
        if not form:
            return machine
        await (self._cluster.change(machine, form) if disks else self._cluster.set(machine, form))
        return await self._cluster.reread(machine)

    async def _located(self, id: ProxmoxMachineId) -> ProxmoxLocatedMachine:
        found = await self._cluster.locate(id)
        if found is None:
            raise refusals.not_found(f"machine {id} was deleted while it was made")
        return found

    async def facts(self, node: str) -> ProxmoxNodeFacts:
        """Return the facts of a node that hardware depends on."""
        release = await self._cluster.release()
        if node not in self._facts:
            try:
                status = await self._cluster.api.get(path("nodes", node, "status"))
                self._facts[node] = ProxmoxNodeFacts(release, float(((status or {}).get("cpuinfo") or {}).get(_MHZ) or 0))
            except (ProxmoxRefusal, ValueError):
                # A user without Sys.Audit learns nothing of nodes.
                return ProxmoxNodeFacts(release)
        return self._facts[node]

    async def _base(self, machine: ProxmoxLocatedMachine, order: ProxmoxBuildOrder) -> tuple[ProxmoxLocatedMachine, tuple[str, ...]]:
        config, given = machine.config, order.given
        wanted = hardware.ProxmoxHardwareChange()
        if given.hardware.cpu:
            wanted = hardware.change(given.hardware, config, await self.facts(machine.node), storage=order.storage)
        nics, gone = networking.change(given.networks, config, self._cluster.settings.bridge, order.id.uuid)
        # A clone names the interfaces that differ from those of its source.
        gone = () if order.is_clone else gone
        form: dict[str, FormValue] = {**wanted.form, **nics}
        if config.uuid != order.id.uuid:
            form["smbios1"] = f"uuid={order.id.uuid}"
        tags = (*naming.tags(given.tags), owner_tag(order.key))
        if set(tags) != set(config.tags):
            form["tags"] = ";".join(tags)
        note = ProxmoxMachineNote(
            vmid=order.id.vmid, uuid=order.id.uuid, key=order.key, tags=tags, disks=config.note.disks, documents=config.note.documents
        )
        if config.note != note:
            form["description"] = marks.write(config.text("description"), note)
        if wanted.deleted or gone:
            form["delete"] = ",".join((*wanted.deleted, *gone))
        machine = await self._applied(machine, form, disks="tpmstate0" in form)
        return machine, (*wanted.limitations, *networking.limitations(given.networks))

    async def _root(self, machine: ProxmoxLocatedMachine, order: ProxmoxBuildOrder) -> ProxmoxLocatedMachine:
        """The disk that the machine boots from, if nothing has made it yet."""
        if machine.config.root is not None:
            return await self._applied(machine, diskplans.limited_root(order.given, machine.config.root))
        if not (order.image or order.blank):
            return machine
        defaults = order.given.hardware.disk_defaults
        members: dict[str, str | int | float | bool]
        if order.image:
            members = {"file": f"{order.storage}:0", "import-from": order.image}
        elif defaults is not None and defaults.size_gib:
            members = {"file": f"{order.storage}:{defaults.size_gib}"}
        else:
            return machine
        if defaults is not None and defaults.type in ("raw", "qcow2", "vmdk"):
            members["format"] = defaults.type
        members |= {"discard": "on", **diskplans.limits(order.given)}
        boot = "order=scsi0" if order.image else "order=scsi0;net0"
        return await self._applied(machine, {"scsi0": properties.render(members, "file"), "boot": boot}, disks=True)

    async def grow_and_add(self, machine: ProxmoxLocatedMachine, proxmox_disk_change: diskplans.ProxmoxDiskChange) -> ProxmoxLocatedMachine:
        """Make new disks, and let disks grow."""
        machine = await self._applied(machine, proxmox_disk_change.added, disks=True)
        growing = diskplans.growing(machine.config, proxmox_disk_change.grown)
        for slot, size in growing.items():
            answer = await self._cluster.api.put(self._cluster.of(machine, "resize"), {"disk": slot, "size": f"{size}G"})
            await self._cluster.finish(answer)
        return await self._cluster.reread(machine) if growing else machine

    def _taken(self, order: ProxmoxBuildOrder) -> tuple[str, ...]:
        """Imported disks whose content the machine has now; prepared images stay."""
        sources = [order.image, *(each.path for each in order.given.disks if isinstance(each.path, str))]
        return tuple(each for each in sources if each and is_imported_disk(each))

    # --- documents ------------------------------------------------------------------------------------------------------------

    async def _documents(self, machine: ProxmoxLocatedMachine, order: ProxmoxBuildOrder) -> tuple[ProxmoxLocatedMachine, str]:
        """Give the guest its documents; returns the volume that they are on, if it is one of ours."""
        given = order.given
        if order.is_clone:
            machine = await self._applied(machine, _foreign_documents(machine))
        config = machine.config
        if not order.documents:
            return machine, config.note.documents
        if guestdata.is_native(given):
            native = guestdata.native(given, await self._cluster.release())
            form = {
                key: value for key, value in native.items() if config.text(key) != str(int(value) if isinstance(value, bool) else value)
            }
            if not config.cloud_init:
                form[config.free_slot("ide", "sata", "scsi")] = f"{order.storage}:{_CLOUD_INIT}"
            return await self._applied(machine, form, disks=not config.cloud_init), ""
        image = guestdata.disk(given, order.id.uuid, networking.with_macs(given.networks, config, {}))
        volume = await self._uploaded(machine, guestdata.disk_name(order.id.vmid, image), image)
        if not config.cdrom(volume):
            # The guest must not find two sets of documents.
            slot = config.cloud_init or config.free_slot("ide", "sata", "scsi")
            machine = await self._applied(machine, {slot: f"{volume},media=cdrom"})
        return machine, volume

    async def _uploaded(self, machine: ProxmoxLocatedMachine, name: str, image: bytes) -> str:
        """The volume of a document disk, which is uploaded unless it is there."""
        cluster = self._cluster
        storage = placing.storage(await cluster.resources("storage"), placing.ISO, machine.node, cluster.settings.iso_storage)
        volume = f"{storage}:iso/{name}"
        listed = await cluster.api.get(path("nodes", machine.node, "storage", storage, "content"), content=placing.ISO)
        if any(each.get("volid") == volume for each in listed or ()):
            return volume

        async def chunks() -> AsyncIterator[bytes]:
            yield image

        target = path("nodes", machine.node, "storage", storage, "upload")
        await cluster.finish(await cluster.api.upload(target, _ISO_FIELDS, ProxmoxUploadedFile(name, len(image), chunks())))
        return volume

    # --- notes and files ------------------------------------------------------------------------------------------------------

    async def note(self, machine: ProxmoxLocatedMachine, note: ProxmoxMachineNote) -> None:
        """Write the note of a machine, if it differs."""
        if note != machine.config.note:
            await self._cluster.set(machine, {"description": marks.write(machine.config.text("description"), note)})

    async def drop(self, node: str, volume: str) -> None:
        """Delete a file of a storage. One that is gone is deleted."""
        storage = volume.partition(":")[0]
        try:
            with failures.mapped():
                await self._cluster.finish(await self._cluster.api.delete(path("nodes", node, "storage", storage, "content", volume)))
        except ProviderError as error:
            if "does not exist" not in str(error):
                raise


def _foreign_documents(machine: ProxmoxLocatedMachine) -> dict[str, FormValue]:
    """The change that takes the document disk of a clone's source out: it is deleted with the source."""
    own = f":iso/paddock-{machine.config.vmid}-"
    slots = [key for key, value in machine.config.data.items() if ":iso/paddock-" in str(value) and own not in str(value)]
    return {"delete": ",".join(slots)} if slots else {}


def is_imported_disk(volume: str) -> bool:
    """Return whether a volume is an imported disk, which its machine takes along."""
    return ":import/paddock-disk-" in volume
