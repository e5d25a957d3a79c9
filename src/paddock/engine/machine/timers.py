"""Timers with names: one of each at most."""

import asyncio
from collections.abc import Callable


class Timers:
    """Calls at a later time."""

    def __init__(self) -> None:
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def after(self, name: str, seconds: float, call: Callable[[], object]) -> None:
        """Instead of what was to happen under this name."""
        self.cancel(name)

        def due() -> None:
            self._handles.pop(name, None)
            call()

        self._handles[name] = asyncio.get_running_loop().call_later(seconds, due)

    def pending(self, name: str) -> bool:
        """It will happen."""
        return name in self._handles

    def cancel(self, *names: str) -> None:
        """These do not happen."""
        for name in names:
            if (handle := self._handles.pop(name, None)) is not None:
                handle.cancel()

    def clear(self) -> None:
        """Nothing happens any more."""
        self.cancel(*self._handles)
