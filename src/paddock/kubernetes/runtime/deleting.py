"""Deleting what was seen, and nothing that has come in its place or has changed since."""

from typing import Any

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.runtime.cache import CachedObject


async def delete_seen(client: Client, target: Target[Any], seen: CachedObject, propagation: str = "Background") -> None:
    """Delete an object, and by default in the background what belongs to it; one that goes already, or has gone, is left alone.

    Raises `Conflict` when it has changed since it was seen: somebody may have taken it over, or may want to keep it.
    """
    if seen.meta.deleting:
        return
    try:
        await client.delete(
            target, seen.key, DeletionOptions(uid=seen.meta.uid, revision=seen.meta.resourceVersion, propagation=propagation)
        )
    except NotFound:
        return
