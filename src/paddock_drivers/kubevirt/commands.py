"""Commands in guests: `virtualmachineinstances/guestexec`, which Paddock's own server has, and KubeVirt does not."""

import base64

from paddock.contract import extensionmessages as x
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import targets
from paddock_drivers.kubevirt.cluster import TargetCluster

SUBRESOURCE = "guestexec"
_DEFAULT_SECONDS, _MOST_SECONDS = 300, 300


class GuestCommandRunner:
    """Runs commands in the guests of machines."""

    def __init__(self, cluster: TargetCluster) -> None:
        self._cluster = cluster

    async def is_there(self) -> bool:
        """Return whether the target can run commands in guests."""
        return f"{targets.INSTANCES.plural}/{SUBRESOURCE}" in await self._cluster.resources(targets.ACTIONS.removeprefix("/apis/"))

    async def run(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command and wait for its end."""
        if not request.command or not request.command[0]:
            raise refusals.invalid("command is invalid", why="it is empty")
        machine = await self._cluster.machine(request.vm_id, request.owner)
        name = machine.metadata.name
        if await self._cluster.instance(machine) is None:
            raise refusals.conflict(f"machine {name} runs no command", why="it is not running", fix="power it on")
        seconds = min(request.timeout_seconds or _DEFAULT_SECONDS, _MOST_SECONDS)
        body = {"command": list(request.command), "timeoutSeconds": max(1, seconds)}
        answer = await self._cluster.act(targets.INSTANCES, name, SUBRESOURCE, body, seconds=seconds + 10.0)
        try:
            return x.ExecResponse(
                exit_code=int(answer.get("exitCode", -1)),
                stdout=base64.b64decode(answer.get("stdout", ""))[: x.MOST_OUTPUT],
                stderr=base64.b64decode(answer.get("stderr", ""))[: x.MOST_OUTPUT],
                truncated=answer.get("truncated") is True,
            )
        except (TypeError, ValueError) as error:
            raise ProviderError(ErrorKind.INTERNAL, f"the target's answer about a command in {name} cannot be read") from error
