"""start, stop, restart and migrate of a machine: what a request becomes, or how it is refused (docs/spec/kubevirt.md 2.4 and 4.1).

Each function takes the machine and its instance as they are stored and gives a `RunPatches`, whose patches are sent in this order: the
instance, the machine, its status. A refusal is raised, a `Failure` with upstream's code and words. Every patch tests what the
decision rests on; when a test fails somebody was faster: read both again, decide again, and after a few times answer 409.
"""

from typing import Any

import msgspec

from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.conditions import holds
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.instance import GROUP, VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VirtualMachineStatus
from paddock.kubevirt.plan.instance import suspension
from paddock.kubevirt.plan.instance.volumemoves import CHANGE
from paddock.kubevirt.plan.machine import fencing, volumemigration
from paddock.kubevirt.plan.machine.runstrategy import InstanceState, RunStrategy, life_of, strategy_of

Operation = dict[str, Any]
START, STOP = "Start", "Stop"
PAUSED = {"paused": "true"}
_REQUESTS = "/status/stateChangeRequests"
_GRACE = "/spec/terminationGracePeriodSeconds"
# What a restart without grace leaves the guest: none at all would make upstream's handler skip the signal.
_FORCED_RESTART_SECONDS = 1


class RunPatches(msgspec.Struct, frozen=True):
    """JSON patches of the instance, of the machine, and of the machine's status subresource; an empty one is not sent."""

    instance: tuple[Operation, ...] = ()
    machine: tuple[Operation, ...] = ()
    status: tuple[Operation, ...] = ()


def start(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, paused: bool = False) -> RunPatches:
    """A start; with `paused` the guest waits for an unpause. A suspended machine is resumed."""
    life, strategy = life_of(instance), strategy_of(machine.spec)
    if fence := fencing.reason(machine.metadata.annotations):
        raise _conflict(machine, f"VM is fenced and cannot be started: {fence}")
    if instance is not None and _is_on_disk(instance) and not paused:
        resumed = _wish(instance, None)
        return (
            msgspec.structs.replace(_run(machine, RunStrategy.ALWAYS), instance=resumed)
            if strategy is RunStrategy.HALTED
            else (RunPatches(instance=resumed))
        )
    if life is InstanceState.LIVE:
        raise _conflict(machine, "VM is already running")
    if machine.status is not None and machine.status.restoreInProgress:
        raise _conflict(machine, f"VM cannot be started until restore {machine.status.restoreInProgress} completes")
    _demand_volumes(machine, volumemigration.RECOVERY)
    data = PAUSED if paused else None
    if strategy is RunStrategy.HALTED:
        return RunPatches(status=_requests(machine, (_start(data),))) if paused else _run(machine, RunStrategy.ALWAYS)
    if strategy is RunStrategy.RERUN and life is InstanceState.FAILED:
        raise _conflict(machine, f"{strategy} does not support starting VM from failed state")
    if strategy in (RunStrategy.RERUN, RunStrategy.MANUAL):
        before = (_stop(instance),) if instance is not None and life.final else ()
        # The guest is down, and the VM may read Stopped, so the rest of its stop does not refuse a start.
        is_down = instance is None or life.final
        return RunPatches(status=_requests(machine, (*before, _start(data)), replaces=is_down and _waits_only_to_stop(machine)))
    raise _conflict(machine, f"{strategy} does not support manual start requests")


def stop(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, grace_seconds: int | None = None) -> RunPatches:
    """A stop; `grace_seconds` shortens the time the guest has."""
    if grace_seconds is not None and grace_seconds < 0:
        raise failure.bad_request("gracePeriod has to be greater or equal to 0")
    life, strategy = life_of(instance), strategy_of(machine.spec)
    down = instance is None or life.final
    _demand_awake(machine, instance, "stopped")
    shorter = () if instance is None or down or grace_seconds is None else _grace(instance, grace_seconds)
    if strategy in (RunStrategy.ALWAYS, RunStrategy.ONCE):
        return msgspec.structs.replace(_run(machine, RunStrategy.HALTED), instance=shorter)
    if down or instance is None:
        raise _conflict(machine, "VM is not running")
    if strategy is RunStrategy.HALTED:
        has = instance.spec.terminationGracePeriodSeconds
        if grace_seconds is None or (has is not None and grace_seconds >= has):
            raise _conflict(machine, f"{strategy} only supports manual stop requests with a shorter graceperiod")
        return RunPatches(instance=shorter)
    return RunPatches(instance=shorter, status=_requests(machine, (_stop(instance),), replaces=True))


def restart(machine: VirtualMachine, instance: VirtualMachineInstance | None, *, grace_seconds: int | None = None) -> RunPatches:
    """A stop and a start; of graces only 0 is known, which leaves the guest no time."""
    if grace_seconds is not None and grace_seconds > 0:
        raise failure.bad_request("For force restart, only gracePeriod=0 is supported for now")
    if grace_seconds is not None and grace_seconds < 0:
        raise failure.bad_request("gracePeriod has to be greater or equal to 0")
    _demand_volumes(machine, CHANGE)
    if strategy_of(machine.spec) in (RunStrategy.HALTED, RunStrategy.ONCE):
        # Upstream's words, which clients look for: the misspelling, and Halted also where Once is meant.
        raise _conflict(machine, f"RunStategy {RunStrategy.HALTED} does not support manual restart requests")
    if instance is None:
        raise _conflict(machine, f"VM is not running: {RunStrategy.HALTED}")
    _demand_awake(machine, instance, "restarted")
    forced = () if grace_seconds is None or life_of(instance).final else _grace(instance, _FORCED_RESTART_SECONDS)
    return RunPatches(instance=forced, status=_requests(machine, (_stop(instance), _start(None))))


def suspend(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> RunPatches:
    """A suspension to disk: the memory of the guest is written, and its process ends."""
    if instance is None or instance.status is None or instance.status.phase != "Running":
        raise _conflict(machine, "VM is not running")
    if instance.metadata.deletionTimestamp is not None:
        raise _conflict(machine, "VM is being stopped")
    if machine.status is not None and machine.status.snapshotInProgress:
        raise _conflict(machine, f"VM cannot be suspended until snapshot {machine.status.snapshotInProgress} is taken")
    return RunPatches(instance=_wish(instance, "true"))


def resume(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> RunPatches:
    """The end of a suspension: the guest goes on."""
    if instance is None or not _is_on_disk(instance):
        raise _conflict(machine, "VM is not suspended")
    return RunPatches(instance=_wish(instance, None))


def migrate(machine: VirtualMachine, instance: VirtualMachineInstance | None, added: dict[str, str] | None = None) -> dict[str, Any]:
    """The VirtualMachineInstanceMigration that a request to move becomes."""
    if instance is None or instance.status is None or instance.status.phase != "Running":
        raise _conflict(machine, "VM is not running")
    spec: dict[str, Any] = {"vmiName": machine.metadata.name}
    if added:
        spec["addedNodeSelector"] = dict(added)
    metadata = {
        "generateName": "kubevirt-migrate-vm-",
        "namespace": machine.metadata.namespace or "default",
        "labels": {"kubevirt.io/vmi-name": machine.metadata.name},
    }
    return {"apiVersion": f"{GROUP}/v1", "kind": "VirtualMachineInstanceMigration", "metadata": metadata, "spec": spec}


def failed_test(machine: VirtualMachine) -> failure.Failure:
    """Return the answer to a lost race that a second decision did not resolve."""
    return failure.modified(_about(machine))


def _about(machine: VirtualMachine) -> failure.FailureTarget:
    # Upstream names the singular here, and clients print it.
    return failure.FailureTarget(name=machine.metadata.name, group=GROUP, kind="virtualmachine")


def _conflict(machine: VirtualMachine, why: str) -> failure.Failure:
    return failure.conflict(_about(machine), why)


def _is_on_disk(instance: VirtualMachineInstance) -> bool:
    """Return whether the guest is suspended, or about to be."""
    return not life_of(instance).final and (suspension.is_wished(instance.metadata.annotations) or suspension.is_suspended(instance))


def _demand_volumes(machine: VirtualMachine, condition: str) -> None:
    """Raise while volumes move, or did not arrive."""
    if holds(machine.status.conditions if machine.status is not None else None, condition):
        raise _conflict(machine, volumemigration.MANUAL)


def _demand_awake(machine: VirtualMachine, instance: VirtualMachineInstance | None, word: str) -> None:
    if instance is not None and _is_on_disk(instance):
        name = machine.metadata.name
        why = f"VM is suspended to disk; `paddock resume {name}` lets it go on, and `paddock suspend {name} --discard` gives its memory up"
        raise _conflict(machine, f"VM cannot be {word}: {why}")


def _wish(instance: VirtualMachineInstance, value: str | None) -> tuple[Operation, ...]:
    annotations = {name: each for name, each in (instance.metadata.annotations or {}).items() if name != suspension.WISH}
    if value is not None:
        annotations[suspension.WISH] = value
    return (
        _test("/metadata/resourceVersion", instance.metadata.resourceVersion or ""),
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    )


def _start(data: dict[str, str] | None) -> dict[str, Any]:
    return {"action": START, "data": dict(data)} if data else {"action": START}


def _stop(instance: VirtualMachineInstance) -> dict[str, Any]:
    return {"action": STOP, "uid": instance.metadata.uid or ""}


def _run(machine: VirtualMachine, strategy: RunStrategy) -> RunPatches:
    """The strategy is changed in the form in which it is written."""
    spec = machine.spec
    if spec.running is not None:
        path, old, new = "/spec/running", spec.running, strategy is RunStrategy.ALWAYS
        return RunPatches(machine=(_test(path, old), _set(path, new)), status=_without_failure(machine))
    path = "/spec/runStrategy"
    return RunPatches(machine=(_test(path, spec.runStrategy), _set(path, str(strategy))), status=_without_failure(machine))


def _waits_only_to_stop(machine: VirtualMachine) -> bool:
    return machine.status is not None and all(each.action == STOP for each in machine.status.stateChangeRequests or ())


def _requests(machine: VirtualMachine, requests: tuple[dict[str, Any], ...], *, replaces: bool = False) -> tuple[Operation, ...]:
    """Queue requests; `replaces` says that they take the place of those that wait."""
    status = machine.status or VirtualMachineStatus()
    waiting = [to_data(each) for each in status.stateChangeRequests or ()]
    if waiting and not replaces:
        raise failure.internal("unable to complete request: stop/start already underway")
    operations: list[Operation] = []
    if status.stateChangeRequests is None:
        # That a member is absent cannot be tested, so the object as a whole has to be the one that the decision saw.
        operations.append(_test("/metadata/resourceVersion", machine.metadata.resourceVersion or ""))
    else:
        operations.append(_test(_REQUESTS, waiting))
    if machine.status is None:
        operations.append({"op": "add", "path": "/status", "value": {}})
    operations.append({"op": "add", "path": _REQUESTS, "value": list(requests)})
    return (*operations, *_without_failure(machine))


def _without_failure(machine: VirtualMachine) -> tuple[Operation, ...]:
    if machine.status is None or machine.status.startFailure is None:
        return ()
    return ({"op": "remove", "path": "/status/startFailure"},)


def _grace(instance: VirtualMachineInstance, seconds: int) -> tuple[Operation, ...]:
    has = instance.spec.terminationGracePeriodSeconds
    if has is None:
        return ({"op": "add", "path": _GRACE, "value": seconds},)
    return (_test(_GRACE, has), _set(_GRACE, seconds))


def _test(path: str, value: object) -> Operation:
    return {"op": "test", "path": path, "value": value}


def _set(path: str, value: object) -> Operation:
    return {"op": "replace", "path": path, "value": value}
