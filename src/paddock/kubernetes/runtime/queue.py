"""Keys of objects to reconcile.

A key waits once however often it is offered, is with one worker at a time, and comes back once more when it is offered while a
worker has it. First come, first served, so none starves. Keys that fail come back after a pause that grows. A wish for later ends
when a worker gets the key sooner.
"""

import asyncio
from collections import deque
from typing import Generic, TypeVar

from paddock.base.backoff import Backoff
from paddock.kubernetes.runtime.machinery import Machinery

K = TypeVar("K")
BACKOFF = Backoff(first=0.05, longest=300.0, jitter=0.2)


class QueueClosed(Exception):
    """The queue gives out nothing any more."""


class WorkQueue(Generic[K]):
    def __init__(self, name: str, machinery: Machinery, backoff: Backoff = BACKOFF) -> None:
        self._name = name
        self._chance = machinery.chance
        self._backoff = backoff
        self._ready: deque[K] = deque()
        # waiting, with the time since when; a key that a worker has may be here, and then not in `_ready`
        self._waiting: dict[K, float] = {}
        # with a worker, with the time since when
        self._held: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        metrics = machinery.metrics
        self._adds = metrics.counter("paddock_workqueue_adds_total", "Keys put into a queue.", ("queue",))
        self._retries = metrics.counter("paddock_workqueue_retries_total", "Keys that came back after a failure.", ("queue",))
        self._latency = metrics.histogram("paddock_workqueue_wait_seconds", "How long keys waited for a worker.", ("queue",))
        metrics.gauge("paddock_workqueue_depth", "Keys that wait for a worker.", ("queue",)).ask(lambda: len(self._ready), name)
        metrics.gauge("paddock_workqueue_delayed", "Keys that wait for a time.", ("queue",)).ask(lambda: len(self._timers), name)
        metrics.gauge("paddock_workqueue_unfinished_seconds", "Seconds that keys are with workers, in all.", ("queue",)).ask(
            lambda: sum(self._ages()), name
        )
        metrics.gauge("paddock_workqueue_longest_seconds", "Seconds of the key that is with a worker longest.", ("queue",)).ask(
            lambda: max(self._ages(), default=0.0), name
        )

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def idle(self) -> bool:
        """True if nothing waits for a worker or is with one."""
        return not self._waiting and not self._held

    def add(self, key: K) -> None:
        if self._closed or key in self._waiting:
            return
        self._adds.inc(self._name)
        self._waiting[key] = asyncio.get_running_loop().time()
        if key not in self._held:
            self._offer(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Look at this key after a while, if nobody asks for it sooner. Of two such wishes the earlier counts."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        due, timer = loop.time() + seconds, self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._due, key)

    def add_failed(self, key: K, *, longest: bool = False) -> float:
        """Look again at a key that failed, after its back-off, or the longest there is; returns how long that is."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self._backoff.pause(64 if longest else failures, self._chance)
        self._retries.inc(self._name)
        self.add_after(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """The key is well: its next failure is its first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often the key failed in a row."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key, which is now the caller's until `done`; raises `QueueClosed` at the end."""
        while not self._ready:
            if self._closed:
                raise QueueClosed
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # Somebody else must not miss what this one was woken for.
                if getter.done() and not getter.cancelled():
                    self._wake()
                raise
            finally:
                if getter in self._getters:
                    self._getters.remove(getter)
        key = self._ready.popleft()
        since = self._waiting.pop(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            # Whoever looks now says anew when to look again.
            timer.cancel()
        now = self._held[key] = asyncio.get_running_loop().time()
        self._latency.observe(now - since, self._name)
        return key

    def done(self, key: K) -> None:
        """The caller has looked at the key."""
        self._held.pop(key, None)
        if key in self._waiting:
            self._offer(key)

    def close(self) -> None:
        """Take and give nothing any more."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        self._waiting.clear()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _ages(self) -> list[float]:
        now = asyncio.get_running_loop().time() if self._held else 0.0
        return [now - since for since in self._held.values()]

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _offer(self, key: K) -> None:
        self._ready.append(key)
        self._wake()

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
