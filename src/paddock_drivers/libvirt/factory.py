"""Makes libvirt drivers for the endpoint of a Provider."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock_drivers.libvirt import settings
from paddock_drivers.libvirt.connection import LibvirtConnection
from paddock_drivers.libvirt.driver import LibvirtDriver


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver for PROVIDER_ENDPOINT; it connects with its first call."""
    async with LibvirtConnection(settings.of_context(context)) as connection:
        driver = LibvirtDriver(connection, clock=context.clock)
        try:
            yield driver
        finally:
            await driver.close()
