"""Work that waits for the disk, in a thread."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from paddock.engine.storage import errors

P = ParamSpec("P")
R = TypeVar("R")


async def blocking(what: str, place: Path, do: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Do something that waits for the disk, in a thread; its errors become ours. Cancelled, it ends when the thread has."""
    with errors.spoken(what, place):
        work = asyncio.ensure_future(asyncio.to_thread(do, *arguments, **named))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # Otherwise the thread would go on in files that somebody else has by then.
            await asyncio.wait((work,))
            work.exception()
            raise
