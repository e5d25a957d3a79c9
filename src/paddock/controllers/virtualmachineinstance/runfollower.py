"""Following one running machine: its agent, its probes, its credentials, cloud-init's own word.

A `RunFollower` lives as long as a run of the machine. It tells when something it knows has changed; the controller then looks at what it
knows. The guest is asked seldom and in a steady rhythm: what it says is for people, not for decisions.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paddock.base.errors import PaddockError
from paddock.controllers.virtualmachineinstance.prober import Prober, ProbeTarget, ended
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.machine import QemuMachine
from paddock.meta.conditions import Condition, holds
from paddock.plan.instance import cloudinit, guestreport
from paddock.plan.instance.observed import GuestReport
from paddock.plan.instance.phases import RUNNING

_LOG = logging.getLogger(__name__)
# The address and cloud-init's result are waited for by people; later a look now and then is enough.
_FIRST_SECONDS, _LATER_SECONDS = 2.0, 30.0
_EAGER_SECONDS = 300.0
# An agent that does not answer for so long: the guest hangs. On a busy host one that is emulated is slow to answer.
SILENT_SECONDS = 60.0
_HANGS = "The guest's agent is there and does not answer: the guest hangs, or is too busy for it. Its console may tell more."
_SERIAL_SECONDS = 10.0
_SERIAL_BYTES = 64 * 1024
_CLOUD_INIT_PATIENCE = 3600.0


@dataclass(frozen=True)
class GuestCredentials:
    """What the agent keeps in the guest: keys and passwords by user."""

    keys: Mapping[str, tuple[str, ...]]
    passwords: Mapping[str, str]
    # why not all are known; empty when they are
    missing: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.keys or self.passwords or self.missing)


NOTHING = GuestCredentials({}, {})
Job = Callable[[], Coroutine[Any, Any, None]]


class RunFollower:
    """What is known of one run of a machine beyond what the engine knows."""

    def __init__(self, instance: VirtualMachineInstance, machine: QemuMachine, reach: ProbeTarget, tell: Callable[[], None]) -> None:
        spec, status = instance.spec, instance.status
        self.run = machine.observed.run
        # None: it was not asked yet
        self.guest: GuestReport | None = None
        # what is wrong with a guest whose agent has its channel open and does not answer; "": it answers
        self.silent = ""
        # since when it does not
        self._silent_since: float | None = None
        # Whoever froze its file systems before may have ended with an earlier process.
        self._may_be_left_frozen = status is not None and status.phase == RUNNING
        self.cloud_init: Condition | None = None
        # None: nothing to keep in the guest; "": it is there; else why not
        self.credentials: str | None = None
        self._machine = machine
        self._tell = tell
        self._wanted = NOTHING
        self._changed = asyncio.Event()
        # the engine had news: a machine without an agent is not asked again and again whether it has one
        self._heard = asyncio.Event()
        self._seeded = any(each.cloudInitNoCloud or each.cloudInitConfigDrive for each in spec.volumes or ())
        # A probe goes on where the one of an earlier process left off.
        self._readiness = self._prober(spec.readinessProbe, reach, good=status is not None and holds(status.conditions, "Ready"))
        self._liveness = self._prober(spec.livenessProbe, reach, good=True)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def answers(self) -> bool | None:
        """What the readiness probe says; None without one."""
        return None if self._readiness is None else self._readiness.verdict.good

    @property
    def dead(self) -> bool:
        """Whether the liveness probe has given the machine up."""
        return self._liveness is not None and not self._liveness.verdict.good

    def start(self) -> None:
        """Begin to follow."""
        jobs: list[Job] = [each.run for each in (self._readiness, self._liveness) if each is not None]
        jobs += [self._ask, self._keep]
        if self._seeded:
            jobs.append(self._listen)
        self._tasks = [asyncio.create_task(self._do(each), name=f"follow {self._machine.id}") for each in jobs]

    async def _do(self, job: Job) -> None:
        """To its end. A defect must not end it: what it found last would stand for ever."""
        while True:
            try:
                await job()
            except Exception:
                _LOG.exception("machine watch failed; restarting it", extra={"machine": self._machine.id})
                await asyncio.sleep(_LATER_SECONDS)
            else:
                return

    async def stop(self) -> None:
        """Follow no longer."""
        await ended(self._tasks)

    def keep(self, wanted: GuestCredentials) -> None:
        """Have these keys and passwords in the guest from now on."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._changed.set()

    def agent_changed(self) -> None:
        """The agent's channel opened or closed."""
        self._changed.set()
        self._heard.set()

    def _prober(self, probe: Any, reach: ProbeTarget, *, good: bool) -> Prober | None:
        return None if probe is None else Prober(probe, self._machine, reach, good=good, tell=self._tell)

    # --- the agent --------------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """Ask the agent, often at first: an address and a name are what people wait for."""
        loop = asyncio.get_running_loop()
        since: float | None = None
        while True:
            self._heard.clear()
            if not self._machine.observed.agent:
                since = None
                self._heard_of_agent(answered=True)
                if self.guest != GuestReport():
                    self._put(guest=GuestReport())
                await self._heard.wait()
                continue
            since = loop.time() if since is None else since
            if not self._machine.observed.paused:
                await self._ask_once()
            eager = loop.time() - since < _EAGER_SECONDS and not self._complete()
            await asyncio.sleep(_FIRST_SECONDS if eager or self._silent_since is not None else _LATER_SECONDS)

    def _complete(self) -> bool:
        """Whether everything people wait for has been said."""
        if self.guest is None:
            return False
        addressed = any(each.ipAddress for each in self.guest.interfaces)
        through = self.cloud_init is not None and self.cloud_init.status != "Unknown"
        return self.guest.os is not None and addressed and (through or not self._seeded)

    async def _ask_once(self) -> None:
        agent = self._machine.agent
        found = self.guest or GuestReport()
        try:
            # First: an agent whose file systems are frozen refuses nearly everything else.
            found = replace(found, frozen=await self._frozen())
            if found.os is None:
                found = replace(found, os=guestreport.system(await agent.os()))
            found = replace(found, interfaces=guestreport.interfaces(await agent.interfaces()))
        except PaddockError as error:
            _LOG.debug("guest agent did not answer", extra={"machine": self._machine.id, "error": str(error)})
            self._heard_of_agent(answered=not isinstance(error, AgentError) or error.reason != "Unanswered")
        else:
            self._heard_of_agent(answered=True)
        cloud_init = self.cloud_init
        if self._seeded and (cloud_init is None or cloud_init.status == "Unknown"):
            cloud_init = await self._cloud_init() or cloud_init
        self._put(guest=found, cloud_init=cloud_init)

    def _heard_of_agent(self, *, answered: bool) -> None:
        now = asyncio.get_running_loop().time()
        if answered:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        long = self._silent_since is not None and now - self._silent_since >= SILENT_SECONDS
        said = _HANGS if long else ""
        if said != self.silent:
            self.silent = said
            self._tell()

    async def _frozen(self) -> bool:
        agent = self._machine.agent
        frozen = await agent.frozen()
        if frozen and self._may_be_left_frozen:
            _LOG.warning("thawing file systems that were left frozen", extra={"machine": self._machine.id})
            await agent.thaw()
            frozen = await agent.frozen()
        self._may_be_left_frozen = False
        return frozen

    async def _cloud_init(self) -> Condition | None:
        try:
            return cloudinit.from_agent(await self._file(cloudinit.RESULT), await self._file(cloudinit.STATUS))
        except PaddockError:
            return None

    async def _file(self, path: str) -> str:
        code, out, _ = await self._machine.agent.execute(["cat", path], 5.0)
        return out.decode("utf-8", "replace") if code == 0 else ""

    async def _listen(self) -> None:
        """cloud-init on the serial console, for guests without an agent."""
        end = asyncio.get_running_loop().time() + _CLOUD_INIT_PATIENCE
        while asyncio.get_running_loop().time() < end and (self.cloud_init is None or self.cloud_init.status == "Unknown"):
            await asyncio.sleep(_SERIAL_SECONDS)
            if not self._machine.observed.agent:
                said = cloudinit.from_serial(self._machine.directory.serial_tail(_SERIAL_BYTES).decode("utf-8", "replace"))
                if said is not None:
                    self._put(cloud_init=said)

    def _put(self, *, guest: GuestReport | None = None, cloud_init: Condition | None = None) -> None:
        before = (self.guest, self.cloud_init)
        self.guest = self.guest if guest is None else guest
        self.cloud_init = cloud_init or self.cloud_init
        if (self.guest, self.cloud_init) != before:
            self._tell()

    # --- credentials ------------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Bring keys and passwords into the guest whenever they change, and whenever an agent comes."""
        done = NOTHING
        connected = False
        while True:
            self._changed.clear()
            agent = self._machine.observed.agent
            if agent and not self._wanted.empty and (not connected or self._wanted != done):
                done = self._wanted if await self._bring(self._wanted) else NOTHING
            connected = agent
            try:
                async with asyncio.timeout(None if self.credentials in (None, "") else _LATER_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                connected = False

    async def _bring(self, wanted: GuestCredentials) -> bool:
        try:
            for user, keys in wanted.keys.items():
                await self._machine.agent.add_keys(user, list(keys), reset=True)
            for user, password in wanted.passwords.items():
                await self._machine.agent.set_password(user, password)
        except PaddockError as error:
            why = str(error)
        else:
            why = wanted.missing
        if why != self.credentials:
            self.credentials = why
            self._tell()
        return not why
