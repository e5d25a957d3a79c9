"""Commands in guests, by the QEMU guest agent."""

import asyncio
import base64
import json
from typing import Any

import libvirt
import libvirt_qemu

from paddock.contract import extensionmessages as x
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.libvirt import failures, machines
from paddock_drivers.libvirt.machines import MachineStore

_DEFAULT_SECONDS, _MOST_SECONDS = 300, 300
_ANSWER_SECONDS = 10
_POLL_SECONDS, _AGENT_POLL_SECONDS = 0.1, 1.0


class AgentCommands:
    """Runs commands in the guests of machines."""

    def __init__(self, store: MachineStore) -> None:
        self._store = store

    async def run(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command without a shell, and wait for its end."""
        if not request.command or not request.command[0]:
            raise refusals.invalid("command is invalid", why="it is empty")
        machine = await self._store.get(request.vm_id, request.owner)
        if machine.state != machines.RUNNING:
            raise refusals.conflict(f"machine {machine.view.name} runs no command", why="it is not running", fix="power it on")
        seconds = min(request.timeout_seconds if request.timeout_seconds > 0 else _DEFAULT_SECONDS, _MOST_SECONDS)
        words = {"path": request.command[0], "arg": list(request.command[1:]), "capture-output": True}
        try:
            async with asyncio.timeout(seconds):
                await self._wait_for_agent(machine.uuid)
                began = await self._ask(machine.uuid, "guest-exec", words)
                while True:
                    found = await self._ask(machine.uuid, "guest-exec-status", {"pid": began.get("pid", 0)})
                    if found.get("exited") is True:
                        return _ended(found)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            what = f"the command in machine {machine.view.name} did not end within {seconds} s"
            raise ProviderError(ErrorKind.TIMEOUT, what, fix="it may still run in the guest") from None

    async def _wait_for_agent(self, uuid: str) -> None:
        """A guest that boots has no agent yet."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._store.connection.settings.agent_seconds
        while True:
            try:
                await self._ask(uuid, "guest-ping", {})
                return
            except ProviderError as error:
                if error.kind is not ErrorKind.UNAVAILABLE or loop.time() >= end:
                    raise
            await asyncio.sleep(_AGENT_POLL_SECONDS)

    async def _ask(self, uuid: str, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
        words = {"execute": command, "arguments": arguments} if arguments else {"execute": command}
        text = await self._store.connection.run(_ask, uuid, json.dumps(words))
        try:
            answer = json.loads(text)["return"]
        except (ValueError, KeyError, TypeError):
            answer = None
        if not isinstance(answer, dict):
            raise ProviderError(ErrorKind.INTERNAL, "the guest agent's answer cannot be read")
        return answer


def _ask(conn: Any, uuid: str, text: str) -> str:
    domain = machines.existing(conn, uuid)
    try:
        return str(libvirt_qemu.qemuAgentCommand(domain, text, _ANSWER_SECONDS, 0))
    except libvirt.libvirtError as error:
        code = failures.code_of(error)
        if code == failures.AGENT_UNRESPONSIVE:
            why = "its QEMU guest agent does not answer"
            raise ProviderError(
                ErrorKind.UNAVAILABLE, f"machine {domain.name()} runs no command", why=why, fix="install it in the guest"
            ) from error
        if code == failures.INTERNAL_ERROR and "guest-exec" in text:
            # The agent's words repeat the command, which may hold a secret.
            raise ProviderError(ErrorKind.INVALID_SPEC, "the guest cannot start the command", fix="see that it exists there") from None
        raise


def _ended(found: dict[str, Any]) -> x.ExecResponse:
    streams = [base64.b64decode(str(found.get(name) or "")) for name in ("out-data", "err-data")]
    cut = any(len(each) > x.MOST_OUTPUT for each in streams) or found.get("out-truncated") is True or found.get("err-truncated") is True
    # A command that a signal ended has no exit code; shells name such an end 128 and its number.
    code = found.get("exitcode", 128 + int(found.get("signal") or 0))
    return x.ExecResponse(exit_code=int(code), stdout=streams[0][: x.MOST_OUTPUT], stderr=streams[1][: x.MOST_OUTPUT], truncated=cut)
