"""The drivers of Providers. Who gives them to the controllers decides whether they are in this process, in another, or at an address."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from paddock.contract.driver import Driver
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.plan import reasons
from paddock.dialects.virtrigaud.plan.health import ProviderRuntimeFacts
from paddock.kubernetes.client.target import Key


class ProviderConnection(msgspec.Struct, frozen=True):
    """A Provider's driver, and how its program is. Without a driver, `runtime` says why."""

    driver: Driver | None
    runtime: ProviderRuntimeFacts = ProviderRuntimeFacts()
    # the staging claims (PersistentVolumeClaims of its namespace) that the program reaches; None: all of them
    claims: frozenset[str] | None = None

    @property
    def waiting(self) -> str:
        """The reason that what needs the driver gives, where there is none."""
        return reasons.WAITING if self.runtime.starts else reasons.PROVIDER_ERROR

    def reaches(self, claim: str) -> bool:
        """Return whether the program has a staging claim mounted."""
        return self.claims is None or claim in self.claims


class ProviderSecrets(msgspec.Struct, frozen=True):
    """The values of the Secrets that a Provider names; None: there is no such Secret."""

    credentials: Mapping[str, bytes] | None = None
    tls: Mapping[str, bytes] | None = None
    # what tells a Secret from what it was before: "credentials" and "tls"
    revisions: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


class Providers(Protocol):
    """Finds the driver of a Provider. The Provider's own controller has its program brought up to its spec, and ended."""

    def find(self, key: Key, type: str) -> ProviderConnection:
        """The connection to a Provider of a type, as the last `ensure` left it."""

    async def ensure(self, key: Key, provider: Provider, secrets: ProviderSecrets) -> None:
        """Bring the program and the connection up to the Provider's spec. It waits for nothing that takes long; listeners hear of that."""

    async def release(self, key: Key) -> None:
        """End the program and the connection of a Provider that is gone."""

    def listen(self, handler: Callable[[Key], None]) -> None:
        """Call this when the connection to a Provider, or its program, has become another one."""
