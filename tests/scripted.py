"""Tests that are coroutines: `@scripted` runs one to its end, `@timeless` does so in virtual time."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from tests import virtualtime

P = ParamSpec("P")


def scripted(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """In real time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def timeless(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """In virtual time: waiting takes none."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        virtualtime.run(test(*args, **kwargs))

    return run
