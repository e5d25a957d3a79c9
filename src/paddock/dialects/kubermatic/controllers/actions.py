"""Writes to the cluster, without owners: the owners are in another API.

Objects are ours when our manager has applied them; everything else is a stranger's and stays as it is.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.base.jsondata import Data
from paddock.dialects.kubermatic.controllers import targets
from paddock.dialects.kubermatic.controllers.reader import Views
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.comparing import is_applied
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.desired import ForeignObject
from paddock.kubernetes.runtime.informer import Informer


class ClusterWriter:
    """Applies and deletes objects of the cluster."""

    def __init__(self, client: Client, informers: Iterable[Informer]) -> None:
        self._client = client
        self._informers = {informer.target.plural: informer for informer in informers}

    def seen(self, target: Target[Any], key: Key) -> CachedObject | None:
        """An object as the cache has it."""
        return self._informers[target.plural].cache.get(key)

    def check(self, target: Target[Any], key: Key) -> CachedObject | None:
        """The object if it is ours, None if there is none; raises `ForeignObject`."""
        seen = self.seen(target, key)
        if seen is not None and not is_ours(seen):
            raise ForeignObject(target, key, "somebody else")
        return seen

    async def apply(self, target: Target[Any], data: Data) -> bool:
        """Make an object what is given; whether something was written. Raises `ForeignObject`."""
        key = Key(data["metadata"].get("namespace") or "", data["metadata"]["name"])
        seen = self.check(target, key)
        place = self._place(target)
        data = {**data, "apiVersion": place.api_version}
        if seen is not None and is_applied(data, orjson.loads(seen.raw), targets.MANAGER):
            return False
        await self._client.apply(place, data, WriteOptions(manager=targets.MANAGER, force=True))
        return True

    async def mend(self, target: Target[Any], seen: CachedObject, change: Data) -> None:
        """Put back what is ours in an object, and nothing else."""
        metadata = {**change.get("metadata", {}), "resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
        await self._client.patch(
            self._place(target), seen.key, merge_patch({**change, "metadata": metadata}), WriteOptions(manager=targets.MANAGER)
        )

    async def delete(self, target: Target[Any], seen: CachedObject, propagation: str = "Background") -> None:
        """Delete an object that is ours, once."""
        if is_ours(seen):
            await delete_seen(self._client, self._place(target), seen, propagation)

    def _place(self, target: Target[Any]) -> Target[Data]:
        """Return the kind in the version that the cluster's informer watches."""
        there = self._informers[target.plural].target
        return Target(there.group, there.version, there.plural, there.kind, dict, there.namespaced)


def is_ours(seen: CachedObject) -> bool:
    """Return whether our manager has applied an object."""
    return any(entry.get("operation") == "Apply" for entry in _entries(seen))


def owns(seen: CachedObject, *path: str) -> bool:
    """Return whether the value at a path is still ours: another writer takes it over."""
    return any(_below(entry.get("fieldsV1"), path) is not None for entry in _entries(seen))


def owned(seen: CachedObject, *path: str) -> set[str]:
    """The members of what stands at a path that are what we wrote."""
    found = (_below(entry.get("fieldsV1"), path) or {} for entry in _entries(seen))
    return {name.removeprefix("f:") for fields in found for name in fields if name.startswith("f:")}


def _below(fields: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        fields = fields.get(f"f:{name}") if isinstance(fields, Mapping) else None
    return fields


def _entries(seen: CachedObject) -> list[Data]:
    """Return the entries of our manager in managedFields."""
    noted = orjson.loads(seen.raw)["metadata"].get("managedFields") or ()
    return [entry for entry in noted if entry.get("manager") == targets.MANAGER]


class ClusterDoor(msgspec.Struct, frozen=True):
    """Both sides: what is seen of them, how the cluster is written to, and where what users wrote is."""

    views: Views
    writer: ClusterWriter
    front: Client
    rendering: Rendering
    clock: Clock
    recorder: EventRecorder
