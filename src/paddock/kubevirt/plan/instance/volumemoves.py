"""The move of volumes to other claims, as the status of an instance shows it. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.base import quantity
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import MigratedVolume, MigrationState

CHANGE = "VolumesChange"
# Progress is written in steps of so many percent.
_STEP = 5


class VolumeMove(msgspec.Struct, frozen=True):
    """The progress of a machine's disks on their way to other claims."""

    # all are there
    done: bool = False
    # all is copied, and they can change over
    ready: bool = False
    copied: int = 0
    total: int = 0
    # why it failed
    error: str = ""


def of(instance: VirtualMachineInstance | None) -> list[MigratedVolume]:
    """Return the volumes of an instance that move."""
    status = instance.status if instance is not None else None
    return list((status.migratedVolumes if status is not None else None) or ())


def state_of(instance: VirtualMachineInstance) -> MigrationState | None:
    """Return the state of the migration that moves them; None while there is none that goes on. The guest of a move stays on its node."""
    state = instance.status.migrationState if instance.status is not None else None
    if state is None or not state.migrationUid or state.completed or state.targetNode != state.sourceNode:
        return None
    # Nodes of two servers may have one name.
    return state if state.sourceState is None else None


def speed_of(state: MigrationState) -> int:
    """Return the bytes per second that the policy of a migration allows; 0: any number."""
    limit = (state.migrationConfiguration or {}).get("bandwidthPerMigration")
    return quantity.whole(limit) if isinstance(limit, str) else 0


def condition(move: VolumeMove | None) -> Condition | None:
    """Return the condition of volumes that move; None: there is none."""
    if move is None or move.done:
        return None
    progress = f": {move.copied * 100 // move.total // _STEP * _STEP} % copied" if move.total else ""
    return Condition(type=CHANGE, status="True", message=f"migrate volumes{progress}")


def members(instance: VirtualMachineInstance, move: VolumeMove | None, now: str) -> Mapping[str, Any]:
    """Return the members of the status that follow from a move."""
    state = state_of(instance)
    if move is None:
        if state is None or not state.startTimestamp:
            return {}
        # It was called off.
        reason = "the volumes were reverted"
        over = msgspec.structs.replace(
            state, completed=True, failed=True, endTimestamp=now, failureReason=reason, abortRequested=True, abortStatus="Succeeded"
        )
        return {"migrationState": over}
    if move.done:
        ended = msgspec.structs.replace(state, completed=True, failed=False, endTimestamp=now) if state is not None else None
        return {"migratedVolumes": None} | ({"migrationState": ended} if ended is not None else {})
    if state is None:
        return {}
    if move.error:
        return {"migrationState": msgspec.structs.replace(state, completed=True, failed=True, endTimestamp=now, failureReason=move.error)}
    if move.ready and not state.targetNodeDomainReadyTimestamp:
        return {"migrationState": msgspec.structs.replace(state, targetNodeDomainReadyTimestamp=now)}
    return {}
