"""The parts of a command line: `Line` while it is put together, `Command` when it is done."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from paddock.engine.machine.argv.errors import missing
from paddock.engine.machine.argv.options import as_json, checked
from paddock.engine.machine.argv.view import HostView

Properties = Mapping[str, Any]


class TapOpening(Struct, frozen=True):
    """A tap device that has to be opened once for each queue (IFF_MULTI_QUEUE if there are several) before QEMU is started."""

    nic: str
    device: str
    queues: int
    # /dev/vhost-net has to be opened as often
    vhost: bool = False


class HelperProgram(Struct, frozen=True):
    """A program that has to run, and to listen at its socket, before QEMU is started.

    It is started in the machine's directory, as QEMU is, and with QEMU's user unless it has to be root. It ends by itself
    when QEMU is gone.
    """

    name: str
    argv: tuple[str, ...]
    socket: str
    # directories that have to exist below the machine's
    directories: tuple[str, ...] = ()
    # state from the run before that has to go first
    remove: tuple[str, ...] = ()
    needs_root: bool = False


class FileCopy(Struct, frozen=True):
    """A file that has to be there. `fresh`: it is copied anew for each start; otherwise only when it is missing."""

    source: Path
    to: Path
    fresh: bool


class QmpCommand(Struct, frozen=True):
    execute: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Pins(Struct, frozen=True):
    """Host CPUs: for each virtual CPU in order, and for QEMU's other threads; empty: anywhere."""

    vcpus: tuple[int, ...] = ()
    emulator: tuple[int, ...] = ()


class Command(Struct, frozen=True):
    """A command that starts QEMU, and the steps around it."""

    # with made-up numbers for open files; `arguments` puts the real ones in
    argv: tuple[str, ...]
    accelerator: Literal["kvm", "tcg"]
    openings: tuple[TapOpening, ...] = ()
    helpers: tuple[HelperProgram, ...] = ()
    copies: tuple[FileCopy, ...] = ()
    # in addition to a minimal environment
    environment: Mapping[str, str] = field(default_factory=dict)
    # sent before the guest's first instruction
    before_start: tuple[QmpCommand, ...] = ()
    pins: Pins = Pins()
    # root ports that nothing is in: devices are plugged in there
    spare_ports: tuple[str, ...] = ()

    def arguments(self, files: Mapping[str, Sequence[int]], vhosts: Mapping[str, Sequence[int]] = {}) -> list[str]:
        """The command line, with the numbers of the open files by the name of the network card."""
        found = list(self.argv)
        for index, text in enumerate(found):
            if index and found[index - 1] == "-netdev":
                found[index] = _numbered(text, files, vhosts)
        return found


def _numbered(text: str, files: Mapping[str, Sequence[int]], vhosts: Mapping[str, Sequence[int]]) -> str:
    netdev = json.loads(text)
    for key, numbers in (("fds", files), ("vhostfds", vhosts)):
        if key in netdev:
            netdev[key] = ":".join(str(number) for number in numbers[netdev[key]])
    return as_json(netdev)


class Line:
    """Gathers options. Devices are held against what this QEMU has; their order is the order of the calls."""

    def __init__(self, host: HostView) -> None:
        self.host = host
        self.openings: list[TapOpening] = []
        self.helpers: list[HelperProgram] = []
        self.copies: list[FileCopy] = []
        self.environment: dict[str, str] = {}
        self.before_start: list[QmpCommand] = []
        self._head: list[str] = []
        self._ports: list[str] = []
        self._tail: list[str] = []

    def option(self, name: str, value: str | None = None) -> None:
        """An option that stands before all devices. The value is written as it is: see `options`."""
        self._head.append(name)
        if value is not None:
            self._head.append(checked(name, value))

    def chardev(self, value: str) -> None:
        self._tail += ["-chardev", checked("-chardev", value)]

    def object(self, properties: Properties) -> None:
        self._tail += ["-object", self._json("object", properties)]

    def blockdev(self, node: Properties) -> None:
        """A tree of block nodes."""
        self._tail += ["-blockdev", self._json("blockdev", node)]

    def netdev(self, properties: Properties) -> None:
        """Add the backend of a network card."""
        self._tail += ["-netdev", self._json("netdev", properties)]

    def plain(self, name: str, value: str) -> None:
        """Another option that has to stand among the devices."""
        self._tail += [name, checked(name, value)]

    def device(self, of: str, properties: Properties) -> None:
        """A device; `of` names what it is for."""
        require(self.host, of, properties["driver"])
        self._tail += ["-device", self._json(of, properties)]

    def port(self, properties: Properties) -> None:
        """A root port; all of them stand before the devices."""
        self._ports += ["-device", self._json("pcie-root-port", properties)]

    def argv(self) -> tuple[str, ...]:
        return (str(self.host.qemu), *self._head, *self._ports, *self._tail)

    def command(self, pins: Pins, spare_ports: tuple[str, ...]) -> Command:
        """Everything, for the process owner."""
        return Command(
            argv=self.argv(),
            accelerator=self.host.accelerator,
            openings=tuple(self.openings),
            helpers=tuple(self.helpers),
            copies=tuple(self.copies),
            environment=dict(self.environment),
            before_start=tuple(self.before_start),
            pins=pins,
            spare_ports=spare_ports,
        )

    @staticmethod
    def _json(of: str, properties: Properties) -> str:
        return checked(of, as_json(properties))


def require(host: HostView, of: str, driver: str) -> None:
    """Refuse a device that this QEMU has not got."""
    if host.devices and driver not in host.devices:
        version = ".".join(str(part) for part in host.version)
        raise missing(of, f"device {driver} (QEMU {version})", "choose another model or install a QEMU that has it")
