"""Interpreter settings of a long-lived program: its event loop and its garbage collector."""

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


def spare_the_collector() -> None:
    """What has been made so far stays; the collector need not look at it, neither now nor later."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 100)
