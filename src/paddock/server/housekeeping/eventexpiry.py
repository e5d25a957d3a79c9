"""Events are forgotten an hour after they were last written.

The hour is counted by a clock that nobody sets. Only what was written before this server started is judged by its dates.
"""

from collections.abc import Callable

from paddock.kubernetes.meta import ages, failure
from paddock.server.context import ServerParts
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions
from paddock.server.store.contract import CommittedWrite, StoredValue, StoreKey

LIFE_SECONDS = 3600.0
_COLLECTION = "events"
_TIMES = ("lastTimestamp", "eventTime", "firstTimestamp")


class EventExpiry:
    """Knows when each event ends. `timer` tells seconds since any moment, and is never set."""

    def __init__(self, parts: ServerParts, timer: Callable[[], float]) -> None:
        self._parts = parts
        self._timer = timer
        now, date = timer(), parts.clock.seconds()
        self._ends = {record.key: now + LIFE_SECONDS - _age(record, date) for record in parts.store.scan(_COLLECTION)}
        parts.store.follow(self._changed)

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection != _COLLECTION:
                continue
            # Written anew it stands at the end again, so that the ends are in order but for those of the start.
            self._ends.pop(change.key, None)
            if not change.deleted:
                self._ends[change.key] = self._timer() + LIFE_SECONDS

    async def forget_old(self) -> int:
        """Delete the events that are old enough; returns how many."""
        now = self._timer()
        gone = 0
        for key in [key for key, end in self._ends.items() if end <= now]:
            gone += await self._forget(key)
        return gone

    async def _forget(self, key: StoreKey) -> int:
        resource = self._parts.registry.find("", "v1", _COLLECTION)
        record = self._parts.store.get(key)
        if resource is None or record is None:
            return 0
        try:
            await self._parts.writer.delete(resource, key.namespace, key.name, DeleteOptions(revision=str(record.revision)))
        except failure.Failure as said_no:
            if said_no.code not in (404, 409):
                raise
            return 0
        return 1


def _age(record: StoredValue, date: float) -> float:
    """Return the age of an event by its dates; an event is never younger than zero."""
    data = decode(record.value)
    said = [data.get(key) for key in _TIMES]
    said += [(data.get("series") or {}).get("lastObservedTime"), data["metadata"].get("creationTimestamp")]
    times = [seconds for text in said if text and (seconds := ages.seconds_of(text)) is not None]
    return min(LIFE_SECONDS, max(0.0, date - max(times))) if times else 0.0
