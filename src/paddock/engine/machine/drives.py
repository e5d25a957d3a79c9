"""The disks of a machine, as its config names them and as QEMU has them open."""

import asyncio
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from paddock.engine.machine.argv import names
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.owner import MachineOwner


def find(owner: MachineOwner, name: str) -> DiskConfig:
    """Return a disk. Raises `RequestRefused` if the machine has none of that name."""
    for disk in owner.config.disks:
        if disk.name == name:
            return disk
    raise RequestRefused(f"cannot find disk {name} of machine {owner.id}", reason="NoSuchDevice", why="it has none of that name")


def on_layers(layers: Mapping[str, DiskLayer]) -> Callable[[MachineConfig], MachineConfig]:
    """Return the change of a config that puts disks on these layers."""
    return lambda config: replace(config, disks=tuple(replace(one, layer=layers.get(one.name, one.layer)) for one in config.disks))


async def change_over(owner: MachineOwner, layers: Mapping[str, DiskLayer]) -> None:
    """Write the layers that QEMU has changed over to into the config, while the guest stands still.

    A full disk makes it wait: a guest that went on before would lose its writes with its next start.
    """
    while True:
        try:
            await owner.reconfigure(on_layers(layers))
        except OSError as error:
            what = f"disks {', '.join(sorted(layers))} have changed over, and the guest stands still until that is written down"
            owner.observe(detail=f"{what}: {error.filename or owner.directory.path}: {error.strerror}")
            await asyncio.sleep(owner.surroundings.times.poll)
        else:
            owner.observe(detail="")
            return


async def tops(owner: MachineOwner) -> dict[str, str]:
    """Return the node below each device of a disk. The filter of a backup does not count."""
    found, filters = {}, dict[str, str]()
    for disk in owner.config.disks:
        if disk.layer is not None:
            filters[names.backup_filter(disk.name, disk.layer.path)] = names.format_node(disk.name, disk.layer.path)
    for block in await owner.execute("query-block"):
        parts = str(block.get("qdev", "")).split("/")
        device = parts[3] if len(parts) > 3 else parts[0]
        node = str((block.get("inserted") or {}).get("node-name", ""))
        found[device] = filters.get(node, node)
    return found
