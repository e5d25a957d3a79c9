"""Machines of VirtRigaud as the commands and the console read and write them. Pure."""

from collections.abc import Collection, Iterator

from paddock.base import quantity
from paddock.base.jsondata import Data, at, texts
from paddock.dialects.virtrigaud.plan import marks
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.adapters import (
    ROOT,
    ChangeRefused,
    DiskWish,
    FieldChange,
    KindName,
    MachineAdapter,
    NicWish,
    Power,
    PowerCall,
    ProviderKinds,
    WrittenMachine,
    check_new_disk,
    check_no_bus,
    named,
    place,
    unknown_disk,
    whole_gib,
)
from paddock.kubevirt.plan.changes.references import ATTACHMENT, CLAIM, DATA_VOLUME

_MIB = 2**20
_GROUP = "infra.virtrigaud.io"


def _set_cpu(_: WrittenMachine, data: Data, value: str) -> None:
    place(data, "spec", "resources")["cpu"] = int(value)


def _set_memory(machine: WrittenMachine, data: Data, value: str) -> None:
    size, rest = divmod(quantity.amount(value, "mem=4Gi"), _MIB)
    if rest:
        raise ChangeRefused(
            f"cannot set mem={value} of {machine}", why="VirtRigaud counts memory in whole MiB", fix=f"write mem={max(size, 1)}Mi or more"
        )
    place(data, "spec", "resources")["memoryMiB"] = size


def _set_class(_: WrittenMachine, data: Data, value: str) -> None:
    place(data, "spec", "classRef")["name"] = value


class VirtrigaudAdapter(MachineAdapter):
    """A Provider looks after each machine, on this server or on another hypervisor."""

    ips = ("ips",)
    cpus = (("status", "currentResources", "cpu"), ("spec", "resources", "cpu"))
    mebibytes = (("status", "currentResources", "memoryMiB"), ("spec", "resources", "memoryMiB"))
    images = (("spec", "imageRef", "name"),)
    owner_label = "virtrigaud.io/owner-uid"
    owner_annotation = "virtrigaud.io/owner"
    restarts_by_power = True
    has_forced_stop = True
    no_restart = "VirtRigaud changes sizes while a machine is off, and a restart by itself never leaves it off long enough"
    sizes = {"cpu": _set_cpu, "mem": _set_memory, "class": _set_class}
    snapshot_kind = KindName(_GROUP, "v1beta1", "vmsnapshots", "VMSnapshot")
    snapshot_machine = ("spec", "vmRef", "name")
    clone_kind = KindName(_GROUP, "v1beta1", "vmclones", "VMClone")
    clone_machine = ("spec", "source", "vmRef", "name")
    clone_percentage = ("progress", "overallPercentage")
    provider_kinds = ProviderKinds(
        providers=KindName(_GROUP, "v1beta1", "providers", "Provider"),
        images=KindName(_GROUP, "v1beta1", "vmimages", "VMImage"),
        networks=KindName(_GROUP, "v1beta1", "vmnetworkattachments", "VMNetworkAttachment"),
        sets=KindName(_GROUP, "v1beta1", "vmsets", "VMSet"),
        migrations=KindName(_GROUP, "v1beta1", "vmmigrations", "VMMigration"),
    )
    restore_starts = "VirtRigaud starts a machine again whose spec.powerState is On"
    restore_needs_memory = "VirtRigaud's revert has no field that leaves the memory out"
    disks_go = (
        "its Provider deletes the disks with the machine",
        f"add --purge if they may go, or leave the whole machine at its Provider with the annotation {marks.ORPHAN_ON_DELETE}=true",
    )

    no_move = "a VMMigration moves machines of VirtRigaud, from one Provider to another"

    def maker(self, vm: Data) -> str:
        """A Provider marks the machines that it makes."""
        if not texts(vm, "metadata", "labels", self.owner_label):
            return ""
        owner = (at(vm, "metadata", "annotations") or {}).get(self.owner_annotation, "of a manager")
        return f"a Provider of VirtRigaud keeps it for the machine {owner}"

    def below(self, data: Data) -> tuple[str, str] | None:
        """A Provider of type qemu says which VirtualMachine it made."""
        made = at(data, "status", "provider")
        return (texts(made, "namespace"), texts(made, "name")) if texts(made, "uid") else None

    def imported(self, kind: KindId, data: Data) -> Iterator[tuple[KindId, str]]:
        """Yield the disk that a machine was imported from, and the network of libvirt."""
        spec = data.get("spec") or {}
        if kind == (_GROUP, "VirtualMachine") and spec.get("importedDisk"):
            for disk in (CLAIM, DATA_VOLUME):
                yield disk, str(spec["importedDisk"].get("diskID"))
        if kind == (_GROUP, "VMNetworkAttachment"):
            libvirt = (spec.get("network") or {}).get("libvirt") or {}
            yield ATTACHMENT, str(libvirt.get("networkName"))

    def is_elsewhere(self, data: Data) -> bool:
        """Return whether its Provider has given it an ID, and no VirtualMachine."""
        return bool(texts(data, "status", "id")) and not at(data, "status", "provider", "uid")

    def is_on(self, data: Data) -> bool:
        """Return what its Provider has seen."""
        return texts(data, "status", "powerState") == "On"

    def provider(self, data: Data) -> str:
        """Return the name of its Provider."""
        return texts(data, "spec", "providerRef", "name")

    def console(self, data: Data) -> str:
        """Return what its Provider says."""
        return texts(data, "status", "consoleURL")

    def strategy(self, data: Data) -> str:
        """Return the power state that is wanted."""
        return texts(data, "spec", "powerState")

    def wants_to_run(self, data: Data) -> bool | None:
        """Return whether the power state is `On`, as it is by default."""
        return (texts(data, "spec", "powerState") or "On") == "On"

    def power(self, machine: WrittenMachine, wish: Power, *, force: bool) -> FieldChange | PowerCall:
        """Return the change of the power state."""
        return FieldChange(("spec", "powerState"), "On" if wish == "start" else "Off" if force else "OffGraceful")

    def add_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Add an empty disk."""
        check_no_bus(machine, wish)
        spec = place(data, "spec")
        check_new_disk(machine, disks, spec.get("disks"), wish.name)
        disk = {"name": wish.name, "sizeGiB": whole_gib(machine, wish.size, "VirtRigaud")}
        spec["disks"] = [*(spec.get("disks") or ()), {**disk, **({"storageClass": wish.storage_class} if wish.storage_class else {})}]

    def grow_disk(self, machine: WrittenMachine, data: Data, wish: DiskWish, disks: Collection[str]) -> None:
        """Make a disk larger; the size of the root disk is its class's."""
        disk = named(at(data, "spec", "disks"), wish.name)
        if disk is not None:
            disk["sizeGiB"] = whole_gib(machine, wish.size, "VirtRigaud")
            return
        if wish.name == ROOT or wish.name in disks:
            class_name = texts(data, "spec", "classRef", "name")
            raise ChangeRefused(
                f'the disk "{wish.name}" of {machine} cannot grow',
                why=f"VirtRigaud takes its size from diskDefaults of the VMClass {class_name} when it makes the machine",
                fix=f"add a disk: paddock disk add {machine.name} NAME SIZE",
            )
        raise unknown_disk(machine, disks, wish.name, at(data, "spec", "disks"))

    def check_nics(self, machine: WrittenMachine) -> None:
        """Refuse every change."""
        raise ChangeRefused(
            f"cannot change the interfaces of {machine}",
            why="VirtRigaud wires a machine when it makes it, and its providers have no call for a change",
            fix="clone the machine with a VMClone that has other target.networks",
        )

    def add_nic(self, machine: WrittenMachine, data: Data, wish: NicWish) -> None:
        """Refuse it."""
        self.check_nics(machine)

    def snapshot_spec(self, machine: WrittenMachine, *, memory: bool) -> Data:
        """Return the spec of a VMSnapshot."""
        return {"vmRef": {"name": machine.name}, **({"snapshotConfig": {"includeMemory": True}} if memory else {})}

    def clone_spec(self, machine: WrittenMachine, new: str, *, start: bool) -> Data:
        """Return the spec of a VMClone."""
        return {"source": {"vmRef": {"name": machine.name}}, "target": {"name": new}, "options": {"powerOn": start}}

    def no_snapshot(self, data: Data) -> str:
        """Return why its Provider cannot take one."""
        return "" if texts(data, "status", "id") else "its provider has no machine for it yet"


ADAPTER = VirtrigaudAdapter()
