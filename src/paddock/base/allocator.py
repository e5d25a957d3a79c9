"""Settings of the C library's allocator, and memory that goes back to the host."""

import os
from collections.abc import Callable
from pathlib import Path

# M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3).
_TRIM, _MAP = -1, -3
# The size of the buffer with which uvloop begins a TLS connection.
MAPPED_BYTES = 256 * 1024


def settle() -> None:
    """Fix both thresholds, which glibc raises by itself when a mapped buffer is freed.

    With higher ones, the buffers of TLS connections would come from the heap. Each has 256 KB and uses 4 KB: on the heap it costs 20 KB.
    Smaller buffers stay on the heap. They come and go with each answer, and mapping them would cost a page fault for each 4 KB.
    """
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_MAP, MAPPED_BYTES)
        mallopt(_TRIM, 256 * MAPPED_BYTES)


def trim() -> None:
    """Give free memory of the heap back to the host, also what lies between pieces that are in use."""
    malloc_trim = _function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _function(name: str) -> Callable[..., object] | None:
    """A function of the C library; libraries other than glibc may lack it."""
    import ctypes  # noqa: PLC0415 - the process that waits for a detached server does not need it

    return getattr(ctypes.CDLL(None), name, None)


def resident() -> int:
    """Bytes of memory that this process holds; 0 where the host does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
