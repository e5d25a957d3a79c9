"""The status of a machine: what its instance says, mirrored, and what the controller knows besides (docs/spec/kubevirt.md 2.1 and 2.3).

Pure. What others write into the same status (snapshots, restores, requests for volumes) is carried over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.extendedsources import RESOLVED
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import (
    ControllerRevisionRef,
    InstancetypeStatusRef,
    StartFailure,
    StateChangeRequest,
    VirtualMachine,
    VirtualMachineStatus,
    VolumeSnapshotSupport,
)
from paddock.kubevirt.kinds.volumes import SOURCES, Volume
from paddock.kubevirt.plan.machine import volumemigration
from paddock.kubevirt.plan.machine.instances import GENERATION
from paddock.kubevirt.plan.machine.instancetypes import ResolvedInstancetype
from paddock.kubevirt.plan.machine.runstrategy import life_of

READY, FAILURE, RESTART_REQUIRED = "Ready", "Failure", "RestartRequired"
_OWN = (READY, FAILURE, RESTART_REQUIRED, RESOLVED, volumemigration.RECOVERY)
# those of an instance that could not be given more while it runs
_HOTPLUG = ("HotMemoryChange", "HotVCPUChange")
# what a machine that starts is called, and how long before that is written
_STARTING, _PASSING_SECONDS = ("WaitingForVolumeBinding", "Starting"), 0.05
_FLURRY_SECONDS = 1.0
# what follows from what a machine is called, and from its spec
_PASSING = ("printableStatus", "created", "desiredGeneration", "observedGeneration", "volumeSnapshotStatuses")
_SNAPSHOT = ("persistentVolumeClaim", "dataVolume", "memoryDump")


class FailureNote(msgspec.Struct, frozen=True):
    """The reason and the message of the condition Failure."""

    reason: str
    message: str


class MachineFacts(msgspec.Struct, frozen=True):
    """The controller's observations in one pass."""

    word: str
    strategy: str
    requests: Sequence[StateChangeRequest] = ()
    failure: StartFailure | None = None
    trouble: FailureNote | None = None
    restart: str = ""
    # by member: instancetype, preference; None: not looked at, so they are as they were
    sizes: Mapping[str, ResolvedInstancetype] | None = None
    # the condition DataSourceResolved, or nothing; None: as it was
    sources: Sequence[Condition] | None = None
    # claims of volumes that are not there
    absent: Collection[str] = ()


def status(machine: VirtualMachine, instance: VirtualMachineInstance | None, facts: MachineFacts, now: str) -> VirtualMachineStatus:
    """The status as it should be; equal to what is there when nothing changed."""
    before = machine.status or VirtualMachineStatus(printableStatus="")
    observed = _generation(instance)
    return msgspec.structs.replace(
        before,
        printableStatus=facts.word,
        created=_is_created(instance) or None,
        ready=_is_ready(instance) or None,
        runStrategy=facts.strategy or None,
        conditions=list(_conditions(machine, instance, facts, now)),
        stateChangeRequests=list(facts.requests) or None,
        startFailure=facts.failure,
        desiredGeneration=machine.metadata.generation,
        observedGeneration=observed if observed is not None else before.observedGeneration,
        volumeSnapshotStatuses=[_snapshot(each, facts.absent) for each in machine.spec.template.spec.volumes or ()] or None,
        instancetypeRef=before.instancetypeRef if facts.sizes is None else _reference(facts.sizes.get("instancetype")),
        volumeUpdateState=volumemigration.state_of(machine, instance),
        preferenceRef=before.preferenceRef if facts.sizes is None else _reference(facts.sizes.get("preference")),
    )


def _is_created(instance: VirtualMachineInstance | None) -> bool:
    return instance is not None and not (instance.metadata.deletionTimestamp is not None and life_of(instance).final)


def _is_ready(instance: VirtualMachineInstance | None) -> bool:
    return any(each.type == READY and each.status == "True" for each in _of(instance))


def _of(instance: VirtualMachineInstance | None) -> Sequence[Condition]:
    found = instance.status if instance is not None else None
    return (found.conditions if found is not None else None) or ()


def _generation(instance: VirtualMachineInstance | None) -> int | None:
    text = ((instance.metadata.annotations if instance is not None else None) or {}).get(GENERATION, "")
    return int(text) if text.isdecimal() else None


def _conditions(machine: VirtualMachine, instance: VirtualMachineInstance | None, facts: MachineFacts, now: str) -> Iterator[Condition]:
    known = {each.type: each for each in (machine.status.conditions if machine.status is not None else None) or ()}
    mirrored = {each.type: each for each in _of(instance)}
    own = {READY: mirrored.pop(READY, None) or _not_ready(instance)}
    if facts.trouble is not None:
        own[FAILURE] = Condition(type=FAILURE, status="True", reason=facts.trouble.reason, message=facts.trouble.message)
    if restart := facts.restart or _refused(mirrored.values()):
        own[RESTART_REQUIRED] = Condition(type=RESTART_REQUIRED, status="True", message=restart)
    held = [known[RESOLVED]] if facts.sources is None and RESOLVED in known else facts.sources
    own.update({each.type: each for each in held or ()})
    for aspect, each in own.items():
        yield _since(each, known.get(aspect), now)
    for aspect, each in mirrored.items():
        if aspect not in _OWN:
            # When it was last looked at changes without meaning anything here.
            yield msgspec.structs.replace(each, lastProbeTime=None)
    if volumemigration.needs_recovery(machine, instance):
        recovery = Condition(type=volumemigration.RECOVERY, status="True", reason=volumemigration.ENDED)
        yield _since(recovery, known.get(recovery.type), now)


def _refused(conditions: Iterable[Condition]) -> str:
    """Return the reason why the running machine could not take a change of its template; empty when it could."""
    return "; ".join(each.message or "" for each in conditions if each.type in _HOTPLUG and each.status == "False")


def _since(condition: Condition, old: Condition | None, now: str) -> Condition:
    same = old is not None and old.status == condition.status
    since = condition.lastTransitionTime or (old.lastTransitionTime if same and old is not None else None) or now
    return msgspec.structs.replace(condition, lastTransitionTime=since, lastProbeTime=None)


def _not_ready(instance: VirtualMachineInstance | None) -> Condition:
    if instance is None:
        return Condition(type=READY, status="False", reason="VMINotExists", message="VMI does not exist")
    return Condition(type=READY, status="False", reason="GuestNotRunning", message="Guest VM is not reported as running")


def _snapshot(volume: Volume, absent: Collection[str]) -> VolumeSnapshotSupport:
    """Return whether a volume can be part of a snapshot: everything on a claim that is there can."""
    source = next((found for kind in _SNAPSHOT if (found := getattr(volume, kind)) is not None), None)
    if source is None:
        why = f"Snapshot is not supported for this volumeSource type [{volume.name}]"
        return VolumeSnapshotSupport(name=volume.name, enabled=False, reason=why)
    claim = volume.dataVolume.name if volume.dataVolume is not None else source.claimName
    if claim in absent:
        return VolumeSnapshotSupport(name=volume.name, enabled=False, reason=f"PVC {claim} does not exist [{volume.name}]")
    return VolumeSnapshotSupport(name=volume.name, enabled=True)


def _reference(resolved_instancetype: ResolvedInstancetype | None) -> InstancetypeStatusRef | None:
    if resolved_instancetype is None:
        return None
    revision = ControllerRevisionRef(name=resolved_instancetype.revision) if resolved_instancetype.revision else None
    return InstancetypeStatusRef(name=resolved_instancetype.name, kind=resolved_instancetype.kind, controllerRevisionRef=revision)


def rest_seconds(old: VirtualMachineStatus | None, new: VirtualMachineStatus) -> float:
    """Return how long a status may wait for the next one. A machine that starts is soon further, and its conditions come in a flurry."""
    if new.printableStatus not in _STARTING:
        return 0.0
    if _differs_in_conditions_only(old, new):
        return _FLURRY_SECONDS
    before = old or VirtualMachineStatus(printableStatus="")
    if (before.printableStatus or "") not in ("", "Provisioning", *_STARTING):
        return 0.0
    first = ("runStrategy",) if not before.runStrategy else ()
    passing = {name: getattr(new, name) for name in (*_PASSING, *first)}
    return _PASSING_SECONDS if _differs_in_conditions_only(msgspec.structs.replace(before, **passing), new) else 0.0


def _differs_in_conditions_only(old: VirtualMachineStatus | None, new: VirtualMachineStatus) -> bool:
    """Return whether two statuses agree in everything but conditions other than Failure and RestartRequired."""
    if old is None or msgspec.structs.replace(old, conditions=None) != msgspec.structs.replace(new, conditions=None):
        return False
    loud = (FAILURE, RESTART_REQUIRED)
    left, right = ([each for each in status.conditions or () if each.type in loud] for status in (old, new))
    return left == right


assert set(_SNAPSHOT) <= set(SOURCES)
