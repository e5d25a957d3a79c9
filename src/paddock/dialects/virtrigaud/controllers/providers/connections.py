"""Connects Providers to their programs, wherever these run: one client for each Provider, with the limits of its spec."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Protocol

import msgspec

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract import tls
from paddock.contract.client import ProviderClient, RemoteSettings
from paddock.contract.driver import Driver
from paddock.contract.pool import PoolTarget
from paddock.contract.tls import TlsMaterial
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.dialects.virtrigaud.plan.programplaces import ProgramPlace
from paddock.dialects.virtrigaud.plan.programs import calls, served, transport
from paddock.dialects.virtrigaud.rules import hosts
from paddock.kubernetes.client.target import Key

_FAILED = "Failed"
# How long the address of a name holds.
JUDGED_SECONDS = 30.0
_UNKNOWN = ProviderRuntimeFacts(phase="Pending", reason="DeploymentNotReady", message="the Provider has not been reconciled yet")


class ProgramAddress(msgspec.Struct, frozen=True):
    """The address of a program, and the certificates for it. Without `material` the connection is in plain text."""

    host: str
    port: int
    material: TlsMaterial | None = None
    server_name: str = ""
    verify: bool = True


class ProgramState(msgspec.Struct, frozen=True):
    """The state of a Provider's program: its driver if it is in this process, else its address if it has one."""

    facts: ProviderRuntimeFacts
    driver: Driver | None = None
    address: ProgramAddress | None = None
    claims: frozenset[str] | None = None


class ProviderPrograms(Protocol):
    """Runs the programs of Providers."""

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> ProgramState:
        """Bring a program up to its Provider's spec and return its state; it does not wait for what takes long."""

    async def end(self, key: Key, provider: Provider | None = None) -> None:
        """End a program. Without a Provider, it is the end of the Provider, too."""

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the state of a program may have changed."""


class _Link(msgspec.Struct):
    """A Provider's connection, and what it was made from."""

    type: str
    connection: ProviderConnection
    client: ProviderClient | None = None
    settings: RemoteSettings | None = None
    address: ProgramAddress | None = None


class ProviderConnections:
    """The connections to all Providers of a program of controllers."""

    def __init__(self, programs: ProviderPrograms, allowed_hosts: tuple[str, ...] = ()) -> None:
        self._programs = programs
        self._allowed = allowed_hosts
        self._links: dict[Key, _Link] = {}
        self._handlers: list[Callable[[Key], None]] = []
        # addresses of served providers, and until when they hold
        self._resolved: dict[tuple[str, int], tuple[float, str]] = {}

    def find(self, key: Key, type: str) -> ProviderConnection:
        """The connection to a Provider of a type, as the last `ensure` left it."""
        link = self._links.get(key)
        return link.connection if link is not None and link.type == type else ProviderConnection(None, _UNKNOWN)

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the connection to a Provider, or its program, has become another one."""
        self._handlers.append(handler)
        self._programs.listen(handler)

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> None:
        """Bring the program and the connection up to the Provider's spec."""
        address = served.address(provider)
        if address is None:
            state = await self._programs.ensure(key, provider, secrets)
        else:
            await self._programs.end(key, provider)
            state = await self._served(key, provider, secrets, address)
        before = self._links.get(key)
        await self._connect(key, provider, state)
        after = self._links[key]
        if before is None or before.connection.driver is not after.connection.driver:
            self._tell(key)

    def _tell(self, key: Key) -> None:
        for each in self._handlers:
            each(key)

    async def release(self, key: Key) -> None:
        """End the program and the connection of a Provider that is gone."""
        link = self._links.pop(key, None)
        await self._programs.end(key)
        if link is not None and link.client is not None:
            await link.client.close()

    async def close(self) -> None:
        """Close all connections; programs go on."""
        links, self._links = self._links, {}
        for link in links.values():
            if link.client is not None:
                await link.client.close()

    async def _connect(self, key: Key, provider: Provider, state: ProgramState) -> None:
        link, address = self._links.get(key), state.address
        client = link.client if link is not None and link.type == provider.spec.type else None
        settings = calls.settings(provider, str(key))
        if (
            client is not None
            and link is not None
            and (state.driver is not None or state.facts.phase == _FAILED or link.settings != settings)
        ):
            client = None
        facts = state.facts
        try:
            if state.driver is None and address is not None:
                client = self._client(client, link, settings, address)
        except PaddockError as error:
            client = None
            facts = msgspec.structs.replace(facts, phase=_FAILED, reason="InvalidConfiguration", message=str(error))
        connection = ProviderConnection(state.driver or client, facts, state.claims)
        known = address or (link.address if link is not None else None)
        self._links[key] = _Link(provider.spec.type, connection, client, settings, known)
        if link is not None and link.client is not None and link.client is not client:
            await link.client.close()

    def _client(
        self, client: ProviderClient | None, link: _Link | None, settings: RemoteSettings, address: ProgramAddress
    ) -> ProviderClient:
        if client is not None and link is not None and link.address == address:
            return client
        context = tls.client_context(address.material, verify=address.verify) if address.material is not None else None
        target = PoolTarget(address.host, address.port, context, address.server_name if context is not None else "")
        if client is None:
            return ProviderClient(target, settings)
        client.retarget(target)
        return client

    async def _served(self, key: Key, provider: Provider, secrets: ProviderSecrets, address: served.ServedAddress) -> ProgramState:
        """A program that somebody else runs: only its certificate, of the pinned name, makes it the Provider's."""
        choice = transport.choose(provider, secrets.tls, managed=False)
        problem, reason = address.problem, "InvalidConfiguration"
        host = ""
        if not problem and choice.refused:
            problem, reason = choice.condition.message, "TLSNotConfigured"
        if not problem:
            try:
                host = await self._resolve(address.host, address.port)
            except OSError as error:
                problem, reason = str(error), "AddressRefused" if isinstance(error, RefusedHost) else reasons.ADDRESS_UNKNOWN
        facts = ProviderRuntimeFacts(
            phase=_FAILED if problem else "Running",
            reason=reason if problem else "Served",
            message=problem or "the provider is served by somebody else, at the address of its annotation",
            endpoint=f"{address.host}:{address.port}" if not address.problem else "",
            tls=choice.condition,
            place=ProgramPlace.SERVED,
        )
        if reason == reasons.ADDRESS_UNKNOWN:
            asyncio.get_running_loop().call_later(JUDGED_SECONDS, self._tell, key)
        if problem:
            return ProgramState(facts)
        name = tls.server_name(*key)
        place = ProgramAddress(host, address.port, choice.material, name, choice.verify)
        # Nobody mounts a claim into a program of somebody else.
        return ProgramState(facts, address=place, claims=frozenset())

    async def _resolve(self, host: str, port: int) -> str:
        now = asyncio.get_running_loop().time()
        self._resolved = {place: each for place, each in self._resolved.items() if each[0] > now}
        if (host, port) not in self._resolved:
            self._resolved[host, port] = (now + JUDGED_SECONDS, await resolved(host, port, self._allowed))
        return self._resolved[host, port][1]


class RefusedHost(PermissionError):
    """A host that nobody may make the manager connect to."""


async def resolved(host: str, port: int, allowed: tuple[str, ...] = ()) -> str:
    """Return the address of a host. Raises `RefusedHost` for this machine, its neighbours and a cloud's metadata, unless allowed.

    A name is judged by the address that it resolves to, and that address is the one to connect to.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(f"the host {host} is not known: {error.strerror or error}") from error
    address = str(found[0][4][0])
    refusal = hosts.refusal(host) or hosts.refusal(address)
    if refusal and not _is_allowed(host, address, allowed):
        raise RefusedHost(f"{refusal}, which no Provider may name; whoever runs Paddock allows it with --provider-from {host}")
    return address


def _is_allowed(host: str, address: str, allowed: tuple[str, ...]) -> bool:
    for each in allowed:
        if each == host:
            return True
        try:
            if ipaddress.ip_address(address) in ipaddress.ip_network(each, strict=False):
                return True
        except ValueError:
            continue
    return False
