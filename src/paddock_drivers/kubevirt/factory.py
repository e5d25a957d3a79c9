"""Makes KubeVirt drivers for the API that a kubeconfig among the credentials, KUBECONFIG or a Pod's ServiceAccount names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from paddock.base.directories import running_kubeconfigs
from paddock.contract.driver import Driver
from paddock.contract.factory import DriverContext
from paddock.kubernetes.client import incluster, kubeconfig
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock_drivers.kit import refusals
from paddock_drivers.kit.staging import StagingSettings, nfs_mounts
from paddock_drivers.kubevirt import credentials
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings

_INSECURE = "TLS_INSECURE_SKIP_VERIFY"


@asynccontextmanager
async def make(context: DriverContext) -> AsyncIterator[Driver]:
    """A driver for the API, in the namespace that the kubeconfig among the credentials names, the Provider's, or the kubeconfig's."""
    access, named = _access(context)
    if context.environment.get(_INSECURE, "").lower() == "true":
        access = msgspec.structs.replace(access, insecure=True, authority=b"")
    namespace = named or context.environment.get("PROVIDER_NAMESPACE") or access.namespace
    async with Client(Https(access)) as client:
        yield KubeVirtDriver(client, _settings(context, namespace, access.server), clock=context.clock)


def _settings(context: DriverContext, namespace: str, server: str) -> KubeVirtDriverSettings:
    if context.translation is None:
        raise refusals.not_supported("this program makes no machines of KubeVirt", fix="give DriverContext.translation")
    claims = context.staging
    reach = StagingSettings(claims=claims, mounts=nfs_mounts(context.environment))
    scratch = claims if claims.is_dir() else None
    return KubeVirtDriverSettings(translation=context.translation, namespace=namespace, server=server, staging=reach, scratch=scratch)


def _access(context: DriverContext) -> tuple[Access, str]:
    """The access, and the namespace that the credentials name."""
    environment, file = context.environment, context.credentials / credentials.KUBECONFIG
    if file.is_file():
        return credentials.read(file.read_bytes(), context.clock)
    if not environment.get("KUBECONFIG") and incluster.is_inside(environment):
        return incluster.load(environment, context.clock), ""
    return kubeconfig.find(environment, context.clock, local=running_kubeconfigs(environment)), ""
