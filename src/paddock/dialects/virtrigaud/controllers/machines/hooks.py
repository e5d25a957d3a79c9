"""Runs the hooks of machines: a command in the guest, a GET to it, or a snapshot."""

import asyncio
import contextlib
import itertools
import math
import socket
import ssl
from collections.abc import Awaitable, Callable

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract.driver import extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import MachinePass, VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.kinds.machine import GuestExecAction, GuestHTTPGetAction, LifecycleHandler, SnapshotAction
from paddock.dialects.virtrigaud.plan import hooks, reasons, references, requests, status
from paddock.dialects.virtrigaud.plan.conditions import READY, false, find
from paddock.dialects.virtrigaud.plan.snapshots import records, taking
from paddock.dialects.virtrigaud.rules import hosts
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.pods import HTTPGetAction
from paddock.kubevirt.plan.instance import probes

_LONGEST_SECONDS = 300.0
_POLL_SECONDS = 1.0
# A GET may take so long, and twice as long after each one that nothing has answered: none of them takes all the time.
_GET_SECONDS = 5.0
# host, port, request, encrypted; the first line of the answer
HttpExchange = Callable[[str, int, bytes, bool], Awaitable[bytes]]


class HookError(Exception):
    """A hook that did not succeed."""


class HookRefused(HookError):
    """A hook that is not run: another attempt would be refused, too."""


async def exchange(host: str, port: int, request: bytes, encrypted: bool) -> bytes:
    """Send a request and return the first line of its answer. A guest's certificate is its own affair.

    A name is judged by the address that it resolves to, and that address is the one that gets the request.
    """
    address = await _resolved(host, port)
    context = ssl.create_default_context() if encrypted else None
    if context is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=host if context is not None else None)
    try:
        writer.write(request)
        await writer.drain()
        return await reader.readline()
    except ValueError as error:
        raise HookError("the first line of the answer has no end") from error
    finally:
        writer.close()


async def _resolved(host: str, port: int) -> str:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    if refusal := hosts.refusal(address):
        raise HookRefused(f"the request is refused: {refusal}")
    return address


class HookRunner:
    """Runs each hook once per transition, within the time that the guest has to shut down."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, http: HttpExchange = exchange) -> None:
        self._parts = parts
        self._statuses = statuses
        self._http = http

    async def run(self, machine_pass: MachinePass, hook: str) -> None:
        """Run a hook if it is due, and record its result; a hook that fails holds nothing."""
        conditions = machine_pass.status.conditions
        if hooks.was_interrupted(hook, conditions):
            machine_pass.say(hooks.interrupted(hook))
            await self._statuses.write(machine_pass)
            return
        handler = hooks.handler(machine_pass.vm, hook)
        if handler is None or not hooks.is_due(machine_pass.vm, hook, conditions):
            return
        machine_pass.say(hooks.begun(hook), false(READY, reasons.UPDATING, f"the {hook} hook runs"))
        await self._statuses.write(machine_pass)
        problem = ""
        seconds = min(max(1.0, requests.shutdown_seconds(machine_pass.vm)), _LONGEST_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._carry_out(machine_pass, hook, handler, seconds)
        except TimeoutError:
            problem = f"it took longer than {seconds:g} s"
        except (HookError, ProviderError, OSError) as error:
            problem = str(error) or type(error).__name__
        machine_pass.say(hooks.result(hook, problem))
        found = machine_pass.values[hook]
        self._parts.recorder.tell(machine_pass.about, "Warning" if problem else "Normal", f"{hook}{found.reason}", found.message)
        await self._statuses.write(machine_pass)

    def forget(self, machine_pass: MachinePass, hook: str) -> None:
        """Drop the record of a hook whose transition is over."""
        if find(machine_pass.status.conditions, hook) is not None:
            machine_pass.drop(hook)

    async def _carry_out(self, machine_pass: MachinePass, hook: str, handler: LifecycleHandler, seconds: float) -> None:
        if handler.exec is not None:
            await self._exec(machine_pass, handler.exec, seconds)
        elif handler.httpGet is not None:
            if hook == hooks.POST_START:
                await self._get_in_time(machine_pass, handler.httpGet, seconds)
            else:
                await self._get(handler.httpGet, handler.httpGet.host or next(iter(machine_pass.status.ips or ()), ""))
        elif handler.snapshot is not None:
            await self._snapshot(machine_pass, hook, handler.snapshot)
        else:
            raise HookError("it has no action; set exec, httpGet or snapshot")

    async def _exec(self, machine_pass: MachinePass, action: GuestExecAction, seconds: float) -> None:
        """Run a command in the guest. What it writes is the guest's, and stands nowhere."""
        if not features.has(machine_pass.capabilities.features, features.EXEC):
            fix = "use httpGet or snapshot, or a Provider whose status.reportedCapabilities.features has exec"
            raise HookError(
                f"exec cannot run: {references.provider_of(machine_pass.vm)} does not report that it runs commands in guests; {fix}"
            )
        ask = x.ExecRequest(
            vm_id=machine_pass.status.id or "",
            command=tuple(action.command),
            timeout_seconds=math.ceil(seconds),
            owner=requests.owner(machine_pass.vm),
        )
        answer = await self._answered(machine_pass, ask, seconds)
        if answer.exit_code:
            raise HookError(f"the command ended with code {answer.exit_code}")

    async def _answered(self, machine_pass: MachinePass, ask: x.ExecRequest, seconds: float) -> x.ExecResponse:
        """The answer of a command. A guest that has only started has no agent yet, and gets its time to start one."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds - _POLL_SECONDS
        while True:
            try:
                return await extensions(machine_pass.provider).exec(ask)
            except ProviderError as error:
                if error.kind is not ErrorKind.CONFLICT or loop.time() + _POLL_SECONDS >= ends:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    async def _get(self, action: GuestHTTPGetAction, host: str) -> None:
        if not host:
            raise HookError("the machine has no address yet; set httpGet.host")
        refusal = hosts.refusal(host)
        if refusal:
            raise HookRefused(f"the request is refused: {refusal}")
        ask = HTTPGetAction(path=action.path, port=action.port, host=host, scheme=action.scheme)
        line = await self._http(host, action.port, probes.http_request(ask), action.scheme == "HTTPS")
        if not probes.is_http_success(line):
            raise HookError(f"{host}:{action.port} answered {line.decode(errors='replace').strip()[:100] or 'nothing'}")

    async def _get_in_time(self, machine_pass: MachinePass, action: GuestHTTPGetAction, seconds: float) -> None:
        """Repeat a GET until it succeeds. A guest that has only started has no address or no server yet, or that of its last start."""
        loop = asyncio.get_running_loop()
        ends, patience = loop.time() + seconds - _POLL_SECONDS, _GET_SECONDS
        for number in itertools.count():
            try:
                async with asyncio.timeout_at(min(loop.time() + patience, ends)):
                    addresses = [action.host] if action.host else await self._addresses(machine_pass)
                    await self._get(action, addresses[number % len(addresses)] if addresses else "")
                return
            except HookRefused:
                raise
            except (HookError, ProviderError, OSError) as error:
                silent = isinstance(error, TimeoutError)
                if loop.time() + _POLL_SECONDS >= ends:
                    why = "nothing answers" if silent else str(error) or type(error).__name__
                    raise HookError(f"{why}; it was tried for {seconds:g} s") from error
                patience *= 1 + silent
            await asyncio.sleep(_POLL_SECONDS)

    async def _addresses(self, machine_pass: MachinePass) -> list[str]:
        """The addresses of a machine now; those that no request may go to come last."""
        answer = await machine_pass.provider.describe(requests.describe(machine_pass.vm, machine_pass.status.id or ""))
        if answer.exists:
            machine_pass.status = status.observed(machine_pass.status, answer)
        return sorted(machine_pass.status.ips or (), key=lambda each: bool(hosts.refusal(each)))

    async def _snapshot(self, machine_pass: MachinePass, hook: str, action: SnapshotAction) -> None:
        """Make a VMSnapshot and wait until it is taken. It stays, as any other one."""
        begun = find(machine_pass.status.conditions, hook)
        wanted = taking.of_hook(machine_pass.vm, hook, begun.lastTransitionTime if begun is not None else "", action)
        key = Key(machine_pass.key.namespace, wanted.metadata.name)
        with contextlib.suppress(AlreadyExists):
            await self._parts.client.create(targets.SNAPSHOTS, wanted, key.namespace)
        informer = self._parts.caches.snapshots
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            seen = informer.cache.get(key)
            snapshot = seen.read(targets.SNAPSHOTS) if seen is not None else wanted
            if records.is_complete(snapshot):
                return
            if records.of(snapshot).phase == records.FAILED:
                raise HookError(f"VMSnapshot {key}: {records.of(snapshot).message}")
