"""The launcher Pod of an instance, as KubeVirt's clients look for it: labels, node, addresses, resources, phase. Pure.

Nothing of it is stored. Everything comes from the instance, so the same instance always gives the same Pod.
"""

from collections.abc import Iterator

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubernetes.quotas import launcher
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance.identity import launcher_of, launcher_uid, owner_of
from paddock.kubevirt.plan.instance.volumes import claim_of
from paddock.kubevirt.plan.network.endpoints import labels_of, primary_card
from paddock.kubevirt.plan.storage import requesters

CONTAINER = "compute"
# The engine is part of the server: no image is pulled.
IMAGE = "paddock"
UNPAUSED = "kubevirt.io/virtual-machine-unpaused"
# The phase of the Pod for each phase of an instance. KubeVirt makes the Pod to schedule the instance, which is Scheduled when the Pod runs.
PHASES = {"Scheduling": "Pending", "Scheduled": "Running", "Running": "Running", "Succeeded": "Succeeded", "Failed": "Failed"}
_ENDED = ("Succeeded", "Failed")
# KubeVirt gives the Pod more time than the guest.
_MORE_GRACE_SECONDS = 15
_PLACEMENT = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName", "schedulerName", "subdomain")


def _name(instance: VirtualMachineInstance) -> str:
    """Return the name of the present Pod of an instance."""
    uid, pod = instance.metadata.uid or "", launcher_uid(instance)
    return launcher.name_of(instance.metadata.name, uid if pod == launcher_of(uid) else pod)


def may_be_of(name: str, pod: str) -> bool:
    """Return whether a Pod of this name can be that of an instance of that name."""
    return launcher.is_name_of(name, pod)


def pods(data: Data) -> Iterator[Data]:
    """Yield the Pod of an instance; none before it is scheduled."""
    instance: VirtualMachineInstance = from_data(data, VirtualMachineInstance)
    status = instance.status or VirtualMachineInstanceStatus()
    phase = PHASES.get(status.phase or "")
    if phase is not None:
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": _metadata(instance),
            "spec": _spec(instance, status),
            "status": _status(instance, status, phase),
        }


def stopping(data: Data) -> str:
    """Return what stops an instance, instead of a deletion of its Pod."""
    instance: VirtualMachineInstance = from_data(data, VirtualMachineInstance)
    name, above = instance.metadata.name, owner_of(instance) != (instance.metadata.uid or "")
    what = (
        f"stop the machine: paddock stop {name} or virtctl stop {name}"
        if above
        else f"end it: paddock delete vmi/{name} or kubectl delete vmi {name}"
    )
    return f"it shows the VirtualMachineInstance {name}, which changes by its own verbs only; {what}"


def _metadata(instance: VirtualMachineInstance) -> Data:
    meta = instance.metadata
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": meta.name, "uid": meta.uid or ""}
    found: Data = {
        "name": _name(instance),
        "generateName": launcher.prefix_of(meta.name),
        "namespace": meta.namespace or "",
        "uid": launcher_uid(instance),
        "creationTimestamp": meta.creationTimestamp,
        "labels": labels_of(instance),
        "annotations": {**(meta.annotations or {}), "kubevirt.io/domain": meta.name, "kubectl.kubernetes.io/default-container": CONTAINER},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    if meta.deletionTimestamp is not None:
        found["deletionTimestamp"] = meta.deletionTimestamp
        found["deletionGracePeriodSeconds"] = _grace(instance)
    return found


def _grace(instance: VirtualMachineInstance) -> int:
    return (instance.spec.terminationGracePeriodSeconds or 0) + _MORE_GRACE_SECONDS


def _spec(instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus) -> Data:
    given = to_data(instance.spec)
    found: Data = {key: given[key] for key in _PLACEMENT if given.get(key)}
    found |= {
        "automountServiceAccountToken": False,
        "containers": [_container(given)],
        "dnsPolicy": given.get("dnsPolicy") or "ClusterFirst",
        "enableServiceLinks": False,
        "hostname": given.get("hostname") or instance.metadata.name,
        "readinessGates": [{"conditionType": UNPAUSED}],
        "restartPolicy": "Never",
        "schedulerName": given.get("schedulerName") or "default-scheduler",
        "securityContext": {} if status.runtimeUser is None else {"runAsUser": status.runtimeUser},
        "serviceAccountName": requesters.account_of(given),
        "terminationGracePeriodSeconds": _grace(instance),
        "volumes": [
            {"name": each.name, "persistentVolumeClaim": {"claimName": claim}}
            for each in instance.spec.volumes or ()
            if (claim := claim_of(each))
        ],
    }
    if status.nodeName:
        found["nodeName"] = status.nodeName
    return found


def _container(spec: Data) -> Data:
    return {
        "name": CONTAINER,
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "resources": _resources(spec),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _resources(spec: Data) -> Data:
    """Return what KubeVirt's container requests: a share of the processors, and the memory with what the programs beside the guest take."""
    found = launcher.resources_of(spec)
    limits = _written(found.limits)
    return {"requests": _written(found.requests), **({"limits": limits} if limits else {})}


def _written(amounts: launcher.Amounts) -> Data:
    return {
        name: quantity.canonical(amount, in_binary=name == "memory" or name.startswith("hugepages-")) for name, amount in amounts.items()
    }


class _Course:
    """The course of an instance as its Pod tells it."""

    def __init__(self, instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus, phase: str) -> None:
        conditions = {each.type: each for each in status.conditions or ()}
        times = {each.phase: each.phaseTransitionTimestamp for each in status.phaseTransitionTimestamps or ()}
        ready = conditions.get("Ready")
        self.phase = phase
        self.is_ready = phase == "Running" and ready is not None and ready.status == "True"
        self.is_unpaused = "Paused" not in conditions or conditions["Paused"].status != "True"
        self.made = times.get("Scheduling") or instance.metadata.creationTimestamp
        self.began = times.get("Scheduled") or times.get("Running") or self.made
        self.ready_since = (ready.lastTransitionTime if ready is not None else None) or self.began
        self.ended = times.get(phase)
        scheduled = conditions.get("PodScheduled")
        # None while its images and volumes are made ready: whether the host takes it is open.
        self.is_scheduled = bool(status.nodeName) or (scheduled and scheduled.status == "True")
        # what else the conditions of the Pod say
        self.said: dict[str, Data] = {}
        if scheduled is not None and scheduled.status == "False":
            self.said["PodScheduled"] = {"reason": scheduled.reason, "message": scheduled.message}


def _status(instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus, phase: str) -> Data:
    course = _Course(instance, status, phase)
    held = (
        ("PodReadyToStartContainers", phase == "Running", course.began),
        ("Initialized", True, course.made),
        (UNPAUSED, course.is_unpaused, course.ready_since),
        ("Ready", course.is_ready and course.is_unpaused, course.ready_since),
        ("ContainersReady", course.is_ready, course.ready_since),
        ("PodScheduled", course.is_scheduled, course.made),
    )
    found: Data = {
        "phase": phase,
        "conditions": [
            {"type": aspect, "status": "True" if holds else "False", "lastProbeTime": None, "lastTransitionTime": since}
            | course.said.get(aspect, {})
            for aspect, holds, since in held
            if holds is not None
        ],
        "startTime": course.made,
        "qosClass": status.qosClass or "Burstable",
        "containerStatuses": [_container_status(course)],
    }
    if status.reason:
        found["reason"] = status.reason
    addresses = _addresses(instance, status)
    if addresses and phase not in _ENDED:
        found |= {"podIP": addresses[0], "podIPs": [{"ip": each} for each in addresses]}
    return found


def _container_status(course: _Course) -> Data:
    state: Data = {"waiting": {"reason": "ContainerCreating"}}
    if course.phase == "Running":
        state = {"running": {"startedAt": course.began}}
    elif course.phase in _ENDED:
        failed = course.phase == "Failed"
        exit_code, reason = (1, "Error") if failed else (0, "Completed")
        state = {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": course.began, "finishedAt": course.ended}}
    return {
        "name": CONTAINER,
        "image": IMAGE,
        "imageID": "",
        "ready": course.is_ready,
        "started": course.phase == "Running",
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _addresses(instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus) -> list[str]:
    """Return the addresses on the pod network, the one of each family that others use first."""
    interface = primary_card(instance)
    seen = next((each for each in status.interfaces or () if interface is not None and each.name == interface.name), None)
    if seen is None:
        return []
    return list(dict.fromkeys(each for each in (seen.ipAddress, *(seen.ipAddresses or ())) if each))
