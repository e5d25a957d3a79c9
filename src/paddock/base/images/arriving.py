"""A file that a download still writes, and a reader that waits for what has not come yet."""

import threading
from io import FileIO
from pathlib import Path


class AbandonedError(Exception):
    """The rest of the file will not come."""


class Arrival:
    """The number of bytes, from the beginning of a file, that have come. One thread counts, others wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0
        self._complete = False
        self._abandoned = False

    def arrived(self, count: int) -> None:
        """So many bytes are in the file."""
        with self._changed:
            self._count = count
            self._changed.notify_all()

    def complete(self) -> None:
        """Nothing follows: readers find the end of the file."""
        with self._changed:
            self._complete = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Nothing follows, and what came is of no use: readers get an `AbandonedError`."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def beyond(self, position: int) -> int:
        """Wait for bytes behind this position, and return how many there are: none at the end of the file."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > position or self._complete or self._abandoned)
            if self._abandoned:
                raise AbandonedError
            return max(0, self._count - position)


class ArrivingFile(FileIO):
    """A file to read from its beginning while it grows."""

    def __init__(self, path: Path, arrival: Arrival) -> None:
        super().__init__(path)
        self._arrival = arrival

    def read(self, limit: int | None = -1, /) -> bytes:
        """At least one byte and at most so many; empty at the end of the whole file."""
        position = self.tell()
        there = self._arrival.beyond(position)
        count = there if limit is None or limit < 0 else min(limit, there)
        data = super().read(count)
        if len(data) < count:
            # Zeros at the end of a file that is still written are holes that it does not have yet.
            data += bytes(count - len(data))
            self.seek(position + count)
        return data
