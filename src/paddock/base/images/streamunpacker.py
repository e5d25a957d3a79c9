"""Unpacking beside the download: the outer wrapper comes off while the file arrives."""

import threading
from pathlib import Path

from paddock.base.images.arriving import AbandonedError, Arrival, ArrivingFile
from paddock.base.images.errors import ImageError
from paddock.base.images.formats import Wrapper, head_of, wrapper_of
from paddock.base.images.job import Task
from paddock.base.images.progress import Meter
from paddock.base.images.sparse import disk_trouble
from paddock.base.images.unpack import UnpackLimit, unpack_one


class StreamingUnpacker:
    """Follows one download, and unpacks in a thread of its own into `target`. When no turn is free, nobody unpacks along."""

    def __init__(self, target: Path, task: Task, turns: threading.Semaphore) -> None:
        self._target = target
        self._task = task
        self._turns = turns
        self._path = Path()
        self._length: int | None = None
        self._run: _Run | None = None
        self._began = False

    # --- from the download's thread -----------------------------------------------------------------------------------------

    def begin(self, path: Path, length: int | None) -> None:
        """The download begins, or begins again: what was read along is of no use."""
        self._abandon()
        self._path, self._length, self._began = path, length, False

    def arrived(self, count: int) -> None:
        """So many bytes are in the file. Raises the error of a file that unpacks to more than anybody has a use for."""
        if not self._began:
            self._began = True
            self._run = self._start()
        if self._run is not None:
            self._run.arrival.arrived(count)
            if self._run.error is not None and self._run.error.code == "TooLarge":
                raise self._run.error

    def _start(self) -> "_Run | None":
        wrapper = wrapper_of(head_of(self._path))
        # Without its length, nobody knows how much a packed file may unpack to.
        if wrapper is None or self._length is None or not self._turns.acquire(blocking=False):
            return None
        return _Run(self._path, wrapper, self._length, self._target, self._task)

    # --- from who keeps the file ----------------------------------------------------------------------------------------------

    def finish(self) -> Path | None:
        """Wait for the rest, and return the unpacked file; None if nobody unpacked along."""
        run = self._run
        if run is None:
            return None
        run.arrival.complete()
        meter = self._task.meter
        meter.begin("unpacking", self._path.stat().st_size, run.meter.seen.bytes_done)
        while run.thread.is_alive():
            run.thread.join(0.1)
            meter.at(run.meter.seen.bytes_done)
        if run.error is not None:
            raise run.error
        return self._target

    def _abandon(self) -> None:
        if self._run is None:
            return
        self._run.arrival.abandon()
        self._run.thread.join()
        self._turns.release()
        self._run = None

    def __enter__(self) -> "StreamingUnpacker":
        return self

    def __exit__(self, *_: object) -> None:
        self._abandon()


class _Run:
    def __init__(self, path: Path, wrapper: Wrapper, packed: int, target: Path, task: Task) -> None:
        self.arrival = Arrival()
        self.error: ImageError | None = None
        # Only its count matters: until the download is complete, people see that.
        self.meter = Meter(lambda _: None)
        self._file = ArrivingFile(path, self.arrival)
        self._rest = (wrapper, target, UnpackLimit(packed, task.limit), (self.meter, task.stop))
        self.thread = threading.Thread(target=self._unpack, name="image unpacker", daemon=True)
        self.thread.start()

    def _unpack(self) -> None:
        try:
            unpack_one(self._file, *self._rest)
        except AbandonedError:
            pass
        except ImageError as error:
            self.error = error
        except OSError as error:
            self.error = disk_trouble(error)
