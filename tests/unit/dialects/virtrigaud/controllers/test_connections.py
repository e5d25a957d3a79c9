"""Connections to Providers: served ones at an address, and those whose program moves."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from paddock.contract import messages as m
from paddock.contract import tls
from paddock.contract.client import ProviderClient
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.controllers.providers.connections import (
    ProgramAddress,
    ProgramState,
    ProviderConnections,
    RefusedHost,
    resolved,
)
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.kubernetes.client.target import Key
from tests.coroutines import scripted, timeless
from tests.kit.providers import providertls
from tests.kit.providers.providerchildren import KEY, provider
from tests.kit.providers.providerdrivers import ScriptedDriver, serving

NAME = tls.server_name(*KEY)
OWN = {"image": "a:1", "service": {"tls": {"secretRef": {"name": "tls"}}}}


class ScriptedPrograms:
    """Programs that are as a test says."""

    def __init__(self) -> None:
        self.state = ProgramState(ProviderRuntimeFacts(phase="Pending", reason="DeploymentNotReady"))
        self.ended: list[Key] = []

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> ProgramState:
        return self.state

    async def end(self, key: Key, provider: Provider | None = None) -> None:
        self.ended.append(key)

    def listen(self, handler: Any) -> None: ...


def secrets(material: TlsMaterial | None) -> ProviderSecrets:
    if material is None:
        return ProviderSecrets({})
    return ProviderSecrets({}, {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.authority})


async def ensured(connections: ProviderConnections, wanted: Provider, material: TlsMaterial | None = None) -> ProviderConnection:
    await connections.ensure(KEY, wanted, secrets(material))
    return connections.find(KEY, "libvirt")


def served(port: int, host: str = "127.0.0.1", **spec: Any) -> Provider:
    return provider(annotations={"virtrigaud.io/provider-address": f"{host}:{port}"}, **{"runtime": OWN, **spec})


async def validate(found: ProviderConnection) -> m.ValidateResponse:
    assert found.driver is not None, found.runtime
    return await found.driver.validate(m.ValidateRequest())


@pytest.mark.spec("virtrigaud", 101)
@scripted
async def test_a_served_provider_is_the_one_whose_certificate_has_the_name(tmp_path: Path) -> None:
    authority, programs = providertls.Authority(), ScriptedPrograms()
    material, other = authority.issue(NAME), authority.issue("virtrigaud-provider-default-other.default.svc.cluster.local")
    connections = ProviderConnections(programs, ("127.0.0.1",))
    driver = ScriptedDriver()
    async with serving(driver, providertls.write(tmp_path / "a", material)) as server:
        found = await ensured(connections, served(server.port), material)
        assert (found.runtime.phase, found.runtime.reason, found.runtime.endpoint) == ("Running", "Served", f"127.0.0.1:{server.port}")
        await validate(found)
        assert driver.requests and programs.ended == [KEY] and not found.reaches("claim")
    # Another Provider's certificate of the same authority is another Provider.
    async with serving(driver, providertls.write(tmp_path / "b", other)) as server:
        with pytest.raises(ProviderError, match="certificate cannot be verified"):
            await validate(await ensured(connections, served(server.port), material))
        unverified = {**OWN, "service": {"tls": {"secretRef": {"name": "tls"}, "insecureSkipVerify": True}}}
        found = await ensured(connections, served(server.port, runtime=unverified), material)
        await validate(found)
        assert found.runtime.tls is not None and "is not verified" in found.runtime.tls.message
    await connections.close()


@pytest.mark.spec("virtrigaud", 103)
@scripted
async def test_an_address_has_to_be_allowed(tmp_path: Path) -> None:
    material = providertls.Authority().issue(NAME)
    connections = ProviderConnections(ScriptedPrograms())
    for wanted, given, reason, text in (
        (served(9443), material, "AddressRefused", "127.0.0.1 is a loopback address"),
        (served(9443, "localhost"), material, "AddressRefused", "--provider-from localhost"),
        (served(9443, "[::ffff:169.254.169.254]"), material, "AddressRefused", "metadata service"),
        (served(0, "192.0.2.1"), material, "InvalidConfiguration", "has to be HOST:PORT"),
        (served(9443, "http://192.0.2.1"), material, "InvalidConfiguration", "has to be HOST:PORT"),
        (served(9443, "192.0.2.1"), None, "TLSNotConfigured", "Secret default/tls of spec.runtime.service.tls.secretRef does not exist"),
        # Nobody makes certificates for a program of somebody else.
        (served(9443, "192.0.2.1", runtime={"image": "a:1"}), None, "TLSNotConfigured", "name a Secret"),
    ):
        found = await ensured(connections, wanted, given)
        assert (found.driver, found.runtime.phase, found.runtime.reason) == (None, "Failed", reason), found.runtime
        assert text in found.runtime.message
    with pytest.raises(RefusedHost):
        await resolved("127.1", 1, ("10.0.0.0/8", "lab"))
    assert await resolved("127.0.0.1", 1, ("127.0.0.0/8",)) == "127.0.0.1"


@timeless
async def test_a_name_that_is_not_known_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[str] = []

    async def look(self: Any, host: Any, port: Any, **more: Any) -> Any:
        if not known:
            raise OSError("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (known[0], port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look)
    material, heard = providertls.Authority().issue(NAME), list[Key]()
    connections = ProviderConnections(ScriptedPrograms())
    connections.listen(heard.append)
    found = await ensured(connections, served(9443, "lab.example"), material)
    assert found.runtime.reason == "AddressUnknown" and "the host lab.example is not known" in found.runtime.message
    heard.clear()
    await asyncio.sleep(31)
    assert heard == [KEY]
    known.append("192.0.2.1")
    assert (await ensured(connections, served(9443, "lab.example"), material)).runtime.phase == "Running"
    # For a while it holds; then the name leads to this machine.
    known[0] = "127.0.0.1"
    assert (await ensured(connections, served(9443, "lab.example"), material)).runtime.phase == "Running"
    await asyncio.sleep(31)
    assert (await ensured(connections, served(9443, "lab.example"), material)).runtime.reason == "AddressRefused"
    await connections.close()


@scripted
async def test_a_program_that_moves_keeps_its_client(tmp_path: Path) -> None:
    programs = ScriptedPrograms()
    connections = ProviderConnections(programs)
    heard: list[Key] = []
    connections.listen(heard.append)
    assert (await ensured(connections, provider())).driver is None and not heard[1:]
    running = ProviderRuntimeFacts(phase="Running")
    async with serving(ScriptedDriver()) as first, serving(ScriptedDriver()) as second:
        programs.state = ProgramState(running, address=ProgramAddress("127.0.0.1", first.port))
        found = await ensured(connections, provider())
        await validate(found)
        count = len(heard)
        assert count and (await ensured(connections, provider())).driver is found.driver and len(heard) == count
        # Nobody is at the old place any more, and then at a new one.
        programs.state = ProgramState(ProviderRuntimeFacts(phase="Starting"))
        assert (await ensured(connections, provider())).driver is found.driver
        programs.state = ProgramState(running, address=ProgramAddress("127.0.0.1", second.port))
        assert (await ensured(connections, provider())).driver is found.driver
        await validate(found)
    # Other limits mean another client, and a program that failed has none.
    other = await ensured(connections, provider(rateLimit={"qps": 7, "burst": 9}))
    assert isinstance(other.driver, ProviderClient) and other.driver is not found.driver
    programs.state = ProgramState(ProviderRuntimeFacts(phase="Failed", message="no"))
    assert (await ensured(connections, provider())).driver is None
    assert connections.find(KEY, "vsphere").driver is None
    await connections.release(KEY)
    assert connections.find(KEY, "libvirt").runtime.phase == "Pending"


@pytest.mark.spec("virtrigaud", 100)
@scripted
async def test_a_new_program_is_not_blamed_for_the_failures_of_the_old_one() -> None:
    programs, connections = ScriptedPrograms(), None
    connections = ProviderConnections(programs)
    programs.state = ProgramState(ProviderRuntimeFacts(phase="Running"), address=ProgramAddress("127.0.0.1", 1))
    wanted = provider(rateLimit={"qps": 1000, "burst": 2000})
    found = await ensured(connections, wanted)
    for _ in range(11):
        with pytest.raises(ProviderError) as error:
            await validate(found)
    assert error.value.kind is ErrorKind.UNAVAILABLE and "circuit breaker is open" in str(error.value)
    async with serving(ScriptedDriver()) as server:
        programs.state = msgspec.structs.replace(programs.state, address=ProgramAddress("127.0.0.1", server.port))
        await validate(await ensured(connections, wanted))
        await connections.close()
    await asyncio.sleep(0)
