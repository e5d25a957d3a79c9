"""Migrations between two servers: what each side says of them, and the machine that they fence (docs/design/0038-live-migration.md). Pure.

source: Synchronizing ─▶ Pending … TargetReady ─▶ Running ─▶ Succeeded | Failed
target: WaitingForSync ─▶ Pending … TargetReady ─▶ Running ─▶ Succeeded | Failed
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from paddock.base import quantity
from paddock.kubernetes.meta.conditions import Condition, settled
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.migration import MigrationPhaseTransition, MigrationSpec, MigrationStatus, VirtualMachineInstanceMigration
from paddock.kubevirt.kinds.migrationpolicy import MigrationPolicy
from paddock.kubevirt.kinds.status import MigrationState
from paddock.kubevirt.plan.machine.receivers import is_receiver
from paddock.kubevirt.plan.migration.steps import FINAL

SYNCHRONIZING, WAITING, RUNNING, SUCCEEDED, FAILED = "Synchronizing", "WaitingForSync", "Running", "Succeeded", "Failed"
# They say that nothing was accepted yet.
BEGINNING = ("", SYNCHRONIZING, WAITING)
# Passed at one moment: there is no Pod to wait for.
_ACCEPTED = ("Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", RUNNING)
# of a migration, and of its instance
BLOCKED, FAILURE, ABORTED = "decentralizedMigrationBlocked", "DecentralizedLiveMigrationFailure", "migrationAbortRequested"
_REASON = "DecentralizedNotLiveMigratable"
WAITS = "waiting for incoming synchronization, unable to proceed"
# KubeVirt's default; its policies say it in whole seconds.
_SECONDS_PER_GIB = 150
Side = Literal["", "source", "target"]


class SendLimits(msgspec.Struct, frozen=True):
    """What a policy allows a migration. Zero: no limit."""

    policy: str = ""
    bandwidth: int = 0
    seconds: float = 0.0
    auto_converge: bool = False


class PeerFacts(msgspec.Struct, frozen=True):
    """One side, as it tells the other."""

    node: str = ""
    namespace: str = ""
    instance: str = ""
    instance_uid: str = ""
    migration_uid: str = ""
    pod: str = ""


def side_of(spec: MigrationSpec) -> Side:
    """Return the side of a migration between servers; "": it is none. One that sends and receives is its source's."""
    return "source" if spec.sendTo is not None else "target" if spec.receive is not None else ""


def id_of(spec: MigrationSpec) -> str:
    """Return the ID that both sides share."""
    end = spec.sendTo or spec.receive
    return end.migrationID if end is not None else ""


def address_of(url: str) -> tuple[str, int] | None:
    """Return host and port of a `connectURL`; None: it has not this form."""
    host, _, port = url.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return (host, int(port)) if host and "/" not in host and port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16 else None


def obstacle(
    migration: VirtualMachineInstanceMigration,
    instance: VirtualMachineInstance | None,
    others: Iterable[VirtualMachineInstanceMigration],
    decided: str,
) -> str:
    """Return why a migration that is new fails; "" if it can begin. `decided`: how the migration of this ID ended here before."""
    spec, side = migration.spec, side_of(migration.spec)
    if instance is None:
        return f"VirtualMachineInstance {spec.vmiName or ''} does not exist"
    if (instance.status.phase if instance.status is not None else "") in FINAL:
        return "the instance has ended"
    if spec.sendTo is not None and spec.receive is not None:
        return "a migration sends or receives, and this one says both; leave one of them out"
    if decided:
        return f"a migration {id_of(spec)} has ended here before; choose another migrationID"
    if under_way := next((each for each in others if _is_under_way(each, migration)), None):
        return f"another migration of the instance ({under_way.metadata.name}) is under way"
    if side == "target" and not is_receiver(instance):
        return "the instance has a guest of its own; receive with a VirtualMachine of runStrategy WaitAsReceiver"
    if side == "source" and is_receiver(instance):
        return "the instance waits for a guest itself, and has none to send"
    if spec.sendTo is not None and address_of(spec.sendTo.connectURL) is None:
        return f'"{spec.sendTo.connectURL}" is no address; copy connectURL from status.synchronizationAddresses of the other migration'
    return "" if side == "target" else _unfenced(instance)


def _is_under_way(other: VirtualMachineInstanceMigration, migration: VirtualMachineInstanceMigration) -> bool:
    phase = (other.status.phase if other.status is not None else "") or ""
    return other.metadata.uid != migration.metadata.uid and bool(phase) and phase not in FINAL


def _unfenced(instance: VirtualMachineInstance) -> str:
    """Return why nobody could keep an instance from being started again; "" if somebody can."""
    above = next((each for each in instance.metadata.ownerReferences or () if each.controller), None)
    if above is None or above.kind == "VirtualMachine":
        return ""
    return f"the instance belongs to {above.kind} {above.name}, which would start another one in its place; migrate a VirtualMachine"


def fence(migration: str) -> str:
    """Return the fence of a machine whose guest may be handed over at any moment."""
    return f"its guest is being migrated to another server, in migration {migration}"


def fence_after(migration: str, url: str) -> str:
    """Return the fence of a machine whose guest is elsewhere."""
    return f"its guest runs on the server at {url} since migration {migration}, and its disks here are of the time before"


def limits(policy: MigrationPolicy | None, gibibytes: float) -> SendLimits:
    """Return the limits of a migration of so much memory and disk."""
    spec = policy.spec if policy is not None else None
    each = spec.completionTimeoutPerGiB if spec is not None else None
    seconds = (each if each is not None else _SECONDS_PER_GIB) * max(1.0, gibibytes)
    if policy is None or spec is None:
        return SendLimits(seconds=seconds)
    bandwidth = quantity.whole(spec.bandwidthPerMigration) if spec.bandwidthPerMigration is not None else 0
    return SendLimits(policy.metadata.name, bandwidth, seconds, bool(spec.allowAutoConverge))


# --- status -----------------------------------------------------------------------------------------------------------------


def entered(status: MigrationStatus | None, phase: str, now: str, **changes: Any) -> MigrationStatus:
    """Return the status of a migration in a phase. The phases that it passed have their time, and nothing blocks it."""
    before = status or MigrationStatus()
    times = list(before.phaseTransitionTimestamps or ())
    known = {each.phase for each in times}
    passed = _ACCEPTED if phase == RUNNING else (phase,)
    times += [MigrationPhaseTransition(phase=each, phaseTransitionTimestamp=now) for each in passed if each not in known]
    kept = [each for each in before.conditions or () if each.type != BLOCKED]
    found = msgspec.structs.replace(before, phase=phase, phaseTransitionTimestamps=times, conditions=kept or None)
    return msgspec.structs.replace(found, **changes) if changes else found


def blocked(status: MigrationStatus, why: str, now: str) -> MigrationStatus:
    """Return the status of a migration that waits, and says for what."""
    condition = Condition(type=BLOCKED, status="True", reason=_REASON, message=why)
    return msgspec.structs.replace(status, conditions=settled(status.conditions, [condition], now))


def aborted(status: MigrationStatus, now: str) -> MigrationStatus:
    """Return the status of a migration that a user deletes."""
    return msgspec.structs.replace(status, conditions=settled(status.conditions, [Condition(type=ABORTED, status="True")], now))


def failure_of_instance(conditions: Iterable[Condition] | None, why: str, now: str) -> list[Condition] | None:
    """Return the conditions of an instance whose migration is blocked; "": it is not."""
    before = list(conditions or ())
    if not why:
        return [each for each in before if each.type != FAILURE] or None
    return settled(before, [Condition(type=FAILURE, status="True", reason=_REASON, message=why)], now)


def begun(uid: str, source: PeerFacts, target: PeerFacts, now: str, send_limits: SendLimits | None = None) -> MigrationState:
    """Return the state of a migration that both sides know. `uid`: of the migration here."""
    settings: dict[str, Any] | None = None
    if send_limits is not None and send_limits.policy:
        settings = {"allowAutoConverge": send_limits.auto_converge, "allowPostCopy": False}
        if send_limits.bandwidth:
            settings["bandwidthPerMigration"] = str(send_limits.bandwidth)
    return MigrationState(
        migrationUid=uid,
        startTimestamp=now,
        sourceNode=source.node,
        sourcePod=source.pod,
        targetNode=target.node,
        targetPod=target.pod,
        mode="PreCopy",
        migrationPolicyName=(send_limits.policy or None) if send_limits is not None else None,
        migrationConfiguration=settings,
        sourceState=_facts(source),
        targetState=_facts(target),
    )


def _facts(peer: PeerFacts) -> dict[str, str]:
    found = {
        "node": peer.node,
        "pod": peer.pod,
        "migrationUID": peer.migration_uid,
        "domainName": f"{peer.namespace}_{peer.instance}" if peer.instance else "",
        "domainNamespace": peer.namespace,
        "virtualMachineInstanceUID": peer.instance_uid,
    }
    return {name: value for name, value in found.items() if value}


def ended(state: MigrationState | None, uid: str, now: str, why: str = "", *, is_aborted: bool = False) -> MigrationState:
    """Return the state of a migration that is over; `why`: it failed."""
    before = state if state is not None and state.migrationUid == uid else MigrationState(migrationUid=uid)
    found = msgspec.structs.replace(before, completed=True, endTimestamp=now)
    if not why:
        return msgspec.structs.replace(found, targetNodeDomainDetected=True, targetNodeDomainReadyTimestamp=now)
    found = msgspec.structs.replace(found, failed=True, failureReason=why)
    return msgspec.structs.replace(found, abortRequested=True, abortStatus="Succeeded") if is_aborted else found


def state_of(status: MigrationStatus | None) -> MigrationState | None:
    """Return the state that a migration has noted."""
    found = status.migrationState if status is not None else None
    return msgspec.convert(found, MigrationState, strict=False) if isinstance(found, Mapping) else None


ArrivalStep = Literal["begin", "wait", "follow", "drop", "succeed", "fail"]


def arrival_step(phase: str, state: str, *, deleting: bool, refused: bool) -> ArrivalStep:
    """Return the step of a target: from its phase, and from what the engine's files say of the guest ("": nothing)."""
    if state == "taken":
        return "succeed"
    if state == "dropped" or (not state and (deleting or refused)):
        return "fail"
    if state == "waiting":
        return "drop" if deleting or refused else "follow"
    if phase in BEGINNING:
        return "wait" if phase else "begin"
    return "fail"


DepartureStep = Literal["begin", "ask", "follow", "settle", "succeed", "fail"]


def departure_step(phase: str, handed: str, *, works: bool) -> DepartureStep:
    """Return the step of a source from its phase, what the engine's files say of the guest, and whether something is being done."""
    if handed == "decided":
        return "succeed"
    if works:
        return "follow"
    if handed == "offered":
        return "settle"
    if phase in BEGINNING:
        return "ask" if phase else "begin"
    # Whoever sent it has ended, and the engine has called it off.
    return "fail"
