"""Volumes of a running machine that move to other claims (docs/spec/kubevirt.md 2.12). Pure.

A machine whose strategy is Migration names another claim for a volume. The decision is made against the instance, which has the claims
that the guest is on, or moves to:

    a claim is missing       the instance says so, and the change waits
    the change is refused    the machine asks for a restart, and says why
    otherwise                the instance gets the new claims, and `status.migratedVolumes`
    the old claims are back  the move is called off, unless its disks are changing over already

Upstream's messages are kept where clients look for them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.devices import Devices
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import MigratedVolume
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine, VolumeMigrationState, VolumeUpdateState
from paddock.kubevirt.kinds.volumes import Volume
from paddock.kubevirt.plan.instance import volumemoves
from paddock.kubevirt.plan.instance.volumemoves import CHANGE
from paddock.kubevirt.plan.instance.volumes import claim_of, info
from paddock.kubevirt.plan.machine.liveupdate import MIGRATION
from paddock.kubevirt.plan.machine.runstrategy import life_of

RECOVERY = "ManualRecoveryRequired"
CANCELLED = "VolumesChangeCancellation"
ENDED = "VMI was removed or was final during the volume migration"
ONLY_BACK = "The volume can only be reverted to the previous version during the update"
# What the API answers to a start, or to a restart while volumes move.
MANUAL = (
    "VM recovery required: Volume migration failed, leaving some volumes pointing to non-consistent targets; manual intervention is needed"
    " to reassign them to their original volumes."
)


class ClaimFinder(msgspec.Struct, frozen=True):
    """The claims and DataVolumes of the machine's namespace, by name."""

    claim: Callable[[str], PersistentVolumeClaim | None]
    data_volume: Callable[[str], DataVolume | None]


class VolumeDecision(msgspec.Struct, frozen=True):
    """A JSON patch of the instance, and what the machine says about its volumes."""

    patch: tuple[Data, ...] = ()
    # why the change waits for a restart
    restart: str = ""
    # why it cannot be carried out at all
    error: str = ""


def decide(machine: VirtualMachine, instance: VirtualMachineInstance, finder: ClaimFinder, now: str) -> VolumeDecision:
    """Return what becomes of the claims that the machine names, for an instance that runs."""
    changed = changes(machine, instance)
    moving = {each.volumeName: each for each in volumemoves.of(instance)}
    if moving and changed.keys() & moving.keys():
        return _during(machine, instance, changed, now)
    if machine.spec.updateVolumesStrategy != MIGRATION or not changed or moving:
        return VolumeDecision()
    if refused := _refusal(instance, changed):
        return VolumeDecision(restart=refused)
    if missing := _missing(machine, changed, finder):
        message = f"One of the destination volumes doesn't exist: {missing}"
        return VolumeDecision(_condition(instance, Condition(type=CHANGE, status="False", message=message), now))
    names = {volume.name: claim_of(volume) for volume in instance.spec.volumes or ()}
    moves = tuple(
        MigratedVolume(volumeName=name, sourcePVCInfo=_info(finder, names[name]), destinationPVCInfo=_info(finder, claim))
        for name, claim in changed.items()
    )
    patch = (
        *_without_condition(instance),
        *_volumes(machine, instance, changed),
        _set("/status/migratedVolumes", [to_data(each) for each in moves]),
    )
    return VolumeDecision(patch)


def changes(machine: VirtualMachine, instance: VirtualMachineInstance) -> dict[str, str]:
    """Return the volumes that are on another claim than the machine names, with that claim."""
    wanted = {volume.name: _moveable(volume) for volume in machine.spec.template.spec.volumes or ()}
    there = {volume.name: _moveable(volume) for volume in instance.spec.volumes or ()}
    return {name: claim for name, claim in wanted.items() if claim and there.get(name) and there[name] != claim}


def _moveable(volume: Volume) -> str:
    return claim_of(volume) if volume.persistentVolumeClaim is not None or volume.dataVolume is not None else ""


def _during(machine: VirtualMachine, instance: VirtualMachineInstance, changed: Mapping[str, str], now: str) -> VolumeDecision:
    """Return the answer to another change while volumes move: the way back, or none."""
    if changed != _sources(volumemoves.of(instance)):
        return VolumeDecision(error=ONLY_BACK)
    state = instance.status.migrationState if instance.status is not None else None
    if state is not None and state.targetNodeDomainReadyTimestamp and not state.completed:
        # Its disks change over. When that is done, the machine's claims are a new move.
        return VolumeDecision()
    condition = Condition(type=CHANGE, status="False", reason=CANCELLED)
    return VolumeDecision(
        (
            *_volumes(machine, instance, changed),
            *_condition(instance, condition, now),
            {"op": "remove", "path": "/status/migratedVolumes"},
        )
    )


def _refusal(instance: VirtualMachineInstance, changed: Mapping[str, str]) -> str:
    if found := refusal(instance.spec.domain.devices, changed):
        return found
    for volume in (instance.status.volumeStatus if instance.status is not None else None) or ():
        claim = volume.persistentVolumeClaimInfo
        if claim is not None and volume.name not in changed and "ReadWriteOnce" in (claim.accessModes or ()):
            return f"cannot migrate the VM. The volume {volume.name} is RWO and not included in the migration volumes"
    return ""


def refusal(devices: Devices, changed: Collection[str]) -> str:
    """Return the reason why some volumes of these devices cannot move while the machine runs; empty: they can."""
    filesystems = {each.name for each in devices.filesystems or ()}
    disks = {each.name: each for each in devices.disks or ()}
    kinds = (
        ("filesystems", [name for name in changed if name in filesystems]),
        ("shareable", [name for name in changed if name in disks and disks[name].shareable]),
        ("luns", [name for name in changed if name in disks and not disks[name].shareable and disks[name].lun is not None]),
    )
    if any(names for _, names in kinds):
        return "invalid volumes to update with migration:" + "".join(f" {kind}: [{' '.join(names)}]" for kind, names in kinds if names)
    drives = [name for name in changed if name in disks and disks[name].cdrom is not None]
    if drives:
        return f"the medium of a drive does not move while the machine runs: {', '.join(drives)}"
    return ""


def _missing(machine: VirtualMachine, changed: Mapping[str, str], finder: ClaimFinder) -> str:
    for volume in machine.spec.template.spec.volumes or ():
        name = changed.get(volume.name)
        if name is not None and volume.dataVolume is not None and finder.data_volume(name) is None and finder.claim(name) is None:
            return f"DataVolume {name} not found"
        if name is not None and finder.claim(name) is None:
            return f"PVC {name} not found"
    return ""


def _info(finder: ClaimFinder, name: str) -> Any:
    claim = finder.claim(name)
    return info(claim) if claim is not None else None


def _volumes(machine: VirtualMachine, instance: VirtualMachineInstance, changed: Mapping[str, str]) -> tuple[Data, ...]:
    """The volumes of the instance with those of the machine in their place."""
    wanted = {volume.name: volume for volume in machine.spec.template.spec.volumes or ()}
    volumes = [wanted[volume.name] if volume.name in changed else volume for volume in instance.spec.volumes or ()]
    return (_set("/spec/volumes", [to_data(each) for each in volumes]),)


def _without_condition(instance: VirtualMachineInstance) -> tuple[Data, ...]:
    present = _conditions(instance)
    kept = [each for each in present if each.type != CHANGE]
    return (_set("/status/conditions", [to_data(each) for each in kept]),) if len(kept) != len(present) else ()


def _condition(instance: VirtualMachineInstance, condition: Condition, now: str) -> tuple[Data, ...]:
    """Set a condition; nothing when it is there."""
    present = _conditions(instance)
    old = next((each for each in present if each.type == condition.type), None)
    if old is not None and (old.status, old.reason, old.message) == (condition.status, condition.reason, condition.message):
        return ()
    since = old.lastTransitionTime if old is not None and old.status == condition.status else now
    made = msgspec.structs.replace(condition, lastTransitionTime=since)
    return (_set("/status/conditions", [to_data(each) for each in (*(each for each in present if each.type != condition.type), made)]),)


def _set(path: str, value: Any) -> Data:
    return {"op": "add", "path": path, "value": value}


# --- what the machine says --------------------------------------------------------------------------------------------------


def state_of(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> VolumeUpdateState | None:
    """Return `status.volumeUpdateState`: the last move, until the machine names the old claims again or the move is called off."""
    if now := volumemoves.of(instance):
        return VolumeUpdateState(volumeMigrationState=VolumeMigrationState(migratedVolumes=now))
    before = machine.status.volumeUpdateState if machine.status is not None else None
    if before is None or before.volumeMigrationState is None:
        return before
    called_off = any(each.type == CHANGE and each.reason == CANCELLED for each in _conditions(instance))
    return None if called_off or _is_back(machine, _moves(machine, None)) else before


def needs_recovery(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> bool:
    """Return whether the machine must not start: its instance ended while volumes moved, and they are not back on their claims."""
    moves = _moves(machine, instance)
    if not moves or _is_back(machine, moves):
        return False
    if instance is not None:
        return life_of(instance).final and holds(_conditions(instance), CHANGE)
    known = machine.status.conditions if machine.status is not None else None
    return holds(known, CHANGE) or holds(known, RECOVERY)


def _moves(machine: VirtualMachine, instance: VirtualMachineInstance | None) -> Sequence[MigratedVolume]:
    state = machine.status.volumeUpdateState if machine.status is not None else None
    known = state.volumeMigrationState if state is not None else None
    return volumemoves.of(instance) or (known.migratedVolumes if known is not None else None) or ()


def _sources(moves: Iterable[MigratedVolume]) -> dict[str, str | None]:
    """Return the claims that volumes move from."""
    return {each.volumeName: each.sourcePVCInfo.claimName for each in moves if each.sourcePVCInfo is not None}


def _is_back(machine: VirtualMachine, moves: Sequence[MigratedVolume]) -> bool:
    """Return whether the machine names the claims that volumes moved from."""
    sources = _sources(moves)
    names = {volume.name: claim_of(volume) for volume in machine.spec.template.spec.volumes or ()}
    return machine.spec.updateVolumesStrategy != MIGRATION or all(names.get(name, claim) == claim for name, claim in sources.items())


def _conditions(instance: VirtualMachineInstance | None) -> list[Condition]:
    status = instance.status if instance is not None else None
    return list((status.conditions if status is not None else None) or ())
