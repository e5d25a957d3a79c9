"""Putting the controllers of backups together."""

from paddock.engine.engine import Engine
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.backups.controller import BackupCaches, BackupReconciler
from paddock.kubevirt.controllers.backups.targets import BACKUPS, CLAIMS, INSTALLATIONS, INSTANCES, MACHINES, NAMESPACES, TRACKERS
from paddock.kubevirt.controllers.backups.tracking import TrackingReconciler
from paddock.kubevirt.plan.backups import backups as plan


def assemble(program: ControllerManager, engine: Engine) -> None:
    """Add the controllers to a program."""
    client, clock, recorder, of = program.client, program.machinery.clock, program.recorder, program.informers.of
    backups, machines, instances = of(BACKUPS), of(MACHINES), of(INSTANCES)
    installations, namespaces = of(INSTALLATIONS), of(NAMESPACES)

    following = TrackingReconciler(client, machines, instances, (installations, namespaces), engine.machines)
    tracking = Controller("changedblocktracking", machines, following.reconcile, machinery=program.machinery, recorder=recorder)
    tracking.watch(instances, lambda change: [change.seen.key])
    tracking.watch(installations, following.everywhere)
    tracking.watch(namespaces, following.inside)
    program.add(tracking)

    caches = BackupCaches(backups, of(TRACKERS), machines, instances, of(CLAIMS))
    taking = BackupReconciler(client, caches, (engine.machines, engine.backups), clock, recorder)
    controller = Controller("virtualmachinebackups", backups, taking.reconcile, machinery=program.machinery, recorder=recorder)
    # There are few that are not over.
    for informer in (caches.trackers, caches.instances, caches.claims):
        controller.watch(informer, lambda change: _unfinished(backups, change))
    program.add(controller)


def _unfinished(backups: Informer, change: CacheChange) -> list[Key]:
    """The backups of the change's namespace that are not over."""
    found = backups.cache.by("namespace", change.seen.key.namespace)
    return [seen.key for seen in found if not plan.is_over(seen.read(BACKUPS).status)]
