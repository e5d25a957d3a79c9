"""The migrations that move volumes of running machines, as upstream's workload updater makes and deletes them. Pure.

One is made while an instance says that its volumes change. One that failed is followed by another after a pause, which doubles. One that
is not over goes when the volumes do not change any more.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import holds
from paddock.kubevirt.kinds.instance import GROUP, VirtualMachineInstance
from paddock.kubevirt.kinds.migration import VirtualMachineInstanceMigration
from paddock.kubevirt.kinds.migrationpolicy import MigrationPolicy
from paddock.kubevirt.kinds.status import MigrationState
from paddock.kubevirt.plan.instance.volumemoves import CHANGE
from paddock.kubevirt.plan.machine.runstrategy import life_of
from paddock.kubevirt.plan.migration.steps import FINAL

LABEL = "kubevirt.io/volume-update-migration"
ANNOTATION = "kubevirt.io/workloadUpdateMigration"
_FIRST_SECONDS, _LONGEST_SECONDS = 20.0, 300.0
# So many that are over are kept for each instance.
_KEPT = 5
_LONGEST_LABEL = 63


class MigrationPlan(msgspec.Struct, frozen=True):
    """What is to be done about the migrations of an instance."""

    create: bool = False
    delete: tuple[str, ...] = ()
    # when to look again
    again: float | None = None


def plan(instance: VirtualMachineInstance, migrations: Sequence[VirtualMachineInstanceMigration], now: float) -> MigrationPlan:
    """Return what is to be done; `migrations` are those of the instance's volumes."""
    ordered = sorted(migrations, key=lambda each: (each.metadata.creationTimestamp or "", each.metadata.name))
    open_ = [each for each in ordered if not is_final(each)]
    over = [each for each in ordered if is_final(each)]
    old = tuple(each.metadata.name for each in over[:-_KEPT])
    status = instance.status
    if life_of(instance).final:
        # They say so themselves.
        return MigrationPlan(delete=old)
    if status is None or status.phase != "Running" or not holds(status.conditions, CHANGE):
        return MigrationPlan(delete=(*old, *(each.metadata.name for each in open_ if not _ends(instance, each))))
    if open_:
        return MigrationPlan(delete=old)
    failures = 0
    for each in reversed(over):
        if each.status is None or each.status.phase != "Failed":
            break
        failures += 1
    if failures:
        pause = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** (failures - 1))
        ended = (over[-1].status.migrationState or {}).get("endTimestamp") if over[-1].status is not None else None
        if (left := (ages.seconds_of(ended or "") or 0.0) + pause - now) > 0:
            return MigrationPlan(delete=old, again=left)
    return MigrationPlan(create=True, delete=old)


def _ends(instance: VirtualMachineInstance, migration: VirtualMachineInstanceMigration) -> bool:
    """Return whether a migration is about to say how it ended."""
    state = instance.status.migrationState if instance.status is not None else None
    if state is None or state.migrationUid != migration.metadata.uid:
        return False
    return bool(state.completed and not state.abortRequested)


def is_final(migration: VirtualMachineInstanceMigration) -> bool:
    """Return whether a migration is over."""
    return migration.status is not None and migration.status.phase in FINAL


def is_of_volumes(migration: VirtualMachineInstanceMigration) -> bool:
    """Return whether a migration moves volumes."""
    return LABEL in (migration.metadata.labels or {})


def refusal(migration: VirtualMachineInstanceMigration, *, is_there: bool) -> str:
    """Return why a migration to another node or another server fails; `is_there`: its instance."""
    if migration.spec.sendTo is not None or migration.spec.receive is not None:
        why = "this server has no port for migrations, so it neither sends nor receives running machines"
        return f"{why}; start it with paddock up --migrations ADDRESS:PORT, or take the stopped machine with paddock move"
    if is_there:
        return "single host: there is no other host to migrate to"
    return f"VirtualMachineInstance {migration.spec.vmiName or ''} does not exist"


def made(instance: VirtualMachineInstance) -> dict[str, Any]:
    """Return the migration that moves the volumes of an instance."""
    name = instance.metadata.name
    metadata: dict[str, Any] = {
        "generateName": "kubevirt-workload-update-",
        "namespace": instance.metadata.namespace,
        "annotations": {ANNOTATION: ""},
        "labels": {LABEL: name if len(name) <= _LONGEST_LABEL else instance.metadata.uid},
    }
    # It goes with the instance.
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "VirtualMachineInstance", "name": name, "uid": instance.metadata.uid}
    metadata["ownerReferences"] = [owner]
    spec = {"vmiName": name, "priority": "user-triggered"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "VirtualMachineInstanceMigration", "metadata": metadata, "spec": spec}


def begun(uid: str, node: str, now: str, policy: MigrationPolicy | None) -> MigrationState:
    """Return the state of an instance whose volumes begin to move. The guest stays on its node."""
    state = MigrationState(migrationUid=uid, startTimestamp=now, sourceNode=node, targetNode=node, mode="PreCopy")
    if policy is None:
        return state
    limit = policy.spec.bandwidthPerMigration
    settings = {"bandwidthPerMigration": str(limit)} if limit is not None else None
    return msgspec.structs.replace(state, migrationPolicyName=policy.metadata.name, migrationConfiguration=settings)


def chosen(policies: Iterable[MigrationPolicy], namespace: Mapping[str, str], instance: Mapping[str, str]) -> MigrationPolicy | None:
    """Return the policy for an instance, from its labels and those of its namespace: the one with most labels, then the first by name."""
    found: list[tuple[int, str, MigrationPolicy]] = []
    for policy in policies:
        selectors = policy.spec.selectors
        wanted = ((selectors.namespaceSelector or {}, namespace), (selectors.virtualMachineInstanceSelector or {}, instance))
        if any(labels for labels, _ in wanted) and all(labels.items() <= has.items() for labels, has in wanted):
            found.append((-sum(len(labels) for labels, _ in wanted), policy.metadata.name, policy))
    return min(found, key=lambda each: each[:2])[2] if found else None


def ended(state: MigrationState, now: str) -> MigrationState:
    """Return the state of a migration whose instance is no more."""
    return msgspec.structs.replace(state, completed=True, failed=True, endTimestamp=now, failureReason="the instance ended meanwhile")
