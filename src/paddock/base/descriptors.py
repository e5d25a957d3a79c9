"""File descriptors and pipes."""

import os
from typing import TypeVar

T = TypeVar("T")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, or raise `OSError`. A single write may take a part only, as on a disk that is nearly full."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def piped(stream: T | None) -> T:
    """Return the stream of a program that was started with a pipe there."""
    if stream is None:
        raise ValueError("the program was started without this pipe")
    return stream
