"""Claims that a restore in place fills: each stays, and its volume goes back to the snapshot in one step. There is always a whole disk.

A claim that has no volume has nothing to lose. It goes, and the restore makes another one in its place.
"""

import contextlib
from collections.abc import Iterable

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.engine import versions
from paddock.engine.storage.errors import VolumeBroken, VolumeBusy
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.snapshots.targets import CLAIMS, DATA_VOLUMES, VOLUME_SNAPSHOTS
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent
from paddock.kubevirt.plan.instance.brief import BY_CLAIM, claim_places
from paddock.kubevirt.plan.snapshots import restores as plan


class FormerClaims:
    """Brings back the claims that the volumes of a snapshot were on."""

    def __init__(self, client: Client, claims: Informer, instances: Informer, volumes: Volumes) -> None:
        self._client = client
        self._claims = claims
        self._instances = instances
        instances.cache.index(BY_CLAIM, lambda seen: claim_places(seen.key.namespace, seen.raw))
        self._volumes = volumes

    async def bring_back(
        self, restore: VirtualMachineRestore, content: VirtualMachineSnapshotContent, restored_volumes: Iterable[plan.RestoredVolume]
    ) -> plan.RestoreWait | None:
        """Revert the volumes of former claims, one after the other; return what one of them waits for."""
        if restore.spec.volumeRestorePolicy != "InPlace":
            return None
        backups = {each.volumeName: each for each in content.spec.volumeBackups or ()}
        for volume in restored_volumes:
            backup = backups[volume.name]
            claim = self._claims.cache.get(Key(restore.metadata.namespace or "", volume.claim))
            # One that the volume was not on before belongs to somebody else, whatever name was chosen.
            if claim is None or claim.meta.deleting or made_by(restore, claim.read(CLAIMS)) or not plan.is_former(volume, backup):
                continue
            waits = await self._bring_back(restore, volume, claim, plan.claim(restore, content, volume, backup))
            if waits is not None:
                return waits
        return None

    async def _bring_back(
        self, restore: VirtualMachineRestore, volume: plan.RestoredVolume, claim: CachedObject, wanted: Data
    ) -> plan.RestoreWait | None:
        if self._instances.cache.by(BY_CLAIM, str(claim.key)):
            return plan.RestoreWait(f"waiting for the machines with claim {claim.key.name} to be stopped", plan.TARGET_NOT_READY)
        if volume.data_volume:
            # A DataVolume that has the claim stays.
            notes = {"metadata": {"annotations": plan.data_volume_notes(restore, volume)}}
            with contextlib.suppress(NotFound):
                await self._client.patch(DATA_VOLUMES, Key(claim.key.namespace, volume.data_volume), merge_patch(notes))
        if not self._has_volume(claim):
            with contextlib.suppress(NotFound):
                await self._client.delete(CLAIMS, claim.key, DeletionOptions(uid=claim.meta.uid))
            return None
        try:
            await self._revert(restore, volume, claim)
        except VolumeBusy:
            return plan.RestoreWait(f"waiting for the volume of claim {claim.key.name} to be released")
        metadata = wanted["metadata"]
        # Its size stays, and what it remembers of that.
        annotations = {name: value for name, value in metadata["annotations"].items() if name != claimsizes.GUEST_SIZE}
        annotations[ownnames.REVERTED.name] = restore.metadata.uid
        change = {"uid": claim.meta.uid, "labels": metadata["labels"], "annotations": annotations}
        with contextlib.suppress(NotFound):
            await self._client.patch(CLAIMS, claim.key, merge_patch({"metadata": change}))
        return None

    def _has_volume(self, claim: CachedObject) -> bool:
        """Return whether a claim has a volume that can be reverted. One whose record is damaged cannot."""
        try:
            if self._volumes.get(claim.meta.uid) is not None:
                return True
        except VolumeBroken as error:
            # One of another Paddock is whole.
            if error.fix == versions.FIX:
                raise
            return False
        if not self._volumes.is_whole:
            raise plan.volume_missing(claim.key.name)
        return False

    async def _revert(self, restore: VirtualMachineRestore, volume: plan.RestoredVolume, claim: CachedObject) -> None:
        snapshot = await self._client.get(VOLUME_SNAPSHOTS, Key(claim.key.namespace, volume.snapshot))
        size = claimsizes.guest_size(claim.read(CLAIMS))
        await self._volumes.revert(claim.meta.uid, snapshot.metadata.uid or "", size, restore.metadata.uid or "")


def made_by(restore: VirtualMachineRestore, claim: PersistentVolumeClaim) -> bool:
    """Return whether a restore made a claim, or brought it back."""
    return (claim.metadata.annotations or {}).get(plan.SOURCE_NOTE) == restore.metadata.uid


def was_brought_back(restore: VirtualMachineRestore, claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim was there before the restore that brought it back, and stays when that is deleted."""
    return (claim.metadata.annotations or {}).get(ownnames.REVERTED.name) == restore.metadata.uid
