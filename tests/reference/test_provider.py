"""Go's gRPC and protobuf judge Paddock's: its client calls our server, and our client calls its server."""

import asyncio
import base64
import contextlib
import enum
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import methods, tls
from paddock.contract.errors import KINDS, ErrorKind, ProviderError, StatusCode
from paddock.contract.methods import METHODS
from tests.coroutines import played_by
from tests.kit.providers import providertls
from tests.kit.providers.providerdrivers import NAME, SETTINGS, ScriptedDriver, calling, refused, run, serving, until
from tests.reference.build import built
from tests.reference.recipes import PROVIDER
from tests.unit.contract.test_calls import filled, raising
from tests.unit.contract.test_wire import CASES

pytestmark = pytest.mark.reference

PROTO = PROVIDER.module / "provider.proto"


@pytest.fixture(scope="module")
def program(pytestconfig: pytest.Config) -> Path:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(PROVIDER, terminal.write_line if terminal else print) / "provider"


@pytest.fixture(scope="module")
def material() -> tls.TlsMaterial:
    return providertls.Authority().issue(NAME, common="manager")


@pytest.fixture
def folder(material: tls.TlsMaterial, tmp_path: Path) -> Path:
    return providertls.write(tmp_path / "tls", material)


def as_json(value: Any, bits: int = 64) -> Any:
    """A value as Go's protojson writes it, with the names of the proto and numbers for enumerations."""
    if isinstance(value, m.WireMessage):
        fields = value.wire_fields().items()
        return {
            name: as_json(found, field.bits)
            for name, field in fields
            if (found := getattr(value, name)) or isinstance(found, m.WireMessage)
        }
    if isinstance(value, tuple):
        return [as_json(each, bits) for each in value]
    if isinstance(value, dict):
        return {key: as_json(each, bits) for key, each in value.items()}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and bits == 64:
        return str(value)
    return value


class Peer:
    """The program, spoken to in JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def say(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value).encode() + b"\n")
        await self._process.stdin.drain()

    async def hear(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(await self._process.stdout.readline())

    async def ask(self, value: Any) -> Any:
        await self.say(value)
        return await self.hear()

    async def end(self) -> int:
        return await self._process.wait()


@contextlib.asynccontextmanager
async def peer(program: Path, *arguments: str | Path) -> AsyncIterator[Peer]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, *arguments, stdin=pipe, stdout=pipe, limit=16 << 20)
    try:
        yield Peer(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def go_server(program: Path, folder: Path | None, answers: dict[str, Any], tmp_path: Path) -> AsyncIterator[tuple[Peer, int]]:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(answers))
    async with peer(program, "server", PROTO, folder or "-", file) as found:
        yield found, (await found.hear())["port"]


@played_by(run)
async def test_the_bytes_of_go(program: Path) -> None:
    renamed = {"VMDiskInfo": "DiskInfo", "VMNetworkInfo": "NetworkInfo"}
    async with peer(program, "encode", PROTO) as go:
        for case in CASES:
            name = type(case.message).__name__
            found = await go.ask({"message": renamed.get(name, name), "value": as_json(case.message)})
            assert found == {"bytes": case.hexadecimal}


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_a_client_in_go_calls_every_rpc(program: Path, folder: Path) -> None:
    driver = ScriptedDriver()
    async with serving(driver, folder) as server, peer(program, "client", PROTO, f"127.0.0.1:{server.port}", folder, NAME) as go:
        for method in METHODS:
            request, response = filled(method.request), filled(method.response)

            async def answer(_request: m.WireMessage, response: m.WireMessage = response) -> m.WireMessage:
                return response

            driver.behaviours[method.attribute] = answer
            found = await go.ask({"method": method.name, "request": as_json(request)})
            assert found == {"code": 0, "message": "", "response": as_json(response), "delay": 0}, method.name
            assert driver.requests.pop() == request
            del driver.behaviours[method.attribute]
            assert (await go.ask({"method": method.name, "request": {}}))["response"] == {}
            assert driver.requests.pop() == method.request()


@pytest.mark.parametrize("kind", ErrorKind)
@played_by(run)
async def test_errors_reach_a_client_in_go(program: Path, kind: ErrorKind) -> None:
    driver = ScriptedDriver(describe=raising(ProviderError(kind, "cannot\nsee ä%")))
    async with serving(driver) as server, peer(program, "client", PROTO, f"127.0.0.1:{server.port}", "-", "") as go:
        found = await go.ask({"method": "Describe", "request": {}})
        assert (KINDS[StatusCode(found["code"])], found["message"]) == (
            ErrorKind.RATE_LIMIT if kind is ErrorKind.QUOTA_EXCEEDED else kind,
            "cannot see ä%",
        )


@played_by(run)
async def test_the_health_service_from_go(program: Path, folder: Path) -> None:
    async with (
        serving(ScriptedDriver(), folder) as server,
        peer(program, "client", PROTO, f"127.0.0.1:{server.port}", folder, NAME) as go,
    ):
        for name in ("", "provider"):
            assert (await go.ask({"method": "health", "request": {"service": name}}))["response"] == {"status": 1}
        assert (await go.ask({"method": "health", "request": {"service": "other"}}))["code"] == StatusCode.NOT_FOUND


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_a_client_in_go_without_a_place_in_the_list(program: Path, folder: Path) -> None:
    settings = SETTINGS.__class__(host="127.0.0.1", port=0, health_port=None, allowed=frozenset({"other"}))
    async with (
        serving(ScriptedDriver(), folder, settings) as server,
        peer(program, "client", PROTO, f"127.0.0.1:{server.port}", folder, NAME) as go,
    ):
        assert (await go.ask({"method": "Validate", "request": {}}))["code"] == StatusCode.PERMISSION_DENIED


@pytest.mark.spec("virtrigaud", 101)
@played_by(run)
async def test_our_client_calls_every_rpc_of_a_server_in_go(program: Path, folder: Path, material: tls.TlsMaterial, tmp_path: Path) -> None:
    answers = {method.name: {"response": as_json(filled(method.response))} for method in METHODS}
    async with go_server(program, folder, answers, tmp_path) as (go, port), calling(port, material) as client:
        for method in METHODS:
            request = filled(method.request)
            assert await getattr(client, method.attribute)(request) == filled(method.response), method.name
            assert await go.hear() == {"method": method.name, "request": as_json(request)}


@pytest.mark.parametrize("code", [each for each in StatusCode if each is not StatusCode.OK])
@played_by(run)
async def test_statuses_of_a_server_in_go(program: Path, code: StatusCode, tmp_path: Path) -> None:
    async with (
        go_server(program, None, {"Describe": {"code": int(code), "message": "no\tä%"}}, tmp_path) as (_, port),
        calling(port) as client,
    ):
        error = await refused(client.describe(m.DescribeRequest()))
        assert (error.kind, error.why) == (KINDS[code], "no ä%")


@played_by(run)
async def test_a_graceful_end_of_a_server_in_go(program: Path, tmp_path: Path) -> None:
    answers = {"Create": {"response": {"id": "vm-1"}, "delay": 500}}
    async with go_server(program, None, answers, tmp_path) as (go, port), calling(port) as client:
        call = asyncio.create_task(client.create(m.CreateRequest(name="a")))
        await go.hear()
        await go.say("end")
        assert (await call).id == "vm-1"
        await until(lambda: client.connections == 0)
        assert await go.end() == 0
        assert (await refused(client.validate(m.ValidateRequest()))).kind is ErrorKind.UNAVAILABLE


@played_by(run)
async def test_our_graceful_end_with_a_client_in_go(program: Path) -> None:
    async def slow(_request: m.WireMessage) -> m.WireMessage:
        await asyncio.sleep(0.5)
        return m.CreateResponse(id="vm-1")

    driver = ScriptedDriver(create=slow)
    async with serving(driver) as server, peer(program, "client", PROTO, f"127.0.0.1:{server.port}", "-", "") as go:
        await go.say({"method": "Create", "request": {}})
        await until(lambda: bool(driver.requests))
        await server.close()
        assert (await go.hear())["response"] == {"id": "vm-1"}


def test_the_proto_has_every_rpc() -> None:
    text = PROTO.read_text()
    assert all(f"rpc {each.name}({each.request.__name__}) returns ({each.response.__name__});" in text for each in METHODS)
    assert text.count("  rpc ") == len(METHODS)
    assert f"package {methods.SERVICE.rpartition('.')[0]};" in text
