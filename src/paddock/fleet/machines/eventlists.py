"""Events about a machine and what was made of it: which they are, when they happened, and how often. Pure."""

from typing import Any

from paddock.base.jsondata import Data
from paddock.fleet.machines import parts
from paddock.fleet.machines.finding import MachineView


def names(machine: MachineView) -> set[str]:
    """Return the names of the objects whose events are about a machine: its own, and those of its disks."""
    keys = (machine.key, machine.vm_key, machine.vmi_key)
    return {each.name for each in keys if each is not None} | set(parts.claims(machine))


def time(event: Data) -> str:
    """Return the time of an event's last occurrence."""
    series = event.get("series") or {}
    times: list[Any] = [series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")]
    return next((str(each) for each in times if each), str(event["metadata"].get("creationTimestamp") or ""))


def count(event: Data) -> int:
    """Return the number of occurrences."""
    found = (event.get("series") or {}).get("count") or event.get("count") or 1
    return found if isinstance(found, int) else 1
