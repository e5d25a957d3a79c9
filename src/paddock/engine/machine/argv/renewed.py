"""The command line of a QEMU that a running guest moves into. Pure.

The guest must find everything where it is: the line is that of the machine's start, without what was taken out since, and with what was
plugged in where it was plugged. Layers of disks and links of cards are the present ones. Processors that were plugged are devices, too: the
number of those that were there at the start decides how many queues the disks have.
"""

import json
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, structs

from paddock.engine.machine.argv import cards, hotplug, names
from paddock.engine.machine.argv.command import command
from paddock.engine.machine.argv.line import Command, Line, Pins, Properties
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig, Nic, StreamNetwork, UserNetwork

# What of a device's properties says where it is.
_PLACE = ("bus", "scsi-id")
_NAMED = ("-device", "-netdev", "-blockdev")

Places = Mapping[str, Properties]


class RunningHardware(Struct, frozen=True):
    """The hardware of a running machine."""

    config: MachineConfig
    # where QEMU has the devices of the config, by their ids
    places: Places
    # processors that were plugged in, as `device_add` took them
    processors: Sequence[Properties] = ()
    # another QEMU still has the ports of the host that are forwarded to it
    ports_taken: bool = True


def obstacles(config: MachineConfig, *, at_once: bool = True) -> tuple[str, ...]:
    """Return the reasons why a guest cannot go on in another QEMU; empty: it can.

    `at_once`: while its own is still there. Otherwise a kept TPM is no obstacle: its state goes along with the guest's.
    """
    devices, found = config.devices, []
    if devices.pci:
        found.append("devices of the host are passed through to it, and their state cannot be read")
    if devices.shared:
        found.append("it shares directories with the host, whose state is in another program")
    if at_once and devices.tpm is not None and devices.tpm.state is not None:
        found.append("its TPM is kept in a directory that two programs cannot have open")
    if devices.vsock is not None:
        found.append("its VSOCK number can be had by one process at a time")
    found += [
        f"card {nic.name} is on passt, which serves one process and ends with it"
        for nic in config.nics
        if isinstance(nic.backend, StreamNetwork)
    ]
    found += [f"disk {disk.name} is a device of the host" for disk in config.disks if disk.role == "lun"]
    return tuple(found)


def renewed(started: MachineConfig, now: RunningHardware, host: HostView) -> Command:
    """The line. `started` is the config of the machine's start with its full machine type."""
    config, places = now.config, now.places
    present = _present(started, now)
    found = command(present, host, incoming=True)
    there = _devices(found.argv)
    ids = {names.device(disk.name) for disk in config.disks} | {names.nic(nic.name) for nic in config.nics}
    stay = {device for device in ids & set(there) if _place(there[device]) == _place(places.get(device) or there[device])}
    before = {names.device(disk.name) for disk in started.disks} | {names.nic(nic.name) for nic in started.nics}
    found = _without(found, present, before - stay)
    moved = {device: place for device, place in places.items() if device in ids - stay}
    return _with(found, started, structs.replace(now, places=moved), host)


def _place(properties: Properties) -> dict[str, object]:
    return {key: properties[key] for key in _PLACE if key in properties}


def _present(started: MachineConfig, now: RunningHardware) -> MachineConfig:
    disks, nics = {disk.name: disk for disk in now.config.disks}, {nic.name: nic for nic in now.config.nics}
    return structs.replace(
        started,
        disks=tuple(structs.replace(disk, layer=disks.get(disk.name, disk).layer) for disk in started.disks),
        nics=tuple(_nic(structs.replace(nic, link_up=nics.get(nic.name, nic).link_up), now) for nic in started.nics),
    )


def _nic(nic: Nic, now: RunningHardware) -> Nic:
    """A card without ports of the host, which the old QEMU forwards until it goes."""
    if not now.ports_taken:
        return nic
    return structs.replace(nic, backend=structs.replace(nic.backend, forwards=())) if isinstance(nic.backend, UserNetwork) else nic


def _devices(argv: tuple[str, ...]) -> dict[str, Properties]:
    read = [json.loads(argv[at + 1]) for at, word in enumerate(argv) if word == "-device"]
    return {device["id"]: device for device in read if "id" in device}


def _without(command: Command, present: MachineConfig, gone: Collection[str]) -> Command:
    if not gone:
        return command
    dropped = set(gone)
    nics = {nic.name for nic in present.nics if names.nic(nic.name) in gone}
    dropped |= {names.netdev(name) for name in nics}
    for disk in present.disks:
        if names.device(disk.name) in gone and disk.layer is not None:
            dropped.add(names.format_node(disk.name, disk.layer.path))
    argv: list[str] = []
    words = iter(command.argv)
    for word in words:
        if word not in _NAMED:
            argv.append(word)
            continue
        text = next(words)
        properties = json.loads(text)
        if not dropped & {properties.get("id"), properties.get("node-name")}:
            argv += [word, text]
    return structs.replace(
        command,
        argv=tuple(argv),
        openings=tuple(opening for opening in command.openings if opening.nic not in nics),
        before_start=tuple(each for each in command.before_start if each.arguments.get("name") not in gone),
    )


def _with(command: Command, started: MachineConfig, now: RunningHardware, host: HostView) -> Command:
    line, config, places = Line(host), now.config, now.places
    for processor in now.processors:
        line.device("a processor", processor)
    for disk in config.disks:
        if (place := places.get(names.device(disk.name))) is not None:
            nodes, device = (step.arguments for step in hotplug.plug_disk(disk, started, host, (str(place.get("bus")),), ()).steps)
            line.blockdev(nodes)
            line.device(f"disk {disk.name}", {**device, **place})
    for nic in config.nics:
        if (place := places.get(names.nic(nic.name))) is not None:
            nic = _nic(nic, now)
            plan = hotplug.plug_nic(nic, started, host, (str(place.get("bus")),), ())
            line.openings += [plan.opening] if plan.opening is not None else []
            line.netdev(cards.backend(nic, nic.name, nic.name if plan.vhosts else None))
            line.device(f"network card {nic.name}", plan.steps[1].arguments)
            line.before_start += plan.steps[2:]
    more = line.command(Pins(), ())
    return structs.replace(
        command,
        argv=(*command.argv, *more.argv[1:]),
        openings=(*command.openings, *more.openings),
        before_start=(*command.before_start, *more.before_start),
    )
