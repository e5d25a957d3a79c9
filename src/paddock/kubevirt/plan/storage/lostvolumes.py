"""Volumes that were filled once and are gone: how the PersistentVolume remembers it, and what the claim says meanwhile. Pure.

bound -> filled, noted on the PersistentVolume -> the engine has no such volume: Lost -> it is there again: Bound

Filling the claim once more would put a blank disk, or an old image, in the place of data that may only be out of reach. A volume whose
record is damaged is out of reach, too.
"""

from paddock.base import ownnames, reasons
from paddock.base.jsondata import Data
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim

FILLED = ownnames.FILLED.name
# The type of the condition of a claim.
_LOST = "VolumeLost"


def name_of(uid: str) -> str:
    """The name of the PersistentVolume that a claim gets here."""
    return f"pvc-{uid}"


def was_filled(volume: Data | None) -> bool:
    """Return whether a PersistentVolume has held a disk."""
    return volume is not None and (volume["metadata"].get("annotations") or {}).get(FILLED) == "true"


def is_lost(claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume of a claim is gone."""
    return claim.status is not None and claim.status.phase == "Lost"


def loss_of(claim: PersistentVolumeClaim) -> tuple[str, str]:
    """The reason code of a lost volume, and the sentence about it."""
    conditions = (claim.status.conditions if claim.status is not None else None) or []
    said = next((each for each in conditions if each.type == _LOST), None)
    if said is None or not said.message:
        return reasons.VOLUME_LOST, f"Claim {claim.metadata.name} Lost"
    return said.reason or reasons.VOLUME_LOST, said.message


def damage_of(claim: PersistentVolumeClaim) -> str:
    """The sentence about a volume that is there and cannot be read; empty for other claims."""
    reason, message = loss_of(claim)
    return message if is_lost(claim) and reason == reasons.VOLUME_DAMAGED else ""


def explanation(volume: Data, pool: str) -> str:
    """Say which volume is gone, where it was, and what to do."""
    place = (volume["spec"].get("local") or {}).get("path", "")
    where = f"{place} in pool {pool}" if pool else place
    return (
        f"volume {volume['metadata']['name']} was filled and is gone: it is not at {where}. "
        "Mount the file system that it is on and restart the server, or put the directory back from a backup, "
        "or delete the claim to give its data up"
    )


def claim_status(reason: str, text: str) -> Data:
    """The changes of a claim's status when its volume is gone."""
    condition = {"type": _LOST, "status": "True", "reason": reason, "message": text}
    return {"phase": "Lost", "conditions": [condition]}


def volume_status(reason: str, text: str) -> Data:
    """The changes of the PersistentVolume's status, whose reason kubectl shows."""
    return {"reason": reason, "message": text}


# What the two say when the volume is there again.
CLAIM_FOUND: Data = {"phase": "Bound", "conditions": None}
VOLUME_FOUND: Data = {"reason": None, "message": None}
