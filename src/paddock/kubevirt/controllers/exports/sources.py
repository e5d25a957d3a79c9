"""The source of an export: its volumes in the engine, or why they cannot be fetched now."""

from collections.abc import Mapping

import msgspec
import orjson

from paddock.base import reasons
from paddock.base.jsondata import Data
from paddock.engine.storage.errors import VolumeBroken
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubevirt.controllers.exports.targets import CLAIMS, CONTENTS, MACHINES, SNAPSHOTS, VOLUME_SNAPSHOTS
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.plan.snapshots import memory
from paddock.kubevirt.plan.snapshots.machines import volumes_of
from paddock.kubevirt.plan.storage import exports as plan
from paddock.kubevirt.plan.storage import hostdirectories


class ExportUnavailable(msgspec.Struct, frozen=True):
    """The reason why an export is unavailable."""

    reason: str
    message: str


class ExportSource(msgspec.Struct, frozen=True):
    """The volumes that clients can fetch."""

    volumes: tuple[plan.ExportedVolume, ...]
    machine: Data | None = None
    # what of the source is not in it
    left_out: str = ""


class ExportSources:
    """Finds what exports are of."""

    def __init__(self, client: Client, informers: Informers, volumes: Volumes) -> None:
        self._client = client
        self.claims = informers.of(CLAIMS)
        self.machines = informers.of(MACHINES)
        self.snapshots = informers.of(SNAPSHOTS)
        self.volume_snapshots = informers.of(VOLUME_SNAPSHOTS)
        self._volumes = volumes

    async def find(self, export: VirtualMachineExport) -> ExportSource | ExportUnavailable:
        """The volumes of an export."""
        source, namespace = export.spec.source, export.metadata.namespace or ""
        key = Key(namespace, source.name)
        match source.kind:
            case "PersistentVolumeClaim":
                return self._of_claims(namespace, {source.name: source.name}, None)
            case "VirtualMachine":
                found = self.machines.cache.get(key)
                if found is None:
                    return ExportUnavailable("VMNotFound", f"VirtualMachine {source.name} does not exist")
                machine = found.read(MACHINES)
                kept = volumes_of(machine, lambda name: self._is_static(namespace, name))
                return self._of_claims(namespace, kept.claims, plan.manifest(orjson.loads(found.raw)))
            case "VirtualMachineSnapshot":
                return await self._of_snapshot(key)
        return ExportUnavailable("Unsupported", f"a {source.kind} cannot be exported here")

    def _is_static(self, namespace: str, name: str) -> bool:
        claim = self.claims.cache.get(Key(namespace, name))
        return claim is not None and hostdirectories.is_static(claim.read(CLAIMS))

    def _of_claims(self, namespace: str, claims: Mapping[str, str], machine: Data | None) -> ExportSource | ExportUnavailable:
        found = []
        for volume, name in claims.items():
            claim = self.claims.cache.get(Key(namespace, name))
            if self._is_static(namespace, name):
                return ExportUnavailable("Unsupported", f"pvc {namespace}/{name} is a directory of the host, not a disk; copy it there")
            try:
                held = self._volumes.get(claim.meta.uid) if claim is not None else None
            except VolumeBroken as error:
                return ExportUnavailable(reasons.VOLUME_DAMAGED, f"pvc {namespace}/{name}: {error}")
            if claim is None or held is None:
                return ExportUnavailable("PVCNotFound", f"pvc {namespace}/{name} does not exist, or has no data yet")
            if held.busy:
                return ExportUnavailable("InUse", f"pvc {namespace}/{name} is in use by a running machine")
            found.append(plan.ExportedVolume(volume, claim.meta.uid, is_files=held.files is not None))
        return ExportSource(tuple(found), machine)

    async def _of_snapshot(self, key: Key) -> ExportSource | ExportUnavailable:
        snapshot = self.snapshots.cache.get(key)
        status = snapshot.read(SNAPSHOTS).status if snapshot is not None else None
        if status is None or not status.readyToUse or not status.virtualMachineSnapshotContentName:
            return ExportUnavailable("VMSnapshotNotReady", f"VirtualMachineSnapshot {key.name} is not ready")
        try:
            content = await self._client.get(CONTENTS, Key(key.namespace, status.virtualMachineSnapshotContentName))
        except NotFound:
            return ExportUnavailable("VMSnapshotNotReady", f"VirtualMachineSnapshot {key.name} has no content")
        found = []
        for backup in content.spec.volumeBackups or ():
            made = self.volume_snapshots.cache.get(Key(key.namespace, backup.volumeSnapshotName or ""))
            if made is None:
                return ExportUnavailable("VMSnapshotNotReady", f"VolumeSnapshot {backup.volumeSnapshotName} does not exist")
            found.append(plan.ExportedVolume(backup.volumeName, made.meta.uid, is_snapshot=True))
        left_out = "the memory in the snapshot is left out" if memory.is_in(content) else ""
        return ExportSource(tuple(found), plan.manifest(dict(content.spec.source.virtualMachine or {})), left_out)
