"""Drives and network interfaces of a configuration: their strings, and what they say."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.kit.proxmox import formats, schema
from tests.kit.proxmox.formats import FormatError
from tests.kit.proxmox.inventory import random_mac

NEW_DISK = re.compile(r"(?:([^/:\s]+):)?(\d+(?:\.\d+)?)")
# Options of a drive that a running QEMU cannot change.
FIXED = ("aio", "discard", "iothread", "queues", "product", "cache", "ssd", "vendor", "ro")


@dataclass(frozen=True)
class Drive:
    """A drive: what it holds and its options."""

    key: str
    file: str
    options: Mapping[str, str]

    @property
    def storage(self) -> str:
        return self.file.partition(":")[0] if ":" in self.file else ""

    @property
    def is_cloudinit(self) -> bool:
        return re.search(r"[:/](?:vm-\d+-)?cloudinit(?:\.(raw|qcow2|vmdk))?$", self.file) is not None

    @property
    def is_cdrom(self) -> bool:
        return self.options.get("media") == "cdrom"

    @property
    def is_disk(self) -> bool:
        return not self.is_cdrom and not self.is_cloudinit

    @property
    def new(self) -> tuple[str, float] | None:
        """The storage and the GiB of a disk that is to be made."""
        match = NEW_DISK.fullmatch(self.file)
        return (match[1] or "", float(match[2])) if match else None

    @property
    def size(self) -> int:
        return formats.parse_size(self.options.get("size", "0")) or 0

    def of(self, file: str, size: int | None = None, **changed: str) -> "Drive":
        """Return the drive with another volume."""
        options = {name: value for name, value in {**self.options, **changed}.items() if name not in ("format", "import-from")}
        if size is not None:
            options["size"] = formats.format_size(size)
        return Drive(self.key, file, options)

    def __str__(self) -> str:
        return ",".join([self.file, *(f"{name}={value}" for name, value in sorted(self.options.items()))])


def interface(key: str) -> str:
    """Return the kind of a drive's key: scsi of scsi3."""
    return key.rstrip("0123456789")


def parse(key: str, text: str, *, allocate: bool = False) -> Drive:
    """Return a drive; raise `FormatError`."""
    if key.startswith("unused"):
        return Drive(key, text.removeprefix("file="), {})
    members = dict(schema.check_properties(schema.drive_format(interface(key), allocate=allocate), text))
    file = members.pop("file", "")
    if members.get("media") == "cdrom" and (members.get("snapshot") or members.get("format") or key.startswith("virtio")):
        raise FormatError("unable to parse drive options")
    return Drive(key, file, members)


def drives(conf: Mapping[str, str]) -> Iterator[Drive]:
    """Yield the drives of a configuration in the order of their keys."""
    for key in sorted(conf):
        if formats.is_drive(key):
            yield parse(key, conf[key])


def unused(conf: Mapping[str, str]) -> Iterator[Drive]:
    """Yield the volumes that the machine has and does not use."""
    for key in sorted(conf):
        if re.fullmatch(r"unused\d+", key):
            yield parse(key, conf[key])


def parse_net(text: str) -> dict[str, str]:
    """Return the members of an interface: model, macaddr, bridge and so on."""
    return schema.check_properties(schema.net_format(), text)


def print_net(members: Mapping[str, str]) -> str:
    """Return the string of an interface; it gets an address if it has none."""
    rest = {name: value for name, value in members.items() if name not in ("model", "macaddr")}
    head = f"{members['model']}={members.get('macaddr') or random_mac()}"
    return ",".join([head, *(f"{name}={value}" for name, value in sorted(rest.items()))])
