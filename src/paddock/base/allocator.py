"""Settings of the C library's allocator."""

# Of `mallopt`: from how much free memory on the heap shrinks, and from which size on a buffer is mapped by itself.
_TRIM, _MAP = -1, -3
# The size of the buffer with which uvloop begins a TLS connection.
MAPPED_BYTES = 256 * 1024


def settle() -> None:
    """Fix both sizes. glibc raises them with each mapped buffer that is freed.

    Then the buffers of TLS connections would come from the heap: of 256 KB they use 4, and there they cost 20. Smaller buffers come and go
    with each answer; mapping those costs a page fault for each 4 KB.
    """
    import ctypes  # noqa: PLC0415 - the process that waits for a server in the background does without

    # Another C library may not have it.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MAP, MAPPED_BYTES)
        mallopt(_TRIM, 256 * MAPPED_BYTES)
