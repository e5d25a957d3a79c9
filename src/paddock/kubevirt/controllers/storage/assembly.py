"""All of storage put together. Whoever runs the engine calls `storage_controllers` before its program runs."""

from collections.abc import Callable, Iterable

import msgspec

from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Controller, ControllerSettings, Reconcile, labelled, own_key, there
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.storage import targets
from paddock.kubevirt.controllers.storage.claims import ClaimReconciler, claims_of_machine
from paddock.kubevirt.controllers.storage.classes import StorageClassReconciler
from paddock.kubevirt.controllers.storage.configuration import CDI_NAME, CONFIG, CdiConfigReconciler, CdiReconciler
from paddock.kubevirt.controllers.storage.datasources import DataSourceReconciler
from paddock.kubevirt.controllers.storage.datavolumes import DataVolumeReconciler
from paddock.kubevirt.controllers.storage.importcrons import DataImportCronReconciler
from paddock.kubevirt.controllers.storage.imports import ImportSourceReader
from paddock.kubevirt.controllers.storage.objecttransfers import ObjectTransferReconciler
from paddock.kubevirt.controllers.storage.persistentvolumes import PersistentVolumeReconciler
from paddock.kubevirt.controllers.storage.ports import ImageLibraryPort, VolumeStorePort
from paddock.kubevirt.controllers.storage.transfers import Transfers
from paddock.kubevirt.controllers.storage.transferwork import TransferWork
from paddock.kubevirt.controllers.storage.uploads import UploadTargets
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.extendedsources import names_read
from paddock.kubevirt.plan.storage.contents import POPULATED_FOR
from paddock.kubevirt.plan.storage.importcrons import LABEL
from paddock.kubevirt.plan.storage.transfers import STORAGE


class StorageSettings(msgspec.Struct, frozen=True, kw_only=True):
    # where clients upload to: the address of the API
    upload_url: Callable[[], str] = str
    upload_authority: str = ""
    transfers_at_a_time: int = 8


class StorageServices(msgspec.Struct, frozen=True):
    """The parts of storage that others need."""

    view: StorageView
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
    client, machinery, recorder = program.client, program.machinery, program.recorder
    view = StorageView(program.informers)
    running = Transfers(at_a_time=settings.transfers_at_a_time)
    importing = ImportSourceReader(client, machinery.clock, lambda: view.config.spec.insecureRegistries or ())
    filling = TransferWork(client, view, importing, images, volumes)
    claims = ClaimReconciler(client, view, volumes, running, filling, recorder)
    data_volumes = DataVolumeReconciler(client, view, volumes, running, recorder, machinery)
    released = PersistentVolumeReconciler(client, view, volumes, running)

    def controller(name: str, informer: Informer, reconcile: Reconcile) -> Controller:
        made = Controller(name, informer, reconcile, machinery=machinery, recorder=recorder, settings=ControllerSettings(workers=4))
        program.add(made)
        return made

    of_claims = controller("claims", view.claims, claims.reconcile)
    of_data_volumes = controller("datavolumes", view.data_volumes, data_volumes.reconcile)
    of_volumes = controller("persistentvolumes", view.volumes, released.reconcile)
    classes = StorageClassReconciler(client, view)
    configuration = CdiConfigReconciler(client, view, lambda: (settings.upload_url(), settings.upload_authority))
    of_classes = controller("storageclasses", view.classes, classes.reconcile)
    of_classes.watch(view.profiles, own_key)
    of_config = controller("cdiconfig", view.configs, configuration.reconcile)
    of_config.watch(view.classes, lambda _: (CONFIG,))
    of_cdi = controller("cdi", view.cdis, CdiReconciler(client, view.cdis, machinery).reconcile)
    sources = DataSourceReconciler(client, view, machinery)
    crons = DataImportCronReconciler(client, view, images, importing, recorder, machinery)
    of_sources = controller("datasources", view.data_sources, sources.reconcile)
    of_crons = controller("dataimportcrons", view.import_crons, crons.reconcile)
    _watch_sources(view, of_sources, of_crons)
    controller("objecttransfers", view.transfers, ObjectTransferReconciler(client, view, machinery).reconcile)
    # Objects that are always there are reconciled without an event.
    of_classes.offer(Key("", targets.CLASS_NAME))
    of_config.offer(CONFIG)
    of_cdi.offer(CDI_NAME)
    _watch(view, of_claims, of_data_volumes, of_volumes)
    for each in (of_claims, of_data_volumes):
        running.listen(each.offer)
    return StorageServices(view, running, volumes, images, UploadTargets(view, running, images, volumes))


def _watch(view: StorageView, of_claims: Controller, of_data_volumes: Controller, of_volumes: Controller) -> None:
    """Watch the objects whose changes concern claims, DataVolumes and volumes."""
    of_claims.watch(view.data_volumes, there(view.claims, own_key))
    of_claims.watch(view.instances, there(view.claims, claims_of_machine))
    of_data_volumes.watch(view.claims, there(view.data_volumes, own_key))
    of_data_volumes.watch(view.instances, there(view.data_volumes, claims_of_machine))
    of_volumes.watch(view.claims, _volume_of_gone)

    def unfilled(change: CacheChange) -> Iterable[Key]:
        """Everything may have waited for a class, a source, or a claim to copy."""
        return [seen.key for seen in view.claims.cache if not _is_settled(seen)]

    def unfinished(change: CacheChange) -> Iterable[Key]:
        return [seen.key for seen in view.data_volumes.cache if not _is_final(seen)]

    for informer in (view.classes, view.import_sources, view.upload_sources, view.clone_sources, view.data_sources):
        of_claims.watch(informer, unfilled)
    for informer in (view.classes, view.data_sources, view.profiles):
        of_data_volumes.watch(informer, unfinished)


def _watch_sources(view: StorageView, of_sources: Controller, of_crons: Controller) -> None:
    def naming(change: CacheChange) -> Iterable[Key]:
        """The DataSources that name an object of this name, or another DataSource."""
        key = change.seen.key
        for seen in view.data_sources.cache:
            source = seen.read(targets.DATA_SOURCES).spec.source
            named = source.pvc or source.snapshot or source.dataSource
            if named is not None and (named.namespace or seen.meta.namespace, named.name) == (key.namespace, key.name):
                yield seen.key

    def trusting(change: CacheChange) -> Iterable[Key]:
        """The DataSources that read a Secret or a ConfigMap of this name."""
        key = change.seen.key
        for seen in view.data_sources.cache.by("namespace", key.namespace):
            if key.name in names_read(seen.read(targets.DATA_SOURCES).spec.source.http):
                yield seen.key

    for informer in (view.data_volumes, view.claims, view.snapshots, view.data_sources):
        of_sources.watch(informer, naming)
    for informer in (view.secrets, view.config_maps):
        of_sources.watch(informer, trusting)
    for informer in (view.data_volumes, view.data_sources):
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
