"""The plan of a move, before anything happens: what keeps the machine from moving, and what will differ."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.fleet import kinds
from paddock.fleet.moves.plan.disks import CarriedDisk
from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import MACHINE

# What a plain network carries; the plan says that it is a guess.
_BYTES_PER_SECOND = 100 << 20
_SECONDS_PER_MINUTE = 60


class Hindrance(msgspec.Struct, frozen=True):
    """Something that may keep a machine from moving. If it is not certain, the plan only notes it, and the user decides."""

    text: str = ""
    is_certain: bool = True


class MovePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of one machine."""

    title: str
    place: str
    disks: Sequence[CarriedDisk] = ()
    # objects that are made at the target besides the machine, for people
    references: Sequence[str] = ()
    obstacles: Sequence[str] = ()
    notes: Sequence[str] = ()
    runs: bool = False
    resumes: bool = False

    @property
    def size(self) -> int:
        """The bytes of all disks, with their holes."""
        return sum(each.size for each in self.disks)

    def lines(self) -> Iterator[str]:
        """Yield the plan for people."""
        verb = "goes on moving" if self.resumes else "moves"
        yield f"{self.title} {verb} to {self.place}"
        for disk in self.disks:
            yield f"  carries disk {disk.volume} ({disk.name}), {quantity.readable(disk.size)}; its holes take no room on the way"
        for each in self.references:
            yield f"  makes {each}"
        for note in self.notes:
            yield f"  differs: {note}"
        if not self.resumes:
            yield f"  {self._downtime()}"
        for obstacle in self.obstacles:
            yield f"  cannot: {obstacle}"

    def _downtime(self) -> str:
        seconds = self.size // _BYTES_PER_SECOND
        span = f"{seconds} s" if seconds < _SECONDS_PER_MINUTE else f"{-(-seconds // _SECONDS_PER_MINUTE)} min"
        state = "is off until the target starts it" if self.runs else "is off already, and stays so"
        return f"the machine {state}; the disks take {span} at most at 100 MiB/s, and {quantity.readable(self.size)} of room"


def addresses(kind: KindId, data: Data, spec: Data, vmi: Data | None) -> Iterator[str]:
    """Yield the addresses of a machine that do not move. `spec` is the guest's."""
    moves = _moving_macs(kind, data, macs(spec, vmi))
    why = "the machine is off, and its spec names none" if kind == MACHINE else "its dialect names none"
    known = [str(each.get("name")) for each in _interfaces(spec)]
    for name in dict.fromkeys((*known, *_status(vmi))):
        found = _status(vmi).get(name) or {}
        ips = [ip for ip in found.get("ipAddresses") or [found.get("ipAddress")] if ip]
        if ips:
            yield f"interface {name}: the address {', '.join(ips)} is the source's; the target gives another"
        if name not in moves:
            yield f"interface {name}: its MAC address changes, because {why}"


def _moving_macs(kind: KindId, data: Data, known: Mapping[str, str]) -> set[str]:
    """Return the interfaces that keep their MAC addresses, because the object of the user can name them."""
    adapter = kinds.adapter(kind)
    if adapter.names_macs:
        return {str(each.get("name")) for each in fieldpath.value_at(data, adapter.nics) or ()} & known.keys()
    return set(known) if kind == MACHINE else set()


def macs(spec: Data, vmi: Data | None) -> Mapping[str, str]:
    """Return the MAC addresses of a guest that its spec names or its run has, by interface."""
    running = {name: str(each["mac"]) for name, each in _status(vmi).items() if name and each.get("mac")}
    return running | {str(each.get("name")): str(each["macAddress"]) for each in _interfaces(spec) if each.get("macAddress")}


def implied(spec: Data, vmi: Data | None) -> tuple[list[Data], list[Data]]:
    """Return the interfaces and networks that an instance got although its spec lists none."""
    running = (vmi or {}).get("spec") or {}
    if _interfaces(spec) or not _interfaces(running):
        return [], []
    return list(_interfaces(running)), list(running.get("networks") or ())


def _interfaces(spec: Data) -> Sequence[Data]:
    found: Sequence[Data] = ((spec.get("domain") or {}).get("devices") or {}).get("interfaces") or ()
    return found


def _status(vmi: Data | None) -> Mapping[str, Data]:
    return {str(each.get("name") or ""): each for each in ((vmi or {}).get("status") or {}).get("interfaces") or ()}


def service_addresses(service: Data) -> str:
    """Return the addresses of a Service that do not move; empty if it has none."""
    spec = service.get("spec") or {}
    found = [spec.get("clusterIP"), spec.get("loadBalancerIP"), *(spec.get("externalIPs") or ())]
    found += [each.get("ip") for each in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()]
    ports = [f"node port {each['nodePort']}" for each in spec.get("ports") or () if each.get("nodePort")]
    return ", ".join([*dict.fromkeys(str(each) for each in found if each and each != "None"), *ports])
