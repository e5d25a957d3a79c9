"""Supervision of the controllers: it starts them, and restarts them when they end.

    starting ──▶ ready ──(a controller ends)──▶ failed ──pause──▶ starting ...
        └────────────(the host cannot run machines)────▲

While they do not run, a `StandbyWork` says so to users. Guests go on all the time.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.server.housekeeping.node import NodeProblem

_LOG = logging.getLogger(__name__)
STARTING = NodeProblem("EngineStarting", "the controllers of machines are starting")
PAUSES = Backoff(first=1.0, longest=15.0)
# Who ran that long before it failed begins with the first pause again.
_STEADY_SECONDS = 120.0


class EngineWork(Protocol):
    """One attempt at looking after machines."""

    async def prepare(self) -> None:
        """Look at the host and take over what runs; raises when that is not possible."""

    async def start(self) -> None:
        """Begin to look after machines."""

    async def watch(self) -> None:
        """Return, or raise, when a part ended that has to run."""

    async def stop(self) -> None:
        """Let go of everything; guests go on."""


class StandbyWork(Protocol):
    """Work that runs while the `EngineWork` cannot."""

    async def report(self, problem: NodeProblem) -> None:
        """Tell users, from now on until `stop`."""

    async def stop(self) -> None: ...


class Supervisor:
    """Runs one `EngineWork` after another until it is stopped."""

    def __init__(
        self,
        make: Callable[[], EngineWork],
        standby: Callable[[], StandbyWork],
        reason: Callable[[Exception], str],
        load: Callable[[], object] | None = None,
    ) -> None:
        """`make` may raise as `prepare` may; `reason` gives the word for what it or `prepare` raised.

        `load` runs in a thread before: it imports what `make` needs, while the server answers.
        """
        self.problem: NodeProblem | None = STARTING
        # what looks after machines now
        self.work: EngineWork | None = None
        # called after each change of `problem`
        self.listeners: list[Callable[[NodeProblem | None], None]] = []
        self._make = make
        self._load = load
        self._make_standby = standby
        self._reason = reason
        self._standby: StandbyWork | None = None
        self._chance = random.Random()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="machines")

    async def settled(self) -> NodeProblem | None:
        """Wait for the end of the first attempt to start; the problem of now."""
        await self._settled.wait()
        return self.problem

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        try:
            while True:
                began = loop.time()
                problem = await self._attempt()
                failures = 1 if loop.time() - began > _STEADY_SECONDS else failures + 1
                self._set(problem)
                await self._report(problem)
                await asyncio.sleep(PAUSES.pause(failures, self._chance))
        finally:
            await self._end_standby()

    async def _attempt(self) -> NodeProblem:
        """Run until something fails; what it was."""
        work: EngineWork | None = None
        ready = False
        try:
            if self._load is not None:
                await asyncio.to_thread(self._load)
            work = self._make()
            await work.prepare()
            await self._end_standby()
            await work.start()
            self.work, ready = work, True
            self._set(None)
            await work.watch()
            raise PaddockError("a part of the controllers ended")
        except Exception as error:
            expected = isinstance(error, (PaddockError, OSError)) and not ready
            problem = NodeProblem("ControllersFailed" if ready else self._word(error), words(error))
            if not expected:
                _LOG.exception("controllers failed; restarting them")
            elif problem != self.problem:
                _LOG.error("host cannot run machines; retrying", extra={"problem": problem.message})
            return problem
        finally:
            self.work = None
            if work is not None:
                await _stop(work)

    def _word(self, error: Exception) -> str:
        try:
            return self._reason(error)
        except Exception:
            # What judges errors is loaded with the rest, which may be what failed.
            return "EngineFailed"

    def _set(self, problem: NodeProblem | None) -> None:
        changed, self.problem = problem != self.problem, problem
        self._settled.set()
        if changed:
            for tell in self.listeners:
                tell(problem)

    async def _report(self, problem: NodeProblem) -> None:
        try:
            self._standby = self._standby or self._make_standby()
            await self._standby.report(problem)
        except Exception:
            _LOG.exception("conditions of unmanaged machines cannot be updated")

    async def _end_standby(self) -> None:
        standby, self._standby = self._standby, None
        if standby is not None:
            await _stop(standby)


async def _stop(part: EngineWork | StandbyWork) -> None:
    try:
        await part.stop()
    except Exception:
        _LOG.exception("component failed to stop cleanly")


def words(error: BaseException) -> str:
    """A sentence for people."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(words(each) for each in error.exceptions))
    if isinstance(error, PaddockError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return f"an error in Paddock ({type(error).__name__}: {error}); its log tells more"
