"""Writing a status: one request when something differs, none when nothing does."""

from typing import Any

import orjson

from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.client.options import WriteOptions, merge_patch
from paddock.client.target import Data, Target
from paddock.meta.patch import merge_patch_between
from paddock.runtime.cache import CachedObject

_STATUS = WriteOptions(subresource="status")


async def write_status(client: Client, target: Target[Any], seen: CachedObject, wanted: Data) -> CachedObject | None:
    """Make the status of an object the wanted one, members that are not wanted any more taken away; the object as it is then.

    None when there was nothing to write, and for one that is gone. Raises `Conflict` when the object has moved since it was seen: the
    next look decides anew.
    """
    before = orjson.loads(seen.raw).get("status") or {}
    change = merge_patch_between(before, wanted)
    if not change:
        return None
    metadata = {"resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
    try:
        return CachedObject.of(await client.patch_raw(target, seen.key, merge_patch({"metadata": metadata, "status": change}), _STATUS))
    except NotFound:
        return None
