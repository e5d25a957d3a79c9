"""Priority levels: how many requests run at once, and whose turn it is when more want to.

Pure: a level counts and chooses, and knows neither time nor tasks. A request that may run takes a seat. Seats that a level does not
use are lent to others, as far as it lends; a level that wants its own seats has them at once, so that for as long as the borrowed
ones are in use there are more seats than there should be.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import msgspec

W = TypeVar("W")


class LevelTerms(msgspec.Struct, frozen=True):
    name: str
    uid: str
    exempt: bool = False
    shares: int = 0
    # hundredths of its seats that others may use
    lendable: int = 0
    # hundredths of its seats that it may take from others; None: all there are
    borrowing: int | None = None
    # how many requests of one flow wait; 0: none, they are refused
    waiting: int = 0


def terms_of(data: dict[str, Any]) -> LevelTerms:
    """The terms of a stored object, which has been validated."""
    meta, spec = data["metadata"], data["spec"]
    if spec["type"] == "Exempt":
        return LevelTerms(meta["name"], meta["uid"], exempt=True)
    said = spec.get("limited") or {}
    response = said.get("limitResponse") or {}
    queuing = response.get("queuing") or {}
    # As many as upstream: there a flow may wait in so many queues as its hand has.
    queued = queuing.get("queueLengthLimit", 50) * queuing.get("handSize", 1) if response.get("type") == "Queue" else 0
    return LevelTerms(
        meta["name"],
        meta["uid"],
        shares=said.get("nominalConcurrencyShares", 30),
        lendable=said.get("lendablePercent") or 0,
        borrowing=said.get("borrowingLimitPercent"),
        waiting=queued,
    )


class FlowQueue(Generic[W]):
    """Requests that compete with those of other flows for the seats of a level.

    Newcomers, the first requests of their connections, take turns with the others, each in their order: of a thousand clients that share a
    flow, none keeps a new one waiting.
    """

    __slots__ = ("_others_next", "cost", "headers", "level", "newcomers", "waiters")

    def __init__(self, level: "Level[W]", headers: tuple[tuple[str, str], ...]) -> None:
        self.level = level
        # what answers say about it
        self.headers = headers
        self.newcomers: deque[W] = deque()
        self.waiters: deque[W] = deque()
        self._others_next = False
        # seconds that one request keeps everybody waiting; learnt
        self.cost = 0.0

    @property
    def waiting(self) -> int:
        """The number of requests that wait."""
        return len(self.waiters) + len(self.newcomers)

    def next(self) -> W:
        """Return the next waiter; at least one must wait."""
        is_newcomer = bool(self.newcomers) and not (self._others_next and self.waiters)
        self._others_next = is_newcomer
        return (self.newcomers if is_newcomer else self.waiters).popleft()


class Level(Generic[W]):
    """One priority level at work."""

    __slots__ = ("busy", "dispatched", "exempt", "queue", "refused", "resting", "seats", "terms", "waiting")

    def __init__(self, terms: LevelTerms) -> None:
        self.terms = terms
        self.exempt = terms.exempt
        self.seats = 0
        self.busy = 0
        # seats that are given back at the end of the round
        self.resting = 0
        # flows with waiters, in the order of their turns
        self.queue: deque[FlowQueue[W]] = deque()
        self.waiting = 0
        self.dispatched = 0
        self.refused = 0

    def wait(self, flow: FlowQueue[W], waiter: W, *, newcomer: bool = False) -> bool:
        """Let a request wait; False when too many of its flow do already. Any number of exempt ones may."""
        if flow.waiting >= self.terms.waiting and not self.exempt:
            self.refused += 1
            return False
        if not flow.waiting:
            self.queue.append(flow)
        (flow.newcomers if newcomer else flow.waiters).append(waiter)
        self.waiting += 1
        return True

    def next(self) -> tuple[FlowQueue[W], W]:
        """Return the next waiter: each flow in its turn. At least one must wait."""
        flow = self.queue.popleft()
        waiter = flow.next()
        self.waiting -= 1
        if flow.waiting:
            self.queue.append(flow)
        return flow, waiter

    def leave(self, flow: FlowQueue[W], waiter: W) -> None:
        """Somebody does not want to wait any more; nothing happens when their turn has come already."""
        found = next((each for each in (flow.newcomers, flow.waiters) if waiter in each), None)
        if found is None:
            return
        found.remove(waiter)
        self.waiting -= 1
        if not flow.waiting:
            self.queue.remove(flow)


class Levels(Generic[W]):
    """All levels, and the seats that they share."""

    def __init__(self, total: int) -> None:
        self._total = total
        self.known: dict[str, Level[W]] = {}
        # levels that are gone, and have requests still
        self.leaving: list[Level[W]] = []

    def set(self, terms: Iterable[LevelTerms]) -> None:
        """Take new terms. A level that stays keeps who is in it; one that goes keeps its seats until nobody waits there."""
        wanted = {each.name: each for each in terms}
        self.leaving = [each for each in self.every() if each.waiting and (each.terms.name not in wanted or each in self.leaving)]
        self.known = {name: self.known.get(name) or Level(each) for name, each in wanted.items()}
        shares = sum(each.shares for each in wanted.values())
        for name, level in self.known.items():
            level.terms = wanted[name]
            level.exempt = level.terms.exempt
            # Rounded up, so that whoever has a share has a seat.
            level.seats = -(-self._total * level.terms.shares // shares) if shares else 0

    def every(self) -> "list[Level[W]]":
        return [*self.known.values(), *self.leaving]

    def has_seat(self, level: Level[W]) -> bool:
        """Return whether a level may start one more: on a seat of its own, or on one that others lend."""
        if level.busy < level.seats or level.exempt:
            return True
        limit = level.terms.borrowing
        if limit is not None and level.busy >= level.seats + level.seats * limit // 100:
            return False
        lent = sum(max(0, each.busy - each.seats) for each in self.known.values())
        return lent < sum(_spare(each) for each in self.known.values() if each is not level)


def _spare(level: Level[W]) -> int:
    return 0 if level.exempt else min(level.seats * level.terms.lendable // 100, max(0, level.seats - level.busy))
