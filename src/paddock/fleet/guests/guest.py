"""A guest as the commands reach it, over the subresources of its VirtualMachineInstance.

The agent's subresources (`guestexec`, `guestfile`) and `consolelog` are Paddock's own. A KubeVirt cluster has none of them: `NotServed`
says what to use there.
"""

import base64
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import orjson

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError, BadRequest, Conflict, MethodNotAllowed, NotFound
from paddock.kubernetes.client.http.websocket import WebSocket, connected
from paddock.kubernetes.client.target import Key

# The server answers a request after this long at the latest; a command may go on.
_TURN_SECONDS = 20
_ANSWER_SECONDS = 40.0
OUTPUT_BYTES = 2 << 20
INPUT_BYTES = 1 << 20
_BASE = "/apis/subresources.kubevirt.io/v1/namespaces"
_LOG_CONTAINER = "guest-console-log"
# The serial line, from its last screen on. A KubeVirt cluster overlooks the wish.
CONSOLE = "console?screen=true"
_INSTALL = "install qemu-guest-agent in the guest and start it (Debian, Ubuntu: `apt-get install qemu-guest-agent`; others: `dnf install`)"


class NotRunning(Terminal):
    """The machine has no running guest."""


class NoAgent(Transient):
    """No agent answers in the guest."""


class NotServed(Terminal):
    """The server has no such way into a guest."""


class GuestRefused(Terminal):
    """The guest's agent refused: no such program, no such file."""


class CommandOutcome(msgspec.Struct, frozen=True):
    """A command that ended in a guest. A negative code is the signal that ended it."""

    code: int
    out: bytes
    err: bytes
    truncated: bool = False


class GuestAccess:
    """One guest, by the place of its instance."""

    def __init__(self, server: ServerSession, machine: MachineView, key: Key) -> None:
        self.server = server
        self.machine = machine
        self.key = key

    @property
    def name(self) -> str:
        """The machine's name, as the user knows it."""
        return self.machine.name

    @property
    def client(self) -> Client:
        """The connection to the server."""
        return self.server.client

    @property
    def uid(self) -> str:
        """The instance's UID; empty if it was not there."""
        return texts(self.machine.vmi, "metadata", "uid") if self.machine.vmi is not None else ""

    # --- the agent ----------------------------------------------------------------------------------------------------------

    async def run(self, command: Sequence[str], stdin: bytes = b"", *, seconds: float | None = None) -> CommandOutcome | None:
        """Run a command and wait for its end, so many seconds at most. None: it has not ended, and continues in the guest."""
        ask: dict[str, Any] = {"command": list(command), "background": True}
        if stdin:
            ask["stdin"] = base64.b64encode(stdin).decode()
        end = None if seconds is None else self.server.clock.seconds() + seconds
        while True:
            left = _TURN_SECONDS if end is None else min(_TURN_SECONDS, max(1, round(end - self.server.clock.seconds())))
            answer = await self._agent("guestexec", {**ask, "timeoutSeconds": left, "outputBytes": OUTPUT_BYTES}, "run a command in")
            if answer.get("exited") is not False:
                out, err = (base64.b64decode(answer.get(each, "")) for each in ("stdout", "stderr"))
                return CommandOutcome(int(answer.get("exitCode", -1)), out, err, answer.get("truncated") is True)
            if end is not None and self.server.clock.seconds() >= end:
                return None
            ask = {"pid": answer["pid"]}

    async def read(self, path: str, offset: int, count: int) -> tuple[bytes, bool]:
        """Return bytes of a file of the guest, and whether it ends there."""
        answer = await self._agent("guestfile", {"path": path, "offset": offset, "count": count}, "read a file of")
        return base64.b64decode(answer.get("data", "")), answer.get("eof") is True

    async def write(self, path: str, offset: int, data: bytes) -> None:
        """Write into a file of the guest; at offset 0 it begins anew."""
        encoded = base64.b64encode(data).decode()
        await self._agent("guestfile", {"path": path, "offset": offset, "data": encoded}, "write a file of")

    async def _agent(self, subresource: str, body: dict[str, Any], action: str) -> dict[str, Any]:
        try:
            raw = await self.client.request("PUT", self.path(subresource), body=orjson.dumps(body), seconds=_ANSWER_SECONDS)
        except (NotFound, MethodNotAllowed) as error:
            raise self._absent(error, action, "KubeVirt has no way to the guest agent for its users") from error
        except Conflict as error:
            raise self._without_agent(error, action) from error
        except BadRequest as error:
            raise GuestRefused(f"cannot {action} {self.name}", why=_last(error)) from error
        answer: dict[str, Any] = orjson.loads(raw)
        return answer

    def _without_agent(self, error: ApiError, action: str) -> PaddockError:
        what = f"cannot {action} {self.name}"
        if "not running" in str(error):
            return NotRunning(what, why="it is not running", fix=f"start it: `paddock start {self.name}`")
        fix = f"wait until the guest has booted, or {_INSTALL}; `paddock console {self.name}` needs no agent"
        return NoAgent(what, why="no guest agent answers in it", fix=fix)

    def _absent(self, error: ApiError, action: str, why: str) -> PaddockError:
        if error.details.get("name"):
            return NotRunning(f"cannot {action} {self.name}", why=str(error), fix=f"start it: `paddock start {self.name}`")
        fix = f"use `paddock ssh {self.name}`, or scp with `paddock ssh --config {self.name}`"
        return NotServed(f"cannot {action} {self.name}", why=f"this server does not serve that: {why}", fix=fix)

    # --- the screen and the console -----------------------------------------------------------------------------------------

    async def screenshot(self) -> bytes:
        """Return a PNG of the display."""
        return await self.client.request("GET", self.path("vnc/screenshot"), seconds=_ANSWER_SECONDS)

    async def console_log(self, *, previous: bool = False, offset: int = 0) -> bytes:
        """Return the output of the guest on its serial console, from an offset on. Raises `NotFound` if none is kept."""
        plural = "virtualmachines" if self.machine.vm is not None else "virtualmachineinstances"
        query = (("previous", "true"),) if previous else ()
        try:
            return await self.client.request("GET", self.path("consolelog", plural), (*query, ("offset", str(offset))))
        except NotFound as error:
            if error.details.get("name"):
                raise
        return (await self._log_of_pod(previous))[offset:]

    async def _log_of_pod(self, previous: bool) -> bytes:
        """Return the log of the container that KubeVirt adds to a machine's pod for it."""
        labels = (("labelSelector", f"kubevirt.io/created-by={self.uid}"),)
        pods = f"/api/v1/namespaces/{self.key.namespace}/pods"
        try:
            found = orjson.loads(await self.client.request("GET", pods, labels))
            names = [each["metadata"]["name"] for each in found["items"]]
            if names and self.uid:
                query = (("container", _LOG_CONTAINER), *((("previous", "true"),) if previous else ()))
                return await self.client.request("GET", f"{pods}/{names[-1]}/log", query)
        except (NotFound, BadRequest) as error:
            raise NotServed(f"cannot read the console log of {self.name}", why=str(error)) from error
        raise NotServed(
            f"cannot read the console log of {self.name}", why="it has no pod now", fix=f"start it: `paddock start {self.name}`"
        )

    # --- streams ------------------------------------------------------------------------------------------------------------

    def stream(self, subresource: str) -> AbstractAsyncContextManager[WebSocket]:
        """Connect to `CONSOLE`, `console`, `vnc` or `portforward/PORT/PROTOCOL`."""
        return connected(self.server.access, self.path(subresource))

    def path(self, subresource: str, plural: str = "virtualmachineinstances") -> str:
        """The path of a subresource."""
        return f"{_BASE}/{self.key.namespace}/{plural}/{self.key.name}/{subresource}"


async def access(server: ServerSession, text: str, what: str) -> GuestAccess:
    """Find the machine that `[KIND/]NAME` means, and return the access to its guest. `what` is for errors: "open the console"."""
    machine = await finding.find(server.client, text, server.namespace)
    if machine.vmi_key is not None:
        return GuestAccess(server, machine, machine.vmi_key)
    return GuestAccess(server, machine, finding.needs_vm(machine, what))


def check_running(guest: GuestAccess, what: str) -> None:
    """Raise `NotRunning` for a machine without a running guest."""
    if guest.machine.vmi is None or texts(guest.machine.vmi, "status", "phase") in ("Succeeded", "Failed"):
        fix = f"start it: `paddock start {guest.name}`"
        raise NotRunning(f"cannot {what} of {guest.name}", why="it is not running", fix=fix)


def _last(error: ApiError) -> str:
    """The guest's own words: the server puts its own before them."""
    text = str(error)
    return text.split(": ", 1)[1] if text.startswith("cannot ask the agent") and ": " in text else text
