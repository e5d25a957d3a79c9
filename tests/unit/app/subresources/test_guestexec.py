"""guestexec: a command in a guest, by its agent."""

import base64

import pytest

from paddock.engine.machine import guest
from paddock.engine.machine.errors import AgentError
from tests.coroutines import scripted
from tests.unit.app.subresources.test_instances import conflict
from tests.unit.app.subresources.world import World


@scripted
async def test_a_command_runs_and_its_end_is_told() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.run = lambda argv: guest.GuestExecResult(3, b"out", b"err")
        reply = await world.put("vmi", "vm", "guestexec", {"command": ["/bin/echo", "a b", "$(x)"], "timeoutSeconds": 5})
        out, err = (base64.b64encode(each).decode() for each in (b"out", b"err"))
        assert (reply.status, reply.data) == (200, {"exitCode": 3, "stdout": out, "stderr": err, "truncated": False})
        assert ("execute", ["/bin/echo", "a b", "$(x)"]) in machine.agent.calls


@scripted
async def test_outputs_are_cut() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.run = lambda argv: guest.GuestExecResult(0, b"x" * 100_000, b"")
        reply = await world.put("vmi", "vm", "guestexec", {"command": ["cat"]})
        assert len(base64.b64decode(reply.data["stdout"])) == 64 << 10 and reply.data["truncated"] is True


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": []},
        {"command": "reboot"},
        {"command": [""]},
        {"command": ["a", 1]},
        {"command": ["a\0b"]},
        {"command": ["a"] * 2000},
        {"command": ["a" * 70_000]},
        {"command": ["a"], "timeoutSeconds": 301},
        {"command": ["a"], "timeoutSeconds": -1},
        {"command": ["a"], "timeoutSeconds": "5"},
        {"command": ["a"], "stdin": "no Base64"},
        {"command": ["a"], "stdin": base64.b64encode(b"x" * ((1 << 20) + 1)).decode()},
        {"command": ["a"], "outputBytes": 3 << 20},
        {"pid": 0},
        {"pid": "12"},
        {"pid": True},
    ],
)
@scripted
async def test_requests_that_make_no_sense(body: dict[str, object]) -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        assert (await world.put("vmi", "vm", "guestexec", body)).status == 400
        assert not machine.agent.calls


@scripted
async def test_without_an_agent_nothing_runs() -> None:
    async with World() as world:
        body = {"command": ["true"]}
        assert (await world.put("vmi", "vm", "guestexec", body)).status == 404
        await world.running()
        reply = await world.put("vmi", "vm", "guestexec", body)
        assert (reply.status, reply.data["message"]) == (409, conflict("VMI does not have guest agent connected"))


@pytest.mark.parametrize(("reason", "status"), [("Refused", 400), ("NotConnected", 409), ("Unanswered", 504), ("Malformed", 504)])
@scripted
async def test_what_the_agent_refuses(reason: str, status: int) -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()

        def fail(argv: object) -> guest.GuestExecResult:
            raise AgentError("cannot run it", reason=reason, why="no such file")

        machine.agent.run = fail
        reply = await world.put("vmi", "vm", "guestexec", {"command": ["nothing"]})
        assert reply.status == status and "no such file" in reply.data["message"]


@scripted
async def test_a_command_that_takes_long_goes_on_in_the_background() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.run = lambda argv: guest.GuestExecResult(7, b"done", b"")
        machine.agent.busy = True
        body = {"command": ["sleep", "900"], "background": True, "timeoutSeconds": 1, "stdin": base64.b64encode(b"in").decode()}
        reply = await world.put("vmi", "vm", "guestexec", body)
        assert (reply.status, reply.data) == (200, {"pid": 1, "exited": False})
        assert ("spawn", ["sleep", "900"], b"in") in machine.agent.calls
        assert (await world.put("vmi", "vm", "guestexec", {"pid": 1})).data == {"pid": 1, "exited": False}
        machine.agent.busy = False
        reply = await world.put("vmi", "vm", "guestexec", {"pid": 1, "outputBytes": 2})
        out = base64.b64encode(b"do").decode()
        assert reply.data == {"exitCode": 7, "stdout": out, "stderr": "", "truncated": True}
