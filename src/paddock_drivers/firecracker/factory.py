"""Makes the driver from the variables of its program."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock_drivers.firecracker import settings
from paddock_drivers.firecracker.driver import FirecrackerDriver


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver that serves the directory of PROVIDER_FIRECRACKER_DIRECTORY. Its machines outlive it."""
    driver = FirecrackerDriver(settings.read(context.environment, context.staging), clock=context.clock)
    await driver.open()
    try:
        yield driver
    finally:
        await driver.close()
