"""Container images on their way: a task for each, so that nobody waits in a reconcile, and a machine that is deleted goes at once.

A failed pull is told as ErrImagePull when it fails, and as ImagePullBackOff while the next attempt is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from paddock.base.backoff import Backoff
from paddock.controllers.virtualmachineinstance import prerequisites
from paddock.engine.images.errors import ImageError
from paddock.runtime.machinery import Machinery

T = TypeVar("T")
_AGAIN = Backoff(first=10.0, longest=300.0)
# A warm image is there within this time, and the machine goes on without another look.
_MOMENT_SECONDS = 0.2
# A failure is told as one for so long, before it is told that the next attempt is waited for.
_TOLD_SECONDS = 1.0


class Pull(Generic[T]):
    """One thing that is fetched for one machine."""

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.failures = 0
        self.failed_at = 0.0
        self.next_at = 0.0


class Pulls(Generic[T]):
    """Everything that is being fetched, by machine and name."""

    def __init__(self, machinery: Machinery, tell: Callable[[str], None]) -> None:
        self._machinery = machinery
        self._tell = tell
        self._pulls: dict[tuple[str, str], Pull[T]] = {}

    async def fetched(self, machine: str, name: str, what: str, fetch: Callable[[], Awaitable[T]]) -> T:
        """The thing; raises `NotYet` while it comes, and when it could not be had."""
        loop = asyncio.get_running_loop()
        pull = self._pulls.get((machine, name))
        if pull is None:
            pull = self._pulls[machine, name] = Pull(self._begin(machine, fetch))
        elif pull.task.done() and pull.next_at and loop.time() >= pull.next_at:
            pull.task, pull.next_at = self._begin(machine, fetch), 0.0
        await asyncio.wait((pull.task,), timeout=_MOMENT_SECONDS)
        if not pull.task.done():
            raise prerequisites.volumes("Pulling", f"{what} is being pulled")
        error = pull.task.exception()
        if error is None:
            return pull.task.result()
        if not isinstance(error, ImageError):
            raise error
        if not pull.next_at:
            pull.failures += 1
            pull.failed_at = loop.time()
            pull.next_at = pull.failed_at + _AGAIN.pause(pull.failures, self._machinery.chance)
        if loop.time() < pull.failed_at + _TOLD_SECONDS:
            raise prerequisites.failed("ErrImagePull", f"{what}: {error.text}", pull.failed_at + _TOLD_SECONDS - loop.time())
        raise prerequisites.failed("ImagePullBackOff", f"Back-off pulling {what}: {error.text}", pull.next_at - loop.time())

    def forget(self, machine: str) -> None:
        """The machine is gone, or has all it needs."""
        for place in [place for place in self._pulls if place[0] == machine]:
            self._pulls.pop(place).task.cancel()

    def _begin(self, machine: str, fetch: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        task = asyncio.ensure_future(fetch())

        def done(ended: asyncio.Task[T]) -> None:
            if not ended.cancelled():
                # Asked for, so that a failure nobody waits for any more is not told as never looked at.
                ended.exception()
                self._tell(machine)

        task.add_done_callback(done)
        return task
