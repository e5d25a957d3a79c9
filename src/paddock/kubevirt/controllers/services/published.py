"""The publication of all Services: the engine gets the whole set, once for all changes in the meantime."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from paddock.engine.networks.nics import PublishedService
from paddock.kubernetes.client.target import Key


class ServiceNetworks(Protocol):
    """The part of the engine that publishes Services."""

    @property
    def outside_addresses(self) -> tuple[str, ...]:
        """The addresses of this host for whoever is outside, IPv4 first."""

    async def publish(self, services: Collection[PublishedService]) -> Mapping[str, tuple[str, ...]]:
        """Listen for exactly these; problems by name."""

    async def name(self, names: Mapping[str, Collection[str]]) -> None:
        """Answer for exactly these names."""


class PublishedServices:
    """The set, and what the engine said of it."""

    def __init__(self, networks: ServiceNetworks, complete: Callable[[], bool]) -> None:
        self._networks = networks
        # At the start the engine still serves what a former run published: half of that would be a loss.
        self._complete = complete
        self._services: dict[Key, PublishedService] = {}
        self._names: dict[Key, Mapping[str, tuple[str, ...]]] = {}
        self._problems: Mapping[str, tuple[str, ...]] = {}
        self._wanted = self._reported = 0
        self._telling = asyncio.Lock()

    @property
    def outside_addresses(self) -> tuple[str, ...]:
        """The addresses of this host for whoever is outside, IPv4 first."""
        return self._networks.outside_addresses

    async def put(self, key: Key, service: PublishedService, names: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """This is how a Service is now; returns what of it could not be had. One with problems is tried again each time."""
        if self._services.get(key) != service or self._names.get(key) != names or service.name in self._problems:
            self._services[key], self._names[key] = service, names
            self._wanted += 1
            await self._tell()
        return self._problems.get(service.name, ())

    async def remove(self, key: Key) -> None:
        if self._services.pop(key, None) is not None or not self._reported:
            self._names.pop(key, None)
            self._wanted += 1
            await self._tell()

    async def _tell(self) -> None:
        wanted = self._wanted
        async with self._telling:
            if self._reported >= wanted or not self._complete():
                return
            now = self._wanted
            await self._networks.name({name: listed for each in self._names.values() for name, listed in each.items()})
            self._problems = await self._networks.publish(tuple(self._services.values()))
            self._reported = now
