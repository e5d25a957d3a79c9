"""VirtRigaud's controllers, wired to a program: what each listens to."""

from collections.abc import Callable

from paddock.base.backoff import Backoff
from paddock.dialects.virtrigaud.controllers.clones.reconciler import VirtrigaudCloneReconciler
from paddock.dialects.virtrigaud.controllers.context import MANAGER, VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.images.reconciler import VirtrigaudImageReconciler
from paddock.dialects.virtrigaud.controllers.machines.hooks import HttpExchange, exchange
from paddock.dialects.virtrigaud.controllers.machines.reconciler import VirtrigaudMachineReconciler
from paddock.dialects.virtrigaud.controllers.metrics import VirtrigaudMetrics
from paddock.dialects.virtrigaud.controllers.migrations.reconciler import NetworkChecks, VirtrigaudMigrationReconciler
from paddock.dialects.virtrigaud.controllers.observed import ObservedProviders
from paddock.dialects.virtrigaud.controllers.policies import VirtrigaudPolicyReconciler
from paddock.dialects.virtrigaud.controllers.providers.adoption import VirtrigaudAdoptionReconciler
from paddock.dialects.virtrigaud.controllers.providers.reconciler import VirtrigaudProviderReconciler
from paddock.dialects.virtrigaud.controllers.providers.watching import VirtrigaudPowerWatch
from paddock.dialects.virtrigaud.controllers.reader import VirtrigaudCaches
from paddock.dialects.virtrigaud.controllers.registry import Providers
from paddock.dialects.virtrigaud.controllers.sets.reconciler import SetCaches, VirtrigaudSetReconciler
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.dialects.virtrigaud.controllers.snapshots.reconciler import VirtrigaudSnapshotReconciler
from paddock.dialects.virtrigaud.controllers.usage import VirtrigaudClassReconciler, VirtrigaudNetworkReconciler
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.controller import Controller, Reconcile
from paddock.kubernetes.runtime.controller import ControllerSettings as Pace
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.program import ControllerManager

DIALECT = "virtrigaud"
# Makes a controller of a name, an informer, a reconciler and a number of workers.
MadeControllers = Callable[[str, Informer, Reconcile, int], Controller]
_AGAIN = Backoff(first=1.0, longest=60.0)


def wire(
    program: ControllerManager,
    providers: Providers,
    settings: VirtrigaudSettings = VirtrigaudSettings(),  # noqa: B008 - frozen
    http: HttpExchange = exchange,
    checks: NetworkChecks = NetworkChecks(),  # noqa: B008 - frozen
) -> Controller:
    """Add the controllers to the program; the one of machines is returned."""
    caches = VirtrigaudCaches(program.informers)
    metrics = VirtrigaudMetrics(program.machinery, caches)
    providers = ObservedProviders(providers, metrics, program.machinery)
    parts = VirtrigaudParts(program.client, caches, providers, program.machinery, program.recorder.voice(MANAGER), settings)

    def control(name: str, informer: Informer, reconcile: Reconcile, workers: int) -> Controller:
        pace = Pace(workers=workers, backoff=_AGAIN, sweep_seconds=settings.resync_seconds, about=lambda key: {"dialect": DIALECT})
        made = Controller(f"{DIALECT}-{name}", informer, reconcile, machinery=program.machinery, settings=pace)
        program.add(made)
        metrics.observe(made, informer.target.kind)
        return made

    machines = _wire_machines(control, parts, http)
    snapshots = _wire_snapshots(control, parts, machines)
    _wire_images_and_usage(control, parts)
    of_providers = control("providers", caches.providers, VirtrigaudProviderReconciler(parts).reconcile, settings.provider_workers)
    of_providers.watch(caches.machines, caches.referred("Provider"))
    of_providers.watch(caches.secrets, caches.providers_of_secret)
    of_providers.watch(caches.images, caches.providers_of_image)
    adoption = control("adoption", caches.providers, VirtrigaudAdoptionReconciler(parts).reconcile, 1)
    clones = _wire_clones(control, parts)
    _wire_migrations(control, parts, checks)
    _wire_policies(control, parts)
    _wire_sets(control, parts, SetCaches(program.informers, caches.machines))

    def changed(key: Key) -> None:
        of_providers.offer(key)
        adoption.offer(key)
        for machine in caches.users("Provider", key):
            machines.offer(machine)
            for snapshot in caches.of_snapshots.keys(machine):
                snapshots.offer(snapshot)
        for clone in caches.waiting_clones():
            clones.offer(clone)

    providers.listen(changed)
    return machines


def _wire_machines(control: MadeControllers, parts: VirtrigaudParts, http: HttpExchange) -> Controller:
    caches, settings, reconciler = parts.caches, parts.settings, VirtrigaudMachineReconciler(parts, http)
    machines = control("machines", caches.machines, reconciler.reconcile, settings.workers)
    for informer, keys in caches.watched:
        machines.watch(informer, keys)

    def suspect(key: Key) -> None:
        reconciler.suspect(key)
        machines.offer(key)

    control("powers", caches.providers, VirtrigaudPowerWatch(parts, suspect).reconcile, settings.provider_workers)
    return machines


def _wire_images_and_usage(control: MadeControllers, parts: VirtrigaudParts) -> None:
    caches = parts.caches
    images = control("images", caches.images, VirtrigaudImageReconciler(parts).reconcile, 2)
    images.watch(caches.machines, caches.referred("VMImage"))
    images.watch(caches.providers, caches.images_of_provider)
    classes = control("classes", caches.classes, VirtrigaudClassReconciler(parts).reconcile, 1)
    classes.watch(caches.machines, caches.referred("VMClass"))
    networks = control("networks", caches.networks, VirtrigaudNetworkReconciler(parts).reconcile, 1)
    networks.watch(caches.machines, caches.referred("VMNetworkAttachment"))


def _wire_clones(control: MadeControllers, parts: VirtrigaudParts) -> Controller:
    caches = parts.caches
    clones = control("clones", caches.clones, VirtrigaudCloneReconciler(parts).reconcile, 2)
    clones.watch(caches.machines, caches.clones_of_machine)
    clones.watch(caches.snapshots, caches.clones_of_snapshot)
    for kind, informer in caches.named.items():
        clones.watch(informer, caches.unsettled_clones(kind))
    return clones


def _wire_migrations(control: MadeControllers, parts: VirtrigaudParts, checks: NetworkChecks) -> None:
    caches, reconcile = parts.caches, VirtrigaudMigrationReconciler(parts, checks).reconcile
    migrations = control("migrations", caches.migrations, reconcile, parts.settings.migration_workers)
    migrations.watch(caches.machines, caches.migrations_of_machine)
    migrations.watch(caches.providers, caches.migrations_of_provider)


def _wire_snapshots(control: MadeControllers, parts: VirtrigaudParts, machines: Controller) -> Controller:
    caches, reconcile = parts.caches, VirtrigaudSnapshotReconciler(parts).reconcile
    snapshots = control("snapshots", caches.snapshots, reconcile, parts.settings.snapshot_workers)
    snapshots.watch(caches.machines, caches.of_snapshots.of_machine)
    snapshots.watch(caches.providers, caches.snapshots_of_provider)
    snapshots.watch(caches.snapshots, caches.of_snapshots.siblings)
    machines.watch(caches.snapshots, caches.of_snapshots.machines)
    return snapshots


def _wire_policies(control: MadeControllers, parts: VirtrigaudParts) -> None:
    caches, reconciler = parts.caches, VirtrigaudPolicyReconciler(parts)
    policies = control("policies", caches.policies, reconciler.reconcile, 1)
    policies.watch(caches.machines, caches.referred("VMPlacementPolicy"))
    policies.watch(caches.policies, reconciler.neighbors)


def _wire_sets(control: MadeControllers, parts: VirtrigaudParts, caches: SetCaches) -> None:
    caches.watch(control("sets", caches.sets, VirtrigaudSetReconciler(parts, caches).reconcile, 2))
