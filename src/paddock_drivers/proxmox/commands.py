"""Commands in guests, by the agent of QEMU."""

import asyncio
from typing import Any

from paddock.contract import extensionmessages as x
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox import properties
from paddock_drivers.proxmox.api import FormValue
from paddock_drivers.proxmox.cluster import ProxmoxCluster
from paddock_drivers.proxmox.power import ON, ProxmoxPowerControl, state_of

_DEFAULT_SECONDS, _MOST_SECONDS = 60, 600
_ARRAYS = (8, 0)


class ProxmoxGuestCommandRunner:
    """Runs commands in the guests of machines."""

    def __init__(self, cluster: ProxmoxCluster, power: ProxmoxPowerControl) -> None:
        self._cluster = cluster
        self._power = power

    async def run(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command and wait for its end."""
        if not request.command or not request.command[0]:
            raise refusals.invalid("command is invalid", why="it is empty")
        machine = await self._cluster.machine(request.vm_id)
        name = machine.config.name
        if state_of(await self._power.status(machine)) != ON:
            raise refusals.conflict(f"machine {name} runs no command", why="it is not running", fix="power it on")
        if await self._cluster.release() < _ARRAYS and len(request.command) > 1:
            raise refusals.not_supported(
                "a command cannot have arguments", why="Proxmox VE 7 passes a single word to the agent", fix="upgrade to Proxmox VE 8"
            )
        form: dict[str, FormValue] = {"command": list(request.command)}
        answer = await self._cluster.api.post(self._cluster.of(machine, "agent", "exec"), form)
        pid = (answer or {}).get("pid")
        if not isinstance(pid, int):
            raise ProviderError(ErrorKind.INTERNAL, f"the agent of machine {name} began a command without an id")
        seconds = max(1, min(request.timeout_seconds or _DEFAULT_SECONDS, _MOST_SECONDS))
        try:
            async with asyncio.timeout(seconds):
                return _answer(await self._ended(self._cluster.of(machine, "agent", "exec-status"), pid))
        except TimeoutError as error:
            raise ProviderError(ErrorKind.TIMEOUT, f"the command in machine {name} did not end within {seconds} s") from error

    async def _ended(self, target: str, pid: int) -> dict[str, Any]:
        pause = self._cluster.settings.poll_seconds
        while True:
            found = await self._cluster.api.get(target, pid=pid)
            if properties.is_true((found or {}).get("exited")):
                return dict(found)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self._cluster.settings.most_poll_seconds)


def _answer(found: dict[str, Any]) -> x.ExecResponse:
    out, err = (str(found.get(key) or "").encode() for key in ("out-data", "err-data"))
    cut = any(properties.is_true(found.get(key)) for key in ("out-truncated", "err-truncated"))
    code = found.get("exitcode", found.get("signal", -1))
    return x.ExecResponse(
        exit_code=int(code if code is not None else -1),
        stdout=out[: x.MOST_OUTPUT],
        stderr=err[: x.MOST_OUTPUT],
        truncated=cut or max(len(out), len(err)) > x.MOST_OUTPUT,
    )
