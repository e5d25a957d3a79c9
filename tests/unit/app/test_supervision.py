"""Controllers that fail are started again after a pause that grows, and meanwhile something tells users why."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from paddock.app.server.supervision import PAUSES, STARTING, Supervisor
from paddock.base.errors import Terminal
from paddock.server.housekeeping.node import NodeProblem
from tests import virtualtime
from tests.coroutines import played_by, run_by

UNUSABLE = Terminal("there is no network", fix="make one")


class Play:
    """Attempts that fail as a test says: at each of the given steps, then not any more."""

    def __init__(self, *failures: tuple[str, Exception]) -> None:
        self.failures = list(failures)
        self.log: list[tuple[float, str]] = []
        self.working = 0
        self.standing_by = 0
        self.supervisor = Supervisor(lambda: Work(self), lambda: Standby(self), lambda error: "EngineFailed")
        self.problems: list[NodeProblem | None] = []
        self.supervisor.listeners.append(self.problems.append)

    def problem_now(self) -> NodeProblem | None:
        return self.supervisor.problem

    def reach(self, step: str) -> None:
        self.log.append((asyncio.get_running_loop().time(), step))
        if self.failures and self.failures[0][0] == step:
            raise self.failures.pop(0)[1]


class Work:
    def __init__(self, play: Play) -> None:
        self._play = play
        play.reach("make")

    async def prepare(self) -> None:
        self._play.working += 1
        assert self._play.working == 1
        self._play.reach("prepare")

    async def start(self) -> None:
        # Two controllers of one kind would undo each other's work.
        assert self._play.standing_by == 0
        self._play.reach("start")

    async def watch(self) -> None:
        await asyncio.sleep(3600)
        self._play.reach("watch")
        await asyncio.Event().wait()

    async def stop(self) -> None:
        self._play.working = 0
        self._play.reach("stop")


class Standby:
    def __init__(self, play: Play) -> None:
        self._play = play

    async def report(self, problem: NodeProblem) -> None:
        self._play.standing_by = 1

    async def stop(self) -> None:
        self._play.standing_by = 0


@run_by(virtualtime.run)
async def test_an_error_that_cannot_be_named_is_reported_all_the_same() -> None:
    def reason(error: Exception) -> str:
        raise ImportError("what names errors is missing, too")

    made = Play(("make", AttributeError("module has no such attribute")))
    made.supervisor._reason = reason
    made.supervisor.start()
    problem = await made.supervisor.settled()
    assert problem is not None and problem.reason == "EngineFailed"
    assert "module has no such attribute" in problem.message
    await made.supervisor.stop()


@asynccontextmanager
async def supervised(play: Callable[[], Play]) -> AsyncIterator[Play]:
    made = play()
    made.supervisor.start()
    yield made
    await made.supervisor.stop()
    assert (made.working, made.standing_by) == (0, 0)


def perform(play: Callable[[], Play], script: Callable[[Play], Awaitable[None]]) -> None:
    async def inside() -> None:
        async with supervised(play) as made:
            await script(made)

    virtualtime.run(inside())


@pytest.mark.parametrize("step", ["make", "prepare", "start"])
@run_by(virtualtime.run)
async def test_a_start_that_fails_is_tried_again_until_it_succeeds(step: str) -> None:
    async with supervised(lambda: Play(*[(step, UNUSABLE)] * 4)) as play:
        assert play.problem_now() == STARTING
        problem = await play.supervisor.settled()
        assert problem == NodeProblem("EngineFailed", "there is no network; make one")
        await asyncio.sleep(0.1)
        assert play.standing_by == 1
        await asyncio.sleep(4 * PAUSES.longest)
        assert play.problem_now() is None
        # The same problem is told once.
        assert play.problems == [problem, None]
        assert (play.working, play.standing_by) == (1, 0)


@played_by(perform, lambda: Play(*[("prepare", UNUSABLE)] * 7))
async def test_pauses_grow_up_to_the_longest(play: Play, /) -> None:
    await asyncio.sleep(300)
    times = [at for at, step in play.log if step == "prepare"]
    pauses = [after - before for before, after in itertools.pairwise(times)]
    assert len(pauses) == 7
    assert pauses == sorted(pauses[:4]) + pauses[4:]
    assert max(pauses) <= PAUSES.longest * (1 + PAUSES.jitter)


@played_by(perform, lambda: Play(("watch", ExceptionGroup("several", [KeyError("defect")]))))
async def test_controllers_that_end_are_started_again(play: Play, /) -> None:
    assert await play.supervisor.settled() is None
    await asyncio.sleep(3600.5)
    assert play.problem_now() == NodeProblem("ControllersFailed", "an error in Paddock (KeyError: 'defect'); its log tells more")
    assert play.standing_by == 1
    await asyncio.sleep(2)
    assert play.problem_now() is None
    assert [step for _, step in play.log] == ["make", "prepare", "start", "watch", "stop", "make", "prepare", "start"]


@played_by(perform, lambda: Play(("prepare", UNUSABLE), ("stop", OSError(5, "Input/output error"))))
async def test_one_that_does_not_end_well_is_replaced_nevertheless(play: Play, /) -> None:
    await asyncio.sleep(5)
    assert play.problem_now() is None
