"""Makes vSphere drivers for the endpoint of a Provider, with the name and password of its credentials."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock_drivers.kit.staging import StagingSettings, nfs_mounts
from paddock_drivers.vsphere import settings
from paddock_drivers.vsphere.driver import VSphereDriver
from paddock_drivers.vsphere.session import VSphereSession
from paddock_drivers.vsphere.transfers import TransferSettings

# Addresses of the program's own host that images may come from.
_ALLOWED = "PROVIDER_IMAGE_HOSTS"


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver for PROVIDER_ENDPOINT. It connects with its first call, so an endpoint that is away does not keep it from starting."""
    session = VSphereSession(settings.of_environment(context.environment), context.credentials)
    try:
        yield VSphereDriver(session, context.clock, transfer_settings(context))
    finally:
        await session.close()


def transfer_settings(context: DriverContext) -> TransferSettings:
    """Return what the driver reaches beside vSphere."""
    environment, claims = context.environment, context.staging
    allowed = tuple(each.strip() for each in environment.get(_ALLOWED, "").split(",") if each.strip())
    staging = StagingSettings(claims=claims, mounts=nfs_mounts(environment))
    return TransferSettings(staging=staging, scratch=claims if claims.is_dir() else None, allowed=allowed)
