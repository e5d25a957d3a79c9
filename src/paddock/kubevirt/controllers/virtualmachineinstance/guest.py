"""The guest of a machine that runs: what its agent says, its probes, its credentials, and the result of cloud-init."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.networks.networks import Networks
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubernetes.meta.pods import HTTPGetAction
from paddock.kubevirt.controllers.virtualmachineinstance.reader import CredentialReader, GuestCredentials
from paddock.kubevirt.controllers.virtualmachineinstance.targets import key_of
from paddock.kubevirt.kinds.access import Probe
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import cloudinit, guestreport, probes
from paddock.kubevirt.plan.instance.identity import owner_of
from paddock.kubevirt.plan.instance.observed import GuestReport
from paddock.kubevirt.plan.instance.phases import RUNNING

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
_NO_CREDENTIALS = GuestCredentials({}, {})
Job = Callable[[], Coroutine[Any, Any, None]]
Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class ProbeTarget(msgspec.Struct, frozen=True):
    """The ports of a machine: how to connect to them, and their names."""

    dial: Dial
    names: Mapping[str, int]

    def port(self, named: int | str) -> int:
        """The number of a port; 0 for a name that no interface gives to any."""
        return self.names.get(named, int(named) if named.isdecimal() else 0) if isinstance(named, str) else named


class Prober:
    """Makes one probe of one machine. `request` asks for a reconcile when its verdict changed."""

    def __init__(self, probe: Probe, machine: QemuMachine, target: ProbeTarget, *, good: bool, request: Callable[[], None]) -> None:
        self.verdict = probes.ProbeVerdict(good)
        self._probe = probe
        self._machine = machine
        self._target = target
        self._request = request
        self._schedule = probes.schedule_of(probe)
        self._way = probes.way_of(probe)

    async def run(self) -> None:
        """Probe until cancelled."""
        await asyncio.sleep(self._schedule.delay)
        while True:
            before = self.verdict.good
            observed = self._machine.observed
            if not probes.suppressed(self._way, paused=observed.stands_still, busy=False):
                self.verdict = probes.judged(self.verdict, await self._answers(), self._schedule)
            if self.verdict.good != before:
                self._request()
            await asyncio.sleep(self._schedule.period)

    async def _answers(self) -> bool:
        """Return true if one attempt succeeds within its time."""
        try:
            async with asyncio.timeout(self._schedule.timeout):
                return await self._attempt()
        except (PaddockError, OSError, TimeoutError, asyncio.IncompleteReadError):
            return False

    async def _attempt(self) -> bool:
        probe = self._probe
        if probe.exec is not None:
            code, _, _ = await self._machine.agent.execute(list(probe.exec.command or ()), self._schedule.timeout)
            return bool(code == 0)
        if probe.guestAgentPing is not None:
            await self._machine.agent.ping()
            return True
        if probe.httpGet is not None:
            return await self._get(probe.httpGet)
        if probe.tcpSocket is not None:
            _, writer = await self._target.dial(self._target.port(probe.tcpSocket.port))
            writer.close()
            return True
        return False

    async def _get(self, action: HTTPGetAction) -> bool:
        """A GET; good is what is neither an error of the client nor of the server."""
        reader, writer = await self._target.dial(self._target.port(action.port))
        try:
            if action.scheme == "HTTPS":
                await writer.start_tls(_any_certificate())
            writer.write(probes.http_request(action))
            await writer.drain()
            line = await reader.readline()
        finally:
            writer.close()
        return probes.is_http_success(line)


class GuestMonitor:
    """Watches the guest of one run of a machine: what its agent, its probes and cloud-init report.

    `request` asks for a reconcile when that changed. The guest is asked seldom and in a steady rhythm: what it says is for people, not
    for decisions.
    """

    def __init__(self, instance: VirtualMachineInstance, machine: QemuMachine, target: ProbeTarget, request: Callable[[], None]) -> None:
        spec, status = instance.spec, instance.status
        self.run = machine.observed.run
        # None: it was not asked yet
        self.guest: GuestReport | None = None
        # what is wrong with a guest whose agent has its channel open and does not answer; "": it answers
        self.silent = ""
        # since when it does not
        self._silent_since: float | None = None
        # Whoever froze its file systems before may have ended with an earlier process.
        self._may_be_frozen = status is not None and status.phase == RUNNING
        self.cloud_init: Condition | None = None
        # None: nothing to keep in the guest; "": it is there; else why not
        self.credentials: str | None = None
        self._machine = machine
        self._request = request
        self._wanted = _NO_CREDENTIALS
        self._changed = asyncio.Event()
        # The guest is asked at once, and a machine without an agent not again and again whether it has one.
        self._agent_changed = asyncio.Event()
        self._news: tuple[bool, int] | None = None
        self._seeded = any(each.cloudInitNoCloud or each.cloudInitConfigDrive for each in spec.volumes or ())
        # A probe goes on where the one of an earlier process left off.
        self._readiness = self._prober(spec.readinessProbe, target, good=status is not None and holds(status.conditions, "Ready"))
        self._liveness = self._prober(spec.livenessProbe, target, good=True)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def answers(self) -> bool | None:
        """The verdict of the readiness probe; None without one."""
        return None if self._readiness is None else self._readiness.verdict.good

    @property
    def dead(self) -> bool:
        """Return true if the liveness probe failed for good."""
        return self._liveness is not None and not self._liveness.verdict.good

    def start(self) -> None:
        jobs: list[Job] = [each.run for each in (self._readiness, self._liveness) if each is not None]
        jobs += [self._ask, self._keep]
        if self._seeded:
            jobs.append(self._listen)
        self._tasks = [asyncio.create_task(self._do(each), name=f"watch the guest of {self._machine.id}") for each in jobs]

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
        await _cancel(self._tasks)

    def keep(self, guest_credentials: GuestCredentials) -> None:
        """Have these keys and passwords in the guest from now on."""
        if guest_credentials != self._wanted:
            self._wanted = guest_credentials
            self._changed.set()

    def agent_changed(self) -> None:
        """The engine had news, perhaps that the agent's channel opened or closed, or that a request changed what the agent says."""
        self._changed.set()
        news = (self._machine.observed.agent, self._machine.guest_changes)
        if news != self._news:
            self._news = news
            self._agent_changed.set()

    def _prober(self, probe: Any, target: ProbeTarget, *, good: bool) -> Prober | None:
        return None if probe is None else Prober(probe, self._machine, target, good=good, request=self._request)

    # --- the agent --------------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        """Ask the agent, often at first: an address and a name are what people wait for."""
        loop = asyncio.get_running_loop()
        since: float | None = None
        while True:
            self._agent_changed.clear()
            if not self._machine.observed.agent:
                since = None
                self._note_agent(answered=True)
                if self.guest != GuestReport():
                    self._put(guest=GuestReport())
                await self._agent_changed.wait()
                continue
            since = loop.time() if since is None else since
            if not self._machine.observed.stands_still:
                await self._ask_once()
            eager = loop.time() - since < _EAGER_SECONDS and not self._complete()
            pause = _FIRST_SECONDS if eager or self._silent_since is not None else _LATER_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._agent_changed.wait()

    def _complete(self) -> bool:
        """Return whether the guest has reported its addresses, its system and, where it has a seed, the end of cloud-init."""
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
            found = msgspec.structs.replace(found, frozen=await self._frozen())
            if found.os is None:
                found = msgspec.structs.replace(found, os=guestreport.system(await agent.os()))
            if not found.commands:
                found = msgspec.structs.replace(found, commands=guestreport.commands(await agent.info()))
            found = msgspec.structs.replace(found, interfaces=guestreport.interfaces(await agent.interfaces()))
        except PaddockError as error:
            _LOG.debug("guest agent did not answer", extra={"machine": self._machine.id, "error": str(error)})
            self._note_agent(answered=not isinstance(error, AgentError) or error.reason != "Unanswered")
        else:
            self._note_agent(answered=True)
        cloud_init = self.cloud_init
        if self._seeded and (cloud_init is None or cloud_init.status == "Unknown"):
            cloud_init = await self._cloud_init() or cloud_init
        self._put(guest=found, cloud_init=cloud_init)

    def _note_agent(self, *, answered: bool) -> None:
        now = asyncio.get_running_loop().time()
        if answered:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since = now
        long = self._silent_since is not None and now - self._silent_since >= SILENT_SECONDS
        said = _HANGS if long else ""
        if said != self.silent:
            self.silent = said
            self._request()

    async def _frozen(self) -> bool:
        agent = self._machine.agent
        frozen = await agent.frozen()
        if frozen and self._may_be_frozen:
            _LOG.warning("thawing file systems that were left frozen", extra={"machine": self._machine.id})
            await agent.thaw()
            frozen = await agent.frozen()
        self._may_be_frozen = False
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
            self._request()

    # --- credentials ------------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Bring keys and passwords into the guest whenever they change, and whenever an agent comes."""
        done = _NO_CREDENTIALS
        connected = False
        while True:
            self._changed.clear()
            # What is wanted may change while it is brought.
            agent, wanted = self._machine.observed.agent, self._wanted
            if agent and not wanted.empty and (not connected or wanted != done):
                done = wanted if await self._bring(wanted) else _NO_CREDENTIALS
            connected = agent
            try:
                async with asyncio.timeout(None if self.credentials in (None, "") else _LATER_SECONDS):
                    await self._changed.wait()
            except TimeoutError:
                connected = False

    async def _bring(self, guest_credentials: GuestCredentials) -> bool:
        try:
            for user, keys in guest_credentials.keys.items():
                await self._machine.agent.add_keys(user, list(keys), reset=True)
            for user, password in guest_credentials.passwords.items():
                await self._machine.agent.set_password(user, password)
        except PaddockError as error:
            why = str(error)
        else:
            why = guest_credentials.missing
        if why != self.credentials:
            self.credentials = why
            self._request()
        return not why


class GuestMonitors:
    """The monitor of each machine that runs. `request` asks for a reconcile of a machine."""

    def __init__(self, networks: Networks, credentials: CredentialReader, request: Callable[[str], None]) -> None:
        self._networks = networks
        self._credentials = credentials
        self._request = request
        self._monitors: dict[str, GuestMonitor] = {}

    def of(self, instance: VirtualMachineInstance, machine: QemuMachine) -> GuestMonitor:
        """The monitor of a machine that runs, with the credentials as they are now."""
        found = self._monitors.get(machine.id)
        if found is None or found.run != machine.observed.run:
            found = GuestMonitor(instance, machine, self._target(instance), partial(self._request, machine.id))
            self._monitors[machine.id] = found
            found.start()
        found.keep(self._credentials.of(key_of(instance), instance.spec))
        return found

    def get(self, machine: str) -> GuestMonitor | None:
        """The monitor of a machine, if there is one."""
        return self._monitors.get(machine)

    def agent_changed(self, machine: str) -> None:
        """The engine observed a change of a machine, perhaps of its agent."""
        found = self._monitors.get(machine)
        if found is not None:
            found.agent_changed()

    async def drop(self, machine: str) -> None:
        found = self._monitors.pop(machine, None)
        if found is not None:
            await found.stop()

    async def stop(self) -> None:
        for machine in tuple(self._monitors):
            await self.drop(machine)

    def _target(self, instance: VirtualMachineInstance) -> ProbeTarget:
        """Probes go to the first interface, by the ports that it names."""
        interfaces = instance.spec.domain.devices.interfaces or ()
        name = interfaces[0].name if interfaces else "default"
        names = {port.name: port.port for each in interfaces for port in each.ports or () if port.name}
        return ProbeTarget(partial(self._networks.dial, owner_of(instance), name), names)


def _any_certificate() -> ssl.SSLContext:
    """A probe asks for an answer, not for an identity."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
