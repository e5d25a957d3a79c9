"""The state of a guest, and its description in one line. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Data = Mapping[str, Any]
# What stands in the way, as a machine's status says it in one word.
_TROUBLE = ("Error", "CrashLoopBackOff", "DataVolumeError", "Unschedulable", "ImagePullBackOff")
_WIDEST_REASON = 90


@dataclass(frozen=True)
class Guest:
    """One machine of the demonstration: the dialect of its object, and its VirtualMachine."""

    dialect: str
    name: str


GUESTS = (
    Guest("kubevirt", "kubevirt-vm"),
    Guest("kubermatic", "kubermatic-vm"),
    Guest("kubermatic", "kubermatic-pool-0"),
    Guest("kubermatic", "kubermatic-pool-1"),
    Guest("stakater", "stakater-vm"),
    Guest("vitistack", "vitistack-machine"),
    Guest("virtrigaud", "virtrigaud-vm"),
)
DIALECTS = tuple(dict.fromkeys(guest.dialect for guest in GUESTS))


@dataclass(frozen=True)
class Seen:
    """The objects of a moment, by name."""

    machines: Mapping[str, Data] = field(default_factory=dict)
    instances: Mapping[str, Data] = field(default_factory=dict)
    volumes: Mapping[str, Data] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """The description of a guest. `address` is there as soon as it has one; `system` is what its agent calls itself."""

    guest: Guest
    state: str
    address: str = ""
    system: str = ""

    @property
    def answers(self) -> bool:
        """The machine runs, has an address, and its agent answers."""
        return bool(self.address and self.system)

    @property
    def text(self) -> str:
        """The state; of a guest that answers, its address and its own name."""
        return f"{self.address}, {self.system}" if self.answers else self.state


def lines(guests: Sequence[Guest], seen: Seen) -> list[Line]:
    """One for each guest."""
    return [_line(each, seen) for each in guests]


def _line(guest: Guest, seen: Seen) -> Line:
    machine = seen.machines.get(guest.name)
    if machine is None:
        return Line(guest, "no VirtualMachine yet")
    state = str(machine.get("status", {}).get("printableStatus", "")) or "Created"
    if any(word in state for word in _TROUBLE):
        return Line(guest, f"{state}: {_reason(machine)}")
    if state != "Running":
        return Line(guest, _importing(machine, seen) or state)
    status = seen.instances.get(guest.name, {}).get("status", {})
    address = next((str(each["ipAddress"]) for each in status.get("interfaces") or () if each.get("ipAddress")), "")
    connected = any(each["type"] == "AgentConnected" and each["status"] == "True" for each in status.get("conditions") or ())
    system = str(status.get("guestOSInfo", {}).get("prettyName", "")) if connected else ""
    return Line(guest, "Running" if address and system else "Running; the guest boots", address, system)


def _importing(machine: Data, seen: Seen) -> str:
    """Return the progress of its disk; empty unless the disk is being filled."""
    names = [each["metadata"]["name"] for each in machine["spec"].get("dataVolumeTemplates") or ()]
    names += [each["dataVolume"]["name"] for each in machine["spec"]["template"]["spec"].get("volumes") or () if "dataVolume" in each]
    for status in (seen.volumes.get(name, {}).get("status", {}) for name in names):
        if (phase := status.get("phase", "")) not in ("", "Succeeded"):
            progress = str(status.get("progress", "")).removesuffix("N/A").partition(".")[0].removesuffix("%")
            return f"Provisioning; {phase} {progress} %" if progress else f"Provisioning; {phase}"
    return ""


def _reason(machine: Data) -> str:
    """Return the message of its conditions."""
    said = [str(each.get("message", "")) for each in machine.get("status", {}).get("conditions") or () if each.get("status") == "False"]
    text = next((each for each in said if each), "no reason given")
    return text if len(text) <= _WIDEST_REASON else f"{text[:_WIDEST_REASON]}..."


def rows(lines: Sequence[Line], ready: Mapping[Guest, float]) -> list[tuple[str, ...]]:
    """The table: a heading, and a row for each guest; `ready` is when each answered first. It fits into 80 columns."""
    found: list[tuple[str, ...]] = [("DIALECT", "MACHINE", "READY", "STATE")]
    for line in lines:
        seconds = f"{ready[line.guest]:.0f} s" if line.answers and line.guest in ready else ""
        found.append((line.guest.dialect, line.guest.name, seconds, line.text))
    return found


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns, as lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
