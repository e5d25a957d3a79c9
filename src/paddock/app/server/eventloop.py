"""Settings of a long-lived program: its event loop and its garbage collector."""

import asyncio
import gc


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
