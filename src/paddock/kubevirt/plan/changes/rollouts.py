"""The effect of a change of a KubeVirt machine on its running instance, before anything runs: the instance as it would have been started
from the old form, compared with the new one by the rules that the controllers go by."""

from paddock.base.jsondata import Data, copied
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.plan.instance import defaults
from paddock.kubevirt.plan.machine import liveupdate, volumemigration

# Members of a machine's hardware that grow while the guest runs.
SOCKETS = ("domain", "cpu", "sockets")
GUEST = ("domain", "memory", "guest")
PLUGGED = "plugged in while the machine runs"
FOLLOWS = "the running machine follows at once"
MOVES = "the disk moves to the other claim while the machine runs, and erases what that one holds; the old claim keeps what it held then"
_NO_HOTPLUG = "the machine has no slots for it (disableHotplug)"


def restart_reason(before: Data, after: Data) -> str:
    """Return the reason why a running machine of the first spec needs a restart to follow the second; "" if it needs none."""
    return _update(before, after).restart or move_refusal(before, after)


def moved(before: Data, after: Data) -> list[str]:
    """Return the volumes that move to other claims while the machine runs, as its strategy says."""
    if after.get("updateVolumesStrategy") != liveupdate.MIGRATION:
        return []
    old, new = ({each.get("name", ""): each for each in spec["template"]["spec"].get("volumes") or ()} for spec in (before, after))
    claims = [name for name in old.keys() & new.keys() if liveupdate.is_claim(old[name]) and liveupdate.is_claim(new[name])]
    return sorted(name for name in claims if old[name] != new[name])


def move_refusal(before: Data, after: Data) -> str:
    """Return the reason why volumes do not move to other claims while the machine runs; "" if they do, or need not."""
    names = moved(before, after)
    if not names:
        return ""
    return volumemigration.refusal(from_data(before["template"]["spec"], VirtualMachineInstanceSpec).domain.devices, names)


def keeps_metadata(before: Data, after: Data) -> bool:
    """Return whether labels or annotations of the template reach a machine of the first spec with its next start only."""
    return _update(before, after).metadata_waits


def _update(before: Data, after: Data) -> liveupdate.LiveUpdate:
    before, after = _as_made(before), _as_made(after)
    spec = to_data(defaults.defaulted(from_data(before["template"]["spec"], VirtualMachineInstanceSpec), defaults.InstallationDefaults()))
    metadata = {"labels": {}, "annotations": {}, **(before["template"].get("metadata") or {})}
    return liveupdate.update(before, after, {"metadata": metadata, "spec": spec, "status": {}})


def _as_made(spec: Data) -> Data:
    """The spec with what the server sets when a machine is made: who spells that out changes nothing."""
    found: Data = copied(spec)
    hardware = found["template"]["spec"]
    architecture = hardware.setdefault("architecture", defaults.InstallationDefaults().architecture)
    machine = hardware.setdefault("domain", {}).setdefault("machine", {})
    if not machine.get("type") and architecture in defaults.MACHINE_TYPES:
        machine["type"] = defaults.MACHINE_TYPES[architecture]
    return found


def growth_reason(before: Data, after: Data, part: tuple[str, ...]) -> str:
    """Return the reason why the new sockets, or the new memory, alone need a restart."""
    hardware = before["template"]["spec"]
    only = copied(before)
    place, wanted = only["template"]["spec"], after["template"]["spec"]
    for name in part[:-1]:
        place, wanted = place.setdefault(name, {}), wanted.get(name) or {}
    if part[-1] in wanted:
        place[part[-1]] = wanted[part[-1]]
    else:
        place.pop(part[-1], None)
    domain = hardware.get("domain") or {}
    if (domain.get("devices") or {}).get("disableHotplug"):
        return _NO_HOTPLUG
    return restart_reason(before, only)
