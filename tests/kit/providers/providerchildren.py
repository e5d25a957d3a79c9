"""Programs of Providers as an embedded server runs them, without the server: real processes with the fake driver."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec

from paddock.app.programs.programs import EmbeddedPrograms, ProgramSettings
from paddock.base.clock import SystemClock
from paddock.contract.client import ProviderClient
from paddock.dialects.virtrigaud.controllers.providers.connections import ProviderConnections
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection, ProviderSecrets
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key

KEY = Key("default", "lab")
PASSWORD = b"correct-horse-battery"
# Numbers that nothing else on the host has.
NUMBERS = range(2_100_000_000, 2_100_000_064) if os.geteuid() == 0 else range(0)


def provider(name: str = "lab", annotations: Mapping[str, str] | None = None, **spec: Any) -> Provider:
    """A Provider of type libvirt."""
    body = {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": "Provider",
        "metadata": {"name": name, "namespace": "default", "annotations": dict(annotations or {})},
        "spec": {
            "type": "libvirt",
            "endpoint": "qemu+ssh://192.0.2.1/system",
            "credentialSecretRef": {"name": "lab"},
            "runtime": {"image": "example/provider:1"},
            **spec,
        },
    }
    return msgspec.convert(body, Provider)


class Programs:
    """The programs of one test, and the connections to them."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        given = {"directory": folder, "numbers": NUMBERS, "drivers": {"libvirt": "fake"}, **settings}
        self.programs = EmbeddedPrograms(cast(Client, None), lambda: "", ProgramSettings(**given), SystemClock())
        self.connections = ProviderConnections(self.programs, given.get("hosts", ()))
        self.changed = asyncio.Event()
        self.connections.listen(lambda key: self.changed.set())

    async def ensure(self, wanted: Provider | None = None, secrets: ProviderSecrets | None = None) -> ProviderConnection:
        """One pass of the Provider's controller."""
        found = wanted or provider()
        key = Key("default", found.metadata.name or "")
        await self.connections.ensure(key, found, secrets or ProviderSecrets({"password": PASSWORD}))
        return self.connections.find(key, found.spec.type)

    async def until(
        self,
        holds: Callable[[ProviderConnection], bool],
        wanted: Provider | None = None,
        secrets: ProviderSecrets | None = None,
    ) -> ProviderConnection:
        """Passes until the connection is as it should be."""
        async with asyncio.timeout(60):
            while True:
                self.changed.clear()
                found = await self.ensure(wanted, secrets)
                if holds(found):
                    return found
                await self.changed.wait()

    async def running(self, wanted: Provider | None = None, secrets: ProviderSecrets | None = None) -> ProviderClient:
        """Passes until the program runs."""
        found = await self.until(lambda each: each.runtime.phase == "Running", wanted, secrets)
        assert isinstance(found.driver, ProviderClient)
        return found.driver

    def pid(self, key: Key = KEY) -> int:
        """The process of a Provider."""
        return self.programs.pids()[key]


@asynccontextmanager
async def programs(folder: Path, **settings: Any) -> AsyncIterator[Programs]:
    """Programs that end with the block."""
    made = Programs(folder, **settings)
    try:
        yield made
    finally:
        await made.connections.close()
        await made.programs.close()


async def gone(pid: int) -> None:
    """Wait until a process has ended and somebody has taken its exit status."""
    async with asyncio.timeout(30):
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.01)
