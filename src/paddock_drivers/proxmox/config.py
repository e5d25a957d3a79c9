"""The configuration of a machine as the cluster has it, read. Pure."""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from paddock_drivers.proxmox import marks, properties
from paddock_drivers.proxmox.identifiers import NO_UUID, ProxmoxMachineId
from paddock_drivers.proxmox.marks import ProxmoxMachineNote

_DRIVE = re.compile(r"(?P<bus>scsi|virtio|sata|ide)(?P<index>\d+)\Z")
_NIC = re.compile(r"net(\d+)\Z")
_UNUSED = re.compile(r"unused\d+\Z")
# The order in which a machine without a boot order looks at its drives.
_BUSES = ("scsi", "virtio", "sata", "ide")
# Locks of a configuration that is not there yet.
_MAKING = ("clone", "create")


class ProxmoxConfiguredDrive(msgspec.Struct, frozen=True):
    """A disk of a machine: its slot, its volume, and its other options."""

    slot: str
    volume: str
    options: Mapping[str, str] = {}

    @property
    def size(self) -> int:
        """The bytes that the guest has of it; 0 when the configuration does not say."""
        return properties.size(self.options.get("size", ""))

    @property
    def serial(self) -> str:
        """The serial number, by which the guest and the driver know a data disk."""
        return self.options.get("serial", "")

    @property
    def format(self) -> str:
        """The format of the volume's data, by the name of its file; volumes that are no files are raw."""
        ending = self.volume.rpartition(".")[2]
        return self.options.get("format", "") or (ending if ending in ("qcow2", "vmdk") else "raw")

    @property
    def storage(self) -> str:
        """The storage that the volume is in."""
        return self.volume.partition(":")[0]


class ProxmoxConfiguredNic(msgspec.Struct, frozen=True):
    """A network interface of a machine."""

    slot: str
    model: str
    mac: str
    options: Mapping[str, str] = {}


class ProxmoxMachineConfig:
    """The configuration of one machine. Each look at it is a value; nothing here changes the machine."""

    def __init__(self, vmid: int, data: Mapping[str, Any]) -> None:
        self.vmid = vmid
        self.data = data

    def text(self, key: str) -> str:
        """Return a value as text; empty for one that is not set."""
        value = self.data.get(key)
        return "" if value is None else str(value)

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number; the default for what is none."""
        text = self.text(key)
        return int(float(text)) if re.fullmatch(r"\d+(\.\d+)?", text) else default

    @property
    def name(self) -> str:
        """The name; empty before a machine has one."""
        return self.text("name")

    @property
    def lock(self) -> str:
        """The purpose of the machine's lock."""
        return self.text("lock")

    @property
    def is_template(self) -> bool:
        """True for a template, which cannot run."""
        return properties.is_true(self.data.get("template"))

    @property
    def is_being_made(self) -> bool:
        """True while nothing but the lock is there."""
        return self.lock in _MAKING and not self.name and not self.uuid

    @cached_property
    def uuid(self) -> str:
        """The UUID of the SMBIOS; empty for none."""
        return properties.parse(self.text("smbios1"), "uuid").get("uuid", "").lower()

    @cached_property
    def note(self) -> ProxmoxMachineNote:
        """The driver's note; an empty one at a machine of others, and at a copy of one of ours."""
        found = marks.read(self.text("description"))
        return found if found.vmid == self.vmid else ProxmoxMachineNote()

    @property
    def own_files(self) -> tuple[str, ...]:
        """The files that go with the machine. Whoever may write its notes cannot name others."""
        documents, mine = self.note.documents, f":iso/paddock-{self.vmid}-"
        found = [documents] if mine in documents and ".." not in documents else []
        return (*found, *(each for each in self.note.taken if ":import/paddock-disk-" in each and ".." not in each))

    @property
    def id(self) -> ProxmoxMachineId:
        """The machine's identity: that which it was promised to have, or that of its SMBIOS."""
        if self.note.uuid and not self.note.complete:
            return ProxmoxMachineId(self.vmid, self.note.uuid)
        return ProxmoxMachineId(self.vmid, self.uuid or NO_UUID)

    def is_machine(self, id: ProxmoxMachineId) -> bool:
        """Return whether this is the machine of an id."""
        return self.vmid == id.vmid and id.uuid in (self.uuid or NO_UUID, self.note.uuid)

    @cached_property
    def drives(self) -> tuple[ProxmoxConfiguredDrive, ...]:
        """The disks in the order of their slots, without CD-ROM drives, EFI variables and TPM states."""
        found = []
        for key, value in self.data.items():
            place = _DRIVE.match(key)
            if place is None:
                continue
            options = properties.parse(str(value), "file")
            volume = options.pop("file", "")
            if options.get("media") != "cdrom" and ":" in volume and not volume.endswith("-cloudinit"):
                found.append((_BUSES.index(place["bus"]), int(place["index"]), ProxmoxConfiguredDrive(key, volume, options)))
        return tuple(each for _, _, each in sorted(found, key=lambda each: each[:2]))

    def drive(self, slot: str) -> ProxmoxConfiguredDrive | None:
        """Return the disk in a slot."""
        return next((each for each in self.drives if each.slot == slot), None)

    @cached_property
    def boot_order(self) -> tuple[str, ...]:
        """The slots that the machine boots from."""
        members = properties.parse(self.text("boot"), "legacy")
        return tuple(filter(None, members.get("order", "").split(";"))) or tuple(filter(None, (self.text("bootdisk"),)))

    @cached_property
    def root(self) -> ProxmoxConfiguredDrive | None:
        """The disk that the machine boots from."""
        ordered = (self.drive(slot) for slot in self.boot_order)
        return next((each for each in ordered if each is not None), self.drives[0] if self.drives else None)

    @cached_property
    def nics(self) -> tuple[ProxmoxConfiguredNic, ...]:
        """The network interfaces in the order of their slots."""
        found = []
        for key, value in self.data.items():
            if (place := _NIC.match(key)) is None:
                continue
            options = properties.parse(str(value), "model")
            model, mac = options.pop("model", ""), options.pop("macaddr", "")
            if not model:
                model, mac = next(iter(options.items()), ("", ""))
                options.pop(model, None)
            found.append((int(place[1]), ProxmoxConfiguredNic(key, model, mac, options)))
        return tuple(each for _, each in sorted(found, key=lambda each: each[0]))

    @cached_property
    def unused(self) -> dict[str, str]:
        """The volumes that were detached, by their keys."""
        return {key: str(value) for key, value in self.data.items() if _UNUSED.match(key)}

    @cached_property
    def tags(self) -> tuple[str, ...]:
        return properties.tags(self.text("tags"))

    @property
    def cloud_init(self) -> str:
        """The slot of the cluster's own cloud-init drive; empty for none."""
        found = (key for key, value in self.data.items() if _DRIVE.match(key) and "cloudinit" in str(value).partition(",")[0])
        return next(found, "")

    def cdrom(self, volume: str) -> str:
        """Return the slot that has a volume as a CD-ROM; empty for none."""
        slots = (key for key, value in self.data.items() if _DRIVE.match(key) and str(value).partition(",")[0] == volume)
        return next(slots, "")

    def free_slot(self, *buses: str, taken: tuple[str, ...] = ()) -> str:
        """Return the first free slot of some buses; empty when all are taken."""
        most = {"scsi": 31, "virtio": 16, "sata": 6, "ide": 4}
        slots = (f"{bus}{index}" for bus in buses for index in range(most[bus]))
        return next((slot for slot in slots if slot not in self.data and slot not in taken), "")

    @property
    def cpus(self) -> int:
        """The processors that the guest has."""
        return self.number("vcpus") or max(self.number("cores", 1), 1) * max(self.number("sockets", 1), 1)

    @property
    def most_cpus(self) -> int:
        """The processors that the guest can have while it runs."""
        return max(self.number("cores", 1), 1) * max(self.number("sockets", 1), 1)

    @property
    def memory_mib(self) -> int:
        """The memory; releases from 8.1 on write it as a property string."""
        value = properties.parse(self.text("memory"), "current").get("current", "")
        return int(value) if value.isdecimal() else 512
