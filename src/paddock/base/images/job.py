"""One import: who waits for it, and what it works with."""

from collections.abc import Callable

import msgspec

from paddock.base import quantity
from paddock.base.images.errors import ImageRefused
from paddock.base.images.progress import Meter, Progress
from paddock.base.images.stopflag import StopFlag

Tell = Callable[[Progress], None]


class ImportJob(msgspec.Struct, eq=False):
    """One import and all who wait for it."""

    max_bytes: int
    # whose import it is: the namespace of who asked first
    owner: str = ""
    stop: StopFlag = msgspec.field(default_factory=StopFlag)
    listeners: list[Tell] = msgspec.field(default_factory=list)
    limits: list[int] = msgspec.field(default_factory=list)
    progress: Progress = msgspec.field(default_factory=Progress)

    def tell(self, progress: Progress) -> None:
        self.progress = progress
        for listener in list(self.listeners):
            listener(progress)


class Task:
    """The context of an import's thread: its stop flag, its progress meter, its size limit."""

    def __init__(self, job: ImportJob, meter: Meter) -> None:
        self.stop = job.stop
        self.meter = meter
        self._job = job

    def limit(self) -> int:
        """The largest disk that somebody who waits has a use for."""
        return max(self._job.limits, default=self._job.max_bytes)


def too_large(size: int, limit: int) -> ImageRefused:
    """The disk does not fit."""
    return ImageRefused(
        "TooLarge",
        f"the image needs {quantity.binary(size)}, the volume has {quantity.binary(limit)}",
        why=f"its virtual size is {size} bytes",
        fix="A larger PVC is required",
    )
