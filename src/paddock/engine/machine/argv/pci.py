"""The places of devices on the PCI bus of a machine.

Each virtio device has a root port of its own, numbered in the order of requests for places: the order is fixed, so a guest finds its
devices where they were. Conventional devices sit on the root bus itself. After the last device come empty ports, into which devices
can be plugged later. A bus of which a slot besides 00 is wanted is a bridge: firmware counts buses in depth, so the bridge is in the root
port of the number before, and the numbers of ports and bridges are those that the guest has for their buses.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from paddock.engine.machine.argv.errors import UnstartableConfig
from paddock.engine.machine.argv.line import Properties

ROOT = "pcie.0"
# On the root bus: video at 1, root ports in the slots 2 to 15, eight in each, conventional devices from 16 on. 31 is the chipset's.
VIDEO_SLOT = 0x1
_PORT_SLOTS = range(0x2, 0x10)
_OTHER_SLOTS = range(0x10, 0x1F)
# The slots of the root ports where the config wants all of theirs for devices.
_LAST_SLOTS = range(0x1D, 0x1F)
_FUNCTIONS = 8
_ADDRESS = re.compile(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])\Z")

# Empty ports: as many as make this many in all, but never fewer free than that; more for machines with more memory.
_SMALL = (8, 3)
_LARGE = (16, 6)
_LARGE_MEMORY = 2 << 30

Place = dict[str, object]


class PciAddress(Struct, frozen=True):
    """A place that the config asks for."""

    bus: int
    slot: int
    function: int

    def __str__(self) -> str:
        return f"0000:{self.bus:02x}:{self.slot:02x}.{self.function:x}"


def parse(of: str, text: str) -> PciAddress:
    """`dddd:bb:ss.f`. Bus 0 is the root bus; another one is a root port, which has one slot, or a bridge."""
    match = _ADDRESS.match(text)
    if match is None:
        raise _bad(of, text, "it is not written as 0000:01:00.0")
    domain, bus, slot, function = (int(part, 16) for part in match.groups())
    ports = len(_PORT_SLOTS) * _FUNCTIONS
    if domain:
        raise _bad(of, text, "there is only the PCI domain 0000")
    if bus > ports:
        raise _bad(of, text, f"there is no bus {bus:02x}: buses 01 to {ports:02x} are root ports, 00 is the root bus")
    if bus == 1 and slot:
        raise _bad(of, text, "bus 01 is a root port, which has only slot 00; use bus 02, or a higher one")
    if not bus and (slot in (0, VIDEO_SLOT) or slot >= _OTHER_SLOTS.stop):
        raise _bad(of, text, f"slot {slot:02x} of the root bus is taken by the chipset or the graphics card")
    return PciAddress(bus, slot, function)


def _bad(of: str, text: str, why: str) -> UnstartableConfig:
    return UnstartableConfig(f"cannot place {of} at PCI address {text!r}", reason="bad-address", of=of, why=why)


class Slots:
    """Gives out places. `wanted` are the addresses that devices of the config ask for."""

    def __init__(self, addresses: Iterable[tuple[str, str]], *, on_root: bool = False) -> None:
        self._on_root = on_root
        self._wanted: dict[PciAddress, str] = {}
        for of, text in addresses:
            self._want(of, text)
        root_slots = {address.slot for address in self._wanted if not address.bus}
        self._port_slots = [slot for slot in _PORT_SLOTS if slot not in root_slots]
        if not self._port_slots:
            self._port_slots = [slot for slot in _LAST_SLOTS if slot not in root_slots]
        others = _OTHER_SLOTS if not on_root else range(_PORT_SLOTS.start, _OTHER_SLOTS.stop)
        self._others = (slot for slot in others if slot not in root_slots and (on_root or slot not in self._port_slots))
        self._bridges = {address.bus: of for address, of in self._wanted.items() if address.bus and address.slot}
        self._own_ports = {address.bus for address in self._wanted if address.bus} | {bus - 1 for bus in self._bridges}
        self._taken = {number for bus in self._bridges for number in (bus - 1, bus)}
        self._next = 1
        self._check_bridges()

    def _want(self, of: str, text: str) -> None:
        address = parse(of, text)
        if address in self._wanted:
            raise _bad(of, text, f"{self._wanted[address]} is there")
        self._wanted[address] = of

    def _check_bridges(self) -> None:
        """Nothing else is in a root port that leads to a bridge."""
        for address, of in self._wanted.items():
            if address.bus + 1 in self._bridges and address.bus:
                why = f"bus {address.bus:02x} leads to bus {address.bus + 1:02x}, of which {self._bridges[address.bus + 1]} wants a slot"
                raise _bad(of, str(address), why)

    def place(self, of: str, address: str = "") -> Place:
        """The place of an express device: a root port of its own, or where the config wants it."""
        if address:
            return self._at(of, address)
        if self._on_root:
            return self.conventional(of)
        while self._next in self._own_ports:
            self._next += 1
        number = self._next
        self._next += 1
        return {"bus": self._bus(number, of), "addr": "0x0"}

    def _at(self, of: str, text: str) -> Place:
        at = parse(of, text)
        place: Place = {"bus": self._bus(at.bus, of), "addr": f"{at.slot:#x}.{at.function:#x}"}
        functions = {other.function for other in self._wanted if (other.bus, other.slot) == (at.bus, at.slot)}
        if 0 not in functions:
            raise _bad(of, text, "a guest looks at a slot only when something is at its function 0")
        if at.function == 0 and len(functions) > 1:
            place["multifunction"] = True
        return place

    def conventional(self, of: str) -> Place:
        """The place of a device on the root bus."""
        slot = next(self._others, None)
        if slot is None:
            raise UnstartableConfig(f"cannot place {of}", reason="no-room", of=of, why="all slots of the root bus are taken")
        return {"bus": ROOT, "addr": f"{slot:#x}"}

    def _bus(self, number: int, of: str = "a device") -> str:
        if not number:
            return ROOT
        limit = self._limit
        if number > limit:
            why = f"it would need more than {limit} PCI root ports"
            raise UnstartableConfig(f"cannot place {of}", reason="no-room", of=of, why=why, fix="use the bus scsi for most disks")
        self._taken.add(number)
        return _name(number)

    @property
    def _limit(self) -> int:
        """The highest number of a bus. A bridge has a number, and is no port."""
        return len(self._port_slots) * _FUNCTIONS + len(self._bridges)

    def spare(self, memory: int) -> tuple[str, ...]:
        """Names of empty ports for devices that are plugged in later. Called when everything has its place."""
        if self._on_root:
            return ()
        total, free = _LARGE if memory > _LARGE_MEMORY else _SMALL
        last = max(self._taken, default=0)
        limit = self._limit
        holes = [number for number in range(1, last) if number not in self._taken]
        more = max(total - last, free - len(holes), 0)
        return tuple(_name(number) for number in (*holes, *range(last + 1, min(last + more, limit) + 1)))

    def ports(self, spare: tuple[str, ...], needs_io: frozenset[str]) -> Iterator[Properties]:
        """The root ports themselves. Only those in `needs_io` get a window of I/O ports, of which there are few."""
        spares = {int(name.removeprefix("pci.")) for name in spare}
        last = max(self._taken | spares, default=0)
        index = 0
        for number in range(1, last + 1):
            if number in self._bridges:
                yield {"driver": "pcie-pci-bridge", "id": _name(number), "bus": _name(number - 1), "addr": "0x0"}
                continue
            slot, function = self._port_slots[index // _FUNCTIONS], index % _FUNCTIONS
            index += 1
            port: dict[str, object] = {"driver": "pcie-root-port", "id": _name(number), "bus": ROOT}
            port |= {"chassis": number, "port": slot << 3 | function, "addr": f"{slot:#x}.{function:#x}"}
            if function == 0:
                port["multifunction"] = True
            # What sits behind a bridge is conventional, and uses I/O ports.
            if _name(number) not in needs_io and number + 1 not in self._bridges:
                port["io-reserve"] = 0
            yield port


def _name(number: int) -> str:
    return f"pci.{number}"
