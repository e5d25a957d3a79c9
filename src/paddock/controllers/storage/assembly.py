"""All of storage put together. Whoever runs the engine calls `storage_controllers` before its program runs."""

from collections.abc import Callable, Iterable

import msgspec

from paddock.client.target import Key
from paddock.controllers.storage import targets
from paddock.controllers.storage.claims import ClaimReconciler, claims_of_machine
from paddock.controllers.storage.classes import StorageClassReconciler
from paddock.controllers.storage.configuration import CDI_NAME, CONFIG, CdiConfigReconciler, CdiReconciler
from paddock.controllers.storage.datasources import DataSourceReconciler
from paddock.controllers.storage.datavolumes import DataVolumeReconciler
from paddock.controllers.storage.importcrons import DataImportCronReconciler
from paddock.controllers.storage.imports import ImportSourceReader
from paddock.controllers.storage.objecttransfers import ObjectTransferReconciler
from paddock.controllers.storage.persistentvolumes import PersistentVolumeReconciler
from paddock.controllers.storage.ports import ImageLibraryPort, VolumeStorePort
from paddock.controllers.storage.transfers import Transfers
from paddock.controllers.storage.transferwork import TransferWork
from paddock.controllers.storage.uploads import UploadTargets
from paddock.controllers.storage.view import StorageView
from paddock.dialects.kubevirt.kubermaticsources import names_read
from paddock.plan.storage.contents import POPULATED_FOR
from paddock.plan.storage.importcrons import LABEL
from paddock.plan.storage.transfers import STORAGE
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Controller, ControllerSettings, Reconcile, labelled, own_key, there
from paddock.runtime.informer import Informer
from paddock.runtime.program import ControllerManager


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of storage."""

    # where clients upload to: the address of the API
    upload_url: Callable[[], str] = str
    upload_authority: str = ""
    transfers_at_a_time: int = 8


class StorageServices(msgspec.Struct, frozen=True):
    """The parts of storage that others need."""

    world: StorageView
    transfers: Transfers
    volumes: VolumeStorePort
    images: ImageLibraryPort
    receiving: UploadTargets

    async def close(self) -> None:
        """End what runs; after the program."""
        await self.transfers.close()


def storage_controllers(
    program: ControllerManager,
    images: ImageLibraryPort,
    volumes: VolumeStorePort,
    settings: StorageSettings = StorageSettings(),  # noqa: B008 - frozen
) -> StorageServices:
    """Add the controllers of storage to a program. Inside a running loop."""
    client, machinery, teller = program.client, program.machinery, program.recorder
    world = StorageView(program.informers)
    running = Transfers(at_a_time=settings.transfers_at_a_time)
    importing = ImportSourceReader(client, machinery.clock, lambda: world.config.spec.insecureRegistries or ())
    filling = TransferWork(client, world, importing, images, volumes)
    claims = ClaimReconciler(client, world, volumes, running, filling, teller)
    data_volumes = DataVolumeReconciler(client, world, volumes, running, teller, machinery)
    released = PersistentVolumeReconciler(client, world, volumes, running)

    def controller(name: str, informer: Informer, reconcile: Reconcile) -> Controller:
        made = Controller(name, informer, reconcile, machinery=machinery, teller=teller, settings=ControllerSettings(workers=4))
        program.add(made)
        return made

    of_claims = controller("claims", world.claims, claims.reconcile)
    of_data_volumes = controller("datavolumes", world.data_volumes, data_volumes.reconcile)
    of_volumes = controller("persistentvolumes", world.volumes, released.reconcile)
    classes = StorageClassReconciler(client, world)
    configuration = CdiConfigReconciler(client, world, lambda: (settings.upload_url(), settings.upload_authority))
    of_classes = controller("storageclasses", world.classes, classes.reconcile)
    of_classes.watch(world.profiles, own_key)
    of_config = controller("cdiconfig", world.configs, configuration.reconcile)
    of_config.watch(world.classes, lambda _: (CONFIG,))
    of_cdi = controller("cdi", world.cdis, CdiReconciler(client, world.cdis, machinery).reconcile)
    sources = DataSourceReconciler(client, world, machinery)
    crons = DataImportCronReconciler(client, world, images, importing, teller, machinery)
    of_sources = controller("datasources", world.data_sources, sources.reconcile)
    of_crons = controller("dataimportcrons", world.import_crons, crons.reconcile)
    _watch_sources(world, of_sources, of_crons)
    controller("objecttransfers", world.transfers, ObjectTransferReconciler(client, world, machinery).reconcile)
    # Objects that are always there are reconciled without an event.
    of_classes.offer(Key("", targets.CLASS_NAME))
    of_config.offer(CONFIG)
    of_cdi.offer(CDI_NAME)
    _watch(world, of_claims, of_data_volumes, of_volumes)
    for each in (of_claims, of_data_volumes):
        running.listen(each.offer)
    return StorageServices(world, running, volumes, images, UploadTargets(world, running, images, volumes))


def _watch(world: StorageView, of_claims: Controller, of_data_volumes: Controller, of_volumes: Controller) -> None:
    """Watch the objects whose changes concern claims, DataVolumes and volumes."""
    of_claims.watch(world.data_volumes, there(world.claims, own_key))
    of_claims.watch(world.instances, there(world.claims, claims_of_machine))
    of_data_volumes.watch(world.claims, there(world.data_volumes, own_key))
    of_data_volumes.watch(world.instances, there(world.data_volumes, claims_of_machine))
    of_volumes.watch(world.claims, _volume_of_gone)

    def unfilled(change: CacheChange) -> Iterable[Key]:
        """Everything may have waited for a class, a source, or a claim to copy."""
        return [seen.key for seen in world.claims.cache if not _is_settled(seen)]

    def unfinished(change: CacheChange) -> Iterable[Key]:
        return [seen.key for seen in world.data_volumes.cache if not _is_final(seen)]

    for informer in (world.classes, world.import_sources, world.upload_sources, world.clone_sources, world.data_sources):
        of_claims.watch(informer, unfilled)
    for informer in (world.classes, world.data_sources, world.profiles):
        of_data_volumes.watch(informer, unfinished)


def _watch_sources(world: StorageView, of_sources: Controller, of_crons: Controller) -> None:
    def naming(change: CacheChange) -> Iterable[Key]:
        """The DataSources that name an object of this name, or another DataSource."""
        key = change.seen.key
        for seen in world.data_sources.cache:
            source = seen.read(targets.DATA_SOURCES).spec.source
            named = source.pvc or source.snapshot or source.dataSource
            if named is not None and (named.namespace or seen.meta.namespace, named.name) == (key.namespace, key.name):
                yield seen.key

    def trusting(change: CacheChange) -> Iterable[Key]:
        """The DataSources that read a Secret or a ConfigMap of this name."""
        key = change.seen.key
        for seen in world.data_sources.cache.by("namespace", key.namespace):
            if key.name in names_read(seen.read(targets.DATA_SOURCES).spec.source.http):
                yield seen.key

    for informer in (world.data_volumes, world.claims, world.snapshots, world.data_sources):
        of_sources.watch(informer, naming)
    for informer in (world.secrets, world.config_maps):
        of_sources.watch(informer, trusting)
    for informer in (world.data_volumes, world.data_sources):
        of_crons.watch(informer, labelled(LABEL))


def _volume_of_gone(change: CacheChange) -> Iterable[Key]:
    """The volume of a claim that went, be it that another of its name came at once."""
    old, new = change.old, change.new
    return () if old is None or (new is not None and new.meta.uid == old.meta.uid) else (Key("", f"pvc-{old.meta.uid}"),)


def _is_settled(seen: CachedObject) -> bool:
    """Return whether a claim has its volume and nothing else is expected."""
    claim = seen.read(targets.CLAIMS)
    notes = claim.metadata.annotations or {}
    phase = notes.get(f"{STORAGE}.pod.phase")
    is_plain = phase is None and POPULATED_FOR not in notes and (claim.spec is None or claim.spec.dataSourceRef is None)
    return claim.status is not None and claim.status.phase == "Bound" and (is_plain or phase == "Succeeded")


def _is_final(seen: CachedObject) -> bool:
    volume = seen.read(targets.DATA_VOLUMES)
    return volume.status is not None and volume.status.phase in ("Succeeded", "Failed")
