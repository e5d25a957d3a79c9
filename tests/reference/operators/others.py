"""The other programs of a cluster: KubeVirt and CDI (played), and the garbage collector, which a kube-apiserver alone does not have."""

import asyncio
import contextlib
from typing import Any

import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import ApiError, NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import Target, plain
from paddock.kubernetes.meta.patch import merge_patch_between
from paddock.kubernetes.runtime.cache import CachedObject
from tests.scenario.fronts.player import CLAIMS, INSTANCES, MACHINES, SERVICES, VOLUMES, Player

SECRETS = plain("", "v1", "secrets", "Secret")
CONFIGMAPS = plain("", "v1", "configmaps", "ConfigMap")
NETWORKS = plain("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition")
SOURCES = plain("cdi.kubevirt.io", "v1beta1", "datasources", "DataSource")
POOLS = plain("pool.kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
STAKATER = plain("infrastructure.stakater.com", "v1", "virtualmachines", "VirtualMachine")
VITISTACK = plain("vitistack.io", "v1alpha1", "machines", "Machine")
CONFIGURATIONS = plain("vitistack.io", "v1alpha1", "networkconfigurations", "NetworkConfiguration")
FRONTS = (STAKATER, VITISTACK, CONFIGURATIONS)
GENERATED = (MACHINES, VOLUMES, CLAIMS, SERVICES, SECRETS, CONFIGMAPS, NETWORKS, SOURCES, POOLS)
_PAUSE_SECONDS = 0.3


class ClusterPlayer(Player):
    """KubeVirt's part where its own definitions are: a running machine has no status subresource."""

    async def _say(self, target: Target[Any], seen: CachedObject, status: Data) -> None:
        if target is not INSTANCES:
            await super()._say(target, seen, status)
            return
        before = orjson.loads(seen.raw).get("status") or {}
        change = merge_patch_between({name: before.get(name) for name in status}, status)
        if change:
            try:
                await self._client.patch(target, seen.key, merge_patch({"status": change}))
            except NotFound:
                return


async def play_kubevirt(client: Client) -> None:
    """Until cancelled."""
    await ClusterPlayer(client).program.run()


async def collect_garbage(client: Client) -> None:
    """Until cancelled: what nobody owns any more goes."""
    while True:
        # The server is asked again in a moment.
        with contextlib.suppress(PaddockError):
            await _collect(client)
        await asyncio.sleep(_PAUSE_SECONDS)


async def _collect(client: Client) -> None:
    everything = (*FRONTS, INSTANCES, *GENERATED)
    # Owners are looked for after what they own, so that none is missed that is new.
    found = [(target, CachedObject.of(raw)) for target in everything for raw in (await client.list_raw(target)).items]
    there = {CachedObject.of(raw).meta.uid for target in everything for raw in (await client.list_raw(target)).items}
    for target, seen in found:
        owners = seen.meta.ownerReferences or ()
        is_orphan = owners and not any(each.uid in there for each in owners)
        is_protected = seen.meta.deleting and seen.meta.finalizers == ("kubernetes.io/pvc-protection",)
        try:
            if is_orphan and not seen.meta.deleting:
                await client.delete(target, seen.key, DeletionOptions(uid=seen.meta.uid, propagation="Background"))
            if is_protected:
                await client.patch(target, seen.key, merge_patch({"metadata": {"finalizers": None, "uid": seen.meta.uid}}))
        except ApiError:
            # It went by itself, or is another one by now.
            continue
