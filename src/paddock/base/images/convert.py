"""qemu-img, for files that passed `headers` already: a second opinion, and the way into raw.

It is confined (`confine`): it sees the one file and what it writes, both by descriptor, so no name from an image leads anywhere. The
format is always said. It has limits of memory, CPU time, wall time and file size.
"""

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from paddock.base import confine
from paddock.base.descriptors import piped
from paddock.base.images.errors import ImageRefused, ImageUnavailable
from paddock.base.images.facts import ImageFacts
from paddock.base.images.formats import Disk
from paddock.base.images.progress import Meter
from paddock.base.images.sparse import Flusher, check_room, disk_trouble
from paddock.base.images.stopflag import StopFlag

_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/nix/store", "/dev/urandom", "/dev/null")
_PROGRESS = re.compile(rb"\(\s*(\d+(?:\.\d+)?)/100%\)")
_MOST_OUTPUT = 1 << 20
_NOBODY = 65534


@dataclass(frozen=True)
class ConversionLimits:
    """The limits of one run."""

    memory_bytes: int = 1 << 30
    cpu_seconds: int = 30
    wall_seconds: float = 30.0
    file_bytes: int = 0
    files: int = 64


def convert_limits(stored: int, virtual: int) -> ConversionLimits:
    """Limits of a conversion: by what may have to be moved, which no honest image makes more than forty times its file."""
    moved = min(virtual, 40 * stored + (1 << 30))
    seconds = 30 + moved // (32 << 20)
    return ConversionLimits(cpu_seconds=seconds, wall_seconds=4.0 * seconds, file_bytes=virtual + (1 << 20))


@dataclass(frozen=True)
class Tool:
    program: str = ""
    user: int = _NOBODY
    reserve_bytes: int = 256 << 20

    def check(self, path: Path, facts: ImageFacts, limits: ConversionLimits, stop: StopFlag) -> ImageFacts:
        """Return qemu-img's facts about a file; raise for facts that contradict our own. The virtual size is qemu-img's afterwards."""
        output = self._run(["info", "--output=json", "--image-opts", _options(facts.format, 3)], (path, None), limits, (stop, None))
        try:
            information: dict[str, Any] = json.loads(output)
        except ValueError as error:
            raise ImageRefused("NotAnImage", "qemu-img tells nothing of the image") from error
        specific = information.get("format-specific", {}).get("data", {})
        if "backing-filename" in information or "full-backing-filename" in information:
            raise ImageRefused("Unsafe", "the image has a backing file")
        if specific.get("data-file"):
            raise ImageRefused("Unsafe", "the image keeps its data in another file")
        if information.get("encrypted") or specific.get("encrypt"):
            raise ImageRefused("Encrypted", "the image is encrypted")
        size = int(information.get("virtual-size", -1))
        if size < 0 or (facts.format == "qcow2" and size != facts.virtual_size):
            raise ImageRefused("NotAnImage", "the size of the image cannot be found")
        return replace(facts, virtual_size=size)

    def to_raw(
        self, path: Path, facts: ImageFacts, target: Path, watched: tuple[Meter, StopFlag], limits: ConversionLimits | None = None
    ) -> None:
        """Write the disk as a sparse raw file."""
        meter, stop = watched
        meter.begin("converting", facts.virtual_size)
        with open(target, "xb") as file:
            os.truncate(file.fileno(), facts.virtual_size)
        limits = limits or convert_limits(path.stat().st_size, facts.virtual_size)
        self._run(_convert(facts.format), (path, target), limits, (stop, lambda part: meter.at(int(part * facts.virtual_size))))

    # --- one run ----------------------------------------------------------------------------------------------------------

    def _run(
        self,
        command: list[str],
        files: tuple[Path, Path | None],
        limits: ConversionLimits,
        watched: tuple[StopFlag, Callable[[float], None] | None],
    ) -> bytes:
        program = self.program or shutil.which("qemu-img")
        if program is None:
            raise ImageUnavailable("Unsupported", "images cannot be checked: qemu-img is not installed", fix="install qemu-utils")
        with _Handed(files, self._user) as handed:
            argv = self._confined([os.path.realpath(program), *command], limits, handed)
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[handle for handle, _ in handed.handles],
                cwd="/",
            )
            with process, _flushing(handed):
                watch = _Watch(process, limits, watched, (files[1], self.reserve_bytes))
                try:
                    output, errors = watch.until_end()
                finally:
                    if process.poll() is None:
                        process.kill()
        _judge_end(process.returncode, errors, limits, watch.late)
        return output

    @property
    def _user(self) -> int | None:
        return self.user if os.geteuid() == 0 else None

    def _confined(self, command: list[str], limits: ConversionLimits, handed: "_Handed") -> list[str]:
        """The words of `confine` for a command."""
        home = str(Path(command[0]).parent.parent)
        numbers = {
            "RLIMIT_AS": limits.memory_bytes,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_FSIZE": limits.file_bytes,
            "RLIMIT_NOFILE": limits.files,
            "RLIMIT_CORE": 0,
        }
        return [
            *(sys.executable, "-I", "-S", confine.__file__),
            *(f"limit={name}:{number}" for name, number in numbers.items()),
            *([] if self._user is None else [f"user={self._user}"]),
            *(f"read={path}" for path in (*_SYSTEM, *([home] if home not in ("/", "/usr") else []))),
            *(f"{'written' if writable else 'file'}={handle}" for handle, writable in handed.handles),
            *("--", *handed.resolve(command)),
        ]


def _options(format: Disk, number: int) -> str:
    """A file by its place among those handed over (3 is the first). `{3}` becomes the descriptor."""
    return f"driver={format},file.driver=file,file.locking=off,file.filename=/proc/self/fd/{{{number}}}"


def _convert(format: Disk) -> list[str]:
    return ["convert", "-p", "-n", "--target-is-zero", "--image-opts", "--target-image-opts", _options(format, 3), _options("raw", 4)]


class _Handed:
    """The files a run is given: opened here, readable (and the target writable) for the user that it runs as."""

    def __init__(self, files: tuple[Path, Path | None], user: int | None) -> None:
        self._files = files
        self._user = user
        self.handles: list[tuple[int, bool]] = []

    def __enter__(self) -> "_Handed":
        source, target = self._files
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self.handles.append((handle, False))
        if self._user is not None:
            os.fchmod(handle, 0o444)
        if target is not None:
            handle = os.open(target, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            self.handles.append((handle, True))
            if self._user is not None:
                os.fchown(handle, self._user, -1)
        return self

    def resolve(self, command: list[str]) -> list[str]:
        """Put the descriptors' numbers in."""
        for place, (handle, _) in enumerate(self.handles, 3):
            command = [part.replace(f"{{{place}}}", str(handle)) for part in command]
        return command

    def __exit__(self, *_: object) -> None:
        for handle, writable in self.handles:
            if writable and self._user is not None:
                os.fchown(handle, os.geteuid(), -1)
            os.close(handle)


def _flushing(handed: _Handed) -> contextlib.AbstractContextManager[object]:
    """Return a context that flushes written data to the disk while it is written."""
    written = [handle for handle, writable in handed.handles if writable]
    return Flusher(written[0]) if written else contextlib.nullcontext()


class _Watch:
    """Reads what a process says, tells its progress, and ends it when it takes too long or too much."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        limits: ConversionLimits,
        watched: tuple[StopFlag, Callable[[float], None] | None],
        room: tuple[Path | None, int],
    ) -> None:
        self._process = process
        self._stop, self._tell = watched
        self._target, self._reserve = room
        self._until = time.monotonic() + limits.wall_seconds
        self.late = False

    def until_end(self) -> tuple[bytes, bytes]:
        """All output and all errors."""
        output, errors = bytearray(), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(piped(self._process.stdout), selectors.EVENT_READ, output)
            selector.register(piped(self._process.stderr), selectors.EVENT_READ, errors)
            while selector.get_map():
                self._check()
                for key, _ in selector.select(0.25):
                    data = os.read(key.fd, 65536)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif len(key.data) < _MOST_OUTPUT:
                        key.data.extend(data)
                self._progress(output)
        try:
            self._process.wait(max(0.1, self._until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.late = True
        return bytes(output), bytes(errors)

    def _check(self) -> None:
        if self._stop.asked:
            self._process.kill()
            self._stop.check()
        if time.monotonic() > self._until and not self.late:
            self.late = True
            self._process.kill()
        if self._target is not None:
            # Whoever waits for the process ends it when this raises.
            check_room(self._target.parent, self._reserve)

    def _progress(self, output: bytearray) -> None:
        if self._tell is None:
            return
        found = _PROGRESS.findall(output)
        if found:
            self._tell(min(1.0, float(found[-1]) / 100))
            output.clear()


def _judge_end(code: int, errors: bytes, limits: ConversionLimits, late: bool) -> None:
    said = "".join(c if c.isprintable() else " " for c in errors.decode("utf-8", "replace")).strip()[-500:]
    # How the file was handed over tells a user nothing.
    said = re.sub(r"'?driver=[^' ]*'?", "the image", said).removeprefix("qemu-img: ")
    if late:
        raise ImageRefused("Limits", f"qemu-img was ended: it took longer than {limits.wall_seconds:.0f} s")
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise ImageRefused("Limits", f"qemu-img was ended: it used more than {limits.cpu_seconds} s of CPU time")
    if code == -signal.SIGXFSZ or (code > 0 and "File too large" in said):
        raise ImageRefused("Limits", f"qemu-img was ended: it wrote more than {limits.file_bytes} bytes")
    if code < 0:
        raise ImageRefused(
            "Limits", f"qemu-img ended with signal {-code}", why=said or "it may have asked for more memory than it is given"
        )
    if code and "No space left on device" in said:
        raise disk_trouble(OSError(28, "No space left on device"))
    if code == 125:
        raise ImageUnavailable("Limits", "qemu-img cannot be started with limits", why=said)
    if code:
        raise ImageRefused("NotAnImage", "qemu-img cannot read the image", why=said)
