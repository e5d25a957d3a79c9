"""Volumes to plug into a running machine or out of it: V105 (docs/spec/kubevirt.md section 2.11).

`status.volumeRequests` of a machine is checked as part of the object; who gets the body of a request asks `plug_problem`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, rule

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.virtualmachine import AddVolumeOptions, VirtualMachine, VolumeRequest

_FIELD: Path = ("status", "volumeRequests")


def plug_problem(options: "AddVolumeOptions") -> str:
    """Return the reason why a disk cannot be plugged in, or an empty text."""
    disk, what = options.disk, f"AddVolume request for [{options.name}]"
    if disk.disk is None and disk.lun is None:
        return f"{what} needs a disk or a lun"
    if disk.disk is not None and disk.disk.bus not in ("scsi", "virtio"):
        return f"{what} needs the bus scsi or virtio, [{disk.disk.bus or ''}] is not permitted"
    if disk.lun is not None and disk.lun.bus != "scsi":
        return f"{what} needs the bus scsi for a lun, [{disk.lun.bus or ''}] is not permitted"
    source = options.volumeSource
    if (source.dataVolume is None) == (source.persistentVolumeClaim is None):
        return f"{what} needs exactly one of dataVolume and persistentVolumeClaim"
    return ""


@rule("kubevirt/V105", of_status=True, given=("status.volumeRequests",))
def volume_requests_are_possible(machine: "VirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A disk to plug in must be pluggable, and a disk to unplug must exist."""
    if settings.trusted:
        # Who carries a request out writes the template first, and the request is still there.
        return
    requests = machine.status.volumeRequests if machine.status is not None else None
    known = {volume.name: to_data(volume) for volume in machine.spec.template.spec.volumes or ()}
    asked: set[str] = set()
    for index, request in enumerate(requests or ()):
        for problem in _problems(request, known, asked):
            message = f"Invalid value: {problem}"
            yield Finding(path=_FIELD, message=message, rule="kubevirt/V105", at=(*_FIELD, index))
        if request.addVolumeOptions is not None:
            asked.add(request.addVolumeOptions.name)


def _problems(request: "VolumeRequest", known: dict[str, dict[str, object]], asked: set[str]) -> Iterator[str]:
    plug, unplug = request.addVolumeOptions, request.removeVolumeOptions
    if (plug is None) == (unplug is None):
        yield "give exactly one of addVolumeOptions and removeVolumeOptions"
    elif plug is not None:
        problem = plug_problem(plug)
        if problem:
            yield problem
        volume = {"name": plug.name, **to_data(plug.volumeSource)}
        if plug.name in asked or known.get(plug.name, volume) != volume:
            yield f"AddVolume request for [{plug.name}] conflicts with an existing volume of the same name"
    elif unplug is not None and unplug.name not in known and unplug.name not in asked:
        yield f"RemoveVolume request for [{unplug.name}]: no volume of this name"
