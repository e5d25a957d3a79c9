"""Making the probes of one machine: a task for each, that tells when its verdict changes."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from paddock.base.errors import PaddockError
from paddock.dialects.kubevirt.access import Probe
from paddock.engine.machine.machine import QemuMachine
from paddock.meta.pods import HTTPGetAction
from paddock.plan.instance import probes

Dial = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
_FIRST_LINE_BYTES = 1024


@dataclass(frozen=True)
class ProbeTarget:
    """How ports of the machine are reached: a way to connect, and the ports that have names."""

    dial: Dial
    names: Mapping[str, int]

    def port(self, wanted: int | str) -> int:
        """The number of a port; 0 for a name that no card gives to any."""
        return self.names.get(wanted, int(wanted) if wanted.isdecimal() else 0) if isinstance(wanted, str) else wanted


class Prober:
    """One probe of one machine."""

    def __init__(self, probe: Probe, machine: QemuMachine, reach: ProbeTarget, *, good: bool, tell: Callable[[], None]) -> None:
        self.verdict = probes.ProbeVerdict(good)
        self._probe = probe
        self._machine = machine
        self._reach = reach
        self._tell = tell
        self._schedule = probes.schedule_of(probe)
        self._way = probes.way_of(probe)

    async def run(self) -> None:
        """Probe until cancelled."""
        await asyncio.sleep(self._schedule.delay)
        while True:
            before = self.verdict.good
            observed = self._machine.observed
            if not probes.suppressed(self._way, paused=bool(observed.paused), busy=False):
                self.verdict = probes.judged(self.verdict, await self._answers(), self._schedule)
            if self.verdict.good != before:
                self._tell()
            await asyncio.sleep(self._schedule.period)

    async def _answers(self) -> bool:
        """Whether one attempt succeeds within its time."""
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
            _, writer = await self._reach.dial(self._reach.port(probe.tcpSocket.port))
            writer.close()
            return True
        return False

    async def _get(self, action: HTTPGetAction) -> bool:
        """A GET; good is what is neither an error of the client nor of the server."""
        reader, writer = await self._reach.dial(self._reach.port(action.port))
        try:
            if action.scheme == "HTTPS":
                await writer.start_tls(_any_certificate())
            writer.write(_request(action))
            await writer.drain()
            line = await reader.readline()
        finally:
            writer.close()
        parts = line[:_FIRST_LINE_BYTES].split()
        return len(parts) >= 2 and parts[0].startswith(b"HTTP/") and parts[1].isdigit() and 200 <= int(parts[1]) < 400


def _request(action: HTTPGetAction) -> bytes:
    """The request of a probe; whatever would end a line is taken out of what a user wrote."""
    headers = {"Host": action.host or "localhost", "User-Agent": "paddock-probe", "Accept": "*/*", "Connection": "close"}
    headers.update((each.name, each.value) for each in action.httpHeaders or ())
    path = quote(action.path or "/", safe="/:?#[]@!$&'()*+,;=%-._~")
    lines = [
        f"GET {path if path.startswith('/') else '/' + path} HTTP/1.1",
        *(f"{_line(name)}: {_line(value)}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _line(text: str) -> str:
    return "".join(each for each in text if each.isprintable())


def _any_certificate() -> ssl.SSLContext:
    """A probe asks whether somebody answers, not who it is."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task
