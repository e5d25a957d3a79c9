"""Correlation of events before they are sent: a repetition increments the count of the first, many similar ones become one, and
an object that has too many is not told about any more. Pure; the limits are client-go's, so that users see what they know."""

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.reference import InvolvedObject

_MOST_KNOWN = 4096
# More than this many different notes of one reason about one object within the time become one event.
_SIMILAR, _SIMILAR_SECONDS = 10, 600.0
# What one object may have at once, and how often one more.
_BURST, _REFILL_SECONDS = 25.0, 300.0
_LONGEST_NOTE = 1024
_LONGEST_NAME = 253
_COMBINED = "(combined from similar events): "


class EventRequest(msgspec.Struct, frozen=True):
    """An event as somebody tells it. `kind` is Normal or Warning."""

    about: InvolvedObject
    kind: str
    reason: str
    note: str
    # who tells it, if not the program as a whole
    component: str = ""


class EventWrite(msgspec.Struct, frozen=True):
    """An event to write: the whole of it, and, where it counts up one that exists, what changes of it."""

    event: Data
    counts_up: bool


K = TypeVar("K")
V = TypeVar("V")


class _Recent(Generic[K, V]):
    def __init__(self) -> None:
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _MOST_KNOWN:
            self._values.popitem(last=False)


class _Bucket:
    """The number of events that an object may still have."""

    def __init__(self, now: float) -> None:
        self.left = _BURST
        self.at = now

    def take(self, now: float) -> bool:
        self.left = min(_BURST, self.left + (now - self.at) / _REFILL_SECONDS)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class _Similar:
    """The different notes of one reason about one object."""

    def __init__(self) -> None:
        self.notes: set[str] = set()
        self.last = 0.0


_Sort = tuple[InvolvedObject, str, str]


class Correlator:
    """Decides about events, one after the other."""

    def __init__(self, component: str, instance: str) -> None:
        self._component = component
        self._instance = instance
        self._buckets: _Recent[InvolvedObject, _Bucket] = _Recent()
        self._similar: _Recent[_Sort, _Similar] = _Recent()
        self._sent: _Recent[tuple[_Sort, str], Data] = _Recent()

    def decide(self, event_request: EventRequest, now: float) -> EventWrite | None:
        """Return the write for an event; None when there were too many about the object."""
        # The same object at another revision is the same object.
        about = msgspec.structs.replace(event_request.about, revision="")
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = _Bucket(now)
            self._buckets.put(about, bucket)
        sort = (about, event_request.kind, event_request.reason)
        note = _short(event_request.note)
        combined = self._is_one_of_many(sort, note, now)
        known = self._sent.get((sort, "" if combined else note))
        if not bucket.take(now):
            return None
        if combined:
            note = _short(_COMBINED + note)
        event = self._new(event_request, note, now) if known is None else _counted(known, note, now)
        self._sent.put((sort, "" if combined else note), event)
        return EventWrite(event, known is not None)

    def forget(self, event: Data) -> Data:
        """The event that was to be counted up is gone: it begins anew."""
        fresh = {key: value for key, value in event.items() if key != "count"}
        return {**fresh, "count": 1, "firstTimestamp": event["lastTimestamp"]}

    def _is_one_of_many(self, sort: _Sort, note: str, now: float) -> bool:
        similar = self._similar.get(sort)
        if similar is None or now - similar.last > _SIMILAR_SECONDS:
            similar = _Similar()
            self._similar.put(sort, similar)
        similar.last = now
        if len(similar.notes) < _SIMILAR:
            similar.notes.add(note)
        return note not in similar.notes

    def _new(self, event_request: EventRequest, note: str, now: float) -> Data:
        about = event_request.about
        suffix = f".{int(now * 1e9):x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            # Objects of cluster scope have theirs in `default`, where kubectl looks for them.
            "metadata": {
                "name": about.name[: _LONGEST_NAME - len(suffix)].rstrip("-.") + suffix,
                "namespace": about.namespace or "default",
            },
            "involvedObject": about.data(),
            "reason": event_request.reason,
            "message": note,
            "type": event_request.kind,
            "source": {"component": event_request.component or self._component, "host": self._instance},
            "reportingComponent": event_request.component or self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": ages.timestamp(now),
            "lastTimestamp": ages.timestamp(now),
            "count": 1,
        }


def _counted(known: Data, note: str, now: float) -> Data:
    return {**known, "message": note, "count": known["count"] + 1, "lastTimestamp": ages.timestamp(now)}


def _short(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return note
    return encoded[: _LONGEST_NOTE - 3].decode(errors="ignore") + "..."
