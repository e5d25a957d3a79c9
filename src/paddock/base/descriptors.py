"""Writing to file descriptors."""

import os


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, or raise `OSError`. A single write may take a part only, as on a disk that is nearly full."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
