"""The drivers of Providers. Who gives them to the controllers decides whether they are in this process, in another, or at an address."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from paddock.client.target import Key
from paddock.contract.driver import Driver
from paddock.plan.virtrigaud.health import ProviderRuntimeFacts


class ProviderConnection(msgspec.Struct, frozen=True):
    """A Provider's driver, and how its program is. Without a driver, `runtime` says why."""

    driver: Driver | None
    runtime: ProviderRuntimeFacts = ProviderRuntimeFacts()


class Providers(Protocol):
    """Finds the driver of a Provider."""

    def find(self, key: Key, type: str) -> ProviderConnection:
        """The connection to a Provider of a type."""

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the connection to a Provider has become another one."""


def absent(type: str) -> ProviderRuntimeFacts:
    """A Provider of a type for which there is no driver."""
    message = f"there is no driver for Providers of type {type} in this version"
    return ProviderRuntimeFacts(phase="Failed", reason="DriverMissing", message=message)
