"""Makes KubeVirt drivers from the environment: KUBECONFIG or a Pod's ServiceAccount, and PROVIDER_NAMESPACE."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.base.directories import running_kubeconfigs
from paddock.client import incluster, kubeconfig
from paddock.client.access import Access
from paddock.client.client import Client
from paddock.client.http.https import Https
from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock.drivers.kubevirt.driver import KubeVirtDriver
from paddock.drivers.kubevirt.settings import KubeVirtDriverSettings


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver for the API that the environment names, in the Provider's namespace or the kubeconfig's."""
    access = _access(context)
    namespace = context.environment.get("PROVIDER_NAMESPACE") or access.namespace
    async with Client(Https(access)) as client:
        yield KubeVirtDriver(client, KubeVirtDriverSettings(namespace=namespace, server=access.server))


def _access(context: DriverContext) -> Access:
    environment = context.environment
    if not environment.get("KUBECONFIG") and incluster.is_inside(environment):
        return incluster.load(environment, context.clock)
    return kubeconfig.find(environment, context.clock, local=running_kubeconfigs(environment))
