"""Volumes that are asked for while a machine exists: they go into its template, and from there into the instance (`liveupdate`).

`addvolume` and `removevolume` leave requests in the status, `memorydump` leaves one of its own; each function gives the template's spec
as it should be, and what is left of the requests. Pure, on plain data.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.base.jsondata import Data, copied

# Phases of a memory dump.
ASSOCIATING, IN_PROGRESS, UNMOUNTING, COMPLETED, DISSOCIATING, FAILED = (
    "Associating",
    "InProgress",
    "Unmounting",
    "Completed",
    "Dissociating",
    "Failed",
)
# The annotation of a claim that names the dump on it.
_DUMP_NOTE = "kubevirt.io/memory-dump"
_DUMPED = {"MemoryDumpCompleted": COMPLETED, "MemoryDumpFailed": FAILED}


class VolumeRequestResult(msgspec.Struct, frozen=True):
    """The template's hardware as it should be, and the part of the status that remains (None: nothing)."""

    hardware: Data
    remains: Any = None


def plugged(hardware: Data, requests: Sequence[Data]) -> VolumeRequestResult:
    """Carry out requests to plug and unplug volumes; one that is carried out is gone."""
    made = copied(hardware)
    devices = made.setdefault("domain", {}).setdefault("devices", {})
    for request in requests:
        if options := request.get("addVolumeOptions"):
            _add(made, devices, options)
        elif options := request.get("removeVolumeOptions"):
            _remove(made, devices, options.get("name"))
    return VolumeRequestResult(made)


def _add(made: Data, devices: Data, options: Data) -> None:
    name = options["name"]
    if any(each.get("name") == name for each in made.get("volumes") or ()):
        return
    source = {kind: {**given, "hotpluggable": True} for kind, given in (options.get("volumeSource") or {}).items() if given}
    made["volumes"] = [*(made.get("volumes") or ()), {"name": name, **source}]
    disk = {**copied(options.get("disk") or {}), "name": name}
    disk.setdefault("serial", name)
    devices["disks"] = [*(devices.get("disks") or ()), disk]


def _remove(made: Data, devices: Data, name: str | None) -> None:
    for place, member in ((made, "volumes"), (devices, "disks"), (devices, "filesystems")):
        if member in place:
            place[member] = [each for each in place[member] if each.get("name") != name]
            if not place[member]:
                del place[member]


def dumped(hardware: Data, request: Data, instance: Data | None, now: str) -> VolumeRequestResult:
    """Carry a memory dump one step on. Its volume is in the template until the dump is removed."""
    made, claim = copied(hardware), request.get("claimName", "")
    if request.get("remove"):
        _remove(made, made.get("domain", {}).get("devices", {}), claim)
        if not _has(instance, claim):
            return VolumeRequestResult(made)
        return VolumeRequestResult(made, {**request, "phase": DISSOCIATING})
    phase = request.get("phase")
    if phase == ASSOCIATING and _seen(instance, claim).get("phase") in _DUMPED:
        # It is there from the dump before: the volume goes and comes again, which asks for another one.
        _remove(made, made.get("domain", {}).get("devices", {}), claim)
        return VolumeRequestResult(made, request)
    if phase == ASSOCIATING:
        if not any(each.get("name") == claim for each in made.get("volumes") or ()):
            volume = {"name": claim, "memoryDump": {"claimName": claim, "hotpluggable": True}}
            made["volumes"] = [*(made.get("volumes") or ()), volume]
        # Noted before the instance gets the volume: the dump may be over before anybody looks again, and is no former one then.
        return VolumeRequestResult(made, {**request, "phase": IN_PROGRESS})
    if phase != IN_PROGRESS:
        return VolumeRequestResult(made, request)
    return VolumeRequestResult(made, {**request, **_result(instance, claim, now)})


def dump_notes(request: Data) -> dict[str, str]:
    """The annotations that a claim gets when the dump to it ends."""
    if request.get("phase") == FAILED:
        return {_DUMP_NOTE: "Memory dump failed"}
    file = request.get("fileName") if request.get("phase") == COMPLETED else None
    return {_DUMP_NOTE: file} if file else {}


def _has(instance: Data | None, name: str) -> bool:
    return any(each.get("name") == name for each in ((instance or {}).get("spec") or {}).get("volumes") or ())


def _seen(instance: Data | None, claim: str) -> Data:
    volumes = ((instance or {}).get("status") or {}).get("volumeStatus") or ()
    return next((each for each in volumes if each.get("name") == claim), {})


def _result(instance: Data | None, claim: str, now: str) -> Data:
    """Return the instance's status of the volume that it dumps into."""
    seen = _seen(instance, claim)
    phase = _DUMPED.get(seen.get("phase", ""))
    if instance is None or (instance.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        phase, seen = phase or FAILED, {"message": "the machine stopped before the dump was complete", **seen}
    if phase is None:
        return {}
    info = seen.get("memoryDumpVolume") or {}
    result: Data = {"phase": phase, "endTimestamp": info.get("endTimestamp") or now}
    for ours, theirs in (("startTimestamp", "startTimestamp"), ("fileName", "targetFileName")):
        if info.get(theirs):
            result[ours] = info[theirs]
    if phase == FAILED and seen.get("message"):
        result["message"] = seen["message"]
    return result
