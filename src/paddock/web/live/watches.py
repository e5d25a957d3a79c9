"""The live set of an identity: feeds of kinds, topics made of them, and the pages that listen.

Changes that come within a moment are one turn: a turn makes the rows of the topics concerned, compares them with those before, and hands
each page the difference. A topic that no page has listened to for a minute ends, and so do the feeds that no other topic needs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping

import msgspec

from paddock.base.clock import Clock
from paddock.base.jsondata import Data
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.kindfeed import KindFeed
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.meta.ages import timestamp
from paddock.web.answers.rows import WebAnswer
from paddock.web.images import NoImages, WebImageSource
from paddock.web.live import topics
from paddock.web.live.objects import LiveObjects
from paddock.web.live.page import LivePage
from paddock.web.live.topicnames import WebTopic
from paddock.web.live.topics import RowSource

_LOG = logging.getLogger(__name__)
_NO_IMAGES = NoImages()
_TURN_SECONDS = 0.25
_IDLE_SECONDS = 60.0
# A handler waits so long for the first answer of the server.
_FIRST_SECONDS = 20.0


class _Topic:
    """A topic that somebody listens to, or did a moment ago."""

    def __init__(self, source: RowSource, now: float) -> None:
        self.source = source
        self.rows: dict[str, WebAnswer] = {}
        self.encoded: dict[str, bytes] = {}
        self.ready = asyncio.Event()
        self.dirty = True
        self.pages: set[LivePage] = set()
        self.used = now
        self.polled = -1.0e9

    def update(self, objects: LiveObjects) -> dict[str, bytes | None]:
        """Make the rows anew and return those that differ."""
        fresh = {_id(each): each for each in self.source.rows(objects)}
        change: dict[str, bytes | None] = {}
        for name, row in fresh.items():
            old = self.rows.get(name)
            if old is not row and old != row:
                change[name] = self.encoded[name] = msgspec.json.encode(row)
        for name in self.rows.keys() - fresh.keys():
            change[name] = None
            del self.encoded[name]
        self.rows = fresh
        return change


class WatchedSet:
    """The live set of one identity. Nothing runs until it is needed."""

    def __init__(self, client: Client, namespace: str, clock: Clock, images: WebImageSource = _NO_IMAGES) -> None:
        self._client = client
        self._images = images
        self._namespace = namespace
        self._clock = clock
        self._topics: dict[WebTopic, _Topic] = {}
        self._feeds: dict[str, tuple[KindFeed, asyncio.Task[None]]] = {}
        self._polls: dict[WebTopic, asyncio.Task[None]] = {}
        self._turning: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._lost_since = 0.0
        self._lost_why = ""

    # --- for handlers -------------------------------------------------------------------------------------------------------

    async def machines(self) -> list[MachineView]:
        await self._settled("machines")
        return self._objects().machines

    async def rows(self, topic: WebTopic) -> list[WebAnswer]:
        """Return the rows of a topic as they are now."""
        found = await self._settled(topic)
        return list(found.rows.values())

    def missing(self) -> Mapping[str, str]:
        """Return why kinds of active topics are not there, by `plural.group`."""
        return {name: feed.missing for name, (feed, _) in self._feeds.items() if feed.missing}

    async def _settled(self, topic: WebTopic) -> _Topic:
        found = self._begin(topic)
        async with asyncio.timeout(_FIRST_SECONDS):
            await found.ready.wait()
        return found

    # --- for the stream -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def listening(self, names: Collection[WebTopic]) -> Iterator[LivePage]:
        """Add a page for as long as it is open. It begins with a reset of each topic."""
        page = LivePage(names)
        for name in names:
            topic = self._begin(name)
            topic.pages.add(page)
            if topic.ready.is_set():
                page.reset(name, topic.encoded)
        if self._lost_since:
            page.lose(self._lost_why, timestamp(self._lost_since))
        try:
            yield page
        finally:
            for name in names:
                if name in self._topics:
                    self._topics[name].pages.discard(page)
                    self._topics[name].used = self._now()

    async def close(self) -> None:
        tasks = [task for _, task in self._feeds.values()]
        tasks += [*self._polls.values(), *([self._turning] if self._turning is not None else [])]
        self._feeds.clear()
        self._polls.clear()
        self._topics.clear()
        self._turning = None
        await _cancel(tasks)

    # --- beginning and ending -----------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _begin(self, name: WebTopic) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(topics.source(name, self._clock, self._images), self._now())
            for target in topic.source.kinds:
                self._follow(target)
        topic.used = self._now()
        if self._turning is None:
            self._turning = asyncio.create_task(self._turn_forever())
        self._changed.set()
        return topic

    def _follow(self, target: Target[Data]) -> None:
        if target.qualified in self._feeds:
            return
        feed = KindFeed(self._client, target, self._note, own_namespace=self._namespace, most=topics.MOST.get(target.qualified, 0))
        self._feeds[target.qualified] = feed, asyncio.create_task(feed.run())

    async def _release(self) -> None:
        """End the topics that nobody listens to any more, and the feeds that none needs."""
        now = self._now()
        for name in [name for name, each in self._topics.items() if not each.pages and now - each.used > _IDLE_SECONDS]:
            del self._topics[name]
        needed = {target.qualified for topic in self._topics.values() for target in topic.source.kinds}
        ended = [self._feeds.pop(name)[1] for name in set(self._feeds) - needed]
        await _cancel(ended)

    # --- turns --------------------------------------------------------------------------------------------------------------

    def _note(self, feed: KindFeed) -> None:
        for topic in self._topics.values():
            if any(each.qualified == feed.target.qualified for each in topic.source.kinds):
                topic.dirty = True
        self._changed.set()

    async def _turn_forever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rest()):
                    await self._changed.wait()
                    await asyncio.sleep(_TURN_SECONDS)
            self._changed.clear()
            self._tell_lost()
            self._poll()
            self._turn()
            await self._release()

    def _rest(self) -> float:
        return min((each.source.seconds for each in self._topics.values() if each.source.seconds), default=_IDLE_SECONDS / 2)

    def _turn(self) -> None:
        objects = self._objects()
        for name, topic in self._topics.items():
            if not topic.dirty or not self._is_listed(topic):
                continue
            change = self._update(name, topic, objects)
            if not topic.ready.is_set():
                topic.ready.set()
                for page in topic.pages:
                    page.reset(name, topic.encoded)
            elif change:
                for page in topic.pages:
                    page.change(name, change)

    @staticmethod
    def _update(name: WebTopic, topic: _Topic, objects: LiveObjects) -> dict[str, bytes | None]:
        topic.dirty = False
        try:
            return topic.update(objects)
        except Exception:
            # The edge of a program: one object that no rule foresaw must not stop the rows of all others.
            _LOG.exception("rows of a topic cannot be made; report this", extra={"topic": name})
            return {}

    def _is_listed(self, topic: _Topic) -> bool:
        return all(self._feeds[each.qualified][0].listed for each in topic.source.kinds)

    def _objects(self) -> LiveObjects:
        def find(target: Target[Data]) -> Collection[Data]:
            found = self._feeds.get(target.qualified)
            return found[0].objects.values() if found is not None else ()

        return LiveObjects(find, self._clock.seconds())

    def _tell_lost(self) -> None:
        """Tell the pages when the server goes, and give them everything anew when it is back."""
        feeds = [feed for feed, _ in self._feeds.values()]
        # One kind may be unavailable, as when its webhook is; the server is away when nothing can be read.
        away = all(feed.lost or feed.missing for feed in feeds)
        why = next((feed.lost for feed in feeds if feed.lost), "") if away else ""
        if why and not self._lost_since:
            self._lost_since, self._lost_why = self._clock.seconds(), why
            for page in self._pages():
                page.lose(why, timestamp(self._lost_since))
        elif not why and self._lost_since:
            self._lost_since = 0.0
            objects = self._objects()
            for name, topic in self._topics.items():
                if self._is_listed(topic):
                    self._update(name, topic, objects)
                    topic.ready.set()
                    for page in topic.pages:
                        page.reset(name, topic.encoded)

    def _pages(self) -> set[LivePage]:
        return {page for topic in self._topics.values() for page in topic.pages}

    def _poll(self) -> None:
        """Begin what no watch brings, for topics with a page."""
        now = self._now()
        for name, topic in self._topics.items():
            task = self._polls.get(name)
            due = topic.source.seconds and now - topic.polled >= topic.source.seconds - _TURN_SECONDS
            if not due or (task is not None and not task.done()) or (topic.ready.is_set() and not topic.pages):
                continue
            topic.polled = now
            self._polls[name] = asyncio.create_task(self._read(topic))

    async def _read(self, topic: _Topic) -> None:
        await topic.source.poll(self._client, self._namespace)
        topic.dirty = True
        self._changed.set()


def _id(row: WebAnswer) -> str:
    found: str = row.id  # type: ignore[attr-defined]  # the rows of all topics have one
    return found


async def _cancel(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
