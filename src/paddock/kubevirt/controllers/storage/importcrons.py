"""DataImportCrons: an image is looked for on a schedule, and a DataSource always names the newest import of it."""

import hashlib

import msgspec
import orjson

from paddock.base import cron
from paddock.base.errors import PaddockError
from paddock.base.images.sources import RegistryImage
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject, Meta, by_label
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.storage import permission, reporting
from paddock.kubevirt.controllers.storage.imports import ImportSourceReader
from paddock.kubevirt.controllers.storage.ports import ImageLibraryPort
from paddock.kubevirt.controllers.storage.targets import DATA_SOURCES, DATA_VOLUMES, IMPORT_CRONS
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.dataimportcron import DataImportCron, DataImportCronStatus, ImportStatus
from paddock.kubevirt.kinds.datavolume import NamespacedReference
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.plan.storage import importcrons, requesters
from paddock.kubevirt.plan.storage.contents import VolumeContent
from paddock.kubevirt.plan.storage.importcrons import DESIRED, FINALIZER, LABEL, CronImports

# A registry that did not answer is asked again before the schedule says so.
_AGAIN_SECONDS = 300.0
_LONGEST_WAIT = 86400.0


class DataImportCronReconciler(KindReconciler):
    def __init__(
        self,
        client: Client,
        view: StorageView,
        images: ImageLibraryPort,
        importing: ImportSourceReader,
        recorder: EventRecorder,
        machinery: Machinery,
    ) -> None:
        super().__init__(view.import_crons, ObjectFinalizer(client, FINALIZER))
        self._client = client
        self._view = view
        self._images = images
        self._importing = importing
        self._recorder = recorder
        self._clock = machinery.clock
        self._expectations = view.import_crons.expectations
        self._statuses = StatusWriter(client, IMPORT_CRONS, self._expectations)
        # what the last look came to, where it found no digest
        self._troubles: dict[str, tuple[str, str]] = {}
        view.data_volumes.cache.index("cron", by_label(LABEL))
        view.data_sources.cache.index("cron", by_label(LABEL))

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Keep the imports, or delete them too, as the policy says."""
        await self._end(seen.read(IMPORT_CRONS), seen.meta)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Look if it is time, import what is new, keep what is to be kept."""
        key, found = seen.key, seen.read(IMPORT_CRONS)
        desired, executed, wait = await self._observe(found, seen.meta)
        imports = CronImports(tuple(self._volumes(key)), desired, self._troubles.get(seen.meta.uid))
        await self._import(found, imports, seen.meta)
        whole = self._whole(found, imports)
        if whole is not None:
            await self._name(found, whole, seen.meta)
        for name in importcrons.superfluous(found, imports):
            volume = self._view.data_volumes.cache.get(Key(key.namespace, name))
            if volume is not None:
                await delete_seen(self._client, DATA_VOLUMES, volume)
        await self._report(found, imports, executed, key)
        return DONE if wait is None else again(min(wait, _LONGEST_WAIT))

    # --- looking ----------------------------------------------------------------------------------------------------------

    async def _observe(self, data_import_cron: DataImportCron, meta: Meta) -> tuple[str, str | None, float | None]:
        """The digest that is wanted, when it was last looked, and the seconds until the next look (None: none)."""
        before = data_import_cron.status.lastExecutionTimestamp if data_import_cron.status is not None else None
        desired = (data_import_cron.metadata.annotations or {}).get(DESIRED, "")
        if not data_import_cron.spec.schedule:
            return desired, before, None
        now, schedule = self._clock.seconds(), cron.parse(data_import_cron.spec.schedule)
        since = ages.seconds_of(before) if before else None
        due = cron.next_after(schedule, since) if since is not None else now
        if due is None or due > now:
            return desired, before, None if due is None else due - now
        digest = await self._digest(data_import_cron, meta)
        executed = ages.timestamp(now)
        if digest and digest != desired:
            document = {"metadata": {"uid": meta.uid, "annotations": {DESIRED: digest}}}
            self._expectations.wrote(CachedObject.of(await self._client.patch_raw(IMPORT_CRONS, meta.key, merge_patch(document))))
        following = cron.next_after(schedule, now)
        wait = None if following is None else following - now
        if not digest:
            # It counts as a look that has not been: an image that was never seen is waited for with more patience than a day.
            return desired, before, _AGAIN_SECONDS if wait is None else min(wait, _AGAIN_SECONDS)
        return digest, executed, wait

    async def _digest(self, cron: DataImportCron, meta: Meta) -> str:
        source = importcrons.source_of(cron)
        self._troubles.pop(meta.uid, None)
        try:
            if source.registry is not None:
                content = VolumeContent(kind="registry", source=source.registry)
                wanted = await self._importing.source(content, cron.metadata.namespace or "")
                assert isinstance(wanted, RegistryImage)
                return await self._images.resolve(wanted, owner=cron.metadata.namespace or "")
            if source.pvc is not None:
                return await self._claim(cron, source.pvc)
        except PaddockError as error:
            reason = "NotAuthorized" if isinstance(error, permission.NotPermitted) else "NoDigest"
            self._troubles[meta.uid] = (reason, str(error))
            self._recorder.tell(reference(IMPORT_CRONS, meta), "Warning", reason, str(error))
        return ""

    async def _claim(self, cron: DataImportCron, source: NamespacedReference) -> str:
        """A claim's UID is what tells one of its contents from another."""
        namespace = cron.metadata.namespace or ""
        content = VolumeContent(kind="pvc", namespace=source.namespace or namespace, name=source.name)
        seen = self._view.import_crons.cache.get(Key(namespace, cron.metadata.name))
        made_by = requesters.note_of_cron(orjson.loads(seen.raw)) if seen is not None else None
        await permission.check_maker(self._client, content, namespace, made_by or "")
        claim = self._view.claim(Key(content.namespace, content.name))
        if claim is None or not claim.metadata.uid:
            raise NoClaim(f"the claim {content.namespace}/{content.name} is not there")
        return f"uid:{hashlib.sha256(claim.metadata.uid.encode()).hexdigest()}"

    # --- importing --------------------------------------------------------------------------------------------------------

    def _volumes(self, key: Key) -> list[DataVolume]:
        found = self._view.data_volumes.cache.by("cron", key.name)
        return [seen.read(DATA_VOLUMES) for seen in found if seen.meta.namespace == key.namespace and not seen.meta.deleting]

    async def _import(self, cron: DataImportCron, imports: CronImports, meta: Meta) -> None:
        if not imports.desired:
            return
        name = importcrons.volume_name(cron, imports.desired)
        if self._view.data_volumes.cache.get(Key(meta.namespace or "", name)) is not None:
            return
        body = importcrons.volume_of(cron, imports.desired)
        try:
            await self._client.create(DATA_VOLUMES, DATA_VOLUMES.read(msgspec.json.encode(body)))
        except AlreadyExists:
            return

    def _whole(self, cron: DataImportCron, imports: CronImports) -> DataVolume | None:
        name = importcrons.volume_name(cron, imports.desired) if imports.desired else ""
        return next((each for each in imports.volumes if each.metadata.name == name and importcrons.is_whole(each)), None)

    async def _name(self, cron: DataImportCron, volume: DataVolume, meta: Meta) -> None:
        """Let the DataSource name the newest import."""
        key = Key(meta.namespace or "", cron.spec.managedDataSource)
        wanted = importcrons.data_source_of(cron, volume)
        seen = self._view.data_sources.cache.get(key)
        if seen is None:
            try:
                await self._client.create(DATA_SOURCES, DATA_SOURCES.read(msgspec.json.encode(wanted)))
            except AlreadyExists:
                return
            return
        other = (seen.meta.labels or {}).get(LABEL, cron.metadata.name)
        if other != cron.metadata.name:
            text = f"DataSource {key.name} is kept by DataImportCron {other}"
            self._recorder.tell(reference(IMPORT_CRONS, meta), "Warning", "DataSourceTaken", text)
            return
        pvc = seen.read(DATA_SOURCES).spec.source.pvc
        if pvc is None or pvc.name != volume.metadata.name or seen.meta.labels is None or LABEL not in seen.meta.labels:
            none = dict.fromkeys(importcrons.OTHER_SOURCES)
            document: Data = {
                "metadata": {"labels": wanted["metadata"]["labels"]},
                "spec": {"source": {**none, **wanted["spec"]["source"]}},
            }
            await self._client.patch(DATA_SOURCES, key, merge_patch(document))

    # --- the report and the end -------------------------------------------------------------------------------------------

    async def _report(self, cron: DataImportCron, imports: CronImports, executed: str | None, key: Key) -> None:
        before, now = cron.status or DataImportCronStatus(), ages.timestamp(self._clock.seconds())
        whole = self._whole(cron, imports)
        imported, since = before.lastImportedPVC, before.lastImportTimestamp
        if whole is not None and (imported is None or imported.name != whole.metadata.name):
            imported, since = NamespacedReference(namespace=whole.metadata.namespace or "", name=whole.metadata.name), now
        current = None
        if imports.desired:
            current = [ImportStatus(DataVolumeName=importcrons.volume_name(cron, imports.desired), Digest=imports.desired)]
        status = DataImportCronStatus(
            currentImports=current,
            lastImportedPVC=imported,
            lastExecutionTimestamp=executed,
            lastImportTimestamp=since,
            sourceFormat="pvc",
            conditions=reporting.conditions(before.conditions, importcrons.conditions(cron, imports), now),
        )
        # With what this pass has written before.
        latest = self._expectations.latest(key)
        if latest is not None and latest.meta.uid == cron.metadata.uid:
            await self._statuses.write(latest, status)

    async def _end(self, cron: DataImportCron, meta: Meta) -> None:
        self._troubles.pop(meta.uid, None)
        if cron.spec.retentionPolicy == "None":
            source = self._view.data_sources.cache.get(Key(meta.namespace or "", cron.spec.managedDataSource))
            if source is not None and (source.meta.labels or {}).get(LABEL) == cron.metadata.name:
                await delete_seen(self._client, DATA_SOURCES, source)
            for seen in self._view.data_volumes.cache.by("cron", meta.name):
                if seen.meta.namespace == meta.namespace:
                    await delete_seen(self._client, DATA_VOLUMES, seen)
        await finalizers.take_off(self._client, IMPORT_CRONS, meta, FINALIZER)


class NoClaim(PaddockError):
    """The claim that is looked for is not there."""
