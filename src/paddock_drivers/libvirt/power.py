"""Power: on, off, shut down with a deadline, restart.

The id of a graceful task holds the second at which force is used. So a driver that was started again keeps the promise: whoever asks for
the task's state after that second ends the machine.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import libvirt

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.kit.progress import DONE, RUNNING, TaskProgress, failed
from paddock_drivers.libvirt import events, failures, lifecycle, machines, volumes
from paddock_drivers.libvirt.identifiers import MachineGoal, MachineTask
from paddock_drivers.libvirt.machines import LibvirtDomain, MachineStore

_LOG = logging.getLogger(__name__)
# A guest that boots hears no button yet, so it is pressed again.
_PRESS_SECONDS = 5.0
# A call waits so long for a guest that ends quickly, before it answers with a task.
_PATIENCE_SECONDS = 1.0


class DomainPower:
    """Changes the power of machines. `now` is the time of the epoch."""

    def __init__(self, store: MachineStore, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._now = now
        self._watchers: dict[str, asyncio.Task[None]] = {}

    async def change(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power. A state that it already has is success."""
        machine = await self._store.get(request.id, request.owner)
        if request.op is m.PowerOp.ON:
            return await self._on(machine)
        if request.op is m.PowerOp.OFF:
            await self._off(machine.uuid)
            return m.TaskResponse()
        if request.op is m.PowerOp.REBOOT:
            return await self._restart(machine)
        if request.op is m.PowerOp.SHUTDOWN_GRACEFUL:
            seconds = request.graceful_timeout_seconds
            return await self._shut_down(machine, seconds if seconds > 0 else self._store.connection.settings.graceful_seconds)
        raise refusals.invalid("op is invalid", why="it is missing")

    async def status(self, task: MachineTask) -> TaskProgress:
        """Judge a shutdown or a restart."""
        machine = await self._store.find(task.uuid)
        if task.goal is MachineGoal.RESTARTED:
            return await self._restart_status(task, machine)
        if machine is None or not machine.live:
            return DONE
        if self._now() < _deadline(task):
            self._watch(task)
            return RUNNING
        await self._off(task.uuid)
        return DONE

    async def close(self) -> None:
        """Stop watching; the tasks' ids say what is to be done."""
        for each in self._watchers.values():
            each.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)

    async def _on(self, machine: LibvirtDomain) -> m.TaskResponse:
        if not lifecycle.is_complete(machine.view):
            raise refusals.retry_later("the machine is still being created")
        async with self._store.changing(machine.uuid):
            await self._store.connection.run(_start, machine.uuid)
        return m.TaskResponse()

    async def _off(self, uuid: str) -> None:
        async with self._store.changing(uuid):
            await self._store.connection.run(lifecycle.stop, uuid)

    async def _shut_down(self, machine: LibvirtDomain, seconds: int) -> m.TaskResponse:
        if not machine.live:
            return m.TaskResponse()
        if machine.power == "Suspended":
            # It hears nothing, and its user wants it off.
            await self._off(machine.uuid)
            return m.TaskResponse()
        task = MachineTask(MachineGoal.STOPPED, machine.uuid, str(int(self._now()) + seconds))
        watcher = self._watch(task)
        await asyncio.wait({watcher}, timeout=_PATIENCE_SECONDS)
        return m.TaskResponse() if watcher.done() and watcher.exception() is None else m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _restart(self, machine: LibvirtDomain) -> m.TaskResponse:
        if not machine.live:
            return await self._on(machine)
        task = MachineTask(MachineGoal.RESTARTED, machine.uuid, str(int(self._now()) + self._store.connection.settings.restart_seconds))
        self._watch(task)
        return m.TaskResponse(task=m.TaskRef(id=str(task)))

    async def _restart_status(self, task: MachineTask, machine: LibvirtDomain | None) -> TaskProgress:
        watcher = self._watchers.get(str(task))
        if watcher is not None and not watcher.done():
            return RUNNING
        if machine is None:
            return failed("the machine was deleted while it restarted")
        # The watcher of another process may have ended before the guest did: the machine is left as it is.
        return DONE if machine.live else failed("the machine stopped while it restarted; power it on")

    # --- watching ---------------------------------------------------------------------------------------------------------

    def _watch(self, task: MachineTask) -> "asyncio.Task[None]":
        watcher = self._watchers.get(str(task))
        if watcher is None or watcher.done():
            watcher = asyncio.create_task(self._end(task) if task.goal is MachineGoal.STOPPED else self._reset(task))
            self._watchers[str(task)] = watcher
            watcher.add_done_callback(lambda ended: self._over(task, ended))
        return watcher

    def _over(self, task: MachineTask, ended: "asyncio.Task[None]") -> None:
        if self._watchers.get(str(task)) is ended:
            del self._watchers[str(task)]
        if not ended.cancelled() and ended.exception() is not None:
            _LOG.warning("power change not watched", extra={"machine": task.uuid, "problem": str(ended.exception())})

    async def _end(self, task: MachineTask) -> None:
        """Press the power button until the machine is off; use force at the deadline."""
        with self._store.connection.events.watch(task.uuid) as changed:
            while (left := _deadline(task) - self._now()) > 0:
                changed.clear()
                if not await self._store.connection.run(_press, task.uuid):
                    return
                await events.wait(changed, min(left, _PRESS_SECONDS))
                if not await self._store.connection.run(_is_live, task.uuid):
                    return
        await self._off(task.uuid)

    async def _reset(self, task: MachineTask) -> None:
        """Ask the guest to restart, and restart the machine when it has not by the deadline."""
        reports = self._store.connection.events
        with reports.watch(task.uuid) as changed:
            seen = reports.restarts(task.uuid)
            while (left := _deadline(task) - self._now()) > 0:
                await self._store.connection.run(_reboot, task.uuid)
                await events.wait(changed, min(left, _PRESS_SECONDS))
                changed.clear()
                if reports.restarts(task.uuid) != seen:
                    return
                if not await self._store.connection.run(_is_live, task.uuid):
                    # The guest turned the machine off.
                    await self._store.connection.run(_start, task.uuid)
                    return
        await self._store.connection.run(_force_restart, task.uuid)


def _deadline(task: MachineTask) -> float:
    return float(task.detail) if task.detail.isdigit() else 0.0


# --- in threads -------------------------------------------------------------------------------------------------------------


def _start(conn: Any, uuid: str) -> None:
    domain = machines.existing(conn, uuid)
    state, _ = domain.state()
    try:
        if state == machines.PAUSED:
            domain.resume()
        elif state == machines.PMSUSPENDED:
            domain.pMWakeup(0)
        elif state in (machines.SHUTOFF, machines.CRASHED):
            domain.create()
    except libvirt.libvirtError as error:
        if failures.code_of(error) == failures.OPERATION_INVALID and domain.isActive():
            # Somebody else was faster.
            return
        if (gone := volumes.missing(conn, domain)) is not None:
            raise gone from error
        if failures.code_of(error) in (failures.INTERNAL_ERROR, failures.OPERATION_FAILED):
            why = failures.words(error)
            raise ProviderError(ErrorKind.INTERNAL, f"machine {domain.name()} cannot be started", why=why) from error
        raise


def _press(conn: Any, uuid: str) -> bool:
    """Ask a guest to shut down; returns whether there is one that runs."""
    domain = machines.lookup(conn, uuid)
    if domain is None or not domain.isActive():
        return False
    both = libvirt.VIR_DOMAIN_SHUTDOWN_GUEST_AGENT | libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN
    try:
        try:
            domain.shutdownFlags(both)
        except libvirt.libvirtError as error:
            if failures.code_of(error) in (failures.OPERATION_INVALID, failures.NO_DOMAIN):
                raise
            domain.shutdown()
    except libvirt.libvirtError as error:
        if failures.is_lost(error):
            raise
        # A guest that cannot be asked now is asked again, or ended by force.
        _LOG.debug("guest not asked to shut down", extra={"machine": uuid, "problem": failures.words(error)})
    return True


def _reboot(conn: Any, uuid: str) -> None:
    domain = machines.existing(conn, uuid)
    try:
        domain.reboot(0)
    except libvirt.libvirtError as error:
        if failures.is_lost(error):
            raise
        _LOG.debug("guest not asked to restart", extra={"machine": uuid, "problem": failures.words(error)})


def _force_restart(conn: Any, uuid: str) -> None:
    domain = machines.existing(conn, uuid)
    if not domain.isActive():
        domain.create()
        return
    try:
        domain.reset(0)
    except libvirt.libvirtError as error:
        if failures.code_of(error) != failures.NO_SUPPORT:
            raise
        domain.destroy()
        domain.create()


def _is_live(conn: Any, uuid: str) -> bool:
    domain = machines.lookup(conn, uuid)
    return domain is not None and bool(domain.isActive())
