"""Putting the controllers of snapshots together."""

from paddock.engine.engine import Engine
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.snapshots import machinesnapshots, restores
from paddock.kubevirt.controllers.snapshots.backups import BackupCaches, BackupReconciler
from paddock.kubevirt.controllers.snapshots.layers import Layers
from paddock.kubevirt.controllers.snapshots.machinesnapshots import MachineSnapshotReconciler
from paddock.kubevirt.controllers.snapshots.memories import MemoryReconciler
from paddock.kubevirt.controllers.snapshots.restores import RestoreReconciler
from paddock.kubevirt.controllers.snapshots.targets import (
    BACKUPS,
    CLAIMS,
    CONTENTS,
    INSTALLATIONS,
    INSTANCES,
    MACHINES,
    NAMESPACES,
    RESTORES,
    SNAPSHOTS,
    TRACKERS,
    VOLUME_SNAPSHOTS,
)
from paddock.kubevirt.controllers.snapshots.tracking import TrackingReconciler
from paddock.kubevirt.controllers.snapshots.volumesnapshots import VolumeSnapshotReconciler
from paddock.kubevirt.plan.instance.brief import brief
from paddock.kubevirt.plan.snapshots import machines as plan

# In the JSON of one that is done.
_DONE, _READY = b'"complete":true', b'"readyToUse":true'


def assemble(program: ControllerManager, host: Engine) -> None:
    """Add the controllers to a program."""
    _assemble_backups(program, host)
    engine, volumes = host.snapshots, host.volumes
    client, clock, recorder = program.client, program.machinery.clock, program.recorder
    of = program.informers.of
    snapshots, claims, machines, volume_snapshots = of(SNAPSHOTS), of(CLAIMS), of(MACHINES), of(VOLUME_SNAPSHOTS)
    restored, instances = of(RESTORES), of(INSTANCES)

    of_volumes = VolumeSnapshotReconciler(client, volume_snapshots, claims, (engine, volumes), clock, recorder)
    program.add(Controller("volumesnapshots", volume_snapshots, of_volumes.reconcile, machinery=program.machinery, recorder=recorder))

    caches = machinesnapshots.SnapshotCaches(snapshots, machines, claims, volume_snapshots)
    of_machines = MachineSnapshotReconciler(client, caches, engine, volumes, clock, recorder)
    taking = Controller("virtualmachinesnapshots", snapshots, of_machines.reconcile, machinery=program.machinery, recorder=recorder)
    # All that are under way wait for something; there are few.
    for informer in (machines, claims, volume_snapshots):
        taking.watch(informer, lambda change: _unfinished(snapshots, change))
    taking.watch(volume_snapshots, lambda change: _owners(snapshots, change))
    program.add(taking)

    seen = restores.RestoreCaches(restored, snapshots, machines, instances, claims)
    restoring = Controller(
        "virtualmachinerestores",
        restored,
        RestoreReconciler(client, seen, host, clock, recorder).reconcile,
        machinery=program.machinery,
        recorder=recorder,
    )
    for informer in (snapshots, machines, instances, claims):
        restoring.watch(informer, lambda change: _unfinished(restored, change))
    program.add(restoring)

    contents = of(CONTENTS)
    memories = MemoryReconciler(client, contents, host.memories, clock)
    program.add(Controller("snapshotmemories", contents, memories.reconcile, machinery=program.machinery, recorder=recorder))

    layers = Layers(claims, instances, engine, volumes)
    merging = Controller("snapshotlayers", claims, layers.reconcile, machinery=program.machinery, recorder=recorder)
    merging.watch(instances, _claims_of_ended)
    program.add(merging)


def _assemble_backups(program: ControllerManager, host: Engine) -> None:
    client, clock, recorder, of = program.client, program.machinery.clock, program.recorder, program.informers.of
    backups, machines, instances = of(BACKUPS), of(MACHINES), of(INSTANCES)
    installations, namespaces = of(INSTALLATIONS), of(NAMESPACES)

    following = TrackingReconciler(client, machines, instances, (installations, namespaces), host.machines)
    tracking = Controller("changedblocktracking", machines, following.reconcile, machinery=program.machinery, recorder=recorder)
    tracking.watch(instances, lambda change: [change.seen.key])
    tracking.watch(installations, following.everywhere)
    tracking.watch(namespaces, following.inside)
    program.add(tracking)

    caches = BackupCaches(backups, of(TRACKERS), machines, instances, of(CLAIMS))
    of_backups = BackupReconciler(client, caches, (host.machines, host.backups), clock, recorder)
    taking = Controller("virtualmachinebackups", backups, of_backups.reconcile, machinery=program.machinery, recorder=recorder)
    for informer in (caches.trackers, instances, caches.claims):
        taking.watch(informer, lambda change: of_backups.unfinished(change.seen.key.namespace))
    program.add(taking)


def _claims_of_ended(change: CacheChange) -> list[Key]:
    """The claims that an instance had when it is gone."""
    if change.new is not None:
        return []
    return [Key(change.seen.key.namespace, name) for name in brief(change.seen.raw).claims]


def _owners(snapshots: Informer, change: CacheChange) -> list[Key]:
    """The machine's snapshot that a VolumeSnapshot belongs to: it may be gone, and its content says how it is."""
    key = change.seen.key
    return [seen.key for seen in snapshots.cache.by("namespace", key.namespace) if plan.is_part(seen.meta.uid, key.name)]


def _unfinished(informer: Informer, change: CacheChange) -> list[Key]:
    """Those of the change's namespace that are not done."""
    return [
        seen.key for seen in informer.cache.by("namespace", change.seen.key.namespace) if _DONE not in seen.raw and _READY not in seen.raw
    ]
