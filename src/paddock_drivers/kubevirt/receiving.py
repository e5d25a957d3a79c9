"""Receives an imported disk: a DataVolume that is uploaded to. One that is complete has the checksum of its export as a note."""

import asyncio
import functools

from paddock.base.clock import Clock
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.storage import ResourceRequirements, StorageSpec
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume, DataVolumeStatus
from paddock_drivers.kit import refusals, transfers
from paddock_drivers.kit.transfers import DiskSink, ImportOrder, TransferResult
from paddock_drivers.kubevirt import booting, marks, progress, targets
from paddock_drivers.kubevirt.channels import DiskChannel, TargetUploads
from paddock_drivers.kubevirt.cluster import TargetCluster, id_of

_MIB = 1 << 20
_SECONDS = 600.0
_READY = ("UploadReady", "Succeeded", "Failed")


class DiskReceiver:
    def __init__(self, cluster: TargetCluster, channel: DiskChannel, clock: Clock) -> None:
        self._cluster = cluster
        self._channel = channel
        self._clock = clock
        self._uploads = TargetUploads(cluster)

    async def receive(self, name: str, digest: str, order: ImportOrder, storage_class: str) -> TransferResult:
        """Import a disk, or return the one that an earlier call has imported. What is not complete in the end is deleted."""
        there = await self._cluster.find(targets.DATA_VOLUMES, name)
        if there is not None:
            notes = there.metadata.annotations or {}
            if notes.get(marks.REQUEST) != digest or (there.metadata.labels or {}).get(marks.PURPOSE) != booting.DISK:
                raise refusals.conflict(f"a disk {name} exists and has another content", fix="choose another name or delete it")
            if checksum := notes.get(marks.CHECKSUM):
                size = booting.asked_size(there.spec)
                return TransferResult(size, size, checksum)
            # An upload that was cut off with the driver: nobody has the rest.
            await self._drop(name)

        async def begin(size: int) -> DiskSink:
            await self._cluster.ensure(targets.DATA_VOLUMES, self._volume(name, digest, size, storage_class))
            await self._phase(name, _READY)
            return functools.partial(self._channel.upload, await self._uploads.open(name))

        try:
            result = await transfers.import_(order, self._clock, begin)
            await self._phase(name, ("Succeeded",))
        except BaseException:
            await self._drop(name)
            raise
        await self._complete(name, result)
        return result

    def _volume(self, name: str, digest: str, size: int, storage_class: str) -> DataVolume:
        request = f"{-(-size // _MIB)}Mi" if size else self._cluster.settings.disk_size
        return DataVolume(
            apiVersion=targets.DATA_VOLUMES.api_version,
            kind=targets.DATA_VOLUMES.kind,
            metadata=ObjectMeta(
                name=name,
                namespace=self._cluster.namespace,
                labels={marks.PURPOSE: booting.DISK},
                annotations={marks.REQUEST: digest, "cdi.kubevirt.io/storage.bind.immediate.requested": "true"},
            ),
            spec=DataVolumeSpec(
                source=DataVolumeSource(upload=Empty()),
                storage=StorageSpec(resources=ResourceRequirements(requests={"storage": request}), storageClassName=storage_class or None),
            ),
        )

    async def _phase(self, name: str, wanted: tuple[str, ...]) -> None:
        """Wait for a phase of the disk."""
        end = asyncio.get_running_loop().time() + _SECONDS
        while True:
            found = await self._cluster.find(targets.DATA_VOLUMES, name)
            if found is None:
                raise refusals.retry_later(f"the disk {name} is gone")
            phase = (found.status or DataVolumeStatus()).phase or ""
            if phase in wanted:
                return
            judged = progress.filled({name: found}, {})
            if judged.error:
                raise refusals.retry_later(judged.error)
            if asyncio.get_running_loop().time() > end:
                raise refusals.retry_later(f"the disk {name} is {phase or 'not ready'} for more than {_SECONDS:g} s")
            await asyncio.sleep(self._cluster.settings.poll_seconds)

    async def _complete(self, name: str, result: TransferResult) -> None:
        async def note() -> None:
            found = await self._cluster.find(targets.DATA_VOLUMES, name)
            if found is None:
                raise refusals.retry_later(f"the disk {name} is gone")
            await self._cluster.merge(targets.DATA_VOLUMES, found, {"metadata": {"annotations": {marks.CHECKSUM: result.checksum}}})

        await self._cluster.retried(note)

    async def _drop(self, name: str) -> None:
        """Delete a disk and wait until it is gone."""
        found = await self._cluster.find(targets.DATA_VOLUMES, name)
        if found is None or found.metadata.ownerReferences:
            return
        await self._cluster.delete(targets.DATA_VOLUMES, id_of(found))
        end = asyncio.get_running_loop().time() + _SECONDS
        left: DataVolume | PersistentVolumeClaim | None = found
        while left is not None and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(self._cluster.settings.poll_seconds)
            left = await self._cluster.find(targets.DATA_VOLUMES, name) or await self._cluster.find(targets.CLAIMS, name)
