"""Settings of a long-lived program: its event loop, its garbage collector, and memory that it holds no longer than it needs it."""

import asyncio
import gc
import time
from collections.abc import Callable

from paddock.base import allocator


def new() -> asyncio.AbstractEventLoop:
    """uvloop's event loop; the standard library's for a Python that there is no uvloop for."""
    try:
        import uvloop  # noqa: PLC0415 - only a server needs it
    except ImportError:
        # A TLS connection keeps a buffer of this size, 256 KB as it stands.
        asyncio.sslproto.SSLProtocol.max_size = 16 * 1024  # type: ignore[attr-defined]  # no stub has it
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


# A collection of so many new objects, four times the young generation and itself, takes a tenth of a second.
_THRESHOLDS = (30_000, 4, 0)
# Full collections between two counts of the frozen objects, which walk over all of them.
_PASSES = 64
_ALLOWANCE = 1_000_000


def manage_memory() -> None:
    """Do what every program with an event loop does about its memory: keep collections short, and give back what a crowd left."""
    spare_the_collector()
    return_memory()


def spare_the_collector() -> None:
    """Keep collections short, whatever the program holds: no collection looks at objects that survived a full one.

    The event loop stands still during a collection, and a full one takes half a microsecond an object. Frozen objects still go when nothing
    refers to them; only cycles among them do not. Once the frozen objects have doubled, one collection looks at all of them.
    """
    gc.callbacks.append(_Freezer())
    gc.freeze()
    gc.enable()
    gc.set_threshold(*_THRESHOLDS)


class _Freezer:
    """Freezes what survives a full collection."""

    def __init__(self) -> None:
        self._passes = 0
        self._most = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase != "stop" or info["generation"] != len(_THRESHOLDS) - 1:
            return
        gc.freeze()
        self._passes += 1
        if self._passes % _PASSES:
            return
        frozen = gc.get_freeze_count()
        if self._most and frozen > self._most:
            self._most = 0
            gc.unfreeze()
        elif not self._most:
            self._most = 2 * frozen + _ALLOWANCE


# Between two checks of the memory.
_CHECK_SECONDS = 5.0
# A program that has used less of a processor than this is quiet. After so many checks of a busy one, it is done all the same.
_QUIET_SHARE, _PATIENCE = 0.1, 12
# Less growth than this is not worth the milliseconds. What was freed without growth goes back after so many checks.
_WORTH, _RARELY = 1.1, 30


def return_memory() -> None:
    """Check the memory from now on, as long as the running loop does, and give back at a quiet moment what a crowd left behind."""
    MemoryReturn(asyncio.get_running_loop().call_later).check()


class MemoryReturn:
    """Gives memory back when there is more of it than after the last time, and now and then. A heap keeps its holes otherwise."""

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], object],
        *,
        resident: Callable[[], int] = allocator.resident,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._later = later
        self._resident = resident
        self._used = used
        self._before = used()
        # what was left after the last time, and the checks since then; of those, the ones at which it was due
        self._least = 0
        self._checks = 0
        self._waited = 0

    def check(self) -> None:
        """Check now, and again after a while."""
        self._later(_CHECK_SECONDS, self.check)
        before, self._before = self._before, self._used()
        self._checks += 1
        if self._checks < _RARELY and self._resident() <= self._least * _WORTH:
            return
        self._waited += 1
        if self._before - before <= _QUIET_SHARE * _CHECK_SECONDS or self._waited > _PATIENCE:
            # Cycles of connections that are closed wait for the next collection, and each holds a page or more.
            gc.collect()
            allocator.trim()
            self._least, self._checks, self._waited = self._resident(), 0, 0
