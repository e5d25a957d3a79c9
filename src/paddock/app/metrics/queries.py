"""Asks all machines what they used, at the same time, and waits for none of them too long."""

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.guest import GuestFilesystem
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.observation import Statistics

_LOG = logging.getLogger(__name__)
# A machine that does not answer by then has no series on this page.
PATIENCE_SECONDS = 2.0
# How often a guest's agent is asked: it costs the guest something.
_AGENT_SECONDS = 60.0
_PASSING = ("Unanswered", "NotConnected")


class AgentReport(msgspec.Struct):
    """The last report of an agent about one run of a machine."""

    run: int
    asked: float
    filesystems: tuple[GuestFilesystem, ...] = ()
    loads: tuple[float, ...] = ()
    knows_load: bool = True
    task: asyncio.Task[None] | None = None


class _Question(msgspec.Struct):
    task: asyncio.Task[Statistics | None]
    since: float = msgspec.field(default_factory=lambda: asyncio.get_running_loop().time())


class PendingQueries:
    """Keeps the questions that are open, so that a machine that hangs is asked once and not anew for every page."""

    def __init__(self, patience: float = PATIENCE_SECONDS, *, agents: bool = True) -> None:
        """`agents`: guest agents are asked, too."""
        self._patience = patience
        self._agents = agents
        self._open: dict[str, _Question] = {}
        self._guests: dict[str, AgentReport] = {}

    async def ask(self, machines: Iterable[QemuMachine]) -> dict[str, Statistics]:
        """Return the usage of each machine that answers in time."""
        now = asyncio.get_running_loop().time()
        live = {machine.id: machine for machine in machines if machine.observed.phase == "running"}
        self._forget(live)
        fresh = {}
        for name, machine in live.items():
            question = self._open.get(name)
            if question is None or question.task.done():
                question = self._open[name] = _Question(asyncio.create_task(_used(machine), name=f"statistics of {name}"))
            if now - question.since < self._patience:
                fresh[name] = question.task
            if self._agents:
                self._look_inside(machine, now)
        if fresh:
            await asyncio.wait(fresh.values(), timeout=self._patience)
        found = {name: task.result() for name, task in fresh.items() if task.done() and not task.cancelled()}
        return {name: used for name, used in found.items() if used is not None}

    def guest(self, id: str) -> AgentReport | None:
        """Return the last report of a machine's agent."""
        return self._guests.get(id)

    async def close(self) -> None:
        tasks = [question.task for question in self._open.values()] + [guest.task for guest in self._guests.values() if guest.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._open.clear()
        self._guests.clear()

    def _forget(self, live: dict[str, QemuMachine]) -> None:
        for name in [name for name, question in self._open.items() if name not in live and question.task.done()]:
            del self._open[name]
        for name in [name for name in self._guests if name not in live]:
            task = self._guests.pop(name).task
            if task is not None:
                task.cancel()

    def _look_inside(self, machine: QemuMachine, now: float) -> None:
        """Ask the agent when it is time; the next page has what it says."""
        guest = self._guests.get(machine.id)
        if guest is not None and guest.run != machine.observed.run:
            guest = None
        if not machine.observed.agent or (
            guest is not None and (now - guest.asked < _AGENT_SECONDS or (guest.task and not guest.task.done()))
        ):
            return
        if guest is None:
            guest = self._guests[machine.id] = AgentReport(machine.observed.run, now)
        guest.asked = now
        guest.task = asyncio.create_task(_ask(machine, guest), name=f"file systems of {machine.id}")


async def _used(machine: QemuMachine) -> Statistics | None:
    try:
        return await machine.statistics()
    except PaddockError as error:
        _LOG.debug("machine statistics unavailable", extra={"machine": machine.id, "error": str(error)})
    except Exception:
        # One machine must not take the page from all others.
        _LOG.exception("machine statistics unreadable", extra={"machine": machine.id})
    return None


async def _ask(machine: QemuMachine, guest: AgentReport) -> None:
    try:
        guest.filesystems = await machine.agent.filesystems()
    except AgentError as error:
        _LOG.debug("guest file systems unavailable", extra={"machine": machine.id, "error": str(error)})
    if not guest.knows_load:
        return
    try:
        guest.loads = await machine.agent.load()
    except AgentError as error:
        guest.loads = ()
        guest.knows_load = error.reason in _PASSING
