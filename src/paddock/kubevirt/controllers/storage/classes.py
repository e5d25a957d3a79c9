"""StorageClasses: the one that is always there, and for each a StorageProfile that says what its claims look like."""

from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.storageclass import IS_DEFAULT, IS_DEFAULT_FOR_MACHINES, StorageClass
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.controllers.storage.targets import CLASS_NAME, CLASSES, PROFILES, PROVISIONER
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.storageprofile import StorageProfileSpec, StorageProfileStatus
from paddock.kubevirt.plan.storage.datavolumeclaims import PROPERTIES

_SNAPSHOT_CLASSES = kind_target("snapshot.storage.k8s.io", "VolumeSnapshotClass")
_LABELS = {"app": "containerized-data-importer", "app.kubernetes.io/component": "storage"}
_ALWAYS = Key("", CLASS_NAME)


class StorageClassReconciler(KindReconciler):
    def __init__(self, client: Client, view: StorageView) -> None:
        super().__init__(view.classes)
        self._client = client
        self._view = view
        self._statuses = StatusWriter(client, PROFILES, view.profiles.expectations)
        self._has_snapshot_class = False

    async def missing(self, key: Key) -> Outcome:
        """Make the class of this host."""
        if key == _ALWAYS:
            await self._make()
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Make the profile of a class, and the snapshot class of this host's."""
        if seen.key == _ALWAYS and not self._has_snapshot_class:
            await self._make_snapshot_class()
        await self._profile(seen.read(CLASSES), seen.key)
        return DONE

    async def _make(self) -> None:
        """The class of this host; the default unless another is."""
        others = [seen.read(CLASSES).metadata.annotations or {} for seen in self._view.classes.cache]
        marks = [mark for mark in (IS_DEFAULT, IS_DEFAULT_FOR_MACHINES) if not any(each.get(mark) == "true" for each in others)]
        body: Data = {
            "metadata": {"name": CLASS_NAME, "annotations": dict.fromkeys(marks, "true")},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
        }
        await self._create(CLASSES, CLASSES.read(msgspec.json.encode(body)))

    async def _make_snapshot_class(self) -> None:
        annotations = {"snapshot.storage.kubernetes.io/is-default-class": "true"}
        body: Data = {
            "apiVersion": _SNAPSHOT_CLASSES.api_version,
            "kind": _SNAPSHOT_CLASSES.kind,
            "metadata": {"name": CLASS_NAME, "annotations": annotations},
            "driver": PROVISIONER,
            "deletionPolicy": "Delete",
        }
        await self._create(_SNAPSHOT_CLASSES, body)
        self._has_snapshot_class = True

    async def _create(self, target: Any, body: Any) -> None:
        try:
            await self._client.create(target, body)
        except AlreadyExists:
            return

    async def _profile(self, storage_class: StorageClass, key: Key) -> None:
        """Write the profile of the claims of a class. An administrator's choices take precedence."""
        seen = self._view.profiles.cache.get(key)
        status = profile_status(storage_class, seen.read(PROFILES).spec if seen is not None else StorageProfileSpec())
        if seen is None:
            body: Data = {"metadata": {"name": key.name, "labels": _LABELS}, "spec": {}, "status": msgspec.to_builtins(status)}
            await self._create(PROFILES, PROFILES.read(msgspec.json.encode(body)))
        else:
            await self._statuses.write(seen, status)


def profile_status(storage_class: StorageClass, decided: StorageProfileSpec) -> StorageProfileStatus:
    """Return the status for a class. For a foreign class it knows no properties."""
    is_ours = storage_class.provisioner == PROVISIONER
    return StorageProfileStatus(
        storageClass=storage_class.metadata.name,
        provisioner=storage_class.provisioner,
        cloneStrategy=decided.cloneStrategy or ("copy" if is_ours else None),
        claimPropertySets=decided.claimPropertySets or (list(PROPERTIES) if is_ours else None),
        dataImportCronSourceFormat=decided.dataImportCronSourceFormat or ("pvc" if is_ours else None),
        snapshotClass=decided.snapshotClass or (CLASS_NAME if is_ours else None),
    )
