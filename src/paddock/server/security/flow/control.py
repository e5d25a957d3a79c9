"""Lets requests in: at once where there is room, in fair turns where there is not, with 429 where too many wait.

The server does one thing at a time, so that a client with many connections could keep the others waiting although no request takes
long. When much happens at once, time is therefore cut into rounds: a round starts what is due in fair order for about ten
milliseconds of work, the rest waits for the next one, and what arrives meanwhile takes its turn. While little happens, a request
costs a look-up and a few additions.

An exempt request needs no seat and is never refused, but it takes its turn like any other: a turn of the event loop that served all of two
thousand connections would keep everybody waiting, and a new connection needs several turns for its handshake.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter

from paddock.kubernetes.meta import failure
from paddock.server.context import User
from paddock.server.objects.encoding import decode
from paddock.server.routing import RequestRoute
from paddock.server.security.flow import levels, rules
from paddock.server.security.flow.levels import Level, Levels, LevelTerms
from paddock.server.security.flow.rules import FlowMatcher
from paddock.server.store.contract import CommittedWrite, Store

_GROUP = "flowcontrol.apiserver.k8s.io"
SCHEMAS, LEVELS = f"flowschemas.{_GROUP}", f"prioritylevelconfigurations.{_GROUP}"
_SCHEMA_HEADER, _LEVEL_HEADER = "X-Kubernetes-PF-FlowSchema-UID", "X-Kubernetes-PF-PriorityLevel-UID"
DEFAULT_SEATS = 240
# So many requests may start before anybody asks whether it is too much.
_BURST = 16
_ROUND_SECONDS = 0.010
# A request that took so long may have others behind it.
_LONG_SECONDS = 0.005
_LONGEST_WAIT = 15.0
_MOST_KEPT = 4096
# Characters of a request besides its user. Anybody may send a path as long as a request line.
_LONGEST_KEPT = 1024
_WEIGHT = 0.2
_MOST_COST = 0.2
# What is started is work in this round, however little of it was measured: only reads are.
_LEAST_COST = 0.0002
Waiter = asyncio.Future[None]
Flow = levels.FlowQueue[Waiter]


class FlowControl:
    """Follows the FlowSchemas and PriorityLevelConfigurations of a store."""

    def __init__(
        self, store: Store, seats: int = DEFAULT_SEATS, longest_wait: float = _LONGEST_WAIT, now: Callable[[], float] = perf_counter
    ) -> None:
        self._store = store
        self._now = now
        self._longest_wait = longest_wait
        self.levels: Levels[Waiter] = Levels(seats)
        self._schemas: list[FlowMatcher] = []
        self._flows: dict[tuple[str, str], Flow] = {}
        self._kept: dict[tuple[str, tuple[str, ...], str, str, str, str, str], Flow] = {}
        # Where a request goes that no schema takes, as long as there is none.
        self._free: Flow = Flow(Level(LevelTerms("", "", exempt=True)), ())
        self._started = 0
        self._pressed = False
        self._deadline = 0.0
        self._read()
        store.follow(self._changed)

    # --- what belongs where -----------------------------------------------------------------------------------------------

    def flow(self, user: User, route: RequestRoute) -> Flow:
        """The flow of a request."""
        where = route.path if not route.is_resource else route.plural
        key = (user.name, user.groups, route.verb, route.group, where, route.subresource, route.namespace)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._forget()
            found = self._find(user, route)
            if sum(map(len, key[2:])) <= _LONGEST_KEPT:
                self._kept[key] = found
        return found

    def _find(self, user: User, route: RequestRoute) -> Flow:
        for schema in self._schemas:
            level = self.levels.known.get(schema.level)
            if level is not None and schema.match(user, route):
                # No namespace is longer: whoever sends longer ones shares a flow with others that begin alike.
                named = (schema.uid, schema.distinguisher(user, route)[:_LONGEST_KEPT])
                if named not in self._flows:
                    if len(self._flows) >= _MOST_KEPT:
                        self._forget()
                    self._flows[named] = Flow(level, ((_SCHEMA_HEADER, schema.uid), (_LEVEL_HEADER, level.terms.uid)))
                return self._flows[named]
        return self._free

    def _forget(self) -> None:
        """Flows where nobody waits can be made again."""
        self._kept.clear()
        self._flows = {key: flow for key, flow in self._flows.items() if flow.waiting}

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection in (SCHEMAS, LEVELS) for change in changes):
            self._read()

    def _read(self) -> None:
        self.levels.set(levels.terms_of(decode(each.value)) for each in self._store.scan(LEVELS))
        self._schemas = rules.ordered(rules.schema_of(decode(each.value)) for each in self._store.scan(SCHEMAS))
        # Who waits in a flow of before still gets its turn: the rounds go on until its level is empty.
        self._kept.clear()
        self._flows.clear()

    # --- in and out -------------------------------------------------------------------------------------------------------

    def enter(self, flow: Flow) -> bool:
        """Take a seat; False when the request has to wait for one."""
        self._started += 1
        if self._started >= _BURST and not self._pressed:
            self._press()
        level = flow.level
        if level.exempt:
            return not level.waiting and self._is_time()
        if level.waiting or not self._is_time() or not (level.busy < level.seats or self.levels.has_seat(level)):
            return False
        level.busy += 1
        level.dispatched += 1
        return True

    async def wait(self, flow: Flow, *, newcomer: bool = False) -> None:
        """Wait for a seat and take it; raises 429 when too many wait, or after too long."""
        waiter: Waiter = asyncio.get_running_loop().create_future()
        level = flow.level
        if not level.wait(flow, waiter, newcomer=newcomer):
            raise failure.too_many_requests()
        if not self._pressed:
            self._press()
        try:
            async with asyncio.timeout(None if level.exempt else self._longest_wait):
                await waiter
        except (TimeoutError, asyncio.CancelledError) as error:
            if waiter.done() and not waiter.cancelled():
                # The seat was given in the same moment.
                self.leave(flow)
            else:
                level.leave(flow, waiter)
            if isinstance(error, TimeoutError):
                level.refused += 1
                raise failure.too_many_requests() from None
            raise

    def leave(self, flow: Flow, seconds: float = 0.0) -> None:
        """Give the seat back. `seconds` tells for how long the request kept the server from doing anything else."""
        if seconds:
            # More than that is waiting, not work.
            seconds = min(seconds, _MOST_COST)
            flow.cost += (seconds - flow.cost) * _WEIGHT
            if seconds > _LONG_SECONDS and not self._pressed:
                self._press()
        level = flow.level
        if level.exempt:
            return
        if self._pressed:
            level.resting += 1
        else:
            level.busy -= 1
            if level.waiting:
                self._press()

    # --- rounds -----------------------------------------------------------------------------------------------------------

    def _is_time(self) -> bool:
        return not self._pressed or self._now() < self._deadline

    def _press(self) -> None:
        self._pressed = True
        self._deadline = self._now() + _ROUND_SECONDS
        asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        """Seats are given back, and those who wait have their turns."""
        self._pressed = False
        self._started = 0
        budget = _ROUND_SECONDS
        is_left = False
        for level in (self._free.level, *self.levels.every()):
            level.busy -= level.resting
            level.resting = 0
            first = True
            # Each level starts something in each round, whatever the others take.
            while level.waiting and (first or budget > 0) and self.levels.has_seat(level):
                flow, waiter = level.next()
                if not waiter.done():
                    level.busy += not level.exempt
                    level.dispatched += 1
                    waiter.set_result(None)
                    budget -= max(flow.cost, _LEAST_COST)
                    first = False
            is_left = is_left or (level.waiting > 0 and self.levels.has_seat(level))
        if is_left or budget < _ROUND_SECONDS:
            self._press()
