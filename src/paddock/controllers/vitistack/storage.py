"""The claims of a machine's disks, and the DataVolumes that fill some of them."""

from collections.abc import Mapping

from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.client.options import WriteOptions, merge_patch
from paddock.client.target import Data, Key, Target
from paddock.controllers.vitistack import kinds
from paddock.controllers.vitistack.caches import VitistackCaches
from paddock.plan.vitistack import claims
from paddock.plan.vitistack.claims import ClaimAction, ExistingClaim
from paddock.plan.vitistack.observed import ObservedClaim
from paddock.runtime.cache import CachedObject
from paddock.runtime.deleting import delete_seen
from paddock.runtime.desired import DesiredObject, DesiredSet
from paddock.runtime.reference import InvolvedObject

_TARGETS: Mapping[str, Target[Data]] = {"PersistentVolumeClaim": kinds.CLAIM_DATA, "DataVolume": kinds.VOLUMES}


class DiskStorage:
    """Makes and grows what the disks of machines lie on."""

    def __init__(self, client: Client, caches: VitistackCaches) -> None:
        self._client = client
        self._caches = caches
        # Claims stay until their machine goes, whatever becomes of their disks.
        self._set = DesiredSet(client, (), manager=kinds.MANAGER, keeps=(caches.claims, caches.volumes))

    async def reach(
        self, owner: InvolvedObject, disks: tuple[Data, ...], found: Mapping[str, ExistingClaim], known: frozenset[str]
    ) -> list[ObservedClaim]:
        """What is there of each disk in the end. `known` claims have been used by the machine, so they are not made anew."""
        acts = [self._act(owner.namespace, each, found, known) for each in disks]
        await self._set.reach(owner, [DesiredObject(_TARGETS[act.data["kind"]], act.data) for act in acts if act.verb == "apply"])
        for act in acts:
            if act.verb == "grow":
                patch = merge_patch({"spec": {"resources": {"requests": {"storage": act.size}}}})
                await self._client.patch(kinds.CLAIM_DATA, Key(owner.namespace, act.name), patch, WriteOptions(manager=kinds.MANAGER))
        return [await self._claim(owner.namespace, act, found.get(act.name)) for act in acts]

    def forget(self, owner: InvolvedObject) -> None:
        """The machine is gone."""
        self._set.forget(owner)

    def _act(self, namespace: str, wanted: Data, found: Mapping[str, ExistingClaim], known: frozenset[str]) -> ClaimAction:
        name = wanted["metadata"]["name"]
        filled = self._caches.volumes.cache.get(Key(namespace, name)) is not None
        return claims.settle(wanted, found.get(name), filled=filled, known=name in known)

    async def _claim(self, namespace: str, act: ClaimAction, found: ExistingClaim | None) -> ObservedClaim:
        if act.verb == "miss":
            return ObservedClaim(act.name, "Pending", lost=await self._is_lost(Key(namespace, act.name)))
        return ObservedClaim(act.name, found.status.phase if found is not None else "Pending")

    async def _is_lost(self, key: Key) -> bool:
        """The cache may be behind: nobody is told of a loss that is none."""
        try:
            await self._client.get(kinds.CLAIM_DATA, key)
        except NotFound:
            return True
        return False

    async def drop_image(self, owner: CachedObject, name: str) -> None:
        """The installation image is not wanted any more: its DataVolume goes, and its claim with it."""
        seen = self._caches.volumes.cache.get(Key(owner.key.namespace, name))
        if seen is not None and not seen.meta.going and seen in self._caches.volumes_of(owner.key, owner.meta.uid):
            await delete_seen(self._client, kinds.VOLUMES, seen)

    async def clear(self, owner: CachedObject) -> None:
        """Delete every claim that was made for a machine; those of DataVolumes go with them."""
        for seen in self._caches.volumes_of(owner.key, owner.meta.uid):
            await delete_seen(self._client, kinds.VOLUMES, seen)
        for seen in self._caches.claims_of(owner.key, owner.meta.uid):
            await delete_seen(self._client, kinds.CLAIM_DATA, seen)
