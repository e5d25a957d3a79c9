"""The one copy of each cached DataSource, where the DataSources and the disks are in one API (the embedded server).

The copy comes with the first consumer, belongs to the DataSource, and stays as it is until the DataSource stands for something else:
then it is made anew, and disks that were copied from it before are what they were.
"""

from paddock.dialects.kubermatic.controllers import targets
from paddock.dialects.kubermatic.controllers.reader import CONSUMING, Consumers
from paddock.dialects.kubermatic.controllers.settings import KubermaticSettings
from paddock.dialects.kubermatic.translate.golden import asked_of, golden_volume
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, EventRecorder, Outcome, owners
from paddock.kubernetes.runtime.deleting import delete_seen
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet, ForeignObject
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import is_owned, reference
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, DataSource, source_type
from paddock.kubevirt.kinds.datavolume import DataVolumeSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import golden_name, is_cached


class GoldenImages(KindReconciler):
    """Looks after the copies. A copy belongs to its DataSource and goes with it."""

    def __init__(self, client: Client, consumers: Consumers, rendering: Rendering, recorder: EventRecorder) -> None:
        super().__init__(consumers.sources)
        self._client = client
        self._consumers = consumers
        self._rendering = rendering
        self._recorder = recorder
        self._volumes = consumers.informers[targets.VOLUMES.plural]
        self._set = DesiredSet(client, (), manager=targets.MANAGER, keeps=(self._volumes,))

    async def work(self, seen: CachedObject) -> Outcome:
        """See that the copy of a DataSource is there, if it is to have one, and that it is of what the DataSource stands for."""
        source = seen.read(targets.SOURCES)
        there = self._volumes.cache.get(Key(seen.key.namespace, golden_name(source)))
        if not _has_golden(source):
            return await self._remove(there, seen)
        kind = source_type(source.spec.source)
        content = DataVolumeSource(**{kind: getattr(source.spec.source, kind)})
        if there is not None and is_owned(there.meta, seen.meta.uid):
            return DONE if _source_of(there) == content else await self._remove(there, seen)
        consumers = asked_of(source, ObjectSet(self._consumers.of(seen.key)))
        if not consumers:
            return DONE
        wanted = golden_volume(source, content, consumers, self._rendering)
        try:
            await self._set.reach(reference(targets.SOURCES, seen.meta), [DesiredObject(targets.VOLUME_DATA, to_data(wanted))])
        except ForeignObject as error:
            note = f"the one copy of the image cannot be made: {error}"
            self._recorder.tell(reference(targets.SOURCES, seen.meta), "Warning", "NameConflict", note)
            raise
        return DONE

    async def _remove(self, there: CachedObject | None, owner: CachedObject) -> Outcome:
        if there is not None and is_owned(there.meta, owner.meta.uid):
            await delete_seen(self._client, targets.VOLUME_DATA, there)
        # The watch brings us here again when it is gone.
        return DONE


def _has_golden(source: DataSource) -> bool:
    """Return whether its image is imported once. A reference to another DataSource, or a source that CDI copies anyway, is not."""
    return is_cached(source) and source_type(source.spec.source) not in ("", *CDI_SOURCES)


def _source_of(seen: CachedObject) -> DataVolumeSource | None:
    volume: DataVolume = seen.read(targets.VOLUMES)
    return volume.spec.source


def wire(program: ControllerManager, settings: KubermaticSettings) -> Controller:
    """The controller, wired to a program that has everything."""
    consumers = Consumers(program.informers)
    rendering = Rendering(product=settings.product)
    goldens = GoldenImages(program.client, consumers, rendering, program.recorder.voice(targets.MANAGER))
    controller = Controller(
        "kubermatic-datasource",
        consumers.sources,
        goldens.reconcile,
        machinery=program.machinery,
        recorder=program.recorder,
        settings=ControllerSettings(workers=settings.workers, sweep_seconds=settings.resync_seconds),
    )
    for target in CONSUMING:
        controller.watch(consumers.informers[target.plural], consumers.named_by(target))
    controller.watch(consumers.informers[targets.VOLUMES.plural], owners(targets.SOURCES.group, targets.SOURCES.kind))
    program.add(controller)
    return controller
