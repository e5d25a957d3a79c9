"""Kubermatic's front door, wired to two programs.

`front` has what users wrote, `back` is the cluster. The controllers run in `back`, under its leadership; `front` watches and tells events,
needs no leadership, and has to be run beside it: `TaskGroup(front.run(), back.run())`.
"""

from collections.abc import Iterable
from typing import Any

from paddock.client.target import Key, Target
from paddock.controllers.kubermatic import targets
from paddock.controllers.kubermatic.actions import ClusterDoor, ClusterWriter
from paddock.controllers.kubermatic.mirror import ClusterMirror
from paddock.controllers.kubermatic.reader import CONSUMING, Views
from paddock.controllers.kubermatic.settings import KubermaticSettings
from paddock.controllers.kubermatic.sources import KubermaticDataSourceReconciler
from paddock.dialects.kubevirt.kubermaticmarks import DATA_SOURCE
from paddock.meta.rendering import Rendering
from paddock.runtime.cache import CacheChange
from paddock.runtime.controller import Controller, ControllerSettings, Keys, Reconcile, own_key, owners
from paddock.runtime.program import ControllerManager


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
