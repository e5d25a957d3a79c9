"""Kubermatic's front door, wired to two programs.

`front` has what users wrote, `back` is the cluster. The controllers run in `back`, under its leadership; `front` watches and tells events,
needs no leadership, and has to be run beside it: `TaskGroup(front.run(), back.run())`.
"""

from collections.abc import Iterable
from typing import Any

from paddock.dialects.kubermatic.controllers import targets
from paddock.dialects.kubermatic.controllers.actions import ClusterDoor, ClusterWriter
from paddock.dialects.kubermatic.controllers.mirror import ClusterMirror
from paddock.dialects.kubermatic.controllers.reader import CONSUMING, Views
from paddock.dialects.kubermatic.controllers.settings import KubermaticSettings
from paddock.dialects.kubermatic.controllers.sources import KubermaticDataSourceReconciler
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.controller import Controller, ControllerSettings, Keys, Reconcile, own_key, owners
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.kinds.extendedsources import DATA_SOURCE


def wire(
    front: ControllerManager,
    back: ControllerManager,
    settings: KubermaticSettings = KubermaticSettings(),  # noqa: B008 - frozen
) -> None:
    """Add the controllers to the programs."""
    views = Views(front.informers, back.informers)
    writer = ClusterWriter(back.client, views.back.values())
    recorder = front.recorder.voice(targets.MANAGER)
    door = ClusterDoor(views, writer, front.client, Rendering(product=settings.product), back.machinery.clock, recorder)

    def controller(target: Target[Any], reconcile: Reconcile) -> Controller:
        about = {"dialect": "kubermatic", "kind": target.kind}
        made = Controller(
            f"kubermatic-{target.kind.lower()}",
            views.front(target),
            reconcile,
            machinery=back.machinery,
            recorder=front.recorder,
            settings=ControllerSettings(workers=settings.workers, sweep_seconds=settings.resync_seconds, about=lambda key: about),
        )
        made.watch(views.back[target.plural], own_key)
        back.add(made)
        return made

    sources = controller(targets.SOURCES, KubermaticDataSourceReconciler(door).reconcile)
    for informer in (views.secrets, views.config_maps):
        sources.watch(informer, views.reading)
    sources.watch(views.back[targets.VOLUMES.plural], _made_for)
    for target in CONSUMING:
        sources.watch(views.front(target), views.consumers.named_by(target))
        mirror = ClusterMirror(target, door)
        of_target = controller(target, mirror.reconcile)
        _wake(of_target, target, views)


def _wake(controller: Controller, target: Target[Any], views: Views) -> None:
    """Watch the other objects whose changes reconcile an object again."""

    def referring(change: CacheChange) -> Iterable[Key]:
        return views.consumers.keys(target, change.seen.key)

    def trusting(change: CacheChange) -> Iterable[Key]:
        for source in views.reading(change):
            yield from views.consumers.keys(target, source)

    watched: list[tuple[Any, Keys]] = [
        (views.consumers.sources, referring),
        (views.back[targets.SOURCES.plural], referring),
        (views.secrets, trusting),
        (views.config_maps, trusting),
    ]
    if target is targets.MACHINES:
        watched.append((views.back[targets.VOLUMES.plural], owners(target.group, target.kind)))
    for informer, keys in watched:
        controller.watch(informer, keys)
    controller.watch(views.images, lambda change: ())
    # Feature gates may have been turned on.
    controller.watch(views.installations, lambda change: [seen.key for seen in views.front(target).cache])


def _made_for(change: CacheChange) -> Iterable[Key]:
    """The DataSource that a DataVolume is the one copy of."""
    annotations = change.seen.read(targets.VOLUMES).metadata.annotations or {}
    text = annotations.get(DATA_SOURCE, "")
    return (Key.of(text),) if "/" in text else ()
