"""Disks: trees of block nodes, and the devices over them.

A node's format is given and never probed, a backing file is the one the config names whatever the image says, and only the
topmost layer is opened for writing.
"""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.errors import UnstartableConfig, missing
from paddock.engine.machine.argv.line import Line, Properties
from paddock.engine.machine.argv.pci import Slots
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig

_ONBOARD_SATA = 6
_IDE_UNITS = 4
# virtio-scsi's targets; each disk is one, with LUN 0
_SCSI_TARGETS = 256
# QEMU refuses a longer one; on the other buses it cuts it
_SERIAL_LIMITS = {"scsi": 36}


def cache_of(disk: DiskConfig, host: HostView) -> str:
    """The cache mode, with the choice made where the config leaves it."""
    if disk.layer is None:
        return "writethrough"
    files = [host.file(layer.path) for layer in _layers(disk.layer)]
    direct = all(file.direct for file in files)
    if disk.cache == "none" and not direct:
        raise UnstartableConfig(
            f"cannot open disk {disk.name} with cache none",
            reason="storage-cannot",
            of=disk.name,
            why="the file system does not support O_DIRECT",
            fix="leave the cache mode out, or keep the volume on another file system",
        )
    if disk.cache:
        return disk.cache
    return "none" if direct else "writethrough"


def io_of(disk: DiskConfig, host: HostView) -> str:
    """The way of asynchronous I/O, with the choice made where the config leaves it."""
    cache = cache_of(disk, host)
    if disk.io == "native" and cache != "none":
        why = f"native I/O needs cache none, and the cache mode is {cache}"
        fix = "use io: threads, or cache: none on a file system that supports O_DIRECT"
        raise UnstartableConfig(f"cannot open disk {disk.name}", reason="storage-cannot", of=disk.name, why=why, fix=fix)
    if disk.io == "io_uring" and not host.io_uring:
        return "threads"
    if disk.io:
        return disk.io
    top = host.file(disk.layer.path) if disk.layer else None
    return "native" if top is not None and top.solid and cache == "none" else "threads"


def tree(disk: DiskConfig, host: HostView) -> Properties | None:
    """The disk's block nodes, as `-blockdev` and `blockdev-add` take them. None: there is no medium."""
    return on_layer(disk, disk.layer, host) if disk.layer is not None else None


def on_layer(disk: DiskConfig, layer: DiskLayer, host: HostView) -> Properties:
    """The block nodes of a disk on this layer."""
    readonly = disk.readonly or disk.role == "cdrom"
    options = _FileOptions(direct=cache_of(disk, host) == "none", io=io_of(disk, host), shared=disk.shareable)
    return _nodes(disk.name, layer, options, host, writable=not readonly)


class _FileOptions(Struct, frozen=True):
    direct: bool
    io: str
    shared: bool


def _layers(layer: DiskLayer | None) -> Iterator[DiskLayer]:
    while layer is not None:
        yield layer
        layer = layer.backing


def _nodes(disk: str, layer: DiskLayer, options: _FileOptions, host: HostView, *, writable: bool) -> dict[str, Any]:
    cache = {"direct": options.direct, "no-flush": False}
    file: dict[str, Any] = {
        "driver": "host_device" if host.file(layer.path).device else "file",
        "node-name": names.file_node(disk, layer.path),
        "filename": host.named(layer.path),
        "aio": options.io,
        "cache": cache,
        "discard": "unmap",
        "read-only": not writable,
    }
    if not writable:
        # What is only read may be read by many machines; none of them can be in another's way.
        file["locking"] = "off"
    node: dict[str, Any] = {
        "driver": layer.format,
        "node-name": names.format_node(disk, layer.path),
        "read-only": not writable,
        "cache": cache,
        "discard": "unmap",
        "file": file,
    }
    if layer.format == "qcow2":
        # Said in any case: an image must not choose what lies below it.
        node["backing"] = None
        if layer.backing is not None:
            node["backing"] = _nodes(disk, layer.backing, options, host, writable=False)
    elif layer.backing is not None:
        why = "a raw file cannot lie over another one"
        raise UnstartableConfig(f"cannot open disk {disk}", reason="storage-cannot", of=disk, why=why)
    return node


class Controllers:
    """The controllers of the disks that are there at the start, and the next free place at each."""

    def __init__(self, config: MachineConfig, line: Line, slots: Slots) -> None:
        self._config = config
        self._line = line
        self._slots = slots
        self._used = dict.fromkeys(("sata", "ide", "scsi", "usb"), 0)
        self._extra_sata = 0
        self._has_scsi = False

    def device(self, disk: DiskConfig, boot_index: int | None) -> None:
        """The disk's nodes and its device, with the controller if it is the first that needs it."""
        host = self._line.host
        nodes = tree(disk, host)
        if nodes is not None:
            self._line.blockdev(nodes)
        places = {"virtio": self._virtio, "scsi": self._scsi, "sata": self._sata, "ide": self._ide, "usb": self._usb}
        place = places[disk.bus](disk)
        properties = {**device_properties(disk, host, self._config), **place}
        if boot_index is not None:
            properties["bootindex"] = boot_index
        self._line.device(f"disk {disk.name}", properties)

    def scsi_controller(self) -> None:
        """The SCSI controller, once; disks may be plugged into it later."""
        if not self._has_scsi:
            self._has_scsi = True
            driver = virtio("virtio-scsi-pci", self._config)
            self._line.device("the SCSI controller", {"driver": driver, "id": names.SCSI, **self._slots.place("the SCSI controller")})

    def _virtio(self, disk: DiskConfig) -> Properties:
        return self._slots.place(f"disk {disk.name}", disk.pci_address)

    def _scsi(self, disk: DiskConfig) -> Properties:
        self.scsi_controller()
        return {"bus": f"{names.SCSI}.0", "channel": 0, "scsi-id": self._count("scsi", disk, _SCSI_TARGETS), "lun": 0}

    def _sata(self, disk: DiskConfig) -> Properties:
        number = self._count("sata", disk, 256)
        onboard = _ONBOARD_SATA if self._config.architecture == "amd64" else 0
        if number < onboard:
            return {"bus": f"ide.{number}"}
        controller, port = divmod(number - onboard, 6)
        if controller >= self._extra_sata:
            self._extra_sata += 1
            ahci = {"driver": "ich9-ahci", "id": f"ahci{controller}", **self._slots.conventional("a SATA controller")}
            self._line.device("a SATA controller", ahci)
        return {"bus": f"ahci{controller}.{port}"}

    def _ide(self, disk: DiskConfig) -> Properties:
        if self._config.architecture != "amd64":
            raise missing(f"disk {disk.name}", "IDE bus for this architecture", "use bus virtio or scsi")
        number = self._count("ide", disk, _IDE_UNITS)
        if not number:
            self._line.device("the IDE controller", {"driver": "piix3-ide", "id": "ide9", **self._slots.conventional("the IDE controller")})
        return {"bus": f"ide9.{number // 2}", "unit": number % 2}

    def _usb(self, disk: DiskConfig) -> Properties:
        if disk.role != "cdrom":
            return {"bus": "usb.0"}
        adapter = f"usb-{names.device(disk.name)}"
        self._line.device(f"disk {disk.name}", {"driver": "usb-bot", "id": adapter, "bus": "usb.0"})
        return {"bus": f"{adapter}.0", "scsi-id": 0, "lun": 0}

    def _count(self, bus: str, disk: DiskConfig, limit: int) -> int:
        number = self._used[bus]
        if number >= limit:
            what = f"cannot place disk {disk.name}"
            raise UnstartableConfig(what, reason="no-room", of=disk.name, why=f"the bus {bus} takes {limit} disks", fix="use the bus scsi")
        self._used[bus] += 1
        return number


def virtio(driver: str, config: MachineConfig) -> str:
    """The form of a virtio device: without the old interface, unless old guests need it."""
    return f"{driver}-transitional" if config.devices.virtio_transitional else f"{driver}-non-transitional"


def device_properties(disk: DiskConfig, host: HostView, config: MachineConfig) -> dict[str, Any]:
    """The device over a disk's nodes, without its place."""
    properties: dict[str, Any] = {"driver": _driver(disk, host, config), "id": names.device(disk.name)}
    if disk.layer is not None:
        properties["drive"] = names.format_node(disk.name, disk.layer.path)
    if disk.serial:
        properties["serial"] = _serial(disk)
    if properties["driver"] == "scsi-block":
        return properties | ({"share-rw": True} if disk.shareable else {})
    if disk.role != "cdrom":
        properties |= _policies(disk)
        properties["write-cache"] = "off" if cache_of(disk, host) == "writethrough" else "on"
    elif disk.bus == "virtio":
        properties["write-cache"] = "off"
    if disk.shareable:
        properties["share-rw"] = True
    for key, value in _block_sizes(disk):
        properties[key] = value
    if disk.bus == "virtio":
        properties |= _virtio_only(disk, config)
    return properties


def _driver(disk: DiskConfig, host: HostView, config: MachineConfig) -> str:
    if disk.role == "lun" and disk.bus == "scsi" and disk.layer and host.file(disk.layer.path).device:
        return "scsi-block"
    if disk.layer is None and (disk.role != "cdrom" or disk.bus == "virtio"):
        why = f"a {'virtio disk' if disk.bus == 'virtio' else disk.role} without a medium is not possible"
        raise UnstartableConfig(f"cannot start disk {disk.name}", reason="storage-cannot", of=disk.name, why=why)
    cdrom = disk.role == "cdrom"
    return {
        "virtio": virtio("virtio-blk-pci", config),
        "scsi": "scsi-cd" if cdrom else "scsi-hd",
        "sata": "ide-cd" if cdrom else "ide-hd",
        "ide": "ide-cd" if cdrom else "ide-hd",
        "usb": "scsi-cd" if cdrom else "usb-storage",
    }[disk.bus]


def _serial(disk: DiskConfig) -> str:
    limit = _SERIAL_LIMITS.get(disk.bus)
    if limit is not None and len(disk.serial) > limit:
        what = f"cannot give disk {disk.name} its serial number"
        raise UnstartableConfig(what, reason="unusable-value", of=disk.name, why=f"a SCSI disk takes {limit} characters")
    return disk.serial


def _policies(disk: DiskConfig) -> dict[str, Any]:
    # A read cannot fail for want of space, so "enospc" is a policy for writes only.
    return {"werror": disk.error_policy, "rerror": "report" if disk.error_policy == "enospc" else disk.error_policy}


def _block_sizes(disk: DiskConfig) -> Iterator[tuple[str, int]]:
    sizes = (
        ("logical_block_size", disk.logical_block),
        ("physical_block_size", disk.physical_block),
        ("discard_granularity", disk.discard_granularity),
    )
    yield from ((key, value) for key, value in sizes if value is not None)


def _virtio_only(disk: DiskConfig, config: MachineConfig) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    if disk.iothread is not None:
        if not 1 <= disk.iothread <= config.iothreads:
            why = f"there is no I/O thread {disk.iothread}"
            raise UnstartableConfig(f"cannot start disk {disk.name}", reason="bad-address", of=disk.name, why=why)
        properties["iothread"] = f"iothread{disk.iothread}"
    if disk.queues is not None:
        properties["num-queues"] = disk.queues
    return properties


def boot_indexes(config: MachineConfig) -> dict[str, int]:
    """Boot index by id of device: the config's, or else disks before drives, each in order."""
    given = {names.device(disk.name): disk.boot_order for disk in config.disks}
    given |= {names.nic(nic.name): nic.boot_order for nic in config.nics}
    said = {name: order for name, order in given.items() if order is not None}
    if said:
        return said
    disks = [disk for disk in config.disks if not disk.hotplugged]
    ordered = [disk for disk in disks if disk.role != "cdrom"] + [disk for disk in disks if disk.role == "cdrom"]
    return {names.device(disk.name): index for index, disk in enumerate(ordered, start=1)}
