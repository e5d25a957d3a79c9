"""Work that waits for the disk, in a thread."""

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from paddock.base.threads import undisturbed
from paddock.engine.storage import errors

P = ParamSpec("P")
R = TypeVar("R")


async def blocking(what: str, path: Path, do: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Do something that waits for the disk, in a thread; its errors become ours. Cancelled, it ends when the thread has."""
    with errors.spoken(what, path):
        return await undisturbed(do, *arguments, **named)
