"""Owners that adopt objects and let go of them, safe at every point where the process may end (docs/design/0011-hand-over-of-disks.md).

Every write is for the object as it was read. Whether an owner may adopt is decided on the owner as the server has it, after the object
was read: whoever lets go marks itself first and writes the object then, so whoever sees an object released finds the mark.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta import adoption
from paddock.kubernetes.meta.adoption import AdoptionStep
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.reference import InvolvedObject, owner_reference


def _always(owner: Data) -> bool:
    return True


class Adopter(msgspec.Struct, frozen=True):
    """An owner, and the rule that says whether it may have more objects."""

    target: Target[Any]
    key: Key
    uid: str
    may: Callable[[Data], bool] = _always
    # whether it manages what it adopts
    controller: bool = True
    # whether it takes what has owners, as long as none of them manages it
    shares: bool = False

    @property
    def reference(self) -> Data:
        owner = InvolvedObject(self.target.api_version, self.target.kind, self.key.namespace, self.key.name, self.uid)
        return owner_reference(owner, controller=self.controller, blocks=self.controller)


async def adopt(client: Client, owner: Adopter, target: Target[Any], seen: CachedObject) -> bool:
    """Give an object without an owner to this one, or settle an adoption that was begun; False when the owner may not have the object.

    Raises `Conflict` when the object has moved.
    """
    owners = [each.uid for each in seen.meta.ownerReferences or () if each.controller or each.uid == owner.uid or not owner.shares]
    due = adoption.step(owner.uid, owners, seen.meta.labels, deleting=seen.meta.deleting)
    if due is AdoptionStep.NONE:
        return True
    may = await _may(client, owner)
    metadata: Data = orjson.loads(seen.raw)["metadata"]
    if due is AdoptionStep.ADOPT:
        if not may:
            return False
        metadata = (await _write(client, target, seen.key, adoption.adopted(metadata, owner.reference))) or {}
        may = await _may(client, owner)
    change = adoption.confirmed(metadata) if may else adoption.released(metadata, owner.uid)
    if metadata and change is not None:
        await _write(client, target, seen.key, change)
    return may


async def release(client: Client, target: Target[Any], key: Key, uid: str) -> None:
    """Have an owner let go of an object, as the server has it. Raises `Conflict` when it is written at the same time."""
    try:
        found = await client.get(_plain(target), key)
    except NotFound:
        return
    change = adoption.released(found["metadata"], uid)
    if change is not None:
        await _write(client, target, key, change)


async def _may(client: Client, owner: Adopter) -> bool:
    """Return whether the owner is there, is not being deleted, and its rule holds: now, not in a cache."""
    try:
        found: Data = await client.get(_plain(owner.target), owner.key)
    except NotFound:
        return False
    metadata = found["metadata"]
    return metadata["uid"] == owner.uid and not metadata.get("deletionTimestamp") and owner.may(found)


async def _write(client: Client, target: Target[Any], key: Key, change: Data) -> Data | None:
    try:
        written = await client.patch(_plain(target), key, merge_patch({"metadata": change}))
    except NotFound:
        return None
    metadata: Data = written["metadata"]
    return metadata


def _plain(target: Target[Any]) -> Target[Data]:
    return msgspec.structs.replace(target, cls=dict)
