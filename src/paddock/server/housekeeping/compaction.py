"""History is forgotten when enough of it has come together, so that neither memory nor the disk grows with the number of writes; and
when it is old, so that a client that pages slowly learns of it in the end, on a quiet server, too."""

from collections import deque

from paddock.server.context import ServerParts

# What watches may resume from.
KEPT_REVISIONS = 10_000


async def compact(parts: ServerParts, kept: int = KEPT_REVISIONS) -> None:
    """Forget what is older than the last `kept` revisions, once half as much again is there: a little at a time is dearer."""
    store = parts.store
    if store.revision - store.compacted > kept + kept // 2:
        await store.compact(store.revision - kept)
        parts.following.trim()


class HistoryCompactor:
    """Forgets what was there two looks ago already, so that what is kept is as old as two to three looks are apart."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._seen: deque[int] = deque()

    async def compact(self) -> None:
        store = self._parts.store
        self._seen.append(store.revision)
        if len(self._seen) > 2 and (old := self._seen.popleft()) > store.compacted:
            await store.compact(old)
            self._parts.following.trim()
