"""ObjectTransfers: a claim or a DataVolume gets another name or namespace. Its content is copied, as cheaply as any clone, then it goes.

Pending (the source is missing, or in use) -> Running (copied by a DataVolume) -> Complete (the source has gone), or Error.
"""

from typing import Any

import msgspec

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.storage import targets
from paddock.kubevirt.controllers.storage.reporting import conditions
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.datavolume_kind import DataCondition, DataVolume
from paddock.kubevirt.kinds.objecttransfer import ObjectTransfer

_OF = "cdi.kubevirt.io/object-transfer"
# On a copy: the UID of the claim that was copied.
_FROM = ownnames.TRANSFER_SOURCE.name
_CLAIMS: Target[Any] = targets.CLAIMS
_DATA_VOLUMES: Target[Any] = targets.DATA_VOLUMES
_LOOK_SECONDS = 5.0
_FINAL = ("Complete", "Error")


class _Held(Exception):
    """A transfer that does not go on; `phase` says whether it ever may."""

    def __init__(self, phase: str, why: str) -> None:
        super().__init__(why)
        self.phase = phase


class ObjectTransferReconciler(KindReconciler):
    def __init__(self, client: Client, view: StorageView, machinery: Machinery) -> None:
        super().__init__(view.transfers)
        self._client = client
        self._view = view
        self._clock = machinery.clock
        self._statuses = StatusWriter(client, targets.TRANSFERS, view.transfers.expectations)

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one transfer a step on."""
        transfer = seen.read(targets.TRANSFERS)
        if transfer.status is not None and transfer.status.phase in _FINAL:
            return DONE
        try:
            phase, why = await self._move(transfer), ""
        except _Held as held:
            phase, why = held.phase, str(held)
        await self._report(seen, transfer, phase, why)
        return DONE if phase in _FINAL else again(_LOOK_SECONDS)

    async def _move(self, transfer: ObjectTransfer) -> str:
        source, target = transfer.spec.source, transfer.spec.target
        there = Key(source.namespace, source.name)
        wanted = Key(target.namespace or source.namespace, target.name or source.name)
        claim = self._view.claim(there)
        made = self._view.read(self._view.data_volumes, targets.DATA_VOLUMES, wanted)
        is_copy = made is not None and (made.metadata.annotations or {}).get(_OF) == transfer.metadata.uid
        if claim is None and self._arrived(wanted, transfer):
            await self._let_go(transfer, wanted, made if is_copy else None)
            return "Complete"
        if claim is None:
            raise _Held("Pending", f"waiting for {source.kind} {there}")
        if (made is None and self._view.claim(wanted) is not None) or (made is not None and not is_copy):
            raise _Held("Error", f"{wanted} is there already: delete it, or choose another name, and make a new transfer")
        if made is None:
            self._check(transfer, there, claim)
            await self._copy(transfer, claim, wanted)
            return "Running"
        phase = made.status.phase if made.status is not None else None
        if phase == "Failed":
            raise _Held("Error", f"the content could not be copied: see DataVolume {wanted}")
        if phase == "Succeeded":
            self._check_unused(made, there, claim)
            await self._remove_source(transfer, claim)
        return "Running"

    def _check_unused(self, made: DataVolume, there: Key, claim: PersistentVolumeClaim) -> None:
        """Refuse to delete a source that is another than the one that was copied, or that somebody writes to."""
        copied = (made.metadata.annotations or {}).get(_FROM, claim.metadata.uid)
        if copied != claim.metadata.uid:
            raise _Held("Error", f"{there} was replaced while it was copied: delete the copy, and make a new transfer")
        if users := self._view.users(there):
            name = users[0].metadata.name
            raise _Held("Error", f"machine {name} uses {there} since it was copied: stop it, delete the copy, and make a new transfer")

    def _check(self, transfer: ObjectTransfer, there: Key, claim: PersistentVolumeClaim) -> None:
        source = transfer.spec.source
        if source.kind == "DataVolume":
            found = self._view.read(self._view.data_volumes, targets.DATA_VOLUMES, there)
            if found is None or found.status is None or found.status.phase != "Succeeded":
                raise _Held("Pending", f"waiting for DataVolume {there} to be filled")
            noted = found.metadata.annotations or {}
        else:
            noted = claim.metadata.annotations or {}
        lacking = [name for name, value in (source.requiredAnnotations or {}).items() if noted.get(name) != value]
        if lacking:
            raise _Held("Pending", f"waiting for the annotations {', '.join(lacking)} of {source.kind} {there}")
        if users := self._view.users(there):
            raise _Held("Pending", f"{there} is in use by machine {users[0].metadata.name}: stop it")

    async def _copy(self, transfer: ObjectTransfer, claim: PersistentVolumeClaim, key: Key) -> None:
        source, spec = transfer.spec.source, claim.spec or PersistentVolumeClaimSpec()
        storage = {
            name: value for name, value in to_data(spec).items() if name in ("accessModes", "volumeMode", "resources", "storageClassName")
        }
        notes = {_OF: transfer.metadata.uid or "", _FROM: claim.metadata.uid or ""}
        body: Data = {
            "metadata": {"name": key.name, "namespace": key.namespace, "annotations": notes},
            "spec": {"source": {"pvc": {"namespace": source.namespace, "name": source.name}}, "pvc": storage},
        }
        try:
            await self._client.create(targets.DATA_VOLUMES, targets.DATA_VOLUMES.read(msgspec.json.encode(body)))
        except AlreadyExists:
            return

    async def _remove_source(self, transfer: ObjectTransfer, claim: PersistentVolumeClaim) -> None:
        """Delete the claim that was copied, with the DataVolume that it belongs to, which would make it anew."""
        key, uid, target = Key(claim.metadata.namespace or "", claim.metadata.name), claim.metadata.uid or "", _CLAIMS
        owner = next((each for each in claim.metadata.ownerReferences or () if each.kind == "DataVolume"), None)
        if owner is not None:
            key, uid, target = Key(key.namespace, owner.name), owner.uid, _DATA_VOLUMES
        elif transfer.spec.source.kind == "DataVolume":
            raise _Held("Error", f"the claim {key} was let go of by its DataVolume: delete the copy, and make a new transfer")
        try:
            await self._client.delete(target, key, DeletionOptions(uid=uid, propagation="Background"))
        except NotFound:
            return

    def _arrived(self, key: Key, transfer: ObjectTransfer) -> bool:
        """Return whether the copy is complete: its DataVolume says so, or has been released, which comes after that."""
        made = self._view.read(self._view.data_volumes, targets.DATA_VOLUMES, key)
        is_running = transfer.status is not None and transfer.status.phase == "Running"
        if made is None:
            return is_running and self._view.claim(key) is not None
        is_copy = (made.metadata.annotations or {}).get(_OF) == transfer.metadata.uid
        return is_copy and made.status is not None and made.status.phase == "Succeeded"

    async def _let_go(self, transfer: ObjectTransfer, key: Key, made: DataVolume | None) -> None:
        """A claim that was moved is a claim again, and no DataVolume."""
        if transfer.spec.source.kind == "DataVolume" or made is None:
            return
        try:
            await self._client.delete(targets.DATA_VOLUMES, key, DeletionOptions(uid=made.metadata.uid or "", propagation="Orphan"))
        except NotFound:
            return

    async def _report(self, seen: CachedObject, transfer: ObjectTransfer, phase: str, why: str) -> None:
        done = DataCondition(type="Complete", status="True" if phase == "Complete" else "False", reason=phase, message=why)
        before = transfer.status.conditions if transfer.status is not None else None
        now = ages.timestamp(self._clock.seconds())
        status = {"phase": phase, "conditions": [to_data(each) for each in conditions(before, [done], now)]}
        await self._statuses.write(seen, status)
