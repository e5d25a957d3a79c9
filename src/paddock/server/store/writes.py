"""Deciding writes in memory and committing them in groups: the one writer that every implementation of the store shares.

    put/delete ──decide──> decided (in memory, ordered) ──group──> commit (the implementation) ──> history, followers, writers

A write is decided against the newest decided state, not the committed one, so that a group can hold several writes of one key.
When a commit fails, everything decided and not committed falls together: its writers get an error, the decided state goes back to
the committed one, and its revisions, which nobody has seen, are given out again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from paddock.server.store.contract import CommitListener, CommittedWrite, Make, RevisionConflict, StoredValue, StoreKey, StoreUnavailable
from paddock.server.store.history import History

Commit = Callable[[tuple[CommittedWrite, ...]], Awaitable[None]]
# A group that is larger makes its first writer wait for the last; a smaller one syncs more often than the disk likes.
LARGEST_GROUP = 512
_LOG = logging.getLogger(__name__)


class _Decided:
    """One decided write and the writer that waits for it."""

    def __init__(self, change: CommittedWrite, done: "asyncio.Future[int]") -> None:
        self.change = change
        self.revision = change.revision
        self._done = done

    async def committed(self) -> int:
        # Shielded: a client that goes away does not take back a write that is already decided.
        return await asyncio.shield(self._done)


class Writes:
    """The queue of decided writes."""

    def __init__(self, history: History, commit: Commit) -> None:
        self._history = history
        self._commit = commit
        self._followers: list[CommitListener] = []
        self._queue: list[tuple[CommittedWrite, asyncio.Future[int]]] = []
        self._decided: dict[StoreKey, StoredValue | None] = {}
        # the newest uncommitted write of each key in `_decided`
        self._waiting: dict[StoreKey, asyncio.Future[int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.next = history.revision + 1
        self.unavailable = ""

    def decided(self, key: StoreKey) -> StoredValue | None:
        """The newest value of a key, committed or not."""
        return self._decided[key] if key in self._decided else self._history.get(key)

    def deciding(self, collection: str) -> tuple[StoreKey, ...]:
        """The keys of a collection whose newest value is not committed."""
        return tuple(key for key in self._decided if key.collection == collection)

    def follow(self, follower: CommitListener) -> None:
        """Hear of every commit from now on."""
        self._followers.append(follower)

    def offer(self, key: StoreKey, expected: int, make: Make, *, delete: bool) -> _Decided:
        """Decide a write, or refuse it at once."""
        if self._closed or self.unavailable:
            raise StoreUnavailable("cannot write", why=self.unavailable or "the store is closed", fix="try again later")
        before = self.decided(key)
        found = before.revision if before is not None else 0
        if found != expected or (delete and before is None):
            raise RevisionConflict(key, expected=expected, revision=found)
        value = make(self.next)
        change = CommittedWrite(self.next, key, value, before, delete)
        self.next += 1
        self._decided[key] = None if delete else StoredValue(key, change.revision, value)
        done = asyncio.get_running_loop().create_future()
        self._waiting[key] = done
        self._queue.append((change, done))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return _Decided(change, done)

    async def settled(self, key: StoreKey) -> None:
        """Wait until what is decided of a key is committed; raises `StoreUnavailable` when it could not be stored."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            await asyncio.shield(waiting)

    async def settle(self) -> None:
        """Wait until everything decided is committed or failed."""
        while self._task is not None:
            await asyncio.shield(self._task)

    async def close(self) -> None:
        """Refuse further writes and settle."""
        self._closed = True
        await self.settle()

    async def _run(self) -> None:
        try:
            while self._queue:
                group, self._queue = self._queue[:LARGEST_GROUP], self._queue[LARGEST_GROUP:]
                try:
                    await self._commit(tuple(change for change, _ in group))
                except StoreUnavailable as error:
                    self._fall(group, error)
                except Exception as error:
                    # A defect, but a writer without an answer is worse than one with an error.
                    _LOG.exception("store commit failed")
                    self._fall(group, StoreUnavailable("cannot write", why=str(error), fix="look at the log of the server"))
                else:
                    self._publish(group)
        finally:
            self._task = None

    def _publish(self, group: list[tuple[CommittedWrite, "asyncio.Future[int]"]]) -> None:
        changes = tuple(change for change, _ in group)
        self._history.apply(changes)
        for change, done in group:
            # A later write of the key may be decided already.
            if self._waiting.get(change.key) is done:
                del self._waiting[change.key], self._decided[change.key]
        for follower in self._followers:
            try:
                follower(changes)
            except Exception:
                # The write is on the disk; the other followers and the writers must hear of it.
                _LOG.exception("store watcher failed")
        for change, done in group:
            if not done.done():
                done.set_result(change.revision)

    def _fall(self, group: list[tuple[CommittedWrite, "asyncio.Future[int]"]], error: StoreUnavailable) -> None:
        fallen, self._queue = [*group, *self._queue], []
        self._decided.clear()
        self._waiting.clear()
        self.next = self._history.revision + 1
        for _, done in fallen:
            if not done.done():
                done.set_exception(error)
                # The writer may have gone; its failure is then nobody's to fetch.
                done.exception()
