"""Images that nobody needs any more leave by themselves, some time after they were last asked for."""

import asyncio
import contextlib
import logging
import re
from collections.abc import Iterable
from pathlib import Path

import orjson

from paddock.base.images.library import ImageLibrary

_LOG = logging.getLogger(__name__)
_DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")
_EVERY_SECONDS = 3600.0


def named(root: Path, pools: Iterable[Path]) -> set[str]:
    """Digests that records of volumes, machines, snapshots and states name, below the engine's directory and in other places for volumes.

    Whatever looks like a digest counts: an image too many is kept rather than one too few. Raises `ValueError` for a damaged record, which
    may have named any.
    """
    records = [path for pattern in ("*/*.json", "*/*/*.json") for path in root.glob(pattern) if path.relative_to(root).parts[0] != "images"]
    records += [path for pool in pools for path in pool.glob("*/*.json")]
    found: set[str] = set()
    for path in records:
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes()
            try:
                orjson.loads(data)
            except ValueError as error:
                raise ValueError(f"{path} is damaged: {error}") from error
            found.update(each.decode() for each in _DIGEST.findall(data))
    return found


class ImageUpkeep:
    """Looks once an hour. What cannot be read ends the round: nothing is removed on half a knowledge."""

    def __init__(self, images: ImageLibrary, root: Path, pools: Iterable[Path], keep_seconds: float) -> None:
        self._images = images
        self._root = root
        self._pools = tuple(pools)
        self._keep = keep_seconds
        self._task: asyncio.Task[None] | None = None

    async def round(self) -> list[str]:
        """Remove what is not needed; returns the digests."""
        used = await asyncio.to_thread(named, self._root, self._pools)
        return await self._images.collect(used, self._keep)

    def start(self) -> None:
        self._task = asyncio.create_task(self._rounds(), name="upkeep of images")

    async def stop(self) -> None:
        """No longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                removed = await self.round()
            except (OSError, ValueError) as error:
                _LOG.warning("image garbage collection failed", extra={"error": str(error)})
                continue
            if removed:
                _LOG.info("unused images removed", extra={"count": len(removed)})
