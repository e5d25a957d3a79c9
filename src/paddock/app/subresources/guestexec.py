"""`virtualmachineinstances/guestexec`: a command in a guest, by its agent. It is Paddock's own; KubeVirt has none.

The body is `{"command": ["/bin/sync"], "timeoutSeconds": 30}`, with `"stdin"` in Base64 if the command reads some. The answer has the
exit code, and the beginning of both outputs in Base64: of each `"outputBytes"`, 64 KiB unless the body says else.

With `"background": true`, a command that takes longer than that goes on. The answer is `{"pid": 12, "exited": false}`, and the body
`{"pid": 12, "timeoutSeconds": 30}` asks again.
"""

import base64
import binascii
from collections.abc import Awaitable
from typing import TypeVar

from paddock.app.subresources import queries
from paddock.app.subresources.environment import AgentApi
from paddock.app.subresources.instances import InstanceFinder
from paddock.app.subresources.stored import conflict
from paddock.base.jsondata import Data
from paddock.engine.machine.errors import AgentError
from paddock.engine.machine.guest import GuestExecResult
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES

T = TypeVar("T")
# Bytes of each output unless the request says else, and at most; words of a command, bytes of all words; bytes of input.
USUAL_OUTPUT, MOST_OUTPUT = 64 << 10, 2 << 20
_MOST_WORDS, _MOST_BYTES = 1024, 64 << 10
_MOST_INPUT = 1 << 20
_SECONDS, _MOST_SECONDS = 30, 300


class GuestCommands:
    def __init__(self, instances: InstanceFinder) -> None:
        self._instances = instances

    async def run(self, call: RequestContext) -> HttpResponse:
        """Run a command and wait for its end, or ask again for the end of one that goes on."""
        body = queries.needed(call.request)
        seconds = queries.seconds(body, "timeoutSeconds")
        seconds = _SECONDS if seconds is None else seconds
        if not 1 <= seconds <= _MOST_SECONDS:
            raise failure.bad_request(f"timeoutSeconds is {seconds}: give 1 to {_MOST_SECONDS}")
        limit = queries.seconds(body, "outputBytes")
        limit = USUAL_OUTPUT if limit is None else limit
        if not 0 <= limit <= MOST_OUTPUT:
            raise failure.bad_request(f"outputBytes is {limit}: give 0 to {MOST_OUTPUT}")
        pid = body.get("pid")
        command = _command(body.get("command")) if pid is None else []
        stdin = part(body, "stdin", _MOST_INPUT)
        instance = self._instances.asked(call)
        agent = self._instances.with_agent(instance).agent
        if pid is None and body.get("background") is not True:
            return _ended(await asked(instance, agent.execute(command, float(seconds), stdin)), limit)
        number = _number(pid) if pid is not None else await asked(instance, agent.spawn(command, stdin))
        result = await asked(instance, _outcome(agent, number, seconds))
        return _ended(result, limit) if result is not None else queries.said({"pid": number, "exited": False})


async def _outcome(agent: AgentApi, number: int, seconds: int) -> GuestExecResult | None:
    return await agent.outcome(number, float(seconds))


async def asked(instance: VirtualMachineInstance, question: Awaitable[T]) -> T:
    """The agent's answer; what it refuses becomes the refusal of the request."""
    try:
        return await question
    except AgentError as error:
        if error.reason == "Refused":
            raise failure.bad_request(str(error)) from error
        if error.reason == "NotConnected":
            raise conflict(INSTANCES, instance.metadata.name, str(error)) from error
        raise failure.unanswered(str(error)) from error


def part(body: Data, name: str, most: int) -> bytes:
    """Bytes in Base64 among the members of a body; none when it is absent."""
    try:
        data = base64.b64decode(queries.text(body, name), validate=True)
    except (binascii.Error, ValueError):
        raise failure.bad_request(f"{name} must be Base64") from None
    if len(data) > most:
        raise failure.bad_request(f"{name} is too long: give at most {most} bytes")
    return data


def _ended(result: GuestExecResult, limit: int) -> HttpResponse:
    code, out, err = result
    return queries.said(
        {
            "exitCode": code,
            "stdout": base64.b64encode(out[:limit]).decode(),
            "stderr": base64.b64encode(err[:limit]).decode(),
            "truncated": max(len(out), len(err)) > limit,
        }
    )


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise failure.bad_request("pid must be the number that an earlier request gave")
    return value


def _command(value: object) -> list[str]:
    words = [each for each in value if isinstance(each, str) and "\0" not in each] if isinstance(value, list) else []
    if not isinstance(value, list) or not words or len(words) != len(value) or not words[0]:
        raise failure.bad_request("command must be a list of texts, the first of which names a program")
    if len(words) > _MOST_WORDS or sum(len(each.encode("utf-8", "replace")) for each in words) > _MOST_BYTES:
        raise failure.bad_request(f"command is too long: give at most {_MOST_WORDS} words and {_MOST_BYTES} bytes")
    return words
