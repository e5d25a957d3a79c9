"""The effects of `plan.storage.lostvolumes`: notes on PersistentVolumes, and the statuses of a claim whose volume went or came back."""

from paddock.base import reasons
from paddock.engine.storage.errors import VolumeBroken
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.storage.ports import VolumeStorePort
from paddock.kubevirt.controllers.storage.targets import CLAIMS, POOL, VOLUMES
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.plan.storage import lostvolumes


class LostVolumes:
    """Remembers which claims were filled, and says which of their volumes are gone."""

    def __init__(self, client: Client, view: StorageView, volumes: VolumeStorePort, recorder: EventRecorder) -> None:
        self._client = client
        self._view = view
        self._volumes = volumes
        self._recorder = recorder
        self._statuses = StatusWriter(client, CLAIMS, view.claims.expectations)
        self._volume_statuses = StatusWriter(client, VOLUMES, view.volumes.expectations)

    def damage(self, uid: str) -> str:
        """Return the reason why the volume of a claim cannot be read; empty when it can, or is not there."""
        try:
            self._volumes.get(uid)
        except VolumeBroken as error:
            return str(error)
        return ""

    def is_gone(self, uid: str) -> bool:
        """Return whether the volume of a claim was filled and is not there."""
        return self._view.was_filled(uid) and self._volumes.get(uid) is None

    async def note(self, uid: str) -> None:
        """Write down that a claim is filled. The note goes with the PersistentVolume, so with the claim that has this UID."""
        key = Key("", lostvolumes.name_of(uid))
        if self._view.was_filled(uid) or self._view.volumes.expectations.latest(key) is None:
            return
        document = {"metadata": {"annotations": {lostvolumes.FILLED: "true"}}}
        written = CachedObject.of(await self._client.patch_raw(VOLUMES, key, merge_patch(document)))
        self._view.volumes.expectations.wrote(written)

    async def lose(self, claim: PersistentVolumeClaim, seen: CachedObject, damage: str) -> None:
        """Say that the volume is gone, or what is damaged of it."""
        volume = self._view.volumes.expectations.latest(Key("", lostvolumes.name_of(seen.meta.uid)))
        if volume is None:
            return
        reason = reasons.VOLUME_DAMAGED if damage else reasons.VOLUME_LOST
        text = damage or lostvolumes.explanation(volume.read(VOLUMES), self._pool(claim))
        if lostvolumes.is_lost(claim) and lostvolumes.loss_of(claim) == (reason, text):
            return
        await self._volume_statuses.change(volume, lostvolumes.volume_status(reason, text))
        await self._statuses.change(seen, lostvolumes.claim_status(reason, text))
        self._recorder.tell(reference(CLAIMS, seen.meta), "Warning", "VolumeDamaged" if damage else "ClaimLost", text)

    async def find(self, seen: CachedObject) -> None:
        """Say that the volume is there again."""
        key = Key("", lostvolumes.name_of(seen.meta.uid))
        volume = self._view.volumes.expectations.latest(key)
        if volume is not None:
            await self._volume_statuses.change(volume, lostvolumes.VOLUME_FOUND)
        await self._statuses.change(seen, lostvolumes.CLAIM_FOUND)
        self._recorder.tell(reference(CLAIMS, seen.meta), "Normal", "VolumeFound", f"volume {key.name} is there again")

    def _pool(self, claim: PersistentVolumeClaim) -> str:
        name = claim.spec.storageClassName if claim.spec is not None else None
        found = self._view.storage_class(name) if name else None
        return ((found.parameters if found is not None else None) or {}).get(POOL, "")
