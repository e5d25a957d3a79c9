"""Watches: cursors over the committed changes of a collection (docs/spec/kube-api.md section 3).

Every commit becomes events once. An event is encoded once per shape (the version and form that clients asked for), however many
watch it, and a watcher gets all it has missed in one write. Watchers are served in slices, so that the writer who caused the
events is answered before the last of a thousand watchers.

A watcher that does not read is not sent more than its connection holds; it keeps its place, and when that place is forgotten,
or nothing moved for too long, its stream ends. The client then resumes from the last revision it saw, so nothing is lost.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Protocol

from paddock.kubernetes.meta.failure import Failure
from paddock.server.edge.http import StreamSink
from paddock.server.objects.encoding import Envelope, decode, encode, envelope, stamp
from paddock.server.objects.reading import Fields, Query
from paddock.server.objects.views import ViewedStore
from paddock.server.resources.conversion import Conversion
from paddock.server.store.contract import CommittedWrite, Store, StoredValue

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
# What a connection may hold before its watcher has to wait.
BACKLOG_BYTES = 256 * 1024
# Watchers served in one turn of the event loop, which takes half a millisecond. Turns are short because a write in between needs several.
SLICE = 10
# More events than these are not joined for several watchers at once.
MOST_JOINED = 64
# Events that one question to a conversion may be about.
ASKED_TOGETHER = 200
STALLED_SECONDS = 60.0
BOOKMARK_SECONDS = 45.0


class WatchForm(Protocol):
    """The form in which a watch writes objects."""

    @property
    def identity(self) -> Hashable:
        """Equal for watchers whose frames are the same bytes."""

    def frame(self, event: str, value: bytes) -> bytes:
        """One line of the stream, from stored bytes."""

    def bookmark(self, revision: int, *, initial: bool) -> bytes:
        """A line that says only how far the stream is complete."""

    @property
    def conversion(self) -> Conversion | None:
        """The conversion that a frame needs first; mostly None."""


_NO_FRAMES: dict[Hashable, bytes] = {}
_NO_FORMS: dict[tuple[Conversion, bool], bytes] = {}


class ServedEvent:
    """A change with everything that watchers ask of it, each worked out once."""

    # There is one for each change of history, and most are never looked at: what is empty is shared.
    __slots__ = ("_converted", "_frames", "_labels", "change")

    def __init__(self, change: CommittedWrite) -> None:
        self.change = change
        self._frames: dict[Hashable, bytes] = _NO_FRAMES
        # in the version of a conversion, as far as somebody has asked
        self._converted: dict[tuple[Conversion, bool], bytes] = _NO_FORMS
        self._labels: tuple[dict[str, str], dict[str, str]] | None = None

    def frame(self, shape: WatchForm, event: str, *, former: bool) -> bytes:
        """The line for an event of this type; with `former`, of the object as it was before, at the revision of the change."""
        place = (shape.identity, event, former)
        made = self._frames.get(place)
        if made is None:
            made = shape.frame(event, self.value(shape.conversion, former=former))
            self._frames = {**self._frames, place: made}
        return made

    def value(self, conversion: Conversion | None, *, former: bool) -> bytes:
        """The object after the change, or before it at the revision of the change; converted where it has been."""
        if conversion is not None and (conversion, former) in self._converted:
            return self._converted[conversion, former]
        return self._former() if former else self.change.value

    def missing(self, conversion: Conversion, *, former: bool) -> tuple[bool, ...]:
        """The forms (`former`) that have to be converted before this event can be shown."""
        wanted = (False, True) if former and self.change.previous is not None else (False,)
        return tuple(each for each in wanted if (conversion, each) not in self._converted)

    def converted(self, conversion: Conversion, value: bytes, *, former: bool) -> None:
        self._converted = {**self._converted, (conversion, former): value}

    def forget_frames(self) -> bool:
        """Drop the lines; says whether there were any."""
        there = bool(self._frames)
        self._frames = _NO_FRAMES
        return there

    def labels(self) -> tuple[dict[str, str], dict[str, str]]:
        """The labels before and after."""
        if self._labels is None:
            previous = self.change.previous
            before: Envelope = envelope(previous.value) if previous is not None else Envelope()
            self._labels = (before.labels, envelope(self.change.value).labels)
        return self._labels

    def _former(self) -> bytes:
        previous = self.change.previous
        return self.change.value if previous is None else stamp(decode(previous.value), self.change.revision)


class OpenWatch:
    """One open watch. `cursor` is the revision up to which everything was sent."""

    __slots__ = (
        "bookmarks",
        "collection",
        "common",
        "cursor",
        "ended",
        "failure",
        "is_over",
        "last_bookmark",
        "query",
        "shape",
        "sink",
        "waiting",
    )

    def __init__(self, collection: str, query: Query, shape: WatchForm, sink: StreamSink, *, cursor: int, bookmarks: bool) -> None:
        self.collection = collection
        self.query = query
        self.shape = shape
        self.sink = sink
        self.cursor = cursor
        self.bookmarks = bookmarks
        self.last_bookmark = 0.0
        # Equal for watchers that are sent the same bytes; None for those who see a selection.
        selects = bool(query.labels.requirements or query.fields.conditions)
        self.common: Hashable = None if selects or shape.conversion is not None else (shape.identity, query.namespace)
        self.waiting = False
        # nothing more is written to it
        self.is_over = False
        self.ended = asyncio.get_running_loop().create_future()
        self.failure: bytes = b""

    def line(self, event: ServedEvent) -> bytes | None:
        """Return the line that this watcher gets of an event, or None."""
        change, query = event.change, self.query
        if query.namespace and change.key.namespace != query.namespace:
            return None
        if not query.labels.requirements and not query.fields.conditions:
            kind = DELETED if change.deleted else ADDED if change.previous is None else MODIFIED
            return event.frame(self.shape, kind, former=False)
        before, after = self._selects(event)
        if after:
            return event.frame(self.shape, MODIFIED if before else ADDED, former=False)
        if before:
            return event.frame(self.shape, DELETED, former=not change.deleted)
        return None

    def _selects(self, event: ServedEvent) -> tuple[bool, bool]:
        """Return whether the object was selected before the change, and whether it is after it."""
        change = event.change
        before, after = change.previous is not None, not change.deleted
        if self.query.labels.requirements:
            labels = event.labels()
            before = before and self.query.labels.matches(labels[0])
            after = after and self.query.labels.matches(labels[1])
        if self.query.fields.conditions:
            conversion = self.shape.conversion
            if conversion is not None:
                before = before and self._matches(event.value(conversion, former=True), change)
                after = after and self._matches(event.value(conversion, former=False), change)
            else:
                before = before and change.previous is not None and self.query.fields.matches(Fields(change.previous).value)
                after = after and self._matches(change.value, change)
        return before, after

    def _matches(self, value: bytes, change: CommittedWrite) -> bool:
        return self.query.fields.matches(Fields(StoredValue(change.key, change.revision, value)).value)

    def end(self, failure: bytes = b"") -> None:
        """Close the stream, after a last line if one is given."""
        if not self.is_over:
            self.is_over = True
            self.failure = failure
            if not self.ended.done():
                self.ended.set_result(None)


class WatchHub:
    """All watches, and the events they may still have to see."""

    def __init__(self, store: Store, views: ViewedStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._views = views
        # Collections with views that somebody watches, and the revision after which their events are complete. Nobody makes the others'.
        self._viewed: dict[str, int] = {}
        self._clock = clock
        self._events: dict[str, list[ServedEvent]] = {}
        # Both are dictionaries because watches are served in the order they came.
        self._watchers: dict[str, dict[OpenWatch, None]] = {}
        self._dirty: dict[str, None] = {}
        self._pump: asyncio.Task[None] | None = None
        self._helpers: set[asyncio.Task[None]] = set()
        self._joined: dict[Hashable, bytes] = {}
        # the last of them and its place: most watchers of a collection are sent the same
        self._last: tuple[Hashable, bytes] = (None, b"")
        for change in store.history(store.compacted):
            self._note(change.key.collection, change)
        store.follow(self._committed)

    @property
    def count(self) -> int:
        """The number of open watches."""
        return sum(len(watchers) for watchers in self._watchers.values())

    def add(self, watcher: OpenWatch) -> None:
        """Serve a watcher from its cursor on; raises `Compacted` when that is forgotten."""
        self._store.history(watcher.cursor)
        if self._views.has_views(watcher.collection):
            self._begin_views(watcher.collection, watcher.cursor)
        watcher.last_bookmark = self._clock()
        self._watchers.setdefault(watcher.collection, {})[watcher] = None
        self._wake(watcher.collection)

    def remove(self, watcher: OpenWatch) -> None:
        """Serve a watcher no longer."""
        self._watchers.get(watcher.collection, {}).pop(watcher, None)
        if not self._watchers.get(watcher.collection) and self._viewed.pop(watcher.collection, None) is not None:
            del self._events[watcher.collection]
        # Whoever is still going through the watchers must not write after the end of its stream.
        watcher.end()

    def end_collection(self, collection: str) -> None:
        """Close all watches of a collection: what it is has changed."""
        for watcher in self._watchers.get(collection, ()):
            watcher.end()

    def end_all(self) -> None:
        """Close all watches: the server stops."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.end()

    def trim(self) -> None:
        """Forget the events that the store has forgotten."""
        for collection, events in self._events.items():
            forgotten = bisect_right(events, self._store.compacted, key=_revision)
            if not forgotten:
                continue
            newest = events[forgotten - 1].change.revision
            for watcher in tuple(self._watchers.get(collection, ())):
                # Who has not been served yet has not missed anything so far, and must not now.
                if not watcher.waiting:
                    self._deliver(watcher, events)
                if watcher.cursor < newest:
                    watcher.end()
            del events[:forgotten]

    def tell_time(self) -> None:
        """Send bookmarks that are due; call this every few seconds."""
        now = self._clock()
        for watchers in self._watchers.values():
            for watcher in watchers:
                if watcher.bookmarks and now - watcher.last_bookmark >= BOOKMARK_SECONDS:
                    self.bookmark(watcher)

    def bookmark(self, watcher: OpenWatch) -> None:
        """Tell a watcher how far its stream is complete, if it has taken everything."""
        if watcher.waiting or not self._deliver(watcher, self._events.get(watcher.collection, [])):
            return
        watcher.last_bookmark = self._clock()
        watcher.cursor = self._store.revision
        watcher.sink.write(watcher.shape.bookmark(self._store.revision, initial=False))

    async def close(self) -> None:
        """End all watches and stop serving."""
        self.end_all()
        self._dirty.clear()
        for task in (self._pump, *self._helpers):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def _committed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            self._note(change.key.collection, change)
            for target in self._views.targets(change.key.collection):
                if target in self._viewed:
                    for each in self._views.changes_of_views(change, target):
                        self._note(target, each)

    def _note(self, collection: str, change: CommittedWrite) -> None:
        """Keep a change for those who watch, and wake them."""
        if self._views.has_views(collection) and collection not in self._viewed:
            return
        self._events.setdefault(collection, []).append(ServedEvent(change))
        if self._watchers.get(collection):
            self._wake(collection)

    def _begin_views(self, collection: str, cursor: int) -> None:
        """Have the events of a collection with views that a watcher from this cursor on has to see."""
        if self._viewed.get(collection, cursor + 1) > cursor:
            self._events[collection] = [ServedEvent(change) for change in self._views.changes(collection, cursor)]
            self._viewed[collection] = cursor

    def _wake(self, collection: str) -> None:
        self._dirty[collection] = None
        if self._pump is None:
            self._pump = asyncio.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            # Answer the writers first: the second turn of the loop wakes their tasks, and sends what they wrote.
            for _ in range(2):
                await asyncio.sleep(0)
            while self._dirty:
                collection = next(iter(self._dirty))
                del self._dirty[collection]
                for count, watcher in enumerate(tuple(self._watchers.get(collection, ())), 1):
                    if not watcher.waiting:
                        self._deliver(watcher, self._events.get(collection, []))
                    if count % SLICE == 0:
                        await asyncio.sleep(0)
                self._joined.clear()
                self._last = (None, b"")
                # Whoever is late has them made again; kept, they would be as large as all of history.
                for event in reversed(self._events.get(collection, [])):
                    if not event.forget_frames():
                        break
        finally:
            self._pump = None
            if self._dirty:
                self._wake(next(iter(self._dirty)))

    def _deliver(self, watcher: OpenWatch, events: list[ServedEvent]) -> bool:
        """Send what is new; False when something is left, for which the watcher is served again."""
        if watcher.is_over:
            return False
        if not events or events[-1].change.revision <= watcher.cursor:
            return True
        if watcher.common is not None and self._deliver_joined(watcher, events):
            return True
        if watcher.sink.closed:
            return False
        start = bisect_right(events, watcher.cursor, key=_revision)
        coming = events[start:]
        if watcher.shape.conversion is not None:
            coming = coming[:ASKED_TOGETHER]
            if self._asks(watcher, watcher.shape.conversion, coming):
                return False
            if len(coming) < len(events) - start:
                self._wake(watcher.collection)
        lines, size = [], watcher.sink.backlog
        for event in coming:
            # Views of one source have one revision, and are sent together.
            if size > BACKLOG_BYTES and event.change.revision != watcher.cursor:
                self._wait_for(watcher)
                break
            line = watcher.line(event)
            if line is not None:
                lines.append(line)
                size += len(line)
            watcher.cursor = event.change.revision
        if lines:
            watcher.sink.write(b"".join(lines))
        return watcher.cursor == events[-1].change.revision

    def _deliver_joined(self, watcher: OpenWatch, events: list[ServedEvent]) -> bool:
        """Send what many watchers are sent, made once; False when there is too much of it for that."""
        newest = events[-1].change.revision
        place = (watcher.common, watcher.cursor, newest)
        if self._last[0] != place:
            made = self._join(watcher, events, place)
            if made is None:
                return False
            self._last = (place, made)
        joined = self._last[1]
        if watcher.sink.backlog + len(joined) > BACKLOG_BYTES:
            return False
        if joined:
            watcher.sink.write(joined)
        watcher.cursor = newest
        return True

    def _join(self, watcher: OpenWatch, events: list[ServedEvent], key: Hashable) -> bytes | None:
        """Return the lines that a watcher at this place gets; None when there are too many."""
        joined = self._joined.get(key)
        if joined is None:
            start = bisect_right(events, watcher.cursor, key=_revision)
            if len(events) - start > MOST_JOINED:
                return None
            joined = self._joined[key] = b"".join(line for event in events[start:] if (line := watcher.line(event)) is not None)
        return joined

    def _wait_for(self, watcher: OpenWatch) -> None:
        self._help(watcher, self._until_drained(watcher))

    def _help(self, watcher: OpenWatch, work: Coroutine[Any, Any, None]) -> None:
        """Let a watcher wait for something without keeping the others."""
        watcher.waiting = True
        task = asyncio.create_task(work)
        self._helpers.add(task)
        task.add_done_callback(self._helpers.discard)

    def _asks(self, watcher: OpenWatch, conversion: Conversion, events: list[ServedEvent]) -> bool:
        """Return whether a watcher waits for the conversion of its next events; if so, start it."""
        selects = bool(watcher.query.labels.requirements or watcher.query.fields.conditions)
        near = [event for event in events if watcher.query.namespace in ("", event.change.key.namespace)]
        wanted = [(event, former) for event in near for former in event.missing(conversion, former=selects)]
        if wanted:
            self._help(watcher, self._until_converted(watcher, conversion, wanted))
        return bool(wanted)

    async def _until_converted(self, watcher: OpenWatch, conversion: Conversion, events: list[tuple[ServedEvent, bool]]) -> None:
        try:
            values = await conversion.serve([event.value(None, former=former) for event, former in events])
        except Failure as said:
            watcher.end(line(ERROR, encode(said.to_status())))
            return
        for (event, former), value in zip(events, values, strict=True):
            event.converted(conversion, value, former=former)
        watcher.waiting = False
        self._wake(watcher.collection)

    async def _until_drained(self, watcher: OpenWatch) -> None:
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await watcher.sink.drained()
        except TimeoutError:
            watcher.end()
        else:
            watcher.waiting = False
            self._wake(watcher.collection)


def _revision(event: ServedEvent) -> int:
    return event.change.revision


def line(event: str, value: bytes) -> bytes:
    """One line of a stream."""
    return b'{"type":"' + event.encode() + b'","object":' + value + b"}\n"
