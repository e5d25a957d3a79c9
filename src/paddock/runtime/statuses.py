"""Writing a status: one request when something differs, none when nothing does."""

from typing import Any

import orjson

from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.client.options import Write, merge_patch
from paddock.client.target import Data, Target
from paddock.meta.patch import merge_patch_between
from paddock.runtime.cache import Seen

_STATUS = Write(subresource="status")


async def write_status(client: Client, target: Target[Any], seen: Seen, wanted: Data) -> bool:
    """Make the status of an object the wanted one, members that are not wanted any more taken away; whether something was written.

    Raises `Conflict` when the object has moved since it was seen: the next look decides anew. One that is gone needs none.
    """
    before = orjson.loads(seen.raw).get("status") or {}
    change = merge_patch_between(before, wanted)
    if not change:
        return False
    metadata = {"resourceVersion": seen.meta.resourceVersion, "uid": seen.meta.uid}
    try:
        await client.patch(target, seen.key, merge_patch({"metadata": metadata, "status": change}), _STATUS)
    except NotFound:
        return False
    return True
