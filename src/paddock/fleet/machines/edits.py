"""New forms of objects: a change of a machine is the object that the user wrote, before and after.

Everything here is pure. The decisions on sizes, disks and interfaces return a new form; the patch between the forms goes to the server.
"""

from typing import Any

import msgspec

from paddock.base.jsondata import Data, copied
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Key, Target
from paddock.kubevirt.plan.changes.adapters import ChangeRefused as ChangeRefused

# Members that the server writes, and that are no part of a wish.
_SERVER_WRITTEN = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp")


class ObjectEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An object before and after a change."""

    target: Target[Data]
    key: Key
    before: Data
    after: Data

    @property
    def patch(self) -> Data:
        """The merge patch from one form to the other. It fails on the server if somebody else changed the object in between."""
        found = merge_patch(self.before, self.after)
        revision = (self.before.get("metadata") or {}).get("resourceVersion")
        if found and revision:
            found.setdefault("metadata", {})["resourceVersion"] = revision
        return found

    @property
    def changes(self) -> bool:
        """Return True if the forms differ."""
        return self.before != self.after


def edit(machine: MachineView, after: Data) -> ObjectEdit:
    """Return the change of the object that the user wrote."""
    return ObjectEdit(target=machine.kind.target, key=machine.key, before=machine.data, after=after)


def merge_patch(before: Any, after: Any) -> Data:
    """Return the JSON merge patch (RFC 7386) that makes one mapping of another. Lists are replaced as a whole."""
    patch: Data = {}
    for name in before.keys() - after.keys():
        patch[name] = None
    for name, value in after.items():
        former = before.get(name)
        if isinstance(former, dict) and isinstance(value, dict):
            if inner := merge_patch(former, value):
                patch[name] = inner
        elif name not in before or former != value:
            patch[name] = value
    return patch


def written(data: Data) -> Data:
    """Return an object as its user wrote it: without status and without what the server notes."""
    metadata = {name: value for name, value in (data.get("metadata") or {}).items() if name not in _SERVER_WRITTEN}
    return {**{name: value for name, value in data.items() if name != "status"}, "metadata": metadata}


def copy(data: Data) -> Data:
    """Return a copy to change."""
    made: Data = copied(data)
    return made
