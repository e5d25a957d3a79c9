"""The limits of connections and their requests, and the count of open connections."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from paddock.server.edge.bodybudget import BodyBudget
from paddock.server.edge.http import HttpRequest, HttpResponse


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of connections and their requests."""

    head_bytes: int = 64 * 1024
    headers: int = 100
    body_bytes: int = 3 * 1024 * 1024
    # all large bodies together; those of one user may have a quarter
    bodies_bytes: int = 128 * 1024 * 1024
    # a head or a body that takes longer is a slow-loris
    receive_seconds: float = 30.0
    idle_seconds: float = 180.0
    # a client that takes nothing of its answer for so long does not want it
    send_seconds: float = 60.0
    pipelined: int = 16
    # connections in all, and from one address; connections beyond that get 429
    connections: int = 5000
    connections_per_address: int = 2500
    # headers of the refusals that are sent without a handler
    refusal_headers: tuple[tuple[str, str], ...] = ()


class CountedConnection(Protocol):
    """A connection as `ConnectionStats` sees it."""

    def dispensable(self, address: str) -> tuple[bool, float] | None:
        """Return how late this connection gives way to a new one: None if not at all, or if only those of another address may."""

    def stop(self) -> None:
        """Finish what is being answered, then close."""

    def abort(self) -> None: ...


class ConnectionStats:
    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self.members: set[CountedConnection] = set()
        self._addresses: dict[str, int] = {}
        self.refused = 0
        self.bodies = BodyBudget(limits.bodies_bytes, max(limits.bodies_bytes // 4, limits.body_bytes))
        # called with each request that is refused here, without its body
        self.tell: Callable[[HttpRequest, HttpResponse], None] = lambda request, answer: None

    def join(self, connection: CountedConnection, address: str) -> bool:
        """Count a connection until it leaves. Return False if there were too many before; a refused connection counts, too.

        Where there are too many, the one that has idled for longest gives way, and those first that showed no valid credentials.
        """
        count = self._addresses.get(address, 0)
        is_welcome = True
        if count >= self._limits.connections_per_address:
            is_welcome = self._make_room(address)
        elif len(self.members) >= self._limits.connections:
            is_welcome = self._make_room("")
        self._addresses[address] = count + 1
        self.members.add(connection)
        self.refused += not is_welcome
        return is_welcome

    def _make_room(self, address: str) -> bool:
        """End the connection that is missed least, of an address or of any. Return False if all are at work."""
        ranked = [(rank, each) for each in self.members if (rank := each.dispensable(address)) is not None]
        if not ranked:
            return False
        min(ranked, key=lambda pair: pair[0])[1].abort()
        return True

    def leave(self, connection: CountedConnection, address: str) -> None:
        """Count a connection no longer."""
        self.members.discard(connection)
        left = self._addresses.get(address, 1) - 1
        if left:
            self._addresses[address] = left
        else:
            self._addresses.pop(address, None)
