"""Marks by which the driver knows its machines: settings of a machine's extra configuration, which clones and snapshots carry.

The owner's uid is also the instance UUID, so one query finds the machine of an owner.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyVmomi import vim

from paddock.contract.messages import ObjectIdentity
from paddock_drivers.kit import refusals

# The VirtualMachine of the manager that a machine belongs to: the uid, and the name for people.
OWNER_UID = "paddock.owner-uid"
OWNER = "paddock.owner"
# The digest of the request that made a machine whose owner is not known.
REQUEST = "paddock.request"
# What is still to be done to a machine that was cloned, as a JSON object; gone when it is done.
PENDING = "paddock.pending"
# What the target does in another way than asked, as a JSON list of sentences.
LIMITATIONS = "paddock.limitations"
# The place of each disk that the manager named, as a JSON object: "BUS:UNIT" of a SCSI controller by the name.
DISKS = "paddock.disks"
# The key of each card that the manager named, as a JSON object; 0 for one that was just added.
CARDS = "paddock.cards"
# The tags that the manager gave it, as a JSON list.
TAGS = "paddock.tags"
# On machines that the driver made for itself: image, disk, clone; and what they were made from.
PURPOSE = "paddock.purpose"
SOURCE = "paddock.source"
DESCRIPTION = "paddock.description"
CHECKSUM = "paddock.checksum"

ALL = (OWNER_UID, OWNER, REQUEST, PENDING, LIMITATIONS, DISKS, CARDS, TAGS, PURPOSE, SOURCE, DESCRIPTION, CHECKSUM)
Marks = Mapping[str, str]


def read(extra: Iterable[vim.option.OptionValue] | None) -> dict[str, str]:
    """Return the marks among the settings of a machine."""
    return {each.key: str(each.value) for each in extra or () if each.key in ALL and each.value}


def written(marks: Mapping[str, str]) -> list[vim.option.OptionValue]:
    """Return marks as settings; an empty text takes one away."""
    return [vim.option.OptionValue(key=key, value=value) for key, value in marks.items()]


def of_owner(owner: ObjectIdentity | None) -> dict[str, str]:
    """Return the marks of an owner; none for nobody."""
    if owner is None or not owner.uid:
        return {}
    return {OWNER_UID: owner.uid, OWNER: f"{owner.namespace}/{owner.name}"}


def check_owner(name: str, marks: Marks, owner: ObjectIdentity | None) -> None:
    """Raise Conflict for a machine that belongs to another owner. One that belongs to nobody may be anybody's."""
    mine = marks.get(OWNER_UID)
    if owner is not None and owner.uid and mine is not None and mine != owner.uid:
        raise refusals.conflict(f"machine {name} is not changed", why=f"it belongs to {marks.get(OWNER, mine)}")


def loaded(marks: Marks, key: str, kind: type[Any]) -> Any:
    """Return the JSON of a mark, or an empty object of the kind if there is none or somebody has spoilt it."""
    try:
        found = json.loads(marks.get(key) or "null")
    except ValueError:
        found = None
    return found if isinstance(found, kind) else kind()
