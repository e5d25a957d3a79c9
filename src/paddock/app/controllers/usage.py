"""Use of kinds, as the store shows it: what nobody uses need not run."""

import asyncio

from paddock.store.contract import CommittedWrite, Store

# What a dialect makes, and what can be left of it when its own objects are gone.
_MADE = ("virtualmachines.kubevirt.io", "datavolumes.cdi.kubevirt.io", "persistentvolumeclaims")


async def in_use(store: Store, kinds: str, group: str) -> None:
    """Wait until an object is stored in a collection, or in one of a group: `kinds` names either.

    Whatever is stored and names the API group, as its finalizers and owner references do, counts as well: somebody has to clear it away.
    """
    used = asyncio.Event()

    def look(changes: tuple[CommittedWrite, ...]) -> None:
        if not used.is_set() and any(_is_of(change.key.collection, kinds) for change in changes):
            used.set()

    store.follow(look)
    if any(_is_of(each, kinds) for each in store.collections()) or _names(store, group.encode()):
        used.set()
    await used.wait()


def _is_of(collection: str, kinds: str) -> bool:
    return kinds in (collection, collection.partition(".")[2])


def _names(store: Store, group: bytes) -> bool:
    return any(group in record.value for collection in _MADE for record in store.scan(collection))
