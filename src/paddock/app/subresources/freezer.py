"""freeze and unfreeze: a guest's file systems stand still for a while, for a backup from outside.

A guest that is forgotten frozen is as good as dead, so each freeze has a time after which it ends by itself.
"""

import asyncio
import logging

from paddock.app.subresources import queries
from paddock.app.subresources.environment import MachineApi
from paddock.app.subresources.instances import InstanceFinder
from paddock.base import duration
from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import AgentError
from paddock.kubernetes.meta import failure
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse

_LOG = logging.getLogger(__name__)
# How often a thaw by itself is tried, and the pause between.
_ATTEMPTS, _PAUSE_SECONDS = 10, 5.0


class GuestFreezer:
    """Freezes, and sees to it that what was frozen thaws."""

    def __init__(self, instances: InstanceFinder) -> None:
        self._instances = instances
        self._thaws: dict[str, asyncio.Task[None]] = {}

    async def freeze(self, call: RequestContext) -> HttpResponse:
        seconds = _timeout(queries.needed(call.request).get("unfreezeTimeout"))
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        uid = instance.metadata.uid or ""
        self._forget(uid)
        try:
            if not await machine.agent.frozen():
                await machine.agent.freeze()
        except PaddockError as error:
            self._instances.tell(call, "Warning", "FreezeError", f"freezing the file systems failed: {error}")
            raise failure.internal(f"command Freeze failed: {_reason(error)}") from error
        machine.guest_changed()
        if seconds > 0:
            self._thaws[uid] = asyncio.create_task(self._thaw_after(uid, machine, seconds), name=f"thaw {uid}")
        return queries.done()

    async def unfreeze(self, call: RequestContext) -> HttpResponse:
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        self._forget(instance.metadata.uid or "")
        try:
            await machine.agent.thaw()
        except PaddockError as error:
            raise failure.internal(f"command Unfreeze failed: {_reason(error)}") from error
        machine.guest_changed()
        return queries.done()

    async def close(self) -> None:
        """Thaw at once what would have thawed later: nobody is left who would do it then."""
        waiting = tuple(self._thaws)
        for uid in waiting:
            task = self._thaws.pop(uid)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            machine = self._instances.by_uid(uid)
            if machine is not None:
                await _thaw_once(machine)

    def _forget(self, uid: str) -> None:
        waiting = self._thaws.pop(uid, None)
        if waiting is not None:
            waiting.cancel()

    async def _thaw_after(self, uid: str, machine: MachineApi, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for _ in range(_ATTEMPTS):
            if machine.observed.phase != "running" or await _thaw_once(machine):
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        self._thaws.pop(uid, None)


async def _thaw_once(machine: MachineApi) -> bool:
    """Thaw the guest's file systems; return whether that worked."""
    try:
        await machine.agent.thaw()
    except PaddockError:
        _LOG.warning("thawing guest file systems failed", exc_info=True)
        return False
    machine.guest_changed()
    return True


def _reason(error: PaddockError) -> str:
    """Return why an agent did not do it; scripts look for KubeVirt's words."""
    if isinstance(error, AgentError) and error.reason == "NotConnected":
        return f"QEMU guest agent is not connected; {error.fix}"
    return str(error)


def _timeout(value: object) -> float:
    """Seconds until a guest thaws by itself; 0 means never."""
    if value is None:
        raise failure.bad_request("Unfreeze timeout in freeze request is not set")
    if isinstance(value, int) and not isinstance(value, bool):
        return value / duration.SECOND
    try:
        return duration.parse(str(value)) / duration.SECOND
    except duration.NotADuration:
        raise failure.bad_request(f"Can not unmarshal Request body to struct, error: unfreezeTimeout: {value!r} is no duration") from None
