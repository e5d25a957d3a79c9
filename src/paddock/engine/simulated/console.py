"""The serial console of a simulated guest: a banner, and a prompt that answers what the guest's few programs answer."""

import asyncio
from collections.abc import Callable

BANNER = "This guest is simulated: nothing runs in it (paddock up --guests simulated)."


class ConsolePipe:
    """A session with a console."""

    def __init__(self, first: bytes, answer: Callable[[str], bytes]) -> None:
        self._answer = answer
        self._line = b""
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._closed = False
        if first:
            self._said.put_nowait(first)

    async def read(self) -> bytes:
        """The next bytes; `b""` is the end."""
        return b"" if self._closed and self._said.empty() else await self._said.get()

    async def write(self, data: bytes) -> None:
        """Echo what is typed, and answer each line."""
        if self._closed:
            return
        for byte in data:
            if byte in b"\r\n":
                line, self._line = self._line.decode("utf-8", "replace"), b""
                self._said.put_nowait(b"\r\n" + self._answer(line))
            elif byte in b"\x08\x7f":
                self._line = self._line[:-1]
                self._said.put_nowait(b"\b \b")
            elif len(self._line) < 4096:
                self._line += bytes((byte,))
                self._said.put_nowait(bytes((byte,)))

    def close(self) -> None:
        """End the session."""
        if not self._closed:
            self._closed = True
            self._said.put_nowait(b"")


class ConsoleLog:
    """The output of a guest on its serial console, where a real machine has its directory."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._text = b""

    def write(self, text: str) -> None:
        """Add a line."""
        self._text = (self._text + text.encode() + b"\r\n")[-4096:]

    def serial_tail(self, size: int) -> bytes:
        """Return the last bytes of it."""
        return self._text[-size:]
