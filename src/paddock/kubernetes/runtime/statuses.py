"""The one way in which a controller writes a status."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, NotFound
from paddock.kubernetes.client.options import PLAIN, WriteOptions, merge_patch
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.patch import apply_merge_patch, merge_patch_between
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.expectations import Expectations
from paddock.kubernetes.schema.field import Object

_STATUS = WriteOptions(subresource="status")
# How often a sure write meets a conflict before it gives up.
_ATTEMPTS = 10


class StatusWriter:
    """Writes the status of objects of one kind: one request with the difference, and none when there is none.

    Each write is for the object at the revision at which it was seen. It raises `Conflict` when the object has moved since: the next pass
    decides anew. An object that is gone needs no status. What was written is expected in the cache.
    """

    def __init__(self, client: Client, target: Target[Any], expectations: Expectations | None = None) -> None:
        self._client = client
        self._target = target
        self._expectations = expectations
        self._options = _STATUS if target.has_status else PLAIN

    async def write(
        self, seen: CachedObject, status: Data | Object, *, labels: Mapping[str, str | None] | None = None
    ) -> CachedObject | None:
        """Make the status of an object the wanted one; return the object as it is then, or None when nothing was written.

        Members that are not wanted are removed; a declared status leaves alone those that its class does not know. Labels can be changed
        with the status of a kind that has no subresource for it.
        """
        change = _difference(status_of(seen), status)
        if not change and not labels:
            return None
        metadata = {"resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid, **({"labels": dict(labels)} if labels else {})}
        document = {"metadata": metadata, **({"status": change} if change else {})}
        try:
            written = CachedObject.of(await self._client.patch_raw(self._target, seen.key, merge_patch(document), self._options))
        except NotFound:
            return None
        if self._expectations is not None:
            self._expectations.wrote(written)
        return written

    async def write_surely(
        self, seen: CachedObject, status: Data | Object, *, agrees: Callable[[CachedObject], bool] = lambda _: True
    ) -> CachedObject | None:
        """Write a status that no other controller writes, also when the object has changed since it was seen.

        What a controller has already done outside the API must not get lost because somebody else changed the object meanwhile. So a
        conflict is tried again on the newest object. It is raised when this is another object by now, or when `agrees` rejects it.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self.write(seen, status)
            except Conflict:
                try:
                    fresh = CachedObject.of(await self._client.get_raw(self._target, seen.key))
                except NotFound:
                    return None
                if fresh.meta.uid != seen.meta.uid or not agrees(fresh):
                    raise
                seen = fresh
        return await self.write(seen, status)

    async def change(self, seen: CachedObject, change: Data) -> CachedObject | None:
        """Change some members of a status; None removes one."""
        return await self.write(seen, apply_merge_patch(status_of(seen), change))


def status_of(seen: CachedObject) -> Data:
    """The status of an object; empty when it has none."""
    found: Data = orjson.loads(seen.raw)
    return found.get("status") or {}


def _difference(before: Data, status: Data | Object) -> Data:
    if isinstance(status, msgspec.Struct):
        return _changes(from_data(before, type(status)), status)
    return merge_patch_between(before, status)


def _changes(before: msgspec.Struct, struct: msgspec.Struct) -> Data:
    """The merge patch between two values of a class. Values are compared, not their JSON, from which defaults may be missing."""
    patch: Data = {}
    for field, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        old, new = getattr(before, field), getattr(struct, field)
        if old == new:
            continue
        if isinstance(old, msgspec.Struct) and isinstance(new, msgspec.Struct):
            patch[name] = _changes(old, new)
        else:
            was, now = msgspec.to_builtins(old), msgspec.to_builtins(new)
            patch[name] = merge_patch_between(was, now) if isinstance(was, dict) and isinstance(now, dict) else now
    return patch
