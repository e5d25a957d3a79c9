"""PersistentVolumeClaims: each is bound to a volume of its own at once, and filled with what it, or its DataVolume, says.

claim -> PersistentVolume `pvc-UID` -> bound -> transfer -> the engine's volume UID is there -> grows with the claim

A claim is filled once. When its volume is missing later it is Lost, until the volume is there again (`losses`).

A machine waits for the engine's volume, so it never sees a disk half filled. While a machine has the volume open it grows through
that machine: whoever runs machines compares `plan.claimsizes.guest_size` with the volume's size, and this controller writes the new
capacity down when the volume has it.
"""

from collections.abc import Iterable

import msgspec

from paddock.base import quantity, reasons
from paddock.base.disksizes import LARGEST
from paddock.base.jsondata import Data
from paddock.engine.storage.errors import VolumeBusy
from paddock.engine.storage.volume import StoredVolume, too_large
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, is_bound
from paddock.kubernetes.core.storageclass import VOLUME_PROTECTION, StorageClass
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject, Meta
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.storage import binding, claimsizes
from paddock.kubevirt.controllers.storage.losses import LostVolumes
from paddock.kubevirt.controllers.storage.ports import VolumeStorePort
from paddock.kubevirt.controllers.storage.targets import BIND_NOW, CLAIMS, POOL, PROVISIONER, VOLUMES
from paddock.kubevirt.controllers.storage.transfers import Transfers
from paddock.kubevirt.controllers.storage.transferwork import Goal, TransferWork
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.plan.instance.brief import brief
from paddock.kubevirt.plan.storage import contents, lostvolumes, transfers
from paddock.kubevirt.plan.storage.contents import UnclearContent, VolumeContent

_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
_PROVISIONED = "volume.kubernetes.io/storage-provisioner"
# A machine makes its disk larger; nobody tells when.
_GROWTH_SECONDS = 2.0
# A directory is put back; nobody tells either.
_LOST_SECONDS = 30.0


class ClaimReconciler(KindReconciler):
    def __init__(
        self,
        client: Client,
        view: StorageView,
        volumes: VolumeStorePort,
        running: Transfers,
        filling: TransferWork,
        recorder: EventRecorder,
    ) -> None:
        super().__init__(view.claims)
        self._client = client
        self._view = view
        self._volumes = volumes
        self._transfers = running
        self._filling = filling
        self._recorder = recorder
        self._losses = LostVolumes(client, view, volumes, recorder)
        self._statuses = StatusWriter(client, CLAIMS, view.claims.expectations)
        self._volume_statuses = StatusWriter(client, VOLUMES, view.volumes.expectations)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Give up filling a claim that goes."""
        self._transfers.forget(seen.meta.uid)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Bind a claim, fill its volume, let it grow."""
        key, claim = seen.key, seen.read(CLAIMS)
        if not is_bound(claim) and await self._give_default(claim, key):
            # The watch brings us here again.
            return DONE
        damage = self._losses.damage(seen.meta.uid)
        if damage or self._losses.is_gone(seen.meta.uid):
            await self._losses.lose(claim, seen, damage)
            return again(_LOST_SECONDS)
        if lostvolumes.is_lost(claim) and self._volumes.get(seen.meta.uid) is not None:
            await self._losses.find(seen)
            # The watch brings us here again.
            return DONE
        found = self._class(claim, seen)
        if found is None or self._waits(claim, found, key):
            return DONE
        if not is_bound(claim):
            if (size := claimsizes.guest_size(claim)) > LARGEST:
                self._tell(seen.meta, "Warning", reasons.VOLUME_TOO_LARGE, str(too_large(size)))
                return DONE
            content = contents.of_claim(claim, self._view.lookup)
            if isinstance(content, UnclearContent) and content.reason == contents.CROSS_NAMESPACE:
                # Nothing that comes later could fill it.
                self._tell(seen.meta, "Warning", content.reason, content.message)
                return DONE
            await self._bind(claim, found, seen.meta)
        return await self._fill(claim, found, seen.meta)

    # --- the class --------------------------------------------------------------------------------------------------------

    async def _give_default(self, claim: PersistentVolumeClaim, key: Key) -> bool:
        """A claim that was made before there was a default class gets it now, as in Kubernetes."""
        if claim.spec is None or claim.spec.storageClassName is not None:
            return False
        found = self._view.storage_class(None)
        if found is None:
            return False
        await self._client.patch(CLAIMS, key, merge_patch({"spec": {"storageClassName": found.metadata.name}}))
        return True

    def _class(self, claim: PersistentVolumeClaim, seen: CachedObject) -> StorageClass | None:
        """The class, when volumes of it are made here."""
        meta = seen.meta
        name = claim.spec.storageClassName if claim.spec is not None else None
        found = self._view.storage_class(name) if name else None
        if found is not None and found.provisioner == PROVISIONER:
            return found
        if is_bound(claim) or self._has_static_volume(seen):
            return None
        if not name:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._tell(meta, "Normal", "FailedBinding", text)
        elif found is None:
            self._tell(meta, "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
        else:
            text = f"Waiting for a volume to be created by the external provisioner '{found.provisioner}'"
            self._tell(meta, "Normal", "ExternalProvisioning", text)
        return None

    def _has_static_volume(self, seen: CachedObject) -> bool:
        """Return whether there is a volume that the server binds to the claim in a moment: an administrator made it."""
        volumes = (each.read(VOLUMES) for each in self._view.volumes.cache)
        return binding.chosen(msgspec.json.decode(seen.raw), volumes, waits=False) is not None

    def _waits(self, claim: PersistentVolumeClaim, storage_class: StorageClass, key: Key) -> bool:
        """Return whether the volume waits for its first consumer, and there is none."""
        if storage_class.volumeBindingMode != "WaitForFirstConsumer" or is_bound(claim):
            return False
        return BIND_NOW not in (claim.metadata.annotations or {}) and not self._view.users(key)

    # --- binding ----------------------------------------------------------------------------------------------------------

    async def _bind(self, claim: PersistentVolumeClaim, storage_class: StorageClass, meta: Meta) -> None:
        name, size = lostvolumes.name_of(meta.uid), quantity.binary(claimsizes.request_of(claim))
        volume = self._view.volumes.expectations.latest(Key("", name))
        if volume is None:
            path = self._volumes.place(meta.uid, (storage_class.parameters or {}).get(POOL, ""))
            try:
                volume = CachedObject.from_data(
                    await self._client.create(VOLUMES, persistent_volume(claim, storage_class, size, str(path)))
                )
            except AlreadyExists:
                volume = CachedObject.of(await self._client.get_raw(VOLUMES, Key("", name)))
            else:
                self._tell(meta, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        # The server makes both Bound with the other writes. What somebody stopped half-way is made up for.
        await self._volume_statuses.change(volume, {"phase": "Bound"})
        document: Data = {"spec": {"volumeName": name}, "metadata": {"annotations": {**_BOUND, _PROVISIONED: PROVISIONER}}}
        bound = CachedObject.of(await self._client.patch_raw(CLAIMS, meta.key, merge_patch(document)))
        self._view.claims.expectations.wrote(bound)
        modes = claim.spec.accessModes if claim.spec is not None else None
        await self._statuses.change(bound, {"phase": "Bound", "accessModes": modes, "capacity": {"storage": size}, "conditions": None})

    # --- filling ----------------------------------------------------------------------------------------------------------

    async def _fill(self, claim: PersistentVolumeClaim, storage_class: StorageClass, meta: Meta) -> Outcome:
        volume = self._volumes.get(meta.uid)
        content = contents.of_claim(claim, self._view.lookup)
        if volume is not None:
            await self._losses.note(meta.uid)
            await self._note(claim, content, filled=True)
            return await self._grow(claim, volume)
        if isinstance(content, UnclearContent):
            if not content.foreign:
                self._tell(meta, "Warning", content.reason, content.message)
            return DONE
        if content.kind == "upload":
            await self._note(claim, content, filled=False)
            return again(1.0) if self._transfers.progress(meta.uid).stage == "running" else DONE
        if self._is_given_up(claim):
            return DONE
        pool = (storage_class.parameters or {}).get(POOL, "")
        goal = Goal(uid=meta.uid, claim=meta.key, size=claimsizes.guest_size(claim), pool=pool, content=content)
        now = self._transfers.ensure(meta.uid, meta.key, self._filling.work(goal), restarts=_restarts(claim))
        await self._note(claim, content, filled=False)
        if now.stage in ("failed", "waiting") and content == contents.BLANK:
            self._tell(meta, "Warning", "ProvisioningFailed", now.message)
        return DONE if now.stage == "failed" else again(self._transfers.wait_seconds(meta.uid))

    def _is_given_up(self, claim: PersistentVolumeClaim) -> bool:
        """A DataVolume that failed stays so, also when this program was not there for a while."""
        for owner in claim.metadata.ownerReferences or ():
            if owner.kind == "DataVolume":
                volume = self._view.lookup.data_volume(claim.metadata.namespace or "", owner.name)
                return volume is not None and volume.status is not None and volume.status.phase == "Failed"
        return False

    async def _note(self, claim: PersistentVolumeClaim, content: VolumeContent | UnclearContent, *, filled: bool) -> None:
        """Say on the claim how far it is; a plain one stays as its maker wrote it."""
        if isinstance(content, UnclearContent) or content == contents.BLANK:
            return
        now = self._transfers.progress(claim.metadata.uid or "")
        # Nobody comes here with a claim that is not bound, be it since a moment ago.
        ready = content.kind == "upload"
        wanted = transfers.annotations(content.kind, now, filled=filled, ready=ready)
        has = claim.metadata.annotations or {}
        if filled and transfers.CLONE_REQUEST in has:
            wanted[transfers.CLONE_OF] = "true"
        changed = {name: value for name, value in wanted.items() if has.get(name) != value}
        if changed:
            key = Key(claim.metadata.namespace or "", claim.metadata.name)
            document = {"metadata": {"uid": claim.metadata.uid, "annotations": changed}}
            self._view.claims.expectations.wrote(CachedObject.of(await self._client.patch_raw(CLAIMS, key, merge_patch(document))))

    # --- growing ----------------------------------------------------------------------------------------------------------

    async def _grow(self, claim: PersistentVolumeClaim, volume: StoredVolume) -> Outcome:
        """Make the volume as large as the claim, or wait for the machine that has it open to do so."""
        size, key = claimsizes.guest_size(claim), Key(claim.metadata.namespace or "", claim.metadata.name)
        if volume.size < size:
            try:
                volume = await self._volumes.grow(volume.id, size)
            except VolumeBusy:
                await self._set_growing(claim, key, growing=True)
                return again(_GROWTH_SECONDS)
        if volume.size >= size and claimsizes.needs_growth(claim):
            text = quantity.binary(claimsizes.request_of(claim))
            await self._client.patch(
                VOLUMES, Key("", lostvolumes.name_of(volume.id)), merge_patch({"spec": {"capacity": {"storage": text}}})
            )
            await self._change_status(key, {"capacity": {"storage": text}, "conditions": None})
        return DONE

    async def _set_growing(self, claim: PersistentVolumeClaim, key: Key, *, growing: bool) -> None:
        conditions = (claim.status.conditions if claim.status is not None else None) or []
        if not any(each.type == "Resizing" for each in conditions) and growing:
            said = {"type": "Resizing", "status": "True", "reason": "MachineRuns", "message": "the machine that runs makes its disk larger"}
            await self._change_status(key, {"conditions": [said]})

    async def _change_status(self, key: Key, change: Data) -> None:
        # With what this pass has written before.
        latest = self._view.claims.expectations.latest(key)
        if latest is not None:
            await self._statuses.change(latest, change)

    def _tell(self, meta: Meta, kind: str, reason: str, note: str) -> None:
        self._recorder.tell(reference(CLAIMS, meta), kind, reason, note)


def persistent_volume(claim: PersistentVolumeClaim, storage_class: StorageClass, size: str, path: str) -> Data:
    """The volume that a claim gets."""
    meta, spec = claim.metadata, claim.spec or PersistentVolumeClaimSpec()
    owner = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": lostvolumes.name_of(meta.uid or ""),
            "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
            "finalizers": [VOLUME_PROTECTION],
        },
        "spec": {
            "capacity": {"storage": size},
            "accessModes": list(spec.accessModes or ()),
            "volumeMode": spec.volumeMode or "Filesystem",
            "storageClassName": storage_class.metadata.name,
            "persistentVolumeReclaimPolicy": storage_class.reclaimPolicy or "Delete",
            "claimRef": owner,
            "local": {"path": path},
        },
    }


def _restarts(claim: PersistentVolumeClaim) -> int:
    text = (claim.metadata.annotations or {}).get(f"{transfers.STORAGE}.pod.restarts", "0")
    return int(text) if text.isdecimal() else 0


def claims_of_machine(change: CacheChange) -> Iterable[Key]:
    """The claims that a change of a machine concerns: when it comes, goes or ends, or has other claims than before."""
    old, new = (brief(seen.raw) if seen is not None else None for seen in (change.old, change.new))
    if old is not None and new is not None and (old.claims, old.ended) == (new.claims, new.ended):
        return ()
    place = change.seen.key.namespace
    return {Key(place, name): None for each in (old, new) if each is not None for name in each.claims}
