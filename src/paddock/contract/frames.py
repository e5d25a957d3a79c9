"""Cuts HTTP/2 frames and counts them before `h2` sees them.

`h2` costs ten microseconds of processor time a frame, whatever the frame is good for, and nothing keeps a peer from sending a million.
"""

from collections.abc import Callable
from typing import NamedTuple

import h2.exceptions

DATA = 0
GOAWAY = 7


def goodbye(last: int, code: int) -> bytes:
    """A GOAWAY frame: streams after the last one are not answered."""
    return (8).to_bytes(3, "big") + b"\x07" + bytes(5) + last.to_bytes(4, "big") + code.to_bytes(4, "big")


def last_stream(frame: "Http2Frame") -> int:
    """The last stream that the sender of a GOAWAY frame answers; raises `ProtocolError`."""
    if len(frame.data) < 17:
        raise h2.exceptions.FrameTooLargeError("a GOAWAY of a size that none has")
    return int.from_bytes(frame.data[9:13], "big") & 0x7FFFFFFF


class Http2Frame(NamedTuple):
    """A whole frame, or a part of the preface, which has no kind."""

    kind: int | None
    stream: int
    data: bytes


class FrameBuffer:
    """Cuts what arrives into whole frames. It refuses those that are too large by their head.

    `preface` is how many bytes come before the first frame.
    """

    _HEAD = 9
    _LARGEST = 1 << 14

    def __init__(self, preface: int = 0) -> None:
        self._data = b""
        self._at = 0
        self._preface = preface

    def feed(self, data: bytes) -> None:
        self._data = self._data[self._at :] + data
        self._at = 0

    def next(self) -> Http2Frame | None:
        """Take the next frame out; None if it is not here in full. Raises `ProtocolError`."""
        data, at = self._data, self._at
        if self._preface and at < len(data):
            # By and by: what is no HTTP/2 is known by its first bytes.
            end = min(at + self._preface, len(data))
            self._preface -= end - at
            self._at = end
            return Http2Frame(None, 0, data[at:end])
        if len(data) - at < self._HEAD:
            return None
        size = int.from_bytes(data[at : at + 3], "big")
        if size > self._LARGEST:
            raise h2.exceptions.FrameTooLargeError("a frame is larger than allowed")
        end = at + self._HEAD + size
        if len(data) < end:
            return None
        self._at = end
        return Http2Frame(data[at + 3], int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFFFFFF, data[at:end])


class FrameBudget:
    """The frames that a peer may send. Each costs one, and one more for each four kilobytes that nobody awaits.

    Time gives some back, and so does what frames are for: a kilobyte of a body that is awaited, and a call that was answered. A peer that
    works never comes to the end, however much it has to do. Eight megabytes, as may be on their way when calls are given up, are allowed.
    """

    MOST = 4000.0
    A_SECOND = 100.0
    A_CALL = 20.0

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._left = self.MOST
        self._counted = now()

    def spend(self, size: int, *, awaited: bool) -> bool:
        """Take a frame of so many bytes, of a body that is awaited or not; false if there are too many."""
        self.earn(size / 1024 - 1 if awaited else -1 - size / 4096)
        if self._left >= 0:
            return True
        now = self._now()
        self._left, self._counted = min(self.MOST, self._left + (now - self._counted) * self.A_SECOND), now
        return self._left >= 0

    def earn(self, frames: float = A_CALL) -> None:
        """Allow this many frames more."""
        self._left = min(self.MOST, self._left + frames)
