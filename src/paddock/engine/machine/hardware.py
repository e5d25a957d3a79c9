"""The hardware of a running machine, asked of its QEMU: what another QEMU must have so that the guest can go on in it."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from paddock.engine.machine.argv import names
from paddock.engine.machine.argv.renewed import RunningHardware, obstacles
from paddock.engine.machine.config import MachineConfig
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.owner import MachineOwner

# Where QEMU has the devices that were given an id.
_PLUGGED = "/machine/peripheral"
# The reason, why, and what to do.
Refusal = Callable[[str, str, str], RequestRefused]


async def demand_movable(owner: MachineOwner, refusal: Refusal, *, reason: str, at_once: bool = True) -> None:
    """Raise if the guest cannot leave its QEMU; `reason` is the word for what never goes away while it runs.

    `at_once`: it goes on in another one while this one is still there.
    """
    # What is known before, and what QEMU finds in the way besides.
    said = (await owner.execute("query-migrate")).get("blocked-reasons", ())
    found = (*obstacles(owner.started, at_once=at_once), *obstacles(owner.config, at_once=at_once), *map(str, said))
    if found:
        raise refusal(reason, "; ".join(dict.fromkeys(found)), "stop and start it")
    if (await owner.execute("query-status")).get("status") == "postmigrate":
        raise refusal("Busy", "its guest stayed paused when its state was written, and QEMU writes it anew once it ran", "resume the guest")
    if owner.record.commits:
        raise refusal("Busy", "layers of its disks are being merged", "try again when that is done")
    if owner.record.moving is not None:
        raise refusal("Busy", "its disks are being moved to other volumes", "try again when that is done")
    if owner.record.backup is not None and not owner.record.backup.ended:
        raise refusal("Busy", f"backup {owner.record.backup.name} is being taken", "try again when that is done")
    states = [*(disk.state for disk in owner.observed.disks.values()), *(nic.state for nic in owner.observed.nics.values())]
    if "unplugging" in states:
        raise refusal("Busy", "a device is being unplugged", "try again when the guest has let go of it")


async def find(owner: MachineOwner, refusal: Refusal) -> tuple[MachineConfig, RunningHardware]:
    """Return the config of the start with its full machine type, and the hardware of now. What the guest has is asked, not remembered."""
    # Of an alias, a newer QEMU has a newer meaning.
    kind = str(await owner.execute("qom-get", {"path": "/machine", "property": "type"})).removesuffix("-machine")
    slots = await owner.execute("query-hotpluggable-cpus")
    plugged = [slot for slot in slots if str(slot.get("qom-path", "")).startswith(f"{_PLUGGED}/")]
    processors = [{"driver": slot["type"], "id": slot["qom-path"].rpartition("/")[2], **slot["props"]} for slot in sorted(plugged, key=str)]
    return replace(owner.started, machine_type=kind), RunningHardware(owner.config, await _places(owner, refusal), processors)


async def _places(owner: MachineOwner, refusal: Refusal) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    buses = {names.device(disk.name): disk.bus for disk in owner.config.disks}
    cards = {names.nic(nic.name): "pci" for nic in owner.config.nics}
    there = {str(one.get("name")) for one in await owner.execute("qom-list", {"path": _PLUGGED})}
    for device, bus in {**buses, **cards}.items():
        if device not in there:
            raise refusal("Busy", f"device {device} is not plugged in yet", "try again when it is")
        path = f"{_PLUGGED}/{device}"
        if bus in ("virtio", "scsi", "pci"):
            place = str(await owner.execute("qom-get", {"path": path, "property": "parent_bus"}))
            found[device] = {"bus": place.rpartition("/")[2]}
        if bus == "scsi":
            found[device]["scsi-id"] = await owner.execute("qom-get", {"path": path, "property": "scsi-id"})
    return found
