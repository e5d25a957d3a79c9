"""The meaning of a transfer's state for the claim it fills and for its DataVolume (docs/spec/kubevirt.md 5.2). Pure.

seen (claim, volume, transfer) -> phase, progress, conditions, annotations, and the event that a new phase is worth.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from paddock.base import reasons
from paddock.kubevirt.kinds.datavolume_kind import DataCondition

Stage = Literal["none", "queued", "running", "waiting", "failed"]
Family = Literal["Import", "Upload", "Clone", "External"]

_FAMILIES: dict[str, Family] = {
    "http": "Import",
    "registry": "Import",
    "s3": "Import",
    "gcs": "Import",
    "imageio": "Import",
    "vddk": "Import",
    "blank": "Import",
    "upload": "Upload",
    "pvc": "Clone",
    "snapshot": "Clone",
}
_DOING = {"Import": "Import into", "Upload": "Upload into", "Clone": "Cloning into"}
_DONE = {"Import": "Successfully imported into PVC", "Upload": "Successfully uploaded into", "Clone": "Successfully cloned into"}
_FAILED = {"Import": "Failed to import into PVC", "Upload": "Upload into", "Clone": "Cloning into"}
# A write is worth it when progress moved by so much.
_STEP = 0.01
FINAL = ("Succeeded", "Failed")
# Before the names of annotations of claims.
STORAGE = "cdi.kubevirt.io/storage"
# Of the claim that a DataVolume copies: what is copied, and that it is.
CLONE_REQUEST, CLONE_OF = "k8s.io/CloneRequest", "k8s.io/CloneOf"


class Transfer(msgspec.Struct, frozen=True):
    """The progress of filling one volume. `waiting`: it failed, and is tried again; `failed`: it is not."""

    stage: Stage = "none"
    # 0 to 1, None: not known
    progress: float | None = None
    restarts: int = 0
    reason: str = ""
    message: str = ""
    # the reason code of what failed
    code: str = ""


NONE = Transfer()


class TransferFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what a DataVolume's status says."""

    name: str
    # a member of DataVolumeSource; empty: something else fills the claim
    source: str
    claim: Literal["absent", "pending", "bound", "lost"] = "absent"
    # of a lost claim: the reason why its volume cannot be read, if it is there
    damage: str = ""
    waits_for_consumer: bool = False
    filled: bool = False
    transfer: Transfer = NONE
    # why there is no transfer yet
    problem: tuple[str, str] | None = None
    phase_before: str = ""
    progress_before: str = ""


class TransferEvent(msgspec.Struct, frozen=True):
    """Something to tell about an object."""

    kind: str
    reason: str
    note: str


class Report(msgspec.Struct, frozen=True):
    """The values of the status."""

    phase: str
    progress: str
    conditions: tuple[DataCondition, ...]
    events: tuple[TransferEvent, ...] = ()


def family_of(source: str) -> Family:
    """Return the sequence of phases that a source goes through."""
    return _FAMILIES.get(source, "External")


def report(seen: TransferFacts) -> Report:
    """The status of a DataVolume."""
    phase = _phase(seen)
    return Report(phase, _progress(seen, phase), tuple(_conditions(seen, phase)), tuple(_events(seen, phase)))


def _phase(seen: TransferFacts) -> str:
    family = family_of(seen.source)
    # Without its claim, it begins anew.
    if seen.phase_before in FINAL and seen.claim != "absent" and not (seen.phase_before == "Failed" and seen.filled):
        return seen.phase_before
    if seen.filled and seen.claim == "bound":
        return "Succeeded"
    if seen.transfer.stage == "failed":
        # What was sent was no good; something better can be sent.
        return "UploadReady" if family == "Upload" else "Failed"
    if seen.claim in ("absent", "lost"):
        return "Pending"
    if seen.waits_for_consumer:
        return "WaitForFirstConsumer"
    if family == "External":
        return "PendingPopulation"
    if seen.claim == "pending":
        return "Pending"
    if family == "Upload":
        return "UploadReady"
    return f"{family}Scheduled" if seen.transfer.stage in ("none", "queued") else f"{family}InProgress"


def _progress(seen: TransferFacts, phase: str) -> str:
    if phase == "Succeeded":
        return "100.0%"
    if seen.transfer.stage != "running" or seen.transfer.progress is None:
        # Kept while a failed attempt waits for the next; that begins anew.
        return seen.progress_before or "N/A" if seen.transfer.stage in ("waiting", "failed") else "N/A"
    now, before = min(seen.transfer.progress, 0.9999), _fraction(seen.progress_before)
    if before is not None and seen.phase_before == phase and before <= now < before + _STEP:
        return seen.progress_before
    return f"{now * 100:.2f}%"


def _fraction(text: str) -> float | None:
    try:
        return float(text.removesuffix("%")) / 100
    except ValueError:
        return None


def _conditions(seen: TransferFacts, phase: str) -> Iterator[DataCondition]:
    yield _bound(seen)
    running = phase.endswith("InProgress")
    if phase == "Succeeded" and seen.claim == "lost":
        yield _lost(seen, "Ready")
    elif phase == "Succeeded":
        yield DataCondition(type="Ready", status="True")
    elif seen.transfer.code:
        yield DataCondition(type="Ready", status="False", reason=seen.transfer.code, message=seen.transfer.message)
    elif running or (family_of(seen.source) == "Upload" and seen.transfer.stage == "running"):
        yield DataCondition(type="Ready", status="False", reason="TransferRunning")
    elif seen.problem is not None:
        yield DataCondition(type="Ready", status="False", reason=seen.problem[0], message=seen.problem[1])
    else:
        yield DataCondition(type="Ready", status="False")
    yield _running(seen, phase)


def _lost(seen: TransferFacts, type: str) -> DataCondition:
    if seen.damage:
        return DataCondition(type=type, status="False", reason=reasons.VOLUME_DAMAGED, message=seen.damage)
    return DataCondition(type=type, status="False", reason="ClaimLost", message=f"Claim {seen.name} Lost")


def _bound(seen: TransferFacts) -> DataCondition:
    if seen.claim == "bound":
        return DataCondition(type="Bound", status="True", reason="Bound", message=f"PVC {seen.name} Bound")
    if seen.claim == "lost":
        return _lost(seen, "Bound")
    if seen.claim == "pending":
        return DataCondition(type="Bound", status="False", reason="Pending", message=f"PVC {seen.name} Pending")
    return DataCondition(type="Bound", status="False", reason="NotFound", message="No PVC found")


def _running(seen: TransferFacts, phase: str) -> DataCondition:
    transfer = seen.transfer
    if phase == "Succeeded":
        return DataCondition(type="Running", status="False", reason="Completed", message="Import Complete" if _imports(seen) else None)
    if transfer.stage == "running":
        return DataCondition(type="Running", status="True", reason="Pod is running", message=transfer.message or None)
    if transfer.message or transfer.reason:
        return DataCondition(type="Running", status="False", reason=transfer.reason or "Error", message=transfer.message or None)
    if seen.problem is not None:
        return DataCondition(type="Running", status="False", reason=seen.problem[0], message=seen.problem[1])
    if phase == "UploadReady":
        return DataCondition(type="Running", status="True", reason="Pod is running")
    return DataCondition(type="Running", status="False")


def _reason(transfer: Transfer, *, filled: bool, running: bool) -> str:
    """A claim has no condition Ready, so its annotation has the code of a failure."""
    if filled:
        return "Completed"
    return "Pod is running" if running else transfer.code or transfer.reason or "Pending"


def _imports(seen: TransferFacts) -> bool:
    return family_of(seen.source) == "Import"


def _events(seen: TransferFacts, phase: str) -> Iterator[TransferEvent]:
    if phase == seen.phase_before:
        return
    family = family_of(seen.source)
    if phase == "Pending":
        yield TransferEvent("Normal", "Pending", f"PVC {seen.name} Pending")
    elif phase == "Succeeded":
        if family == "External":
            yield TransferEvent("Normal", "Succeeded", f"PVC {seen.name} is filled")
        else:
            yield TransferEvent("Normal", f"{family}Succeeded", f"{_DONE[family]} {seen.name}")
    elif phase == "Failed":
        why = f": {seen.transfer.message}" if seen.transfer.message else ""
        yield TransferEvent("Warning", f"{family}Failed", f"{_FAILED[family]} {seen.name}{'' if family == 'Import' else ' failed'}{why}")
    elif phase == "WaitForFirstConsumer":
        yield TransferEvent("Normal", phase, f"PVC {seen.name} waits for the first machine that uses it")
    elif phase == "UploadReady":
        yield TransferEvent("Normal", "UploadReady", f"Upload into {seen.name} ready")
    elif phase.endswith(("Scheduled", "InProgress")):
        state = "scheduled" if phase.endswith("Scheduled") else "in progress"
        yield TransferEvent("Normal", phase, f"{_DOING[family]} {seen.name} {state}")


def annotations(source: str, transfer: Transfer, *, filled: bool, ready: bool) -> dict[str, str]:
    """Return the annotations of the claim for clients; `ready`: an upload can begin."""
    family = family_of(source)
    phase = "Succeeded" if filled else "Failed" if transfer.stage == "failed" and family != "Upload" else "Pending"
    if not filled and (transfer.stage in ("running", "waiting") or ready):
        phase = "Running"
    running = not filled and (transfer.stage == "running" or ready)
    said = {
        f"{STORAGE}.pod.phase": phase,
        f"{STORAGE}.pod.restarts": str(transfer.restarts),
        f"{STORAGE}.condition.running": "true" if running else "false",
        f"{STORAGE}.condition.running.reason": _reason(transfer, filled=filled, running=running),
        f"{STORAGE}.condition.running.message": "" if filled else transfer.message,
    }
    if family == "Upload":
        said[f"{STORAGE}.pod.ready"] = "true" if ready and not filled else "false"
    return said
