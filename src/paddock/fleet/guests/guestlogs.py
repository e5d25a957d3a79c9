"""Logs of a guest: its serial console's, which the server keeps, and cloud-init's, which the guest keeps."""

import re

from paddock.base.errors import Terminal
from paddock.fleet.guests.guest import GuestAccess, GuestRefused
from paddock.kubernetes.client.errors import NotFound, Unreachable

PAUSE_SECONDS = 0.5
_CLOUD_INIT = ("/var/log/cloud-init.log", "/var/log/cloud-init-output.log")
_LONGEST = 8 << 20
_PART = 512 << 10
# The end of what was printed, which the log goes on from.
_MARK = 256
# Sequences that move the cursor or clear the screen, then single characters that do.
_SEQUENCES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


class NoLog(Terminal):
    """There is no such log."""


async def boot(guest: GuestAccess, *, previous: bool = False) -> bytes:
    """Return the log of the serial console."""
    try:
        return await guest.console_log(previous=previous)
    except NotFound as error:
        fix = f"`paddock why {guest.machine}` says what it waits for"
        raise NoLog(f"cannot show the log of {guest.name}", why=str(error), fix="" if previous else fix) from error


async def cloud_init(guest: GuestAccess) -> list[tuple[str, bytes]]:
    """Return cloud-init's logs, each with its path."""
    found = []
    for path in _CLOUD_INIT:
        try:
            found.append((path, await _file(guest, path)))
        except GuestRefused:
            continue
    if not found:
        fix = f"`paddock logs {guest.name}` shows its boot"
        raise NoLog(f"cannot show cloud-init's logs of {guest.name}", why="its guest has none in /var/log", fix=fix)
    return found


async def _file(guest: GuestAccess, path: str) -> bytes:
    data = b""
    while len(data) < _LONGEST:
        part, is_end = await guest.read(path, len(data), _PART)
        data += part
        if is_end or not part:
            break
    return data


class LogFollower:
    """The growth of a console's log. The server cuts off its beginning at times, and a new run begins a new one."""

    def __init__(self, guest: GuestAccess, data: bytes) -> None:
        self._guest = guest
        self._size = len(data)
        self._end = data[-_MARK:]

    async def news(self) -> tuple[bytes, bool]:
        """Return what is new, and whether it comes from a new run. A server that is away has none."""
        start = self._size - len(self._end)
        try:
            found = await self._guest.console_log(offset=start)
            if found.startswith(self._end):
                self._size = start + len(found)
                new = found[len(self._end) :]
                self._end = found[-_MARK:]
                return new, False
            whole = await self._guest.console_log()
        except (NotFound, Unreachable):
            return b"", False
        place = whole.rfind(self._end) if self._end else -1
        new = whole[place + len(self._end) :] if place >= 0 else whole
        self._size, self._end = len(whole), whole[-_MARK:]
        return new, place < 0


def tail(data: bytes, lines: int) -> bytes:
    """Return the last lines; all of it for a negative number."""
    if lines < 0:
        return data
    return b"".join(data.splitlines(keepends=True)[-lines:]) if lines else b""


def cleaned(data: bytes) -> bytes:
    """Return the text without what would act on a terminal."""
    return _CONTROLS.sub(b"", _SEQUENCES.sub(b"", data))
