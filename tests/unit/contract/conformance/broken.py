"""Mutations of the fake driver: each breaks one promise of the contract, and names the case that must find it."""

from collections.abc import Awaitable, Callable
from typing import Any

from paddock.contract import messages as m
from paddock_drivers.fake.driver import FakeDriver

Mutation = Callable[[FakeDriver], None]
# name -> the case that must fail, and what breaks the driver
MUTATIONS: dict[str, tuple[str, Mutation]] = {}


def breaks(case: str) -> Callable[[Mutation], Mutation]:
    """Register a mutation with the case that has to find it."""

    def register(mutation: Mutation) -> Mutation:
        MUTATIONS[mutation.__name__] = (case, mutation)
        return mutation

    return register


def replace(driver: FakeDriver, rpc: str, make: Callable[[Any, Any], Awaitable[Any]]) -> None:
    """Replace a call; `make` gets the original and the request."""
    original = getattr(driver, rpc)

    async def replaced(request: Any) -> Any:
        return await make(original, request)

    setattr(driver, rpc, replaced)


def inside(driver: FakeDriver) -> Any:
    """The inventory; a mutation reaches inside."""
    return driver._inventory


async def done(original: Any, request: Any) -> m.TaskResponse:
    """Claim success and do nothing."""
    return m.TaskResponse()
