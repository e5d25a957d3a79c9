"""One look at a DataSource of a user, for a cluster: what CDI knows goes there as it is; an address stays here, with its status from us.

Of a cached address the cluster has one DataVolume, which comes with the first consumer and is made anew when the address is another.
"""

from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.dialects.kubermatic.controllers import authorities, targets
from paddock.dialects.kubermatic.controllers.actions import ClusterDoor, is_ours
from paddock.dialects.kubermatic.plan import writing
from paddock.dialects.kubermatic.plan.status import ConditionText, mirrored
from paddock.dialects.kubermatic.translate.forward import to_kubevirt
from paddock.dialects.kubermatic.translate.refusals import REFUSALS
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.desired import ForeignObject
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter, status_of
from paddock.kubernetes.runtime.unreadfields import UnreadFieldEvents
from paddock.kubevirt.kinds.datasource import DataSource, source_type
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE, golden_name, is_address, is_cached
from paddock.kubevirt.plan.storage import datasources
from paddock.kubevirt.plan.storage.contents import Lookup
from paddock.kubevirt.plan.storage.datasources import SourceLookup


class KubermaticDataSourceReconciler(KindReconciler):
    def __init__(self, door: ClusterDoor) -> None:
        views = self._views = door.views
        super().__init__(views.consumers.sources, ObjectFinalizer(door.front, targets.FINALIZER))
        self._writer = door.writer
        self._front = door.front
        self._statuses = StatusWriter(door.front, targets.SOURCES, views.consumers.sources.expectations)
        self._rendering = door.rendering
        self._clock = door.clock
        self._recorder = door.recorder
        self._unread = UnreadFieldEvents(door.recorder)
        self._lookup = Lookup(
            data_volume=lambda namespace, name: None,
            data_source=views.find,
            import_source=lambda namespace, name: None,
            upload_source=lambda namespace, name: None,
            clone_source=lambda namespace, name: None,
        )
        self._around = SourceLookup(
            has_claim=lambda namespace, name: False,
            has_snapshot=lambda namespace, name: None,
            secret=views.secret,
            config_map=views.config_map,
            shows_certificates=False,
        )

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one DataSource a step on."""
        source = seen.read(targets.SOURCES)
        away = is_address(source, self._views.find)
        try:
            await self._write(seen, source, away=away)
        except ForeignObject as error:
            self._recorder.tell(reference(targets.SOURCES, seen.meta), "Warning", "NameConflict", str(error))
            await self._report(seen, {}, (ConditionText("Ready", "False", "NameConflict", str(error)),))
            return DONE
        if away:
            found, conditions = datasources.report(source, self._lookup, self._around)
            words = tuple(ConditionText(each.type, each.status, each.reason or "", each.message or "") for each in conditions)
            status: Data = {} if found is None else {"source": to_data(found), "sourceType": source_type(found)}
            await self._report(seen, status, words)
        else:
            there = self._writer.seen(targets.SOURCES, seen.key)
            await self._report(seen, status_of(there) if there is not None else {}, ())
        return DONE

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Delete what was made of it, and let it go when that is gone."""
        golden = Key(seen.key.namespace, golden_name(seen.read(targets.SOURCES)))
        places: tuple[tuple[Target[Any], Key], ...] = ((targets.SOURCES, seen.key), (targets.VOLUMES, golden))
        left = [(target, there) for target, key in places if (there := self._writer.seen(target, key)) is not None and is_ours(there)]
        for target, there in left:
            await self._writer.delete(target, there)
        if not left:
            self._unread.forget(seen.meta.uid)
            await authorities.clear(self._views, self._writer, seen.key.namespace)
            await finalizers.take_off(self._front, targets.SOURCES, seen.meta, targets.FINALIZER)
        return DONE

    async def _write(self, seen: CachedObject, source: DataSource, *, away: bool) -> None:
        there = self._writer.seen(targets.SOURCES, seen.key)
        if not away:
            verbatim = msgspec.structs.replace(source, status=None)
            await self._writer.apply(targets.SOURCES, _at(writing.outgoing(to_data(verbatim)), seen.key.namespace))
        elif there is not None:
            # It was one that CDI knows, before.
            await self._writer.delete(targets.SOURCES, there)
        await self._write_golden(seen, source, away=away)

    async def _write_golden(self, seen: CachedObject, source: DataSource, *, away: bool) -> None:
        key = Key(seen.key.namespace, golden_name(source))
        there = self._writer.seen(targets.VOLUMES, key)
        if not away or not is_cached(source) or source.spec.source.dataSource is not None:
            notes = there.read(targets.VOLUMES).metadata.annotations if there is not None else None
            if there is not None and (notes or {}).get(DATA_SOURCE) == str(seen.key):
                await self._writer.delete(targets.VOLUMES, there)
            return
        try:
            translated = to_kubevirt(source, self._views.objects_of(source, *self._views.consumers.of(seen.key)), self._rendering)
        except REFUSALS:
            # Its condition says why.
            return
        self._unread.tell(reference(targets.SOURCES, seen.meta), translated.losses)
        if not translated.value:
            return
        *beside, golden = translated.value
        for each in beside:
            await self._writer.apply(targets.CONFIG_MAPS, _at(writing.outgoing(to_data(each)), key.namespace))
        there = self._writer.check(targets.VOLUMES, key)
        assert isinstance(golden, DataVolume)
        if there is None:
            await self._writer.apply(targets.VOLUMES, _at(writing.outgoing(to_data(golden)), key.namespace))
        elif there.read(targets.VOLUMES).spec.source != golden.spec.source:
            # The watch brings us here again when it is gone.
            await self._writer.delete(targets.VOLUMES, there)

    async def _report(self, seen: CachedObject, said: Data, words: tuple[ConditionText, ...]) -> None:
        await self._statuses.write(seen, mirrored(status_of(seen), said, words, ages.timestamp(self._clock.seconds())))


def _at(data: Data, namespace: str) -> Data:
    return {**data, "metadata": {**data["metadata"], "namespace": namespace}}
