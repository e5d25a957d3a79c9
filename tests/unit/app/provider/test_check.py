"""`paddock provider check`: each thing that can stand in a Provider's way is found, with what to do about it."""

import asyncio
import contextlib
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from paddock.app.commands import provider_check
from paddock.app.provider import examination
from paddock.app.provider.examination import ExaminedEndpoint
from paddock.cli.console import Console
from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.examination import ProviderFinding
from paddock.contract.factory import DriverContext
from paddock_drivers import catalog
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings
from tests.coroutines import scripted
from tests.kit.providers.providertls import Authority

TOY = "tests.unit.app.provider.test_check:make_driver"


class Judged(FakeDriver):
    """A driver that looks at what it needs."""

    refusal: ProviderError | None = None
    findings: tuple[ProviderFinding, ...] = (ProviderFinding(check="rights", text="every right is there"),)

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        if self.refusal is not None:
            raise self.refusal
        return await super().validate(request)

    async def examine(self) -> tuple[ProviderFinding, ...]:
        return self.findings


@asynccontextmanager
async def make_driver(context: DriverContext) -> AsyncIterator[Driver]:
    yield Judged(FakeSettings(unreachable=context.environment.get("PROVIDER_UNREACHABLE", "")), context.clock)


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    (tmp_path / "username").write_text("root")
    (tmp_path / "username").chmod(0o600)
    return tmp_path


async def examined(endpoint: str, credentials: Path, **more: Any) -> list[ProviderFinding]:
    given = ExaminedEndpoint(type=TOY, endpoint=endpoint, credentials=credentials, **more)
    return [each async for each in examination.examine(given)]


def graded(findings: list[ProviderFinding]) -> list[tuple[str, str]]:
    return [(each.check, each.grade) for each in findings]


@asynccontextmanager
async def listening(context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.add(task)
        with contextlib.suppress(OSError):
            if await reader.read(1):
                writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*served)


def encrypted(authority: Authority, folder: Path, name: str = "localhost", **more: Any) -> ssl.SSLContext:
    material = authority.issue(name, common=name, **more)
    path = folder / "server.pem"
    path.write_bytes(material.certificate + material.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    path.unlink()
    return context


@scripted
async def test_all_is_well(credentials: Path) -> None:
    async with listening() as port:
        found = await examined(f"http://127.0.0.1:{port}", credentials)
    assert graded(found) == [(each, "good") for each in ("credentials", "name", "port", "login", "machines", "rights")]


@scripted
async def test_an_endpoint_of_this_host_has_no_port(credentials: Path) -> None:
    assert graded(await examined("qemu:///system", credentials))[1] == ("login", "good")


@scripted
async def test_a_port_that_nobody_has_ends_the_checks(credentials: Path) -> None:
    async with listening() as port:
        pass
    found = await examined(f"https://127.0.0.1:{port}", credentials)
    assert graded(found)[-1] == ("port", "bad") and "Connection refused" in found[-1].text and found[-1].fix


@scripted
async def test_a_name_that_nobody_has(credentials: Path) -> None:
    found = await examined("https://nobody.invalid", credentials)
    assert graded(found)[-1] == ("name", "bad") and "nobody.invalid" in found[-1].text


@scripted
async def test_an_endpoint_that_is_none(credentials: Path) -> None:
    assert graded(await examined("https://host:port", credentials))[-1] == ("endpoint", "bad")


@scripted
async def test_a_port_without_tls(credentials: Path) -> None:
    async with listening() as port:
        found = await examined(f"https://127.0.0.1:{port}", credentials)
    assert graded(found)[-1] == ("certificate", "bad")


@scripted
async def test_a_certificate_counts_with_its_authority(credentials: Path) -> None:
    authority = Authority()
    async with listening(encrypted(authority, credentials)) as port:
        endpoint = f"https://localhost:{port}"
        (strange,) = [each for each in await examined(endpoint, credentials) if each.check == "certificate"]
        (taken,) = [each for each in await examined(endpoint, credentials, verify=False) if each.check == "certificate"]
        (credentials / "ca.crt").write_bytes(authority.pem)
        (known,) = [each for each in await examined(endpoint, credentials) if each.check == "certificate"]
    assert (strange.grade, taken.grade, known.grade) == ("bad", "warning", "good")
    assert "ca.crt" in strange.fix


@scripted
async def test_a_certificate_of_another_name(credentials: Path) -> None:
    authority = Authority()
    (credentials / "ca.crt").write_bytes(authority.pem)
    async with listening(encrypted(authority, credentials, "elsewhere")) as port:
        found = await examined(f"https://localhost:{port}", credentials)
    assert graded(found)[-1] == ("certificate", "bad") and "localhost" in found[-1].text


@scripted
async def test_a_certificate_that_has_ended(credentials: Path) -> None:
    authority = Authority()
    (credentials / "ca.crt").write_bytes(authority.pem)
    ended = datetime(2021, 1, 1, tzinfo=UTC)
    async with listening(encrypted(authority, credentials, end=ended)) as port:
        found = await examined(f"https://localhost:{port}", credentials)
    assert ("certificate", "bad") in graded(found) and any("2021-01-01" in each.text for each in found)


@scripted
async def test_credentials_that_others_can_read(credentials: Path) -> None:
    (credentials / "username").chmod(0o644)
    found = await examined("", credentials)
    assert graded(found)[0] == ("credentials", "warning") and "username" in found[0].text


@scripted
async def test_credentials_that_are_not_there(tmp_path: Path) -> None:
    assert graded(await examined("", tmp_path / "none"))[0] == ("credentials", "bad")


@scripted
async def test_a_refused_login(credentials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = ProviderError(ErrorKind.UNAUTHORIZED, "the password is wrong", fix="store the right one")
    monkeypatch.setattr(Judged, "refusal", refusal)
    found = await examined("", credentials)
    assert found[-1] == ProviderFinding(check="login", grade="bad", text="the password is wrong", fix="store the right one")


@scripted
async def test_a_hypervisor_that_is_not_well(credentials: Path) -> None:
    found = await examined("", credentials, environment={"PROVIDER_UNREACHABLE": "the host is asleep"})
    assert found[-1].grade == "bad" and "the host is asleep" in found[-1].text


def test_the_command_prints_lines_and_json(credentials: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = ProviderFinding(check="rights", grade="bad", text="VM.Clone is missing", fix="grant it")
    monkeypatch.setattr(Judged, "findings", (bad,))
    words = ["--type", TOY, "--credentials", str(credentials)]
    out = io.BytesIO()
    assert provider_check.run(words, Console(out, io.BytesIO())) == 1
    assert out.getvalue().decode().splitlines()[-2:] == [
        "bad      rights              VM.Clone is missing",
        "                             fix: grant it",
    ]
    out = io.BytesIO()
    assert provider_check.run([*words, "-o", "json"], Console(out, io.BytesIO())) == 1
    assert json.loads(out.getvalue())[-1] == {"check": "rights", "grade": "bad", "text": "VM.Clone is missing", "fix": "grant it"}


def test_a_type_without_a_driver_is_named() -> None:
    with pytest.raises(catalog.DriverUnavailable, match="libvrit"):
        provider_check.run(["--type", "libvrit"], Console(io.BytesIO(), io.BytesIO()))
