"""Byte streams to a guest: console, display, USB redirection."""

from typing import Protocol


class Pipe(Protocol):
    """A stream of bytes to and from a guest."""

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end, for which a newer session may be the reason."""

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. What is written after the end is dropped."""

    def close(self) -> None:
        """Ends the session; the guest does not notice."""
