"""guestfile: parts of files of a guest, by its agent."""

import base64

import pytest

from paddock.server.resources.kubevirtsubresources import GROUP, INSTANCES
from paddock.server.routing import RequestRoute
from paddock.server.security.audit.content import is_closed
from tests.coroutines import scripted
from tests.unit.app.subresources.test_instances import conflict
from tests.unit.app.subresources.world import World, path

MIB = 1 << 20


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@scripted
async def test_a_file_is_read_in_parts() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.files["/etc/hosts"] = b"0123456789"
        reply = await world.put("vmi", "vm", "guestfile", {"path": "/etc/hosts", "offset": 2, "count": 3})
        assert (reply.status, reply.data) == (200, {"data": encoded(b"234"), "eof": False})
        reply = await world.put("vmi", "vm", "guestfile", {"path": "/etc/hosts", "offset": 5})
        assert reply.data == {"data": encoded(b"56789"), "eof": True}


@scripted
async def test_a_file_is_written_in_parts() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.files["/new"] = b"what was there before"
        for offset, data in ((0, b"first "), (6, b"second")):
            reply = await world.put("vmi", "vm", "guestfile", {"path": "/new", "offset": offset, "data": encoded(data)})
            assert (reply.status, reply.data) == (200, {"count": len(data)})
        assert machine.agent.files["/new"] == b"first second"
        # An empty file is one, too.
        assert (await world.put("vmi", "vm", "guestfile", {"path": "/none", "data": ""})).status == 200
        assert machine.agent.files["/none"] == b""


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"path": ""},
        {"path": 5},
        {"path": "/a\0b"},
        {"path": "/" * 4097},
        {"path": "/a", "offset": -1},
        {"path": "/a", "offset": "1"},
        {"path": "/a", "count": MIB + 1},
        {"path": "/a", "data": "no Base64"},
        {"path": "/a", "data": encoded(b"x" * (MIB + 1))},
    ],
)
@scripted
async def test_requests_that_make_no_sense(body: dict[str, object]) -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        assert (await world.put("vmi", "vm", "guestfile", body)).status == 400
        assert not machine.agent.calls


@scripted
async def test_without_an_agent_there_are_no_files() -> None:
    async with World() as world:
        await world.running()
        reply = await world.put("vmi", "vm", "guestfile", {"path": "/etc/hosts"})
        assert (reply.status, reply.data["message"]) == (409, conflict("VMI does not have guest agent connected"))


@scripted
async def test_a_refusal_of_the_guest_is_one_of_the_request() -> None:
    async with World() as world:
        machine = await world.running()
        machine.agent.connect()
        machine.agent.refuse["read_file"] = "No such file or directory"
        reply = await world.put("vmi", "vm", "guestfile", {"path": "/nothing"})
        assert (reply.status, "No such file" in reply.data["message"]) == (400, True)


@pytest.mark.parametrize("subresource", ["guestfile", "guestexec"])
def test_no_audit_log_has_what_goes_to_a_guest(subresource: str) -> None:
    target = path("vmi", "vm", subresource)
    assert is_closed(RequestRoute(verb="update", path=target, is_resource=True, group=GROUP, plural=INSTANCES, subresource=subresource))
