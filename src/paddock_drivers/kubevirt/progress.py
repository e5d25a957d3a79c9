"""The end of a task, judged by the objects that reach its goal. Pure: the same objects give the same answer after any restart."""

from collections.abc import Iterable, Mapping

from paddock.base import quantity
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, storage_request
from paddock.kubernetes.meta.conditions import holds
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.kinds.datavolume_kind import DataVolume, DataVolumeStatus
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.kubevirt import observed

# A transfer that failed so often does not get better on its own.
_MOST_RESTARTS = 3
# Filled, or filled by the machine's first start.
_FILLED = ("Succeeded", "WaitForFirstConsumer", "PendingPopulation")
_RESIZE_PENDING = "FileSystemResizePending"


def filled(volumes: Mapping[str, DataVolume | None], claims: Mapping[str, PersistentVolumeClaim]) -> TaskProgress:
    """Judge disks that are being filled, by their names. One without a DataVolume is filled if its claim is bound."""
    waits = False
    for name, volume in volumes.items():
        if volume is None:
            waits = waits or name not in claims or not _is_bound(claims[name])
            continue
        status = volume.status or DataVolumeStatus()
        running = next((each for each in status.conditions or () if each.type == "Running"), None)
        why = (running.message if running is not None else None) or ""
        if status.phase == "Failed" or ((status.restartCount or 0) >= _MOST_RESTARTS and status.phase not in _FILLED and why):
            # Ready has the code of the cause; Running has CDI's word for all of them.
            ready = next((each.reason for each in status.conditions or () if each.type == "Ready"), None)
            return TaskProgress(done=True, error=f"disk {name} cannot be filled: {why or 'its transfer failed'}", reason=ready or "")
        waits = waits or status.phase not in _FILLED
    return RUNNING if waits else DONE


def started(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> TaskProgress:
    """Judge a machine that is to run."""
    if observed.power_state(instance) in (observed.ON, observed.SUSPENDED):
        return DONE
    why = observed.problem(machine)
    return failed(f"machine {machine.metadata.name} does not start: {why}") if why else RUNNING


def stopped(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> TaskProgress:
    """Judge a machine that is to be off."""
    return RUNNING if observed.is_live(instance) else DONE


def restarted(machine: VirtualMachine, instance: VirtualMachineInstance | None, before: str) -> TaskProgress:
    """Judge a machine that is to run again, as another run than before."""
    return RUNNING if instance is not None and instance.metadata.uid == before else started(machine, instance)


def reconfigured(
    machine: VirtualMachine,
    instance: VirtualMachineInstance | None,
    claims: Iterable[PersistentVolumeClaim],
    generation: int,
) -> TaskProgress:
    """Judge a change: it is there, or a condition says that it waits for a restart."""
    if not all(_has_grown(each) for each in claims):
        return RUNNING
    if not observed.is_live(instance):
        return DONE
    if observed.restart_required(machine) is not None:
        return DONE
    status = observed.status_of(machine)
    if (status.desiredGeneration or generation) < generation:
        return RUNNING
    plugged = _pluggable(machine)
    ready = {each.name for each in observed.instance_status(instance).volumeStatus or () if each.phase == "Ready"}
    same = observed.size(machine, instance) == observed.wanted_size(machine)
    return DONE if same and plugged <= ready else RUNNING


def snapshotted(snapshot: VirtualMachineSnapshot) -> TaskProgress:
    """Judge a snapshot that is being taken."""
    status = snapshot.status
    if status is None:
        return RUNNING
    if status.readyToUse:
        return DONE
    error = (status.error.message if status.error is not None else None) or ""
    return failed(f"snapshot {snapshot.metadata.name} failed: {error or 'no reason given'}") if status.phase == "Failed" else RUNNING


def restored(restore: VirtualMachineRestore) -> TaskProgress:
    """Judge a machine that goes back to a snapshot."""
    status = restore.status
    if status is None:
        return RUNNING
    if status.complete:
        return DONE
    if holds(status.conditions, "Failure"):
        why = next((each.message or each.reason or "" for each in status.conditions or () if each.type == "Failure"), "")
        return failed(f"machine {restore.spec.target.name} was not reverted: {why}")
    return RUNNING


def cloned(clone: VirtualMachineClone) -> TaskProgress:
    status = clone.status
    if status is None or status.phase not in ("Succeeded", "Failed"):
        return RUNNING
    if status.phase == "Succeeded":
        return DONE
    why = next((each.message or each.reason or "" for each in status.conditions or () if each.type in ("Ready", "Progressing")), "")
    return failed(f"machine {clone.spec.source.name} was not cloned: {why}")


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return claim.status is not None and claim.status.phase == "Bound"


def _has_grown(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim has the size it asks for; its file system grows when it is mounted."""
    status, asked = claim.status, storage_request(claim.spec)
    if status is None or asked is None or not _is_bound(claim):
        return True
    here = (status.capacity or {}).get("storage")
    return here is None or quantity.whole(here) >= quantity.whole(asked) or holds(status.conditions, _RESIZE_PENDING)


def _pluggable(machine: VirtualMachine) -> set[str]:
    """The volumes of a template that are plugged in while the machine runs."""
    return {
        each.name
        for each in machine.spec.template.spec.volumes or ()
        if (each.dataVolume is not None and each.dataVolume.hotpluggable)
        or (each.persistentVolumeClaim is not None and each.persistentVolumeClaim.hotpluggable)
    }
