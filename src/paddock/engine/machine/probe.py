"""Probes of a running QEMU: once it answers, and after Paddock was away."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from paddock.base.errors import PaddockError
from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.line import Pins
from paddock.engine.machine.argv.processors import boot_size
from paddock.engine.machine.config import DiskConfig, MachineConfig
from paddock.engine.machine.observation import DiskState, NicState, Observation

# A full file system counts as having room again from here on.
_ROOM = 64 << 20

__all__ = ["boot_size", "changes", "devices", "disk_of", "failed", "has_room", "pin"]


class OwnerState(Protocol):
    """The owner, as far as a survey needs it."""

    @property
    def config(self) -> MachineConfig: ...
    @property
    def started(self) -> MachineConfig: ...
    @property
    def observed(self) -> Observation: ...
    def observe(self, **changes: Any) -> None: ...
    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any: ...


async def devices(owner: OwnerState) -> None:
    """Disks with their sizes, cards, processors, memory: as configured, where QEMU says nothing else."""
    config = owner.config
    blocks = await owner.execute("query-block")
    sizes = disk_sizes(blocks)
    owner.observe(
        disk_errors=disk_errors(config, blocks),
        disks={disk.name: DiskState(size=sizes.get(names.device(disk.name), 0)) for disk in config.disks},
        nics={nic.name: NicState(link_up=nic.link_up) for nic in config.nics},
        sockets=owner.started.cpu.sockets,
        memory=boot_size(owner.started),
    )


async def changes(owner: OwnerState) -> None:
    """Observe the changes of this run: processors and memory that were plugged."""
    cpu = owner.started.cpu
    count = len(await owner.execute("query-cpus-fast"))
    memory = boot_size(owner.started)
    with contextlib.suppress(PaddockError):
        for device in await owner.execute("query-memory-devices"):
            if device.get("type") == "virtio-mem":
                memory += int(device["data"]["size"])
    owner.observe(sockets=max(1, count // (cpu.cores * cpu.threads)), memory=memory)


async def pin(owner: OwnerState, pins: Pins) -> None:
    """Puts QEMU's threads on the processors they were given."""
    if not (pins.vcpus or pins.emulator):
        return
    threads = {int(cpu["cpu-index"]): int(cpu["thread-id"]) for cpu in await owner.execute("query-cpus-fast")}
    for index, thread in threads.items():
        if index < len(pins.vcpus):
            os.sched_setaffinity(thread, {pins.vcpus[index]})
    if pins.emulator:
        processors = set(threads.values())
        for name in os.listdir(f"/proc/{owner.observed.pid}/task"):
            if int(name) not in processors:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(name), set(pins.emulator))


def disk_sizes(answer: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """`query-block`: device -> bytes that the guest sees."""
    sizes: dict[str, int] = {}
    for block in answer:
        image = (block.get("inserted") or {}).get("image") or {}
        if (device := _device(str(block.get("qdev", "")))) and "virtual-size" in image:
            sizes[device] = int(image["virtual-size"])
    return sizes


def medium(device: str, answer: Iterable[Mapping[str, Any]]) -> tuple[str, bool]:
    """`query-block`: the node that is in a drive ("": none), and whether its tray is open."""
    for block in answer:
        if _device(str(block.get("qdev", ""))) == device:
            return str((block.get("inserted") or {}).get("node-name", "")), bool(block.get("tray_open"))
    return "", False


def disk_errors(config: MachineConfig, answer: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """`query-block`: disks whose last access failed while the guest waits for them."""
    words = {"nospace": "enospc", "failed": "an error"}
    failed = {_device(str(block.get("qdev", ""))): words.get(str(block.get("io-status", ""))) for block in answer}
    return {disk.name: error for disk in config.disks if (error := failed.get(names.device(disk.name)))}


def error_of(data: Mapping[str, Any]) -> str:
    """The error of an event about a failed access: "enospc" or words."""
    return "enospc" if data.get("nospace") else str(data.get("reason", "an error"))


def failed(config: MachineConfig, errors: Mapping[str, str], data: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the errors of disks with that of an event about a failed access."""
    name = disk_of(config, str(data.get("node-name", "")), str(data.get("qom-path", "")), str(data.get("device", "")))
    return {**errors, name: error_of(data)} if name else errors


def disk_of(config: MachineConfig, node: str, path: str, device: str) -> str:
    """The disk that QEMU means by a node, an object's path or a device; "" if it is none of ours."""
    wanted = {_device(path), _device(device)} - {""}
    for disk in config.disks:
        if names.device(disk.name) in wanted or (node and node in _nodes(disk)):
            return disk.name
    return ""


def _nodes(disk: DiskConfig) -> set[str]:
    found, layer = set[str](), disk.layer
    while layer is not None:
        found |= {names.format_node(disk.name, layer.path), names.file_node(disk.name, layer.path)}
        layer = layer.backing
    return found


def _device(path: str) -> str:
    # /machine/peripheral/ua-root/virtio-backend, or the id alone
    parts = path.split("/")
    if len(parts) > 3 and parts[:3] == ["", "machine", "peripheral"]:
        return parts[3]
    return path if path.startswith(names.DEVICE_PREFIX) else ""


def has_room(config: MachineConfig, failed: Iterable[str]) -> bool:
    """The file systems of these disks have room to write."""
    layers = [disk.layer for disk in config.disks if disk.name in set(failed) and disk.layer is not None]
    for layer in layers:
        try:
            status = os.statvfs(layer.path)
        except OSError:
            return False
        if status.f_bavail * status.f_frsize < min(_ROOM, status.f_blocks * status.f_frsize // 20):
            return False
    return bool(layers)
