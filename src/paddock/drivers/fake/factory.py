"""Makes fake drivers from a script and a seed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock.drivers.fake import settings
from paddock.drivers.fake.driver import FakeDriver


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A fake driver with the settings of the script; a seed of the caller replaces the script's."""
    found = settings.read(context.script) if context.script is not None else settings.FakeSettings()
    if context.seed is not None:
        found = msgspec.structs.replace(found, seed=context.seed)
    yield FakeDriver(found, context.clock)
