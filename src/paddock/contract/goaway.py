"""GOAWAY frames, kept from `h2`."""

from collections.abc import Iterator

import h2.exceptions


class GoodbyeFilter:
    """Takes the GOAWAY frames out of what a server sends. `h2` ends with the first one; a graceful server goes on to answer."""

    _HEAD = 9
    _GOAWAY = 7
    _LARGEST = 1 << 14

    def __init__(self) -> None:
        self._buffer = b""
        # bytes of the present frame that are still to come
        self._rest = 0

    def split(self, data: bytes) -> Iterator[bytes | int]:
        """What is for `h2`, in order, and for each GOAWAY the last stream that the server answers."""
        data, self._buffer = self._buffer + data, b""
        begin = at = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                at += step
                self._rest -= step
                continue
            size = int.from_bytes(data[at : at + 3], "big")
            if len(data) - at < self._HEAD:
                break
            if data[at + 3] != self._GOAWAY:
                self._rest = self._HEAD + size
                continue
            if not 8 <= size <= self._LARGEST:
                raise h2.exceptions.FrameTooLargeError("a GOAWAY of a size that none has")
            if len(data) - at < self._HEAD + size:
                break
            if begin < at:
                yield data[begin:at]
            payload = data[at + self._HEAD : at + self._HEAD + size]
            at = begin = at + self._HEAD + size
            yield int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
        self._buffer = data[at:]
        if begin < at:
            yield data[begin:at]
