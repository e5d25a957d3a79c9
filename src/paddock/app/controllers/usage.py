"""Use of a group of kinds, as the store shows it: what nobody uses need not run."""

import asyncio

from paddock.store.contract import CommittedWrite, Store


async def group_used(store: Store, group: str) -> None:
    """Wait until an object of the group is stored."""
    used = asyncio.Event()

    def look(changes: tuple[CommittedWrite, ...]) -> None:
        if not used.is_set() and any(_is_of(change.key.collection, group) for change in changes):
            used.set()

    store.follow(look)
    if any(_is_of(each, group) for each in store.collections()):
        used.set()
    await used.wait()


def _is_of(collection: str, group: str) -> bool:
    return collection.partition(".")[2] == group
