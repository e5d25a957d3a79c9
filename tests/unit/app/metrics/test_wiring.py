"""The server's own part of the page, as strict readers take it."""

from pathlib import Path

from paddock.server.edge.http import HttpResponse
from paddock.server.security.audit.file import AuditFile, Rotation
from paddock.server.security.flow.control import FlowControl
from paddock.server.security.flow.metrics import MetricsEndpoint
from paddock.server.store.memory import MemoryStore
from tests.coroutines import scripted
from tests.kit.prometheus import read
from tests.kit.servers.websockets import connected
from tests.unit.app.subresources.wire import served, until
from tests.unit.app.subresources.world import World, path


@scripted
async def test_flow_control_and_audit_are_well_formed(tmp_path: Path) -> None:
    async with World() as world:
        lines = AuditFile(tmp_path / "audit.log", Rotation())
        world.api.api.paths["/metrics"] = MetricsEndpoint(FlowControl(MemoryStore()), lines.counted).answer
        answer = await world.api.answer("GET", "/metrics")
        lines.close()
    assert isinstance(answer, HttpResponse)
    found = read(answer.body.decode())
    assert found["apiserver_audit_event_total"].values() == [0]
    assert "apiserver_flowcontrol_nominal_limit_seats" in found


@scripted
async def test_streams_are_counted_while_they_are_open() -> None:
    async with World() as world, served(world) as port:
        machine = await world.running()
        sessions = world.subresources.sessions
        for name in ("console", "vnc"):
            async with connected(port, path("vmi", "vm", name)):
                await until(lambda: sum(sessions.open.values()) == 1)
                assert dict(sessions.open)[name] == 1
            await until(lambda: not any(sessions.open.values()))
        assert sessions.last(machine.id) is not None
