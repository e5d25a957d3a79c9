"""Finalizers: put on before anything is made that has to be cleared away, taken off when it is."""

from typing import Any

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.runtime.cache import CachedObject, Meta

# Kubernetes' finalizer of a deletion that leaves the dependents (`--cascade=orphan`). The garbage collector takes it off as soon as it
# has taken the owner's references off the dependents.
ORPHAN = "orphan"


def leaves_dependents(meta: Meta) -> bool:
    """Return whether an object is being deleted without its dependents, and the garbage collector has not finished with them."""
    return meta.deleting and ORPHAN in (meta.finalizers or ())


async def put_on(client: Client, target: Target[Any], meta: Meta, finalizer: str) -> CachedObject | None:
    """Make sure that an object waits for us; the object as it is then, when something was written. One that is going takes no new ones.

    Raises `Conflict` when the object has moved since it was seen: the next look decides anew.
    """
    present = meta.finalizers or ()
    if finalizer in present or meta.deleting:
        return None
    return await _write(client, target, meta, (*present, finalizer))


async def take_off(client: Client, target: Target[Any], meta: Meta, finalizer: str) -> bool:
    """Let an object go as far as we are concerned; whether something was written."""
    present = meta.finalizers or ()
    if finalizer not in present:
        return False
    try:
        await _write(client, target, meta, tuple(each for each in present if each != finalizer))
    except NotFound:
        return False
    return True


async def _write(client: Client, target: Target[Any], meta: Meta, finalizers: tuple[str, ...]) -> CachedObject:
    # The list is replaced as a whole, so the revision has to be the one it was read at.
    metadata = {"finalizers": list(finalizers) or None, "resourceVersion": meta.resourceVersion, "uid": meta.uid}
    return CachedObject.of(await client.patch_raw(target, meta.key, merge_patch({"metadata": metadata})))
