"""A user who may do little: what the rights do not reach is missing or refused, and the rest is there."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import pytest

from paddock.app.localtransport import door
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from paddock.server.builtin.trust import CONTROLLER, CONTROLLER_GROUPS
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.web.pages import Page, Refused

WEB = "machines/vm/default/web"
Script = Callable[[FakeHost, Page], Awaitable[None]]


class Limited(Transport):
    """Carries reads of machines alone; the server refuses everything else, as one does to a user without rights."""

    def __init__(self, inner: Transport, *allowed: str) -> None:
        self._inner = inner
        self._allowed = allowed

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Carry a request, or refuse it."""
        path = ask.target.partition("?")[0]
        if ask.method == "GET" and any(path.endswith(each) for each in (*self._allowed, "/version", "/apis")):
            return await self._inner.send(ask)
        told = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": f"ada cannot {ask.method} {path}"}
        return TransportResponse(403, {}, orjson.dumps(told))

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Carry a watch."""
        return await self._inner.stream(ask)

    async def close(self) -> None:
        """Let go."""
        await self._inner.close()


def play(root: Path, allowed: tuple[str, ...], script: Script) -> None:
    async def inside() -> None:
        async with FakeHost(root) as host:
            limited = Limited(LocalTransport(door(host.api.api, CONTROLLER, CONTROLLER_GROUPS)), *allowed)
            async with Page(host, client=Client(limited)) as page:
                await host.make(machine(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))
                await script(host, page)

    virtualtime.run(inside())


@played_by(play, "tmp_path", ("/virtualmachines/web", "/virtualmachineinstances/web"))
async def test_who_may_read_machines_alone_sees_these(host: FakeHost, page: Page, /) -> None:
    found = await page.get(WEB)
    assert (found["row"]["name"], found["snapshots"], found["pending"]) == ("web", [], [])
    assert [each["name"] for each in found["disks"]] == ["data"]
    usage = await page.get(f"{WEB}/usage")
    assert "your rights do not allow it" in usage["missing"]
    why = await page.get(f"{WEB}/why")
    assert any("rights" in each or "cannot" in each for each in why["gaps"])
    assert await page.get("host") == {"nodes": [], "checks": []}
    # It is history enough: the objects have it.
    assert (await page.get(f"{WEB}/history"))["history"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{WEB}/events", None),
        ("GET", f"{WEB}/log", None),
        ("POST", f"{WEB}/actions/stop", {}),
        ("POST", f"{WEB}/actions/protect", {}),
        ("POST", f"{WEB}/actions/snapshot", {"options": {"name": "one"}}),
        ("POST", f"{WEB}/actions/delete", {"options": {"purge": True}}),
    ],
)
@played_by(play, "tmp_path", ("/virtualmachines/web", "/virtualmachineinstances/web"))
async def test_what_the_rights_do_not_reach_is_refused_by_the_server(
    host: FakeHost, page: Page, /, method: str, path: str, body: object
) -> None:
    with pytest.raises(Refused) as caught:
        await (page.read(path) if path.endswith("/log") else page.get(path) if method == "GET" else page.post(path, body))
    assert caught.value.code == 403
    assert "ada cannot" in caught.value.message


@played_by(play, "tmp_path", ())
async def test_who_may_read_nothing(host: FakeHost, page: Page, /) -> None:
    for more in ("", "/why", "/events", "/history", "/usage"):
        with pytest.raises(Refused) as caught:
            await page.get(WEB + more)
        assert caught.value.code == 403


class JudgedByNamespace(Transport):
    """Answers reviews of access: in `team` the user may do everything, elsewhere nothing."""

    async def send(self, ask: TransportRequest) -> TransportResponse:
        """Judge."""
        attributes = orjson.loads(ask.body)["spec"]["resourceAttributes"]
        return TransportResponse(201, {}, orjson.dumps({"status": {"allowed": attributes["namespace"] == "team"}}))

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        """Fail: nothing is watched."""
        raise AssertionError(ask)

    async def close(self) -> None:
        """Do nothing: nothing is open."""


@pytest.mark.parametrize("word", ["vm", "stakater", "virtrigaud", "vitistack", "vmi"])
@run_by(virtualtime.run)
async def test_rights_are_those_of_the_namespace_of_a_row(word: str) -> None:
    async with Page(client=Client(JudgedByNamespace())) as page:
        assert await page.get(f"rights/{word}/team") == {"missing": []}
        refused = {each["what"]: each["why"] for each in (await page.get(f"rights/{word}/default"))["missing"]}
        assert {"create", "start", "delete", "snapshot", "restore"} <= set(refused)
        assert all(each.endswith('in namespace "default"') for each in refused.values())


@run_by(virtualtime.run)
async def test_the_rights_to_a_kind_that_is_no_machine() -> None:
    async with Page(client=Client(JudgedByNamespace())) as page:
        with pytest.raises(Refused) as caught:
            await page.get("rights/pod/team")
        assert caught.value.code == 404
