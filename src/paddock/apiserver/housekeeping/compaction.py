"""History is forgotten when enough of it has come together, so that neither memory nor the disk grows with the number of writes."""

from paddock.apiserver.parts import Parts

# What watches may resume from.
KEPT_REVISIONS = 10_000


async def compact(parts: Parts, kept: int = KEPT_REVISIONS) -> None:
    """Forget what is older than the last `kept` revisions, once half as much again is there: a little at a time is dearer."""
    store = parts.store
    if store.revision - store.compacted > kept + kept // 2:
        await store.compact(store.revision - kept)
        parts.following.trim()
