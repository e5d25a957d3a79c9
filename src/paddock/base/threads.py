"""Work in a thread that ends before its caller does."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def undisturbed(do: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """Do something that waits, in a thread. Cancelled, it ends when the thread has."""
    work = asyncio.ensure_future(asyncio.to_thread(do, *arguments, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # Otherwise the thread would go on in files that somebody else has by then.
        await asyncio.wait((work,))
        work.exception()
        raise
