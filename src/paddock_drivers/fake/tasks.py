"""Tasks: work that takes effect when its time has come.

Nothing runs in the background. Every call first settles the tasks that are due, in the order of their times, so the driver's state is a
function of the calls, the clock and the seed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.contract.messages import TaskRef, TaskStatusResponse

Work = Callable[[], None]
# Ended tasks are remembered this long; a caller that asks later hears that the task is unknown.
_REMEMBERED = 3600.0


@dataclass(slots=True)
class FakeTask:
    """A task. `at` is the time of its end; a hanging one has none."""

    id: str
    at: float | None
    work: Work
    # what undoes the beginning, if the task fails
    undo: Work
    failure: PaddockError | None = None
    done: bool = False

    @property
    def status(self) -> TaskStatusResponse:
        """The answer to a caller."""
        if not self.done or self.failure is None:
            return TaskStatusResponse(done=self.done)
        return TaskStatusResponse(done=True, error=str(self.failure), reason=self.failure.reason_code)


class FakeTasks:
    """The tasks of a driver."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, FakeTask] = {}
        # due or not, also those that a restart made the driver forget
        self._pending: list[FakeTask] = []
        self._count = 0

    def start(self, at: float | None, work: Work, undo: Work, failure: PaddockError | None = None) -> FakeTask:
        """Begin a task. With a `failure` its work never happens."""
        self._count += 1
        task = FakeTask(f"task-{self._count}", at, work, undo, failure)
        self._tasks[task.id] = task
        if at is not None:
            self._pending.append(task)
        return task

    def settle(self) -> None:
        """Let everything that is due take effect."""
        now = self._clock.seconds()
        due = [each for each in self._pending if each.at is not None and each.at <= now]
        if not due:
            return
        self._pending = [each for each in self._pending if each not in due]
        for task in sorted(due, key=lambda each: each.at or 0.0):
            _finish(task)
        self._tasks = {name: each for name, each in self._tasks.items() if not each.done or (each.at or now) > now - _REMEMBERED}

    def status(self, task: str) -> TaskStatusResponse:
        """The state of a task. No id stands for work that was done at once, and an unknown task has failed: nobody may wait for it."""
        if not task:
            return TaskStatusResponse(done=True)
        found = self._tasks.get(task)
        return TaskStatusResponse(done=True, error="the task is unknown; describe the machine") if found is None else found.status

    def recall(self, task: TaskRef | None) -> bool:
        """Return whether the work of a task goes on. One that a restart made the driver forget is known again."""
        name = task.id if task is not None else ""
        found = next((each for each in self._pending if each.id == name), None) or self._tasks.get(name)
        if found is None or found.done:
            return False
        self._tasks[name] = found
        return True

    def forget(self) -> None:
        """Lose every task, as a restart of the provider does. The hypervisor's work goes on."""
        self._tasks.clear()


def _finish(task: FakeTask) -> None:
    if not task.failure:
        try:
            task.work()
        except PaddockError as error:
            task.failure = error
    if task.failure:
        task.undo()
    task.done = True
