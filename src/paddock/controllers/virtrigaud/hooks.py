"""Runs the hooks of machines: a GET to the guest, or a snapshot. Commands in the guest have no RPC, so they are refused."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.controllers.virtrigaud.context import MachinePass, VirtrigaudParts
from paddock.controllers.virtrigaud.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.machine import GuestHTTPGetAction, LifecycleHandler, SnapshotAction
from paddock.dialects.virtrigaud.rules import hosts
from paddock.dialects.virtrigaud.virtualmachine import VMSnapshotInfo
from paddock.meta.pods import HTTPGetAction
from paddock.plan.instance import probes
from paddock.plan.virtrigaud import hooks, reasons, requests
from paddock.plan.virtrigaud.conditions import READY, false, find

_LONGEST_SECONDS = 300.0
_POLL_SECONDS = 1.0
# host, port, request, encrypted; the first line of the answer
HttpExchange = Callable[[str, int, bytes, bool], Awaitable[bytes]]


class HookError(Exception):
    """A hook that did not succeed."""


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
        raise HookError(f"the request is refused: {refusal}")
    return address


class HookRunner:
    """Runs each hook once per transition, within the time that the guest has to shut down."""

    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, http: HttpExchange = exchange) -> None:
        self._parts = parts
        self._statuses = statuses
        self._http = http

    async def run(self, look: MachinePass, hook: str) -> None:
        """Run a hook if it is due, and record its result; a hook that fails holds nothing."""
        conditions = look.status.conditions
        if hooks.was_interrupted(hook, conditions):
            look.say(hooks.interrupted(hook))
            await self._statuses.write(look)
            return
        handler = hooks.handler(look.vm, hook)
        if handler is None or not hooks.is_due(look.vm, hook, conditions):
            return
        look.say(hooks.begun(hook), false(READY, reasons.UPDATING, f"the {hook} hook runs"))
        await self._statuses.write(look)
        problem = ""
        seconds = min(max(1.0, requests.shutdown_seconds(look.vm)), _LONGEST_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                await self._carry_out(look, handler)
        except TimeoutError:
            problem = f"it took longer than {seconds:g} s"
        except (HookError, ProviderError, OSError) as error:
            problem = str(error) or type(error).__name__
        look.say(hooks.result(hook, problem))
        found = look.values[hook]
        self._parts.teller.tell(look.about, "Warning" if problem else "Normal", f"{hook}{found.reason}", found.message)
        await self._statuses.write(look)

    def forget(self, look: MachinePass, hook: str) -> None:
        """Drop the record of a hook whose transition is over."""
        if find(look.status.conditions, hook) is not None:
            look.drop(hook)

    async def _carry_out(self, look: MachinePass, handler: LifecycleHandler) -> None:
        if handler.httpGet is not None:
            await self._get(look, handler.httpGet)
        elif handler.snapshot is not None:
            await self._snapshot(look, handler.snapshot)
        else:
            raise HookError("exec cannot run: the provider contract has no command in the guest; use httpGet or snapshot")

    async def _get(self, look: MachinePass, action: GuestHTTPGetAction) -> None:
        host = action.host or next(iter(look.status.ips or ()), "")
        if not host:
            raise HookError("the machine has no address yet; set httpGet.host")
        refusal = hosts.refusal(host)
        if refusal:
            raise HookError(f"the request is refused: {refusal}")
        ask = HTTPGetAction(path=action.path, port=action.port, host=host, scheme=action.scheme)
        line = await self._http(host, action.port, probes.http_request(ask), action.scheme == "HTTPS")
        if not probes.is_http_success(line):
            raise HookError(f"{host}:{action.port} answered {line.decode(errors='replace').strip()[:100] or 'nothing'}")

    async def _snapshot(self, look: MachinePass, action: SnapshotAction) -> None:
        can = look.capabilities
        if not can.supportsSnapshots or (action.includeMemory and not can.supportsMemorySnapshots):
            raise HookError(f"the Provider does not report that it supports snapshots{' with memory' if action.includeMemory else ''}")
        memory = bool(action.includeMemory)
        ask = m.SnapshotCreateRequest(
            vm_id=look.status.id or "", name_hint=action.name, include_memory=memory, description=action.description or ""
        )
        answer = await look.provider.snapshot_create(ask)
        while answer.task is not None and answer.task.id:
            state = await look.provider.task_status(m.TaskStatusRequest(task=answer.task))
            if state.error:
                raise HookError(state.error)
            if state.done:
                break
            await asyncio.sleep(_POLL_SECONDS)
        info = VMSnapshotInfo(
            id=answer.snapshot_id,
            name=action.name,
            creationTime=self._parts.timestamp(),
            description=action.description,
            hasMemory=memory,
        )
        look.change(snapshots=[*(look.status.snapshots or ()), info])
