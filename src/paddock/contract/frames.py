"""What is done with HTTP/2 frames before `h2` sees them."""

from collections.abc import Iterator

import h2.exceptions


def goodbye(last: int, code: int) -> bytes:
    """A GOAWAY frame: streams after the last one are not answered."""
    return (8).to_bytes(3, "big") + b"\x07" + bytes(5) + last.to_bytes(4, "big") + code.to_bytes(4, "big")


class FrameFilter:
    """Takes GOAWAY frames out, because `h2` ends with the first one and a graceful peer goes on.

    It also refuses frames that are too large, which `h2` would first collect. `preface` is how many bytes come before the first frame.
    """

    _HEAD = 9
    _GOAWAY = 7
    _LARGEST = 1 << 14

    def __init__(self, preface: int = 0) -> None:
        self._buffer = b""
        # bytes of the present frame that are still to come
        self._rest = preface

    def split(self, data: bytes) -> Iterator[bytes | int]:
        """What is for `h2`, in order, and for each GOAWAY the last stream that the peer answers; raises `ProtocolError`."""
        data, self._buffer = self._buffer + data, b""
        begin = at = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                at += step
                self._rest -= step
                continue
            if len(data) - at < self._HEAD:
                break
            size = int.from_bytes(data[at : at + 3], "big")
            if size > self._LARGEST:
                raise h2.exceptions.FrameTooLargeError("a frame is larger than allowed")
            if data[at + 3] != self._GOAWAY:
                self._rest = self._HEAD + size
                continue
            if size < 8:
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
