"""The file of the audit log: lines that are whole or absent, a new file when it is large, old ones removed by count and age.

When a line cannot be written, because the disk is full, it is lost and counted, and the server says so in its log, once, and again
when it can write. What is refused meanwhile is a choice: nothing (the machines matter more than their record), or every change.
"""

import logging
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from paddock.base.metrics import MetricFamily

_LOG = logging.getLogger(__name__)
_DAY = 86_400.0
# How often it is tried whether lines can be written again.
_TRY_SECONDS = 1.0
FAMILIES = (
    MetricFamily("apiserver_audit_event_total", "counter", "Audit events that were written."),
    MetricFamily("apiserver_audit_error_total", "counter", "Audit events that were lost."),
)


class Rotation(msgspec.Struct, frozen=True, kw_only=True):
    """The size at which a file is rotated, and the number and age of the files kept. 0 means no limit."""

    bytes: int = 64 * 1024 * 1024
    files: int = 4
    days: float = 0


class AuditFile:
    """Lines of an audit log in a file."""

    def __init__(self, path: Path, rotation: Rotation = Rotation(), *, strict: bool = False) -> None:  # noqa: B008 - frozen
        self._path = path
        self._rotation = rotation
        self._strict = strict
        self._trouble = ""
        self._tried = 0.0
        self.lost = 0
        self.written = 0
        self._lost_now = 0
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    @property
    def blocked(self) -> str:
        """The reason why nothing may be changed now, because it could not be recorded; empty when changes are allowed."""
        if self._strict and self._trouble and time.monotonic() - self._tried > _TRY_SECONDS:
            self._put(b"")
        return self._trouble if self._strict else ""

    def write(self, line: bytes) -> None:
        """Write a line; never raises."""
        if self._put(line):
            self.written += 1
        else:
            self.lost += 1
            self._lost_now += 1
        if self._rotation.bytes and self._size >= self._rotation.bytes:
            self._rotate()

    def _put(self, line: bytes) -> bool:
        """Write a line, or nothing of it. Without a line it is tried whether one could be."""
        self._tried = time.monotonic()
        try:
            count = os.write(self._file, line or b"\n")
            if not line or count < len(line):
                # Half a line would spoil the next one.
                os.ftruncate(self._file, self._size)
            if line and count < len(line):
                raise OSError(28, "the disk took only a part of it")
        except OSError as error:
            self._trouble_is(error.strerror or str(error))
            return False
        self._size += len(line)
        self._trouble_is("")
        return True

    def _trouble_is(self, why: str) -> None:
        if why and not self._trouble:
            _LOG.error("audit log not writable", extra={"error": str(why), "file": str(self._path)})
        elif self._trouble and not why:
            _LOG.warning("audit log writable again", extra={"lost_lines": self._lost_now, "file": str(self._path)})
            self._lost_now = 0
        self._trouble = why

    def _rotate(self) -> None:
        """Begin a new file. When that fails, the old one grows on."""
        now = datetime.now(UTC)
        while (old := self._at(now)).exists():
            now += timedelta(microseconds=1)
        try:
            self._path.rename(old)
            os.close(self._file)
            self._open()
            for surplus in self._surplus():
                surplus.unlink(missing_ok=True)
        except OSError as error:
            _LOG.error("audit log rotation failed", extra={"error": error.strerror, "file": str(self._path)})

    def _at(self, time: datetime) -> Path:
        return self._path.with_name(f"{self._path.stem}-{time:%Y-%m-%dT%H-%M-%S.%f}{self._path.suffix}")

    def earlier(self) -> list[Path]:
        """The files of before, the newest first."""
        return sorted(self._path.parent.glob(f"{self._path.stem}-*{self._path.suffix}"), reverse=True)

    def _surplus(self) -> Iterator[Path]:
        known = self.earlier()
        if self._rotation.files:
            yield from known[self._rotation.files :]
        if self._rotation.days:
            oldest = time.time() - self._rotation.days * _DAY
            yield from (each for each in known[: self._rotation.files or None] if each.stat().st_mtime < oldest)

    def counted(self) -> Iterator[str]:
        """Yield the counters for `/metrics`."""
        for family, count in zip(FAMILIES, (self.written, self.lost), strict=True):
            yield from family.head()
            yield f"{family.name} {count}"

    def close(self) -> None:
        """Nothing is written any more."""
        os.close(self._file)


class NullAuditFile:
    blocked = ""

    def write(self, line: bytes) -> None:
        pass

    def counted(self) -> Iterator[str]:
        return iter(())

    def close(self) -> None:
        pass
