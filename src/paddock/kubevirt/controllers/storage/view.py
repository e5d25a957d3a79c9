"""The caches that storage reads, and what is looked up in them."""

from typing import TypeVar

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.storageclass import StorageClass, default_class
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.storage import targets
from paddock.kubevirt.kinds.cdiconfig import CDIConfig
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.brief import BY_CLAIM, claim_places
from paddock.kubevirt.plan.storage import lostvolumes
from paddock.kubevirt.plan.storage.contents import Lookup

T = TypeVar("T")
_ENDED = ("Succeeded", "Failed")


class StorageView:
    """The API's objects, as far as storage is concerned."""

    def __init__(self, informers: Informers) -> None:
        self.claims = informers.of(targets.CLAIMS)
        self.volumes = informers.of(targets.VOLUMES)
        self.classes = informers.of(targets.CLASSES)
        self.data_volumes = informers.of(targets.DATA_VOLUMES)
        self.data_sources = informers.of(targets.DATA_SOURCES)
        self.import_crons = informers.of(targets.IMPORT_CRONS)
        self.transfers = informers.of(targets.TRANSFERS)
        self.profiles = informers.of(targets.PROFILES)
        self.configs = informers.of(targets.CONFIGS)
        self.cdis = informers.of(targets.CDIS)
        self.import_sources = informers.of(targets.IMPORT_SOURCES)
        self.upload_sources = informers.of(targets.UPLOAD_SOURCES)
        self.clone_sources = informers.of(targets.CLONE_SOURCES)
        self.snapshots = informers.of(targets.SNAPSHOTS)
        self.instances = informers.of(targets.INSTANCES)
        self.secrets = informers.of(targets.SECRETS)
        self.config_maps = informers.of(targets.CONFIG_MAPS)
        self.instances.cache.index(BY_CLAIM, lambda seen: claim_places(seen.key.namespace, seen.raw))
        self.claims.cache.index("uid", lambda seen: (seen.meta.uid,))
        self.lookup = Lookup(
            data_volume=lambda namespace, name: self.read(self.data_volumes, targets.DATA_VOLUMES, Key(namespace, name)),
            data_source=lambda namespace, name: self.read(self.data_sources, targets.DATA_SOURCES, Key(namespace, name)),
            import_source=lambda namespace, name: self.read(self.import_sources, targets.IMPORT_SOURCES, Key(namespace, name)),
            upload_source=lambda namespace, name: self.read(self.upload_sources, targets.UPLOAD_SOURCES, Key(namespace, name)),
            clone_source=lambda namespace, name: self.read(self.clone_sources, targets.CLONE_SOURCES, Key(namespace, name)),
        )

    def read(self, informer: Informer, target: Target[T], key: Key) -> T | None:
        """An object, if it is there."""
        seen = informer.cache.get(key)
        return None if seen is None else seen.read(target)

    def claim(self, key: Key) -> PersistentVolumeClaim | None:
        return self.read(self.claims, targets.CLAIMS, key)

    def claim_by_uid(self, uid: str) -> CachedObject | None:
        """A claim that has this UID."""
        return next(iter(self.claims.cache.by("uid", uid)), None)

    def volume(self, name: str) -> Data | None:
        return self.read(self.volumes, targets.VOLUMES, Key("", name))

    def was_filled(self, uid: str) -> bool:
        """Return whether the volume of a claim has held a disk."""
        seen = self.volumes.expectations.latest(Key("", lostvolumes.name_of(uid)))
        return seen is not None and lostvolumes.was_filled(seen.read(targets.VOLUMES))

    def storage_class(self, name: str | None) -> StorageClass | None:
        """The class of this name, or the default for machines where none is named."""
        if name is not None:
            return self.read(self.classes, targets.CLASSES, Key("", name))
        return default_class(seen.read(targets.CLASSES) for seen in self.classes.cache)

    def users(self, claim: Key) -> list[VirtualMachineInstance]:
        """The machines that have a claim as a disk and have not ended."""
        found = (seen.read(targets.INSTANCES) for seen in self.instances.cache.by(BY_CLAIM, str(claim)))
        return [each for each in found if each.status is None or each.status.phase not in _ENDED]

    def snapshot_id(self, namespace: str, name: str) -> str:
        """The engine's name of a VolumeSnapshot; empty when there is none that is ready."""
        seen = self.snapshots.cache.get(Key(namespace, name))
        status = seen.read(targets.SNAPSHOTS).status if seen is not None else None
        return seen.meta.uid if seen is not None and status is not None and status.readyToUse else ""

    @property
    def config(self) -> CDIConfig:
        """The settings that hold for all."""
        return self.read(self.configs, targets.CONFIGS, Key("", "config")) or CDIConfig()

    def overhead(self, storage_class: str) -> str:
        """Return the configured filesystem overhead of a class."""
        config = self.config
        return claimsizes.overhead_of(config.spec.filesystemOverhead, storage_class)
