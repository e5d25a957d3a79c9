"""The hand-over of an object from one owner to the next: what is due, and what is written (docs/design/0011-hand-over-of-disks.md). Pure.

    nobody's --adopt--> owned, unconfirmed --confirm--> owned
        ^                       |                         |
        +-------- release ------+-------------------------+

An adoption is unconfirmed until its owner was read once more after the write. The garbage collector never deletes an object for the end
of an owner that is unconfirmed: it takes the reference off. So an owner that is deleted while it adopts leaves the object behind.
"""

from collections.abc import Collection, Mapping
from enum import Enum

from paddock.base import ownnames
from paddock.base.jsondata import Data

# A label, so that whoever reads no more than the metadata that select sees it. Its value is the UID of the owner.
UNCONFIRMED = ownnames.UNCONFIRMED_OWNER.name


class AdoptionStep(Enum):
    """The next step of an owner towards an object that it takes over."""

    NONE = 1
    ADOPT = 2
    CONFIRM = 3


def step(uid: str, owners: Collection[str], labels: Mapping[str, str] | None, *, deleting: bool = False) -> AdoptionStep:
    """Return what the owner of a UID does next about an object with these owners and labels."""
    if deleting:
        return AdoptionStep.NONE
    if not owners:
        return AdoptionStep.ADOPT
    return AdoptionStep.CONFIRM if uid in owners and is_unconfirmed(labels, uid) else AdoptionStep.NONE


def is_unconfirmed(labels: Mapping[str, str] | None, uid: str) -> bool:
    """Return whether the owner of this UID has adopted an object and not confirmed it."""
    return (labels or {}).get(UNCONFIRMED) == uid


def adopted(metadata: Data, owner: Data) -> Data:
    """Return the change of an object's metadata that gives it an owner, as an owner reference, who has to confirm it."""
    owners = [*_without(metadata, owner["uid"]), owner]
    return {**_precondition(metadata), "ownerReferences": owners, "labels": {UNCONFIRMED: owner["uid"]}}


def confirmed(metadata: Data) -> Data:
    """Return the change of an object's metadata that makes its adoption final."""
    return {**_precondition(metadata), "labels": {UNCONFIRMED: None}}


def released(metadata: Data, uid: str) -> Data | None:
    """Return the change of an object's metadata by which the owner of this UID lets go of it; None when it is not its owner."""
    rest = _without(metadata, uid)
    if len(rest) == len(metadata.get("ownerReferences") or ()):
        return None
    change = {**_precondition(metadata), "ownerReferences": rest or None}
    return {**change, "labels": {UNCONFIRMED: None}} if is_unconfirmed(metadata.get("labels"), uid) else change


def without_owner(metadata: Data, uid: str) -> Data:
    """Return an object's metadata without the owner of this UID."""
    changed = {**metadata, "ownerReferences": _without(metadata, uid)}
    if is_unconfirmed(metadata.get("labels"), uid):
        changed["labels"] = {name: value for name, value in metadata["labels"].items() if name != UNCONFIRMED}
    return changed


def _without(metadata: Data, uid: str) -> list[Data]:
    return [each for each in metadata.get("ownerReferences") or () if each.get("uid") != uid]


def _precondition(metadata: Data) -> Data:
    """Return what makes a change fail unless the object is still the one that was read."""
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
