"""The first use of a dialect, as the store shows it: its controllers start then."""

import asyncio

from paddock.server.store.contract import CommittedWrite, Store

# Collections of objects that dialects create, and that can outlive the dialects' own objects.
_MADE = ("virtualmachines.kubevirt.io", "datavolumes.cdi.kubevirt.io", "persistentvolumeclaims")


async def in_use(store: Store, kinds: str, group: str) -> None:
    """Wait until an object is stored in a collection, or in any collection of an API group: `kinds` names either.

    At the start, an object counts as well that names the dialect's API group in a finalizer, say: only its controllers can finalize it.
    """
    used = asyncio.Event()

    def check(changes: tuple[CommittedWrite, ...]) -> None:
        if not used.is_set() and any(_is_of(change.key.collection, kinds) for change in changes):
            used.set()

    store.follow(check)
    if any(_is_of(each, kinds) for each in store.collections()) or _names(store, group.encode()):
        used.set()
    await used.wait()


def _is_of(collection: str, kinds: str) -> bool:
    return kinds in (collection, collection.partition(".")[2])


def _names(store: Store, group: bytes) -> bool:
    return any(group in record.value for collection in _MADE for record in store.scan(collection))
