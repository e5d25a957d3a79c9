"""Downloads of images that a driver looks into itself: bounded, checked, and from no address of this host or of a cloud's metadata."""

import asyncio
import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from paddock.base.images.download import Download, DownloadRules
from paddock.base.images.http import DownloadRequest, DownloadResponse, WebClient
from paddock.base.images.progress import Meter
from paddock.base.images.reachpolicy import ReachPolicy
from paddock.base.images.stopflag import StopFlag
from paddock_drivers.kit import foreign, refusals

_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}


class DownloadOrder(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    # the name of a digest and its digits; None: nothing is compared
    checksum: tuple[str, str] | None = None
    most: int = 1 << 42
    attempts: int = 3
    # networks, addresses and hosts of this machine that may be reached all the same
    allowed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Addresses of images may hold credentials.
        return "DownloadOrder(<hidden>)"


def checksum(digits: str | None, kind: str | None) -> tuple[str, str] | None:
    """Return the checksum of a request, None when it has none; raises InvalidSpec for one that no file can have."""
    if not digits:
        return None
    prefix, colon, rest = digits.partition(":")
    name, value = (prefix.lower(), rest.lower()) if colon else ((kind or "sha256").lower(), digits.lower())
    if _DIGITS.get(name) != len(value) or set(value) - set("0123456789abcdef"):
        raise refusals.invalid("the checksum of the image cannot be read", fix=f"use one of {', '.join(_DIGITS)}, in hexadecimal digits")
    return name, value


async def fetch(order: DownloadOrder, directory: Path) -> Path:
    """Download into an empty directory; raises `ProviderError`, also for another checksum than the one of the order."""
    stop = StopFlag()
    return await foreign.in_thread(lambda: _fetch(order, directory, stop), stop)


def _fetch(order: DownloadOrder, directory: Path, stop: StopFlag) -> Path:
    web = WebClient(ReachPolicy(_names(order.allowed)))

    def opened(headers: dict[str, str]) -> DownloadResponse:
        return web.open(DownloadRequest(order.url, private=order.headers, headers=tuple(headers.items())), stop)

    rules = DownloadRules(max_bytes=order.most, attempts=order.attempts)
    found = Download(directory, opened, stop, Meter(lambda _: None), rules).run(checksum=order.checksum)
    assert found.path is not None
    return found.path


def _names(allowed: Iterable[str]) -> list[str]:
    return [each.strip() for each in allowed if each.strip()]


async def digest(path: Path, kind: str, offset: int = 0, length: int | None = None) -> str:
    """Return the digest of a file, or of a part of it."""

    def work() -> str:
        found = hashlib.new(kind, usedforsecurity=False)
        left = path.stat().st_size - offset if length is None else length
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            while left > 0 and (chunk := file.read(min(left, 1 << 20))):
                found.update(chunk)
                left -= len(chunk)
        return found.hexdigest()

    return await asyncio.get_running_loop().run_in_executor(None, work)
