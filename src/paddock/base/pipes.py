"""The pipes of programs that were started."""

from typing import TypeVar

T = TypeVar("T")


def opened(stream: T | None) -> T:
    """Return the stream of a program that was started with a pipe there."""
    if stream is None:
        raise ValueError("the program was started without this pipe")
    return stream
