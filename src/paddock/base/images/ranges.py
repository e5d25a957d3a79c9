"""The rest of a file over several connections at once.

Each connection fetches a range at a time and writes it to its place in the file. The caller gets the bytes in their order, out of the file,
so it computes their digest as they come. A connection that fails leaves its range to the others; the last one that fails ends it all.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from paddock.base.images.errors import ImageError, ImageUnavailable
from paddock.base.images.http import DownloadResponse
from paddock.base.images.settings import RangeRules
from paddock.base.images.sources import safe_url
from paddock.base.images.sparse import SparseWriter, check_room, disk_trouble

_BUFFER = 256 * 1024
# Ranges for each connection that are begun and that the caller does not have yet.
_AHEAD = 2

# Opens a response that has the bytes from a position to another one.
OpenRange = Callable[[int, int], DownloadResponse]


@dataclass(eq=False)
class _Range:
    """Bytes of the file. Those before `at` are in it."""

    start: int
    end: int
    at: int
    taken: bool = False


class ParallelRanges:
    """The bytes from `start` to the end of a file of this length. `reserve` stays free on the disk."""

    def __init__(self, body: Path, span: tuple[int, int], rules: RangeRules, reserve: int) -> None:
        self._body = body
        start, self._length = span
        self._ranges = [_Range(at, min(at + rules.size, self._length), at) for at in range(start, self._length, rules.size)]
        self._connections = min(rules.connections, len(self._ranges))
        self._reserve = reserve
        # The range that the caller is in.
        self._current = 0
        self._changed = threading.Condition()
        self._open: set[DownloadResponse] = set()
        self._working = 0
        self._failure: ImageError | None = None
        self._ended = False

    def run(self, first: DownloadResponse, open_: OpenRange, take: Callable[[memoryview], None], completed: Callable[[], None]) -> None:
        """Hand all bytes to `take`, in the caller's thread, and call `completed` after each range. `first` has the bytes from the start on.

        Raises the last failure when no connection is left. What `take` got by then is in the file.
        """
        # Each writer finds the file longer than its place.
        os.truncate(self._body, self._length)
        threads = [
            threading.Thread(target=self._work, args=(first if number == 0 else None, open_), name="image range", daemon=True)
            for number in range(self._connections)
        ]
        self._working = len(threads)
        for thread in threads:
            thread.start()
        try:
            with open(self._body, "rb", buffering=0) as file:
                buffer = memoryview(bytearray(_BUFFER))
                for number, part in enumerate(self._ranges):
                    self._reach(number)
                    self._hand_over(part, file.fileno(), buffer, take)
                    completed()
        finally:
            self._end()
            for thread in threads:
                thread.join()

    def _hand_over(self, part: _Range, file: int, buffer: memoryview, take: Callable[[memoryview], None]) -> None:
        position = part.start
        while position < part.end:
            there = self._wait(part, position)
            while position < there:
                count = os.preadv(file, [buffer[: there - position]], position)
                take(buffer[:count])
                position += count

    def _reach(self, number: int) -> None:
        with self._changed:
            self._current = number
            self._changed.notify_all()

    def _wait(self, part: _Range, position: int) -> int:
        """Return where the bytes of a range that are there end, as soon as some lie behind the position."""
        with self._changed:
            self._changed.wait_for(lambda: part.at > position or not self._working)
            if part.at <= position:
                raise self._failure or ImageUnavailable("Truncated", "a part of the file did not come")
            return part.at

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            for response in self._open:
                response.hang_up()

    # --- in the threads -----------------------------------------------------------------------------------------------------

    def _work(self, response: DownloadResponse | None, open_: OpenRange) -> None:
        """Fetch one range after the other. The first connection has a response already."""
        failure: ImageError | None = None
        try:
            while (part := self._claim()) is not None:
                try:
                    with response or open_(part.at, part.end) as body:
                        self._fetch(part, body)
                finally:
                    part.taken, response = False, None
        except ImageError as error:
            failure = error
        except OSError as error:
            failure = disk_trouble(error)
        with self._changed:
            self._working -= 1
            self._failure = failure or self._failure
            self._changed.notify_all()

    def _claim(self) -> _Range | None:
        """Take the first range that nobody fetches, when it is not too far ahead of the caller. None: there is nothing left to do."""
        with self._changed:
            while not self._ended:
                near = self._ranges[self._current : self._current + _AHEAD * self._connections]
                free = next((part for part in near if part.at < part.end and not part.taken), None)
                if free is not None:
                    free.taken = True
                    return free
                if all(part.at == part.end for part in self._ranges[self._current :]):
                    return None
                self._changed.wait()
            return None

    def _fetch(self, part: _Range, response: DownloadResponse) -> None:
        buffer = memoryview(bytearray(_BUFFER))
        with self._watched(response), SparseWriter(self._body, part.at, inside=True) as file:
            while part.at < part.end:
                count = response.read_into(buffer[: part.end - part.at])
                if not count:
                    raise ImageUnavailable("Truncated", f"{safe_url(response.url)} ended its answer before the end of a range")
                check_room(self._body.parent, self._reserve)
                file.write(buffer[:count])
                with self._changed:
                    part.at += count
                    self._changed.notify_all()

    @contextmanager
    def _watched(self, response: DownloadResponse) -> Iterator[None]:
        with self._changed:
            self._open.add(response)
            if self._ended:
                response.hang_up()
        try:
            yield
        finally:
            with self._changed:
                self._open.discard(response)
