"""PersistentVolumes that claims had: when the claim is gone, the volume and what it holds go too, unless they shall stay.

The object goes first, as it was seen, and what it holds when it is being deleted: a policy that was changed a moment ago is heeded.
"""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.storageclass import VOLUME_PROTECTION
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.storage.ports import VolumeStorePort
from paddock.kubevirt.controllers.storage.targets import CLAIMS, PROVISIONER, VOLUMES
from paddock.kubevirt.controllers.storage.transfers import Transfers
from paddock.kubevirt.controllers.storage.view import StorageView


class PersistentVolumeReconciler(KindReconciler):
    """Reconciles the volumes that claims have or had."""

    def __init__(self, client: Client, view: StorageView, volumes: VolumeStorePort, running: Transfers) -> None:
        super().__init__(view.volumes)
        self._client = client
        self._view = view
        self._volumes = volumes
        self._transfers = running
        self._statuses = StatusWriter(client, VOLUMES, view.volumes.expectations)

    async def work(self, seen: CachedObject) -> Outcome:
        """Delete a volume without its claim, or release it."""
        data = seen.read(VOLUMES)
        if not await self._released_uid(data):
            return DONE
        if data["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await delete_seen(self._client, VOLUMES, seen)
        elif (data.get("status") or {}).get("phase") != "Released":
            await self._statuses.change(seen, {"phase": "Released"})
        return DONE

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete what a volume without its claim holds."""
        if uid := await self._released_uid(seen.read(VOLUMES)):
            await self._volumes.delete(uid)
            await finalizers.take_off(self._client, VOLUMES, seen.meta, VOLUME_PROTECTION)
        return DONE

    async def _released_uid(self, data: Data) -> str:
        """Return the UID of the claim that a volume of this host had; empty while the claim is there."""
        owner = data["spec"].get("claimRef") or {}
        uid = str(owner.get("uid") or "") if is_ours(data) else ""
        if not uid or await self._claim_is_there(Key(str(owner.get("namespace")), str(owner.get("name"))), uid):
            return ""
        self._transfers.forget(uid)
        return uid

    async def _claim_is_there(self, key: Key, uid: str) -> bool:
        if self._view.claim_by_uid(uid) is not None:
            return True
        # The caches of claims and volumes are not of the same moment, and what is deleted now never comes back.
        found = await self._client.find(CLAIMS, key)
        return found is not None and found.metadata.uid == uid


def is_ours(data: Data) -> bool:
    """Return whether a PersistentVolume was made here."""
    return (data["metadata"].get("annotations") or {}).get("pv.kubernetes.io/provisioned-by") == PROVISIONER
