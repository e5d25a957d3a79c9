"""The types of errors, and what the backend itself shows to be wrong (docs/spec/vitistack.md section 4.6)."""

from paddock.dialects.vitistack.plan.observed import MachineProblem, ObservedMachine, Vm

TEMPLATE = "TemplateNotFound"
NETWORK = "NetworkConfigurationNotFound"
STORAGE_CLASS = "StorageClassNotFound"
SECRET = "SecretNotFound"
RESOURCES = "InsufficientResources"
BACKEND = "KubeVirtApiError"
INCOMPLETE = "IncompleteMachine"
MACHINE_CLASS = "MachineClassNotFound"
CONFIG_MAP = "ConfigMapNotFound"
ERROR_TYPES = (TEMPLATE, NETWORK, STORAGE_CLASS, SECRET, RESOURCES, BACKEND, INCOMPLETE, MACHINE_CLASS, CONFIG_MAP)

# Words of a VirtualMachine that mean that something is wrong, and where its conditions say what.
_UNSCHEDULABLE, _DATA_VOLUME, _CRASH = "ErrorUnschedulable", "DataVolumeError", "CrashLoopBackOff"
_EXPLAINED_BY = ("PodScheduled", "Failure", "Synchronized", "DataVolumesReady")


def seen_in(observed: ObservedMachine) -> MachineProblem | None:
    """Return the problem of the machine that was made; None when there is none, or nothing was made yet."""
    vm = observed.vm
    if vm is None:
        return None
    word = vm.status.printableStatus
    if word == _UNSCHEDULABLE:
        return MachineProblem(RESOURCES, f"cannot place the machine: {explained(vm)}; add capacity or make the machine smaller", "machine")
    if word == _DATA_VOLUME:
        return _unfilled(observed, vm)
    failures = (vm.status.startFailure.consecutiveFailCount if vm.status.startFailure else None) or 0
    if failures >= observed.start_failure_limit:
        why = f"{failures} starts in a row failed: {explained(vm)}; correct the machine or change vitistack.io/retry"
        return MachineProblem(BACKEND, why, "machine", fails=True)
    if word == _CRASH or failures:
        return MachineProblem(BACKEND, f"the last start failed: {explained(vm)}; it is tried again", "machine")
    return None


def _unfilled(observed: ObservedMachine, vm: Vm) -> MachineProblem:
    """Return the problem of disks that are not filled. The backend's word is the same for an attempt that failed and for the last one."""
    reason = "; ".join(observed.import_failures) or explained(vm)
    if any(each.status.phase == "Failed" for each in observed.volumes):
        why = f"cannot fill the disks: {reason}; correct the image and change vitistack.io/retry"
        return MachineProblem(BACKEND, why, "machine", fails=True)
    return MachineProblem(BACKEND, f"the disks are not filled yet: {reason}; it is tried again", "machine")


def explained(vm: Vm) -> str:
    """Return the backend's message about it."""
    for aspect in _EXPLAINED_BY:
        found = vm.condition(aspect)
        wrong = "True" if aspect == "Failure" else "False"
        if found is not None and found.status == wrong and found.message:
            return found.message
    # Always the same words: what it is doing at the moment would be another message with each try.
    return "the backend gives no reason"
