"""`command`: a machine and a host give the way QEMU is started. Equal inputs give equal commands."""

from collections.abc import Iterator

from paddock.engine.machine.argv import cards, devices, firmware, names, processors
from paddock.engine.machine.argv.blocks import Controllers, boot_indexes
from paddock.engine.machine.argv.line import Command, Line, Pins, QmpCommand
from paddock.engine.machine.argv.options import keyed
from paddock.engine.machine.argv.pci import Slots
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import MachineConfig, Nic

# No new programs, no other user, no way out of limits, no system calls that are obsolete.
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


def command(config: MachineConfig, host: HostView, *, incoming: bool = False) -> Command:
    """Return the command that starts the machine. `incoming`: its state comes from elsewhere (`migrate-incoming` follows).

    Raises `Unstartable` with the obstacle when this host cannot start it.
    """
    line = Line(host)
    slots = Slots(_wanted(config), on_root=config.on_root_complex)
    _frame(config, line, incoming=incoming)
    processors.accelerator(config, line)
    processors.board(config, line, firmware.flash(config, line))
    processors.processors(config, line)
    firmware.identity(config, line)
    processors.clock(config, line)
    firmware.boot(config, line)
    firmware.tables(config, line)
    _devices(config, line, slots)
    hotplug = config.hotplug and not config.on_root_complex
    spare = slots.spare(config.memory.size) if hotplug else ()
    for port in slots.ports(spare, _needs_io(config, spare)):
        line.port(port)
    return line.command(Pins(config.cpu.pinned, config.cpu.emulator_pinned), spare)


def spare_ports(config: MachineConfig, host: HostView) -> tuple[str, ...]:
    """The root ports that were empty when this config was started, in the order in which they are to be used."""
    return command(config, host).spare_ports


def _frame(config: MachineConfig, line: Line, *, incoming: bool) -> None:
    for name in ("-nodefaults", "-no-user-config", "-S"):
        line.option(name)
    line.option("-name", keyed(guest=config.label, debug_threads=True))
    line.option("-sandbox", _SANDBOX)
    # The process stays when the guest ends, so that the reason can be read.
    line.option("-no-shutdown")
    actions = {"reboot": "shutdown"} if config.reboot_ends else {}
    if config.devices.watchdog:
        actions["watchdog"] = config.devices.watchdog
    if actions:
        line.option("-action", keyed(**actions))
    if incoming:
        line.option("-incoming", "defer")


def _devices(config: MachineConfig, line: Line, slots: Slots) -> None:
    devices.monitor(line)
    processors.memory(config, line, slots)
    processors.iothreads(config, line)
    devices.agent(config, line, slots)
    devices.serial(config, line)
    devices.display(config, line)
    devices.usb(config, line, slots)
    devices.memory_devices(config, line, slots)
    _disks(config, line, slots)
    _nics(config, line, slots)
    devices.inputs(config, line, slots)
    devices.sound(config, line, slots)
    devices.watchdog(config, line, slots)
    devices.panic(config, line, slots)
    devices.generation(config, line)
    devices.tpm(config, line)
    devices.shares(config, line, slots)
    devices.vsock(config, line, slots)
    devices.passed_through(config, line, slots)


def _disks(config: MachineConfig, line: Line, slots: Slots) -> None:
    controllers, boot = Controllers(config, line, slots), boot_indexes(config)
    if config.hotplug:
        controllers.scsi_controller()
    # What was plugged in comes last, so that it takes no other device's place.
    for disk in sorted(config.disks, key=lambda disk: disk.hotplugged):
        controllers.device(disk, boot.get(names.device(disk.name)))


def _nics(config: MachineConfig, line: Line, slots: Slots) -> None:
    for nic in config.nics:
        opening = cards.opening(nic, vhost=line.host.vhost_net)
        if opening is not None:
            line.openings.append(opening)
        vhosts = nic.name if opening is not None and opening.vhost else None
        line.netdev(cards.backend(nic, nic.name, vhosts))
        place = slots.conventional(f"card {nic.name}") if _is_conventional(nic) else slots.place(f"card {nic.name}", nic.pci_address)
        line.device(f"network card {nic.name}", {**cards.device_properties(nic, config), **place})
        if not nic.link_up:
            line.before_start.append(QmpCommand("set_link", {"name": names.nic(nic.name), "up": False}))


def _is_conventional(nic: Nic) -> bool:
    return nic.model in cards.CONVENTIONAL and not nic.pci_address


def _wanted(config: MachineConfig) -> Iterator[tuple[str, str]]:
    parts = (
        *((f"disk {disk.name}", disk.pci_address) for disk in config.disks),
        *((f"card {nic.name}", nic.pci_address) for nic in config.nics),
    )
    yield from ((of, address) for of, address in parts if address)


def _needs_io(config: MachineConfig, spare: tuple[str, ...]) -> frozenset[str]:
    """Ports whose devices use I/O ports: only virtio's old interface does."""
    if not config.devices.virtio_transitional:
        return frozenset()
    ports = {f"pci.{number}" for number in range(1, 113)}
    return frozenset(ports - set(spare))
