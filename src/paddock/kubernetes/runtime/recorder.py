"""Events about objects. Telling never waits: a task sends what is in the queue, and what does not fit there is counted and dropped.

It sends a moment later: what events are about is mostly under way just then, and people wait for that and not for its event.
"""

import asyncio
import logging
from collections import deque

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound, TooManyRequests, Unavailable, Unreachable
from paddock.kubernetes.client.options import strategic_patch
from paddock.kubernetes.client.target import EVENTS, Key
from paddock.kubernetes.runtime.correlation import Correlator, EventRequest, EventWrite
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.reference import InvolvedObject

_LOG = logging.getLogger(__name__)
_MOST_WAITING = 1000
_ATTEMPTS = 8
_AGAIN = Backoff(first=1.0, longest=30.0, jitter=0.5)
_FLUSH_SECONDS = 3.0
_CALM_SECONDS = 0.1
_COUNTED = ("count", "lastTimestamp", "message")


class Recorder:
    """Tells about objects in the name of one component."""

    def __init__(self, client: Client, component: str, instance: str, machinery: Machinery) -> None:
        self._client = client
        self._clock = machinery.clock
        self._chance = machinery.chance
        self._correlator = Correlator(component, instance)
        # with the time of each
        self._waiting: deque[tuple[EventRequest, float]] = deque()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._outcomes = machinery.metrics.counter("paddock_events_total", "Events, by their outcome.", ("outcome",))

    def voice(self, component: str) -> "NamedRecorder":
        """Somebody who tells in the name of a part of the program."""
        return NamedRecorder(self, component)

    def tell(self, about: InvolvedObject, kind: str, reason: str, note: str, *, component: str = "") -> None:
        """Tell about an object: `kind` is Normal or Warning, `reason` one word for programs, `note` a sentence for people."""
        if len(self._waiting) >= _MOST_WAITING:
            self._outcomes.inc("dropped")
            return
        self._waiting.append((EventRequest(about, kind, reason, note, component), self._clock.seconds()))
        self._idle.clear()
        self._arrived.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="events")

    async def stop(self) -> None:
        """Send what waits, within a short time, and end."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._idle.wait()
        except TimeoutError:
            self._outcomes.inc("dropped", by=len(self._waiting))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            while self._waiting:
                decision = self._correlator.decide(*self._waiting.popleft())
                if decision is None:
                    self._outcomes.inc("spam")
                    continue
                self._outcomes.inc(await self._send(decision))
            self._idle.set()
            self._arrived.clear()
            await self._arrived.wait()
            await asyncio.sleep(_CALM_SECONDS)

    async def _send(self, decision: EventWrite) -> str:
        """Write one event, with patience while the server cannot be reached; returns what became of it."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._write(decision)
            except (Unreachable, TooManyRequests, Unavailable) as error:
                _LOG.debug("event not sent yet; retrying", extra={"error": str(error)})
            except PaddockError as error:
                # A namespace that is going takes none, and so on: an event is not worth more than a line in the log.
                _LOG.info("event refused by the server", extra={"error": str(error), "reason": decision.event["reason"]})
                return "refused"
            await asyncio.sleep(_AGAIN.pause(attempt, self._chance))
        return "dropped"

    async def _write(self, decision: EventWrite) -> str:
        event = decision.event
        if decision.counts_up:
            try:
                await self._client.patch(EVENTS, _key(event), strategic_patch({name: event[name] for name in _COUNTED}))
            except NotFound:
                # Events are forgotten after an hour.
                event = self._correlator.forget(event)
            else:
                return "counted"
        try:
            await self._client.create(EVENTS, event)
        except AlreadyExists:
            # It was written by an attempt whose answer got lost.
            return "sent"
        return "sent"


class NamedRecorder:
    """A recorder under another name."""

    def __init__(self, recorder: Recorder, component: str) -> None:
        self._recorder = recorder
        self._component = component

    def tell(self, about: InvolvedObject, kind: str, reason: str, note: str) -> None:
        """Tell about an object; never waits."""
        self._recorder.tell(about, kind, reason, note, component=self._component)


def _key(event: Data) -> Key:
    return Key(event["metadata"]["namespace"], event["metadata"]["name"])
