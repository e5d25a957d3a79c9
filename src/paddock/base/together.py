"""Work that belongs together: what ends it ends all of it."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any


def this_task() -> "asyncio.Task[Any]":
    """Return the task that runs; raises `RuntimeError` outside of tasks."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("no task runs here")
    return task


async def run(works: Iterable[Coroutine[Any, Any, None]], *, until: str) -> None:
    """Run all at once `until` asyncio's FIRST_COMPLETED or FIRST_EXCEPTION; raise the first failure in their order.

    All are cancelled in their order: the tasks of a task group have none.
    """
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=until)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
