"""What a machine is at the moment, in the words of a table: taken from its objects, with nothing asked of anybody."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.base.lines import Colour
from paddock.fleet.diagnosis import verdict
from paddock.fleet.diagnosis.scene import at, conditions, entries, holds, texts
from paddock.fleet.machines.finding import MachineView

_COLOURS: Mapping[str, Colour] = {"good": "green", "off": "grey", "waits": "yellow", "bad": "red", "going": "yellow", "unknown": ""}
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
_KIBI = 1024
_DISK_VOLUMES = ("persistentVolumeClaim", "dataVolume", "containerDisk", "ephemeral", "hostDisk", "emptyDisk")


class MachineRow(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one machine; what is not known is empty. `memory` is in bytes, `since` and `created` are RFC 3339."""

    status: str
    state: verdict.State
    ip: str = ""
    ips: tuple[str, ...] = ()
    cpus: int = 0
    memory: int = 0
    created: str = ""
    since: str = ""
    node: str = ""
    image: str = ""
    disks: int = 0
    guest: str = ""
    # where another hypervisor shows its screen
    console: str = ""
    protected: bool = False

    @property
    def colour(self) -> Colour:
        """The colour of its status."""
        return _COLOURS[self.state]


PROTECTION, PROTECTED = "kubevirt.io/vm-delete-protection", "True"


def of(machine: MachineView) -> MachineRow:
    """Return the facts of a machine."""
    judged = verdict.of(machine.ref, machine.data)
    ips = tuple(_ips(machine))
    template = _template(machine)
    return MachineRow(
        status=_status(machine, judged),
        state=judged.state,
        ip=ips[0] if ips else "",
        ips=ips,
        cpus=_cpus(machine, template),
        memory=_memory(machine, template),
        created=texts(machine.data, "metadata", "creationTimestamp"),
        since=_since(machine.vmi),
        node=_node(machine),
        image=_image(machine),
        disks=_disks(template),
        guest=texts(machine.vmi, "status", "guestOSInfo", "prettyName"),
        console=machine.console,
        protected=is_protected(machine.data),
    )


def shared(spec: Data | None) -> set[str]:
    """Return the names of the volumes that the guest of a spec mounts as directories."""
    return {texts(each, "name") for each in entries(spec, "domain", "devices", "filesystems")}


def _disks(template: Data | None) -> int:
    mounted = shared(template)
    volumes = (each for each in entries(template, "volumes") if texts(each, "name") not in mounted)
    return sum(1 for each in volumes if any(member in each for member in _DISK_VOLUMES))


def is_protected(data: Data) -> bool:
    """Return whether an object has the label that forbids its deletion."""
    return str((at(data, "metadata", "labels") or {}).get(PROTECTION, "")).lower() == "true"


def size(count: int) -> str:
    """Return bytes as a size: 512Mi, 1.5Gi; `-` for none."""
    if not count:
        return "-"
    value, unit = float(count), 0
    while value >= _KIBI and unit < len(_UNITS) - 1:
        value, unit = value / _KIBI, unit + 1
    text = f"{value:.1f}".removesuffix(".0")
    return f"{text}{_UNITS[unit]}"


def _status(machine: MachineView, judged: verdict.ObjectVerdict) -> str:
    if judged.state == "going":
        return "Terminating"
    if machine.vm is not None:
        return texts(machine.vm, "status", "printableStatus") or "Pending"
    if machine.vmi is not None:
        if holds(machine.vmi, "Suspended"):
            return "Suspended"
        return "Paused" if holds(machine.vmi, "Paused") else texts(machine.vmi, "status", "phase") or "Pending"
    phase = texts(machine.data, "status", "phase")
    reason = texts(conditions(machine.data).get("Ready"), "reason")
    return reason if judged.state == "bad" and reason else phase or reason or "Pending"


def _template(machine: MachineView) -> Data:
    """Return the spec of the guest: as it runs, else as it is to run."""
    found = at(machine.vmi, "spec") if machine.vmi is not None else at(machine.vm, "spec", "template", "spec")
    return found if isinstance(found, dict) else {}


def _ips(machine: MachineView) -> Iterator[str]:
    if machine.vmi is None:
        for member in machine.kind.adapter.ips:
            yield from (each for each in at(machine.data, "status", member) or () if isinstance(each, str))
    found = [texts(each, "ipAddress") for each in entries(machine.vmi, "status", "interfaces")]
    more = [other for each in entries(machine.vmi, "status", "interfaces") for other in at(each, "ipAddresses") or ()]
    for each in dict.fromkeys((*found, *more)):
        if each and not each.lower().startswith("fe80:"):
            yield each


def _cpus(machine: MachineView, template: Data) -> int:
    if topology := at(machine.vmi, "status", "currentCPUTopology"):
        return _product(topology)
    if cpu := at(template, "domain", "cpu"):
        return _product(cpu)
    if requested := at(template, "domain", "resources", "requests", "cpu"):
        return whole(requested) or 1
    for path in machine.kind.adapter.cpus:
        found = at(machine.data, *path)
        if found:
            return _product(found) if isinstance(found, dict) else whole(found)
    # A guest without a word about processors has one.
    return 1 if at(template, "domain") and "instancetype" not in (at(machine.vm, "spec") or {}) else 0


def _product(cpu: Data) -> int:
    found = 1
    for member in ("sockets", "cores", "threads", "threadsPerCore"):
        value = cpu.get(member)
        found *= value if isinstance(value, int) and value > 0 else 1
    return found


def _memory(machine: MachineView, template: Data) -> int:
    places = (
        at(machine.vmi, "status", "memory", "guestCurrent"),
        at(template, "domain", "memory", "guest"),
        at(template, "domain", "resources", "requests", "memory"),
        *(at(machine.data, *path) for path in machine.kind.adapter.memory),
    )
    for found in places:
        if found:
            return whole(found)
    for path in machine.kind.adapter.mebibytes:
        mebibytes = at(machine.data, *path)
        if isinstance(mebibytes, int):
            return mebibytes * _KIBI * _KIBI
    return 0


def whole(found: Any) -> int:
    """Return a quantity as a whole number, 0 for what is none."""
    try:
        return quantity.whole(str(found))
    except PaddockError:
        return 0


def _since(vmi: Data | None) -> str:
    for each in entries(vmi, "status", "phaseTransitionTimestamps"):
        if texts(each, "phase") == "Running" and texts(vmi, "status", "phase") == "Running":
            return texts(each, "phaseTransitionTimestamp")
    return ""


def _node(machine: MachineView) -> str:
    if found := texts(machine.vmi, "status", "nodeName"):
        return found
    provider = machine.kind.adapter.provider(machine.data)
    return f"provider/{provider}" if provider else ""


def _image(machine: MachineView) -> str:
    """Return where the first disk came from."""
    for path in machine.kind.adapter.images:
        if found := texts(machine.data, *path):
            return found
    templates = {texts(each, "metadata", "name"): each for each in entries(machine.vm, "spec", "dataVolumeTemplates")}
    for volume in entries(_template(machine), "volumes"):
        if image := texts(volume, "containerDisk", "image"):
            return image
        name = texts(volume, "dataVolume", "name") or texts(volume, "persistentVolumeClaim", "claimName")
        if name in templates and (source := source_of(templates[name])):
            return source
    return ""


def source_of(template: Data) -> str:
    """Return where a DataVolume, or its template, takes its content from; empty for an empty disk."""
    source = at(template, "spec", "source") or {}
    for member in ("http", "registry", "s3", "gcs", "imageio"):
        if url := texts(source, member, "url"):
            return url
    for member in ("pvc", "snapshot"):
        if name := texts(source, member, "name"):
            return f"{member}/{name}"
    return texts(template, "spec", "sourceRef", "name")
