"""An event loop whose time jumps to the next timer, so that hours of waiting take no time.

def test_patience():
    async def script() -> None:
        await asyncio.sleep(3600)
    assert virtualtime.run(script()) == 3600

Time moves only when nothing else is left to do. What a thread is asked to do is done in the next turn. What waits for another process must
not run here: to this loop that is waiting for nothing. What goes on and on without a pause, so that time never moves, is an error.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
# A hundred times what the busiest moment of any test takes.
_LONGEST_MOMENT = 100_000


class _Selector(selectors.SelectSelector):
    """Never waits: where the loop would, its time moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self._still = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if timeout:
            self._still = 0
        elif (turns := self._still) < _LONGEST_MOMENT:
            self._still = turns + 1
        else:
            self._still = 0
            raise RuntimeError(f"time stands still: something goes on without a pause, {turns} times so far")
        if found:
            return found
        if timeout is None:
            raise RuntimeError("everything waits for something that never comes")
        self.time += max(timeout, 0.0)
        return found


class Loop(asyncio.SelectorEventLoop):
    """A loop in virtual time, which begins at 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        # Timers that are due at one moment are found by comparing floats.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._virtual.time

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.call_soon(work)
        return done


class Clock:
    """The date in virtual time; `skew` is how wrong it is."""

    START = 1_800_000_000.0

    def __init__(self, skew: float = 0.0) -> None:
        self.skew = skew

    def seconds(self) -> float:
        return self.START + self.skew + asyncio.get_running_loop().time()


def run(script: Coroutine[Any, Any, Any]) -> float:
    """Run a script to its end; returns how much time it took there."""
    loop = Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(script)
        return loop.time()
