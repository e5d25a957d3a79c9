"""Polls the tasks of clones, and judges the errors of their providers."""

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers.clones.passes import ClonePass
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.plan import reasons

_UNKNOWN_TASK = (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC)
# What these errors answer, the provider has not done, and would not do if it were asked again.
_FINAL = {
    ErrorKind.INVALID_SPEC: reasons.VALIDATION_ERROR,
    ErrorKind.NOT_SUPPORTED: reasons.UNSUPPORTED,
    ErrorKind.CONFLICT: reasons.PROVIDER_CONFLICT,
    ErrorKind.QUOTA_EXCEEDED: reasons.INSUFFICIENT_RESOURCES,
    ErrorKind.NOT_FOUND: reasons.SOURCE_NOT_FOUND,
}


class CloneAttemptFailed(Exception):
    """An attempt has failed. `nothing_made`: the provider has positively made nothing. `code` is the reason of Ready."""

    def __init__(self, reason: str, message: str, *, nothing_made: bool = False, code: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code or reason
        self.nothing_made = nothing_made


class TaskPoll(msgspec.Struct, frozen=True):
    """The outcome of a poll."""

    # seconds until the next poll; None: no task is under way any more
    wait: float | None = None
    # what the task ended with, and its reason code
    problem: str = ""
    code: str = ""
    # the provider does not know the task
    lost: bool = False


class TaskFollowing:
    def __init__(self, parts: VirtrigaudParts) -> None:
        self._parts = parts

    def started(self, clone_pass: ClonePass, task: m.TaskRef | None) -> None:
        """Note a task, which is polled after a while."""
        clone_pass.change(taskRef=task.id if task is not None and task.id else None)
        clone_pass.memory.task_due = self._parts.now() + self._parts.settings.polls.task

    async def follow(self, clone_pass: ClonePass) -> TaskPoll:
        """Poll the task under way, if there is one."""
        task, now = clone_pass.status.taskRef, self._parts.now()
        if not task:
            return TaskPoll()
        if now < clone_pass.memory.task_due:
            return TaskPoll(clone_pass.memory.task_due - now)
        try:
            answer = await clone_pass.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
        except ProviderError as error:
            # A provider that was started again does not know its tasks: what is there tells the rest.
            if error.kind not in _UNKNOWN_TASK:
                raise
            clone_pass.change(taskRef=None)
            return TaskPoll(lost=True)
        if not answer.error and not answer.done:
            clone_pass.memory.task_due = now + self._parts.settings.polls.task
            return TaskPoll(self._parts.settings.polls.task)
        clone_pass.change(taskRef=None)
        return TaskPoll(problem=answer.error[:1024], code=answer.reason)

    def final(self, error: ProviderError, where: str) -> CloneAttemptFailed | None:
        """The failure that an error means for an attempt; None for one that passes."""
        reason = _FINAL.get(error.kind)
        if reason is None:
            return None
        return CloneAttemptFailed(reason, f"{where}: {error.reported}", nothing_made=True, code=error.reason_code)

    def hold(self, clone_pass: ClonePass, error: ProviderError) -> float:
        """Pause after an error that passes; the seconds."""
        clone_pass.memory.failures += 1
        pause = self._parts.pause(clone_pass.memory.failures, error)
        clone_pass.memory.until = self._parts.now() + pause
        return pause
