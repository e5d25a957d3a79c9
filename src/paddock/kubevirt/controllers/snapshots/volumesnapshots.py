"""VolumeSnapshots: what a claim holds is frozen in the engine under the VolumeSnapshot's UID.

One that belongs to a machine's snapshot is taken together with the others of that machine, by the machine's snapshot; here it is only
looked at until it is there.
"""

import logging

from paddock.base import quantity, reasons
from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.engine.snapshots import Snapshots
from paddock.engine.storage.errors import VolumeBroken
from paddock.engine.storage.volume import Snapshot
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import DELETE
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.snapshots.targets import DRIVER, VOLUME_CONTENTS, VOLUME_SNAPSHOTS

_LOG = logging.getLogger(__name__)
TAKEN_WITH = "snapshot.kubevirt.io/taken-with"
_FINALIZER = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
_CLAIM_SECONDS = 5.0
# A file is put back; nobody tells.
_DAMAGED_SECONDS = 30.0


class VolumeSnapshotReconciler(KindReconciler):
    def __init__(
        self,
        client: Client,
        snapshots: Informer,
        claims: Informer,
        engine: tuple[Snapshots, Volumes],
        clock: Clock,
        recorder: EventRecorder,
    ) -> None:
        super().__init__(snapshots, ObjectFinalizer(client, _FINALIZER))
        self._client = client
        self._claims = claims
        self._engine, self._volumes = engine
        self._recorder = recorder
        self._clock = clock
        self._statuses = StatusWriter(client, VOLUME_SNAPSHOTS, snapshots.expectations)
        self._content_statuses = StatusWriter(client, VOLUME_CONTENTS)

    def needs_finalizer(self, seen: CachedObject) -> bool:
        """Return whether a snapshot is still to be taken."""
        return not _is_ready(seen.read(VOLUME_SNAPSHOTS))

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one VolumeSnapshot and the engine's snapshot together."""
        found = seen.read(VOLUME_SNAPSHOTS)
        try:
            held = self._volumes.get_snapshot(seen.meta.uid)
        except VolumeBroken as error:
            await self._refuse(seen, found, str(error), reasons.VOLUME_DAMAGED)
            return again(_DAMAGED_SECONDS)
        if _is_ready(found):
            return DONE
        if held is None and found.status is not None and found.status.creationTime:
            await self._refuse(seen, found, "its data is gone; delete it")
            return DONE
        return await self._take(seen, found)

    async def _take(self, seen: CachedObject, snapshot: VolumeSnapshot) -> Outcome:
        held = self._volumes.get_snapshot(seen.meta.uid)
        if held is None:
            if TAKEN_WITH in (snapshot.metadata.annotations or {}):
                return DONE
            name = snapshot.spec.source.persistentVolumeClaimName
            if name is None:
                await self._refuse(seen, snapshot, "contents that exist elsewhere cannot be taken over")
                return DONE
            claim = self._claims.cache.get(Key(seen.key.namespace, name))
            try:
                if claim is None or self._volumes.get(claim.meta.uid) is None:
                    await self._refuse(seen, snapshot, f"claim {name} does not exist, or has no data yet")
                    return again(_CLAIM_SECONDS)
                await self._engine.take({claim.meta.uid: seen.meta.uid})
            except PaddockError as error:
                await self._refuse(seen, snapshot, str(error))
                raise
            held = self._volumes.get_snapshot(seen.meta.uid)
            if held is None:
                # It was deleted at once.
                return again(_CLAIM_SECONDS)
        await self._ready(seen, held)
        return DONE

    async def _ready(self, seen: CachedObject, held: Snapshot) -> None:
        content = f"snapcontent-{seen.meta.uid}"
        try:
            made = CachedObject.from_data(await self._client.create(VOLUME_CONTENTS, _content(content, seen, held.volume)))
        except AlreadyExists:
            made = CachedObject.of(await self._client.get_raw(VOLUME_CONTENTS, Key("", content)))
        status: Data = {
            "boundVolumeSnapshotContentName": content,
            "creationTime": ages.timestamp(self._clock.seconds()),
            "readyToUse": True,
            "restoreSize": quantity.binary(held.size),
            "error": None,
        }
        await self._content_statuses.write(made, _content_status(held.size, seen))
        await self._statuses.change(seen, status)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete what the engine holds, and the content."""
        if _FINALIZER not in (seen.meta.finalizers or ()):
            return DONE
        await self._volumes.delete_snapshot(seen.meta.uid)
        try:
            await self._client.delete(VOLUME_CONTENTS, Key("", f"snapcontent-{seen.meta.uid}"), DELETE)
        except NotFound:
            _LOG.debug("snapshot content not found", extra={"snapshot": str(seen.key)})
        await finalizers.take_off(self._client, VOLUME_SNAPSHOTS, seen.meta, _FINALIZER)
        return DONE

    async def _refuse(self, seen: CachedObject, snapshot: VolumeSnapshot, why: str, reason: str = "") -> None:
        """Say why it is not ready, with a reason code also by an event; the time of an error alone is no news."""
        before = snapshot.status.error if snapshot.status is not None else None
        if before is None or before.message != why:
            error = {"time": ages.timestamp(self._clock.seconds()), "message": why}
            await self._statuses.change(seen, {"readyToUse": False, "error": error})
            if reason:
                self._recorder.tell(reference(VOLUME_SNAPSHOTS, seen.meta), "Warning", reason, why)


def _is_ready(snapshot: VolumeSnapshot) -> bool:
    return snapshot.status is not None and bool(snapshot.status.readyToUse)


def _content(name: str, seen: CachedObject, volume: str) -> Data:
    reference = {
        "apiVersion": VOLUME_SNAPSHOTS.api_version,
        "kind": VOLUME_SNAPSHOTS.kind,
        "namespace": seen.key.namespace,
        "name": seen.key.name,
        "uid": seen.meta.uid,
    }
    spec = {"driver": DRIVER, "deletionPolicy": "Delete", "source": {"volumeHandle": volume}, "volumeSnapshotRef": reference}
    return {"apiVersion": VOLUME_CONTENTS.api_version, "kind": VOLUME_CONTENTS.kind, "metadata": {"name": name}, "spec": spec}


def _content_status(size: int, seen: CachedObject) -> Data:
    return {"readyToUse": True, "restoreSize": size, "snapshotHandle": seen.meta.uid}
