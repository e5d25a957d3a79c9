"""The commands to QEMU that plug a disk or a card into a running machine, and take it out. By the rules of the command line.

The steps of a plan are sent in order; when one fails, `undo` is sent, whose own failures mean nothing. A removed device is gone
when QEMU says DEVICE_DELETED for its id; only then can its backend be removed, and that may have to be tried again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from paddock.engine.machine.argv import blocks, cards, names
from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.argv.line import QmpCommand, TapOpening, require
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import DiskConfig, MachineConfig, Nic


class HotplugPlan(Struct, frozen=True):
    """`opening` has to be opened and handed over by `getfd` under the names in `files` (and `vhosts`) before the steps."""

    device: str
    steps: tuple[QmpCommand, ...]
    undo: tuple[QmpCommand, ...]
    # the root port it will be in; "" if it needs none
    port: str = ""
    opening: TapOpening | None = None
    files: tuple[str, ...] = ()
    vhosts: tuple[str, ...] = ()


def with_files(plan: HotplugPlan, names: Mapping[str, str]) -> HotplugPlan:
    """The plan with files under other names: those of descriptors that QEMU was handed."""
    if not names:
        return plan
    return replace(plan, steps=tuple(replace(each, arguments=_renamed(each.arguments, names)) for each in plan.steps))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: names.get(each, each) if key == "filename" else _renamed(each, names) for key, each in value.items()}
    return value


class Removal(Struct, frozen=True):
    """`first` asks the guest to let go; `then` follows DEVICE_DELETED for `device`."""

    device: str
    first: QmpCommand
    then: tuple[QmpCommand, ...]


def free_port(spare: Sequence[str], taken: Collection[str], of: str) -> str:
    """The root port for a device: `spare` as the machine was started (`Command.spare_ports`), `taken` since then."""
    for port in spare:
        if port not in taken:
            return port
    fix = "use the bus scsi, or stop and start the machine: it then has room again"
    raise UnstartableConfig(f"cannot plug in {of}", reason="no-room", of=of, why="no PCI root port is free", fix=fix)


def plug_disk(disk: DiskConfig, config: MachineConfig, host: HostView, spare: Sequence[str], taken: Collection[str]) -> HotplugPlan:
    """The plan for a disk; `config` is the machine's, from its start."""
    of = f"disk {disk.name}"
    _allowed(of, config)
    nodes = blocks.tree(disk, host)
    if nodes is None or disk.role == "cdrom":
        raise UnstartableConfig(f"cannot plug in {of}", reason="bad-address", of=of, why="a CD-ROM drive cannot be plugged in")
    properties = blocks.device_properties(disk, host, config)
    require(host, of, properties["driver"])
    port = ""
    if disk.bus == "virtio":
        port = free_port(spare, taken, of)
        properties |= {"bus": port, "addr": "0x0"}
    elif disk.bus == "scsi":
        properties |= {"bus": f"{names.SCSI}.0"}
    else:
        why, fix = f"the bus {disk.bus} takes disks only at the start", "use the bus scsi or virtio"
        raise UnstartableConfig(f"cannot plug in {of}", reason="bad-address", of=of, why=why, fix=fix)
    node = {"node-name": nodes["node-name"]}
    steps = (QmpCommand("blockdev-add", nodes), QmpCommand("device_add", properties))
    return HotplugPlan(device=properties["id"], steps=steps, undo=(QmpCommand("blockdev-del", node),), port=port)


def unplug_disk(disk: DiskConfig) -> Removal:
    """The way out for a disk that stands over the layer in `disk`."""
    device = names.device(disk.name)
    layer = disk.layer
    then = (QmpCommand("blockdev-del", {"node-name": names.format_node(disk.name, layer.path)}),) if layer else ()
    return Removal(device=device, first=QmpCommand("device_del", {"id": device}), then=then)


def medium(drive: DiskConfig, host: HostView) -> HotplugPlan | None:
    """The plan for the medium of a drive whose tray is open; None: there is none."""
    nodes = blocks.tree(drive, host)
    if nodes is None:
        return None
    device, node = names.device(drive.name), {"node-name": nodes["node-name"]}
    steps = (QmpCommand("blockdev-add", nodes), QmpCommand("blockdev-insert-medium", {"id": device, **node}))
    return HotplugPlan(device=device, steps=steps, undo=(QmpCommand("blockdev-del", node),))


def plug_nic(nic: Nic, config: MachineConfig, host: HostView, spare: Sequence[str], taken: Collection[str]) -> HotplugPlan:
    """The plan for a network card; `config` is the machine's, from its start."""
    of = f"network card {nic.name}"
    _allowed(of, config)
    properties = cards.device_properties(nic, config)
    require(host, of, properties["driver"])
    if nic.model in cards.CONVENTIONAL:
        why, fix = f"a card of the model {nic.model} can only be there from the start", "use the model virtio"
        raise UnstartableConfig(f"cannot plug in {of}", reason="bad-address", of=of, why=why, fix=fix)
    port = free_port(spare, taken, of)
    properties |= {"bus": port, "addr": "0x0"}
    # A card that is plugged in is no boot device any more.
    properties.pop("bootindex", None)
    properties["romfile"] = ""
    opening = cards.opening(nic, vhost=host.vhost_net)
    queues = range(opening.queues) if opening else range(0)
    files = tuple(names.descriptor(nic.name, queue) for queue in queues)
    vhosts = tuple(f"vhost-{file}" for file in files) if opening and opening.vhost else ()
    steps = [QmpCommand("netdev_add", cards.backend(nic, files, vhosts or None)), QmpCommand("device_add", properties)]
    if not nic.link_up:
        steps.append(QmpCommand("set_link", {"name": properties["id"], "up": False}))
    undo = (QmpCommand("netdev_del", {"id": names.netdev(nic.name)}),)
    return HotplugPlan(properties["id"], tuple(steps), undo, port=port, opening=opening, files=files, vhosts=vhosts)


def unplug_nic(nic: Nic) -> Removal:
    """The way out for a network card."""
    device = names.nic(nic.name)
    then = (QmpCommand("netdev_del", {"id": names.netdev(nic.name)}),)
    return Removal(device=device, first=QmpCommand("device_del", {"id": device}), then=then)


def _allowed(of: str, config: MachineConfig) -> None:
    if not config.hotplug:
        why = "the machine was started without room for devices that are plugged in (disableHotplug)"
        raise UnstartableConfig(f"cannot plug in {of}", reason="no-room", of=of, why=why)
