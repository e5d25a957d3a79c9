"""The contract of a store; every implementation passes the same test suite.

A store maps keys to bytes and numbers every write with one global revision: 1, 2, 3, ... without gaps, never used twice, not
even after a power cut or a restored backup. Writes are *decided* at once, in memory, in the order they are offered, and
*committed* in groups; only what is committed is seen by readers and followers, and only then is a writer answered.

All calls come from one thread, the one that runs the event loop.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from paddock.base.errors import Terminal, Transient


class StoreKey(NamedTuple):
    """The place of a value. `collection` is a kind's own name space; `namespace` is empty for cluster-wide objects."""

    collection: str
    namespace: str
    name: str


class StoredValue(NamedTuple):
    """A value with the revision of the write that put it there."""

    key: StoreKey
    revision: int
    value: bytes


class CommittedWrite(NamedTuple):
    """One committed write. `value` is the new value, for a deletion the last one; `previous` is what it replaced, if anything."""

    revision: int
    key: StoreKey
    value: bytes
    previous: StoredValue | None
    deleted: bool


class RevisionConflict(Terminal):
    """The key is not at the revision that the writer expected; 0 stands for "does not exist"."""

    def __init__(self, key: StoreKey, *, expected: int, revision: int) -> None:
        super().__init__(
            f"{key.collection} {key.name} is at revision {revision}, not {expected}", fix="read it again and repeat the change"
        )
        self.key = key
        self.expected = expected
        self.found = revision


class Compacted(Terminal):
    """The history before a revision is gone."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is too old, history starts at {oldest}", fix="list again and continue from there")
        self.asked = asked
        self.oldest = oldest


class StoreUnavailable(Transient):
    """The store cannot write at the moment. Reading goes on, and writing comes back by itself when the cause is gone."""


class Damaged(Terminal):
    """The stored data does not hold together."""


# Makes the value when its revision is known, because objects carry their own revision.
Make = Callable[[int], bytes]


class Pending(Protocol):
    """A write that is decided and not yet committed."""

    revision: int

    async def committed(self) -> int:
        """Wait for the commit and return the revision; raises `StoreUnavailable` when it could not be stored."""


class CommitListener(Protocol):
    """Called with every committed group of changes, in order, before the writers are answered. Must not raise or wait."""

    def __call__(self, changes: tuple[CommittedWrite, ...]) -> None: ...


class Store(Protocol):
    """A revisioned key-value store with history."""

    @property
    def revision(self) -> int:
        """The last committed revision."""

    @property
    def compacted(self) -> int:
        """History is complete from the revision after this one."""

    @property
    def unavailable(self) -> str:
        """The reason why writes fail at the moment; empty if they work."""

    def decided(self, key: StoreKey) -> StoredValue | None:
        """The newest value of a key, committed or not: what the next write is decided on."""

    def get(self, key: StoreKey) -> StoredValue | None:
        """The committed value of a key."""

    def scan(self, collection: str) -> Iterator[StoredValue]:
        """The committed values of a collection, by namespace and name."""

    def collections(self) -> tuple[str, ...]:
        """The collections that hold something."""

    def deciding(self, collection: str) -> tuple[StoreKey, ...]:
        """The keys of a collection whose newest value is decided and not yet committed."""

    def put(self, key: StoreKey, expected: int, make: Make) -> Pending:
        """Write a value if the key is decided at `expected` (0: none yet); raises `RevisionConflict` or `StoreUnavailable` at once."""

    def delete(self, key: StoreKey, expected: int, make: Make) -> Pending:
        """Delete a key that is decided at `expected`; `make` gives the last value that followers see."""

    async def settled(self, key: StoreKey) -> None:
        """Wait until what is decided of a key is committed: before an answer rests on it."""

    def follow(self, follower: CommitListener) -> None:
        """Hear of every commit from now on."""

    def history(self, after: int) -> tuple[CommittedWrite, ...]:
        """The committed changes after a revision; raises `Compacted`."""

    def snapshot(self, collection: str, revision: int) -> tuple[StoredValue, ...]:
        """A collection as it was at a revision, by namespace and name; raises `Compacted`."""

    async def compact(self, revision: int) -> None:
        """Forget history up to a revision. Current values stay."""

    async def close(self) -> None:
        """Commit what is decided, then close."""
