"""Follows one kind: its cache is what the server had at one revision, and goes forward only.

        +----------- 410: history is gone --------------+
        v                                               |
     list --(everything came)--> follow --(stream ends, breaks)--> follow again from the last revision
        ^                           |
        +-- back-off, few at a time +-- each event: cache first, then handlers

     404: the kind is not served --> an optional kind has no objects then --(after a while)--> list

A lost connection costs no list. A list is waited for with a back-off that grows while lists follow each other closely, and a
`ListGate` lets a few informers of a program list at a time, so that a server that comes back is not met by all of them at once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.kubernetes.client.client import BOOKMARK, DELETED, Client, Frame, Frames
from paddock.kubernetes.client.errors import BadAnswer, BadRequest, Expired, Invalid, NotFound, TimedOut
from paddock.kubernetes.client.options import EVERYTHING, Selection, WatchOptions
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.runtime.cache import Cache, CacheChange, CachedObject, Meta
from paddock.kubernetes.runtime.expectations import Expectations
from paddock.kubernetes.runtime.machinery import Machinery

_LOG = logging.getLogger(__name__)
_AGAIN = Backoff(first=0.5, longest=30.0, jitter=0.5)
_LIST_AGAIN = Backoff(first=1.0, longest=60.0, jitter=0.5)
# Lists further apart than this have nothing to do with each other.
_CALM_SECONDS = 300.0
# A stream that lived shorter and brought nothing is a failure, else it would be opened again without end.
_SHORT_SECONDS = 1.0
_WATCH_SECONDS = (300, 600)
_GRACE_SECONDS = 30.0
# A kind that is not served is asked for again after about so long.
_ABSENT_SECONDS = (20.0, 30.0)
_INITIAL_END = "k8s.io/initial-events-end"
Handler = Callable[[CacheChange], None]


class _BookmarkMeta(msgspec.Struct):
    resourceVersion: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


class _Object(msgspec.Struct):
    metadata: Meta


_BOOKMARKS = msgspec.json.Decoder(_Bookmark)
_OBJECTS = msgspec.json.Decoder(_Object)


class ListGate(asyncio.Semaphore):
    """The limit of informers that list at the same time."""

    def __init__(self, count: int = 4) -> None:
        super().__init__(count)


class Informer:
    """A cache of one kind, and everybody who wants to hear of its changes."""

    def __init__(
        self,
        client: Client,
        target: Target[Any],
        selection: Selection = EVERYTHING,
        *,
        machinery: Machinery,
        gate: ListGate,
        api: str = "",
    ) -> None:
        self.target = target
        self.cache = Cache()
        # what was written and is not in the cache yet
        self.expectations = Expectations(self.cache, self.has_reached)
        # why it is not current; empty when it is
        self.problem = "not started"
        # the server need not have the kind
        self.optional = False
        # the server does not have it
        self.absent = False
        self._client = client
        self._selection = selection
        self._chance = machinery.chance
        self._gate = gate
        self._handlers: list[Handler] = []
        self._synced = asyncio.Event()
        self._revision = ""
        self._streams = True
        self._failures = 0
        self._lists = 0
        self._listed_at = float("-inf")
        # the kind, as metrics and messages name it
        self.about = " ".join(filter(None, (api, target.qualified, selection.namespace, selection.labels, selection.fields)))
        metrics = machinery.metrics
        self._count_list = metrics.counter("paddock_informer_lists_total", "How often a kind was listed.", ("resource",))
        self._count_event = metrics.counter("paddock_informer_events_total", "Events of watches.", ("resource",))
        self._count_break = metrics.counter("paddock_informer_interruptions_total", "Watches that broke.", ("resource", "reason"))
        metrics.gauge("paddock_informer_objects", "Objects in the cache.", ("resource",)).ask(lambda: len(self.cache), self.about)

    # --- for controllers --------------------------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """True when the cache has been complete once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until the cache is whole."""
        await self._synced.wait()

    @property
    def revision(self) -> str:
        """The revision of the server that the cache is at; empty before the first list and after 410."""
        return self._revision

    def has_reached(self, revision: str) -> bool:
        """Return whether the cache shows everything up to a revision of the server; between an expired watch and its list it does not."""
        if not self._revision:
            return self.absent or not revision.isdecimal()
        return not revision.isdecimal() or not self._revision.isdecimal() or int(self._revision) >= int(revision)

    async def is_behind(self, key: Key | None = None) -> bool:
        """Return whether the server has an object of this key, or any object, that the cache does not have yet.

        Each kind has a watch of its own: an object can arrive before another that was made earlier.
        """
        wanted = self._selection
        if key is not None:
            wanted = msgspec.structs.replace(wanted, namespace=key.namespace, fields=f"metadata.name={key.name}")
        page = await self._client.list_raw(self.target, wanted)
        return any(self.cache.get(_seen(raw).key) is None for raw in page.items)

    def handle(self, handler: Handler) -> None:
        """Call this for every change, in order, and now for everything that is there. It must not wait."""
        self._handlers.append(handler)
        for seen in self.cache:
            _call(handler, CacheChange(None, seen))

    # --- the loop ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began, before = loop.time(), self._count_event.value(self.about)
            try:
                await (self._follow() if self._revision else self._begin())
            except NotFound:
                self._is_absent()
                await asyncio.sleep(self._chance.uniform(*_ABSENT_SECONDS))
                continue
            except PaddockError as error:
                self._interrupted(error)
            else:
                brought = self._count_event.value(self.about) > before
                if loop.time() - began >= _SHORT_SECONDS or brought:
                    self._failures = 0
                    continue
                self._failures += 1
            await asyncio.sleep(_AGAIN.pause(self._failures, self._chance))

    def _interrupted(self, error: PaddockError) -> None:
        self._failures += 1
        self.problem = str(error)
        self._count_break.inc(self.about, type(error).__name__)
        if isinstance(error, Expired | BadAnswer):
            self._revision = ""
        level = logging.INFO if isinstance(error, Expired) else logging.WARNING
        _LOG.log(level, "a watch was interrupted", extra={"resource": self.about, "error": str(error)})

    def _is_absent(self) -> None:
        """The server has no such kind. Whoever can do without it goes on; for the others the last that was known stays."""
        if not self.absent:
            level = logging.INFO if self.optional else logging.WARNING
            _LOG.log(level, "a kind is not served", extra={"resource": self.about, "needed": not self.optional})
        if self.optional:
            self._replace((), "")
        # Lists that were answered so were none.
        self._revision, self._lists, self._failures = "", 0, 0
        self.absent = True
        self.problem = "the server does not serve it"

    async def _begin(self) -> None:
        """Fetch everything, at a pace that a server in trouble can bear, and follow from there."""
        if asyncio.get_running_loop().time() - self._listed_at > _CALM_SECONDS:
            self._lists = 0
        if self._lists:
            await asyncio.sleep(_LIST_AGAIN.pause(self._lists, self._chance))
        if self._streams and await self._streams_lists():
            await self._stream_all()
            return
        async with self._gate:
            self._count_list.inc(self.about)
            page = await self._client.list_raw(self.target, self._selection)
        self._replace([_seen(raw) for raw in page.items], page.revision)
        await self._follow()

    async def _streams_lists(self) -> bool:
        """Servers before 1.27 do not know the parameter, and would begin without ever saying that they are done."""
        minor = "".join(c for c in str((await self._client.version()).get("minor", "")) if c.isdecimal())
        return int(minor or 0) >= 27

    async def _stream_all(self) -> None:
        """Fetch everything as a stream that then goes on."""
        fresh: dict[Key, CachedObject] = {}
        await self._gate.acquire()
        holding = True
        self._count_list.inc(self.about)
        try:
            async for frames in self._frames(WatchOptions(initial=True, seconds=self._seconds())):
                for index, frame in enumerate(frames):
                    if not holding:
                        self._take_all(frames[index:])
                        break
                    revision = self._gather(frame, fresh)
                    if revision:
                        self._replace(fresh.values(), revision)
                        self._gate.release()
                        holding = False
        except (Invalid, BadRequest):
            # The server has the parameter and does not allow it.
            self._streams = False
            raise
        finally:
            if holding:
                self._gate.release()

    def _gather(self, frame: Frame, fresh: dict[Key, CachedObject]) -> str:
        """Take one event of the beginning; the revision when that was the last."""
        if frame.type == BOOKMARK:
            said = _decoded(_BOOKMARKS, frame.object).metadata
            return said.resourceVersion if (said.annotations or {}).get(_INITIAL_END) == "true" else ""
        seen = _seen(bytes(frame.object))
        if frame.type == DELETED:
            fresh.pop(seen.key, None)
        else:
            fresh[seen.key] = seen
        return ""

    async def _follow(self) -> None:
        async for frames in self._frames(WatchOptions(revision=self._revision, seconds=self._seconds())):
            self._take_all(frames)

    async def _frames(self, watching: WatchOptions) -> AsyncIterator[Frames]:
        """The lines of a watch. A server that does not end it in time has forgotten it, or the network has."""
        end = asyncio.get_running_loop().time() + watching.seconds + _GRACE_SECONDS
        async with aclosing(self._client.frames(self.target, self._selection, watching)) as batches:
            while True:
                try:
                    async with asyncio.timeout_at(end):
                        frames = await anext(batches)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise TimedOut(f"the watch of {self.about} did not end in its time", sent=True) from error
                yield frames

    def _seconds(self) -> int:
        # Watches that began together do not end together.
        return self._chance.randint(*_WATCH_SECONDS)

    # --- the cache --------------------------------------------------------------------------------------------------------

    def _take_all(self, frames: Frames) -> None:
        self.problem = ""
        if not frames:
            return
        self._failures = 0
        self._count_event.inc(self.about, by=len(frames))
        for frame in frames:
            if frame.type == BOOKMARK:
                self._revision = _decoded(_BOOKMARKS, frame.object).metadata.resourceVersion or self._revision
            else:
                self._take(frame.type, _seen(bytes(frame.object)))

    def _take(self, kind: str, seen: CachedObject) -> None:
        self._revision = seen.meta.resourceVersion or self._revision
        if kind == DELETED:
            if self.cache.remove(seen.key) is not None:
                self._tell(CacheChange(seen, None))
        else:
            self._tell(CacheChange(self.cache.put(seen), seen))

    def _replace(self, fresh: Iterable[CachedObject], revision: str) -> None:
        """Make the cache this; whoever listens hears of the differences alone."""
        self._revision = revision
        self.problem = ""
        self.absent = False
        self._failures = 0
        self._lists += 1
        self._listed_at = asyncio.get_running_loop().time()
        gone = dict.fromkeys(self.cache.keys())
        changes = []
        for seen in fresh:
            gone.pop(seen.key, None)
            old = self.cache.put(seen)
            if old is None or old.meta.resourceVersion != seen.meta.resourceVersion or old.meta.uid != seen.meta.uid:
                changes.append(CacheChange(old, seen))
        changes += [CacheChange(self.cache.remove(key), None) for key in gone]
        self._synced.set()
        changes += [CacheChange(each, None) for each in self.expectations.settle()]
        for change in changes:
            self._tell(change)

    def _tell(self, change: CacheChange) -> None:
        self.expectations.observe(change)
        for handler in self._handlers:
            _call(handler, change)


def _call(handler: Handler, change: CacheChange) -> None:
    try:
        handler(change)
    except Exception:
        # One listener's defect is no reason to leave the others without news.
        _LOG.exception("event handler failed", extra={"key": str(change.seen.key)})


def _seen(raw: bytes) -> CachedObject:
    return CachedObject(_decoded(_OBJECTS, raw).metadata, raw)


def _decoded(decoder: "msgspec.json.Decoder[Any]", raw: Any) -> Any:
    try:
        return decoder.decode(raw)
    except msgspec.MsgspecError as error:
        raise BadAnswer("cannot read an object of a watch", why=str(error)) from error
