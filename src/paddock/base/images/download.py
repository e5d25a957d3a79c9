"""A download into a file, finished in as many pieces as it takes.

`DIRECTORY/body` grows from its beginning, and `DIRECTORY/state.json` says which version of the file it is the beginning of. A
piece that was interrupted (by the server, by a crash of ours) is gone on with, when the server still has that version; after a
restart of the host it is not, because what a file system kept of an unfinished file is anybody's guess.
"""

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from paddock.base.backoff import Backoff
from paddock.base.images.errors import ImageError, ImageRefused, ImageUnavailable
from paddock.base.images.facts import oversized
from paddock.base.images.formats import HEAD_BYTES, head_of, stays
from paddock.base.images.http import SLOWEST, DownloadResponse, bad_status, retry_after
from paddock.base.images.progress import Meter
from paddock.base.images.ranges import ParallelRanges
from paddock.base.images.settings import RangeRules
from paddock.base.images.sources import safe_url
from paddock.base.images.sparse import SparseWriter, check_room, free_bytes
from paddock.base.images.stopflag import StopFlag

# Small enough to stay in a processor's cache between the socket, the hash and the file: larger ones take twice the time in the kernel.
BUFFER = 256 * 1024
_AGAIN = ("Unreachable", "TimedOut", "Truncated")


# Makes one request with these additional headers.
Open = Callable[[dict[str, str]], DownloadResponse]


@dataclass(frozen=True)
class DownloadRules:
    """The patience of a download, and the largest file."""

    attempts: int = 5
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=20.0))
    stall_seconds: float = 60.0
    max_bytes: int = 4 << 40
    reserve_bytes: int = 256 << 20
    ranges: RangeRules = field(default_factory=RangeRules)


@dataclass(frozen=True)
class Validator:
    """The validator that distinguishes versions of a file at one address."""

    etag: str = ""
    modified: str = ""

    def __bool__(self) -> bool:
        return bool(self.etag or self.modified)

    @property
    def conditional(self) -> dict[str, str]:
        """The headers that ask for the file only if it is another."""
        headers = {}
        if self.etag:
            headers["If-None-Match"] = self.etag
        if self.modified:
            headers["If-Modified-Since"] = self.modified
        return headers

    @property
    def for_range(self) -> str:
        """The value for If-Range: a strong validator."""
        if self.etag and not self.etag.startswith("W/"):
            return self.etag
        return self.modified

    def same(self, other: "Validator") -> bool:
        """Return whether both name the same version: by the tag when both have one."""
        if self.etag or other.etag:
            return bool(self.etag) and self.etag == other.etag
        return bool(self.modified) and self.modified == other.modified


@dataclass(frozen=True)
class DownloadResult:
    """A complete file. `path` is None when the server still has the version that was known."""

    path: Path | None
    size: int = 0
    sha256: str = ""
    validator: Validator = Validator()


class DownloadFollower(Protocol):
    """Reads along while a file is downloaded. What it raises ends the download."""

    def begin(self, path: Path, length: int | None) -> None:
        """The first byte comes next; all that came before is void."""

    def arrived(self, count: int) -> None:
        """So many bytes from the beginning are in the file."""


class _NoFollower:
    def begin(self, path: Path, length: int | None) -> None:
        pass

    def arrived(self, count: int) -> None:
        pass


class DownloadUnchanged(Exception):
    """The server has what we know already."""


class Download:
    """One file. All of it runs in one thread."""

    def __init__(self, directory: Path, open_: Open, stop: StopFlag, meter: Meter, rules: DownloadRules) -> None:
        self._body = directory / "body"
        self._state = directory / "state.json"
        self._open = open_
        self._stop = stop
        self._meter = meter
        self._rules = rules
        self._sha256 = hashlib.sha256()
        self._other: hashlib._Hash | None = None
        self._done = 0
        self._validator = Validator()
        self._length: int | None = None
        self._known: Callable[[Validator], bool] = lambda _: False
        self._immutable = False
        self._inspect: Callable[[bytes, int | None], None] = lambda head, length: None
        self._follower: DownloadFollower = _NoFollower()

    def run(
        self,
        *,
        checksum: tuple[str, str] | None = None,
        known: Validator = Validator(),
        immutable: bool = False,
        inspect: Callable[[bytes, int | None], None] = lambda head, length: None,
        follower: DownloadFollower | None = None,
    ) -> DownloadResult:
        """Download, or find that the `known` version is still there. What is `immutable` has one version only, named by its checksum.

        `inspect` is shown the first bytes and the length of the whole, and may refuse.
        """
        self._inspect = inspect
        self._follower = follower or _NoFollower()
        self._immutable = immutable
        if checksum and checksum[0] != "sha256":
            self._other = hashlib.new(checksum[0], usedforsecurity=False)
        self._known = known.same
        self._resume()
        chance = random.Random()
        failures = 0
        while True:
            before = self._done
            try:
                self._piece(known)
                break
            except DownloadUnchanged:
                return DownloadResult(None, validator=self._validator)
            except ImageError as error:
                # A piece that brought more than a drip is no failure in a row.
                failures = 1 if self._done - before > SLOWEST * self._rules.stall_seconds else failures + 1
                if error.fatal or error.code not in _AGAIN or failures >= self._rules.attempts:
                    raise
                self._stop.wait(max(self._rules.backoff.pause(failures, chance), getattr(error, "after", 0.0)))
        digest = self._sha256.hexdigest()
        self._check(checksum, digest)
        return DownloadResult(self._body, self._done, digest, self._validator)

    # --- pieces -----------------------------------------------------------------------------------------------------------

    def _piece(self, known: Validator) -> None:
        headers: dict[str, str] = {}
        if self._done and self._immutable:
            headers = {"Range": f"bytes={self._done}-"}
        elif self._done and self._validator.for_range:
            headers = {"Range": f"bytes={self._done}-", "If-Range": self._validator.for_range}
        elif known:
            headers = known.conditional
        self._stop.check()
        with self._open(headers) as response:
            if self._accept(response):
                self._receive(response)

    def _accept(self, response: DownloadResponse) -> bool:
        """Look at the head of an answer; whether its body is to be read."""
        validator = Validator(response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))
        if response.status == 304:
            self._validator = validator
            raise DownloadUnchanged
        if response.status == 206 and self._done and _range(response) == self._done:
            self._length = self._done + response.length if response.length is not None else None
            return True
        if response.status == 416 and self._done and _range_total(response) == self._done:
            return False
        if response.status in (206, 416):
            # It does not go on where we are: from the beginning, the next time without a range.
            self._begin(Validator(), None)
            raise ImageUnavailable("Truncated", f"{safe_url(response.url)} does not send the part that was asked for")
        if response.status != 200:
            error = bad_status(response)
            error.after = retry_after(response)  # type: ignore[attr-defined]
            raise error
        if self._known(validator):
            self._validator = validator
            raise DownloadUnchanged
        self._begin(validator, response.length)
        _no_page(response)
        return True

    def _begin(self, validator: Validator, length: int | None) -> None:
        """From the first byte."""
        if length is not None and length > self._rules.max_bytes:
            text = f"the image has {length} bytes, and {self._rules.max_bytes} are the most"
            raise oversized(text)
        if length is not None and length > (free := free_bytes(self._body.parent) - self._rules.reserve_bytes):
            raise ImageUnavailable("NoSpace", f"there is no room for an image of {length} bytes", why=f"{max(free, 0)} bytes are free")
        self._validator, self._length = validator, length
        self._sha256 = hashlib.sha256()
        if self._other is not None:
            self._other = hashlib.new(self._other.name, usedforsecurity=False)
        self._done = 0
        self._state.unlink(missing_ok=True)
        # Never emptied: what was a complete download may live on under another name, as an image.
        self._body.unlink(missing_ok=True)
        with open(self._body, "xb"):
            pass
        self._follower.begin(self._body, length)
        if self._can_resume:
            self._save()

    @property
    def _can_resume(self) -> bool:
        return bool(self._validator.for_range or self._immutable)

    def _save(self, done: int | None = None) -> None:
        """Write down what the file is the beginning of; `done` bytes of it, when what follows has gaps."""
        state = {
            "etag": self._validator.etag,
            "modified": self._validator.modified,
            "length": self._length,
            "boot": boot_id(),
            "done": done,
        }
        fresh = self._state.with_name("state.new")
        fresh.write_text(json.dumps(state))
        fresh.rename(self._state)

    def _receive(self, response: DownloadResponse) -> None:
        self._meter.begin("downloading", self._length, self._done)
        with SparseWriter(self._body, self._done) as file:
            if self._done and self._can_resume:
                # The file has no gaps any more.
                self._save()
            if self._done and stays(head_of(self._body)):
                file.flush_along()
            length = self._receive_in_order(file, response)
            if length is not None:
                self._receive_ranges(response, length)
        if self._length is not None and self._done < self._length:
            text = f"{safe_url(response.url)} ended its answer after {self._done} of {self._length} bytes"
            raise ImageUnavailable("Truncated", text)

    def _receive_in_order(self, file: SparseWriter, response: DownloadResponse) -> int | None:
        """Read a response to its end, or until it pays to fetch the rest over several connections: then return the whole length."""
        buffer = memoryview(bytearray(BUFFER))
        filled = 0
        began, before = time.monotonic(), self._done
        try:
            while count := response.read_into(buffer[filled:]):
                filled += count
                if filled >= BUFFER // 2:
                    part, filled = buffer[:filled], 0
                    self._take(file, part, response)
                    if self._length is None or not self._can_resume or not _has_ranges(response):
                        continue
                    if self._rules.ranges.pay(time.monotonic() - began, self._done - before, self._length - self._done):
                        return self._length
        finally:
            # What came before a connection broke is kept.
            if filled:
                self._take(file, buffer[:filled], response)
        return None

    def _receive_ranges(self, response: DownloadResponse, length: int) -> None:
        ranges = ParallelRanges(self._body, (self._done, length), self._rules.ranges, self._rules.reserve_bytes)
        self._save(self._done)
        ranges.run(response, self._open_range, self._count, lambda: self._save(self._done))
        self._save()

    def _open_range(self, start: int, end: int) -> DownloadResponse:
        headers = {"Range": f"bytes={start}-{end - 1}"}
        if not self._immutable:
            headers["If-Range"] = self._validator.for_range
        response = self._open(headers)
        if response.status == 206 and _range(response) == start and response.length == end - start:
            return response
        with response:
            if response.status in (200, 206):
                raise ImageUnavailable("Truncated", f"{safe_url(response.url)} does not send the part that was asked for")
            raise bad_status(response)

    def _take(self, file: SparseWriter, part: memoryview, response: DownloadResponse) -> None:
        if not self._done:
            _no_page(response, bytes(part[:512]))
            self._inspect(bytes(part[:HEAD_BYTES]), self._length)
            if stays(bytes(part[:HEAD_BYTES])):
                file.flush_along()
        check_room(self._body.parent, self._rules.reserve_bytes)
        file.write(part)
        self._count(part)

    def _count(self, part: memoryview) -> None:
        """These bytes come next, and are in the file."""
        self._sha256.update(part)
        if self._other is not None:
            self._other.update(part)
        self._done += len(part)
        self._meter.at(self._done)
        self._follower.arrived(self._done)
        if self._done > self._rules.max_bytes:
            text = f"the image has more than {self._rules.max_bytes} bytes, which are the most"
            raise oversized(text)

    def _resume(self) -> None:
        """Take over the state of an earlier run. The hash is computed again from the file."""
        try:
            state = json.loads(self._state.read_text())
            status = self._body.stat()
            if state["boot"] != boot_id() or not status.st_size or status.st_nlink != 1:
                return
            self._validator = Validator(str(state["etag"]), str(state["modified"]))
            self._length = state["length"]
            if (done := state.get("done")) is not None:
                os.truncate(self._body, min(int(done), status.st_size))
        except (OSError, ValueError, KeyError, TypeError):
            return
        with open(self._body, "rb", buffering=0) as file:
            buffer = bytearray(BUFFER)
            while count := file.readinto(buffer):
                self._stop.check()
                part = memoryview(buffer)[:count]
                self._sha256.update(part)
                if self._other is not None:
                    self._other.update(part)
                self._done += count
        self._follower.begin(self._body, self._length)
        self._follower.arrived(self._done)

    def _check(self, checksum: tuple[str, str] | None, sha256: str) -> None:
        if checksum is None:
            return
        found = self._other.hexdigest() if self._other is not None else sha256
        if found != checksum[1]:
            self._state.unlink(missing_ok=True)
            self._body.unlink(missing_ok=True)
            text = f"the checksum does not match: expected {checksum[0]}:{checksum[1]}, got {checksum[0]}:{found}"
            raise ImageRefused("Checksum", text, fix="check the source's checksum, or whether the file at the source was replaced")


def _range(response: DownloadResponse) -> int:
    found = re.match(r"bytes ([0-9]{1,19})-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _range_total(response: DownloadResponse) -> int:
    found = re.fullmatch(r"bytes \*/([0-9]{1,19})", response.headers.get("Content-Range", "").strip())
    return int(found[1]) if found else -1


def _has_ranges(response: DownloadResponse) -> bool:
    return response.status == 206 or response.headers.get("Accept-Ranges", "").strip().lower() == "bytes"


def _no_page(response: DownloadResponse, head: bytes = b"") -> None:
    """A login or error page with status 200 is what people get for a wrong address most often."""
    kind = response.headers.get_content_type() if response.headers.get("Content-Type") else ""
    looks = head.lstrip()[:15].lower()
    if (not head and kind in ("text/html", "application/xhtml+xml")) or looks.startswith((b"<!doctype html", b"<html")):
        start = head or response.read(4096)
        title = re.search(rb"<title[^>]*>([^<]{1,200})", start, re.IGNORECASE)
        shown = "".join(c for c in title[1].decode("utf-8", "replace") if c.isprintable()).strip() if title else ""
        text = f"{safe_url(response.url)} is a web page" + (f' ("{shown}")' if shown else "") + ", not a disk image"
        raise ImageRefused("NotAnImage", text, fix="check the address: it may lead to a login, an error or a list of files")


def boot_id() -> str:
    """This start of the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(os.getppid())
