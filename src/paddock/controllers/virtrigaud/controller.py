"""VirtRigaud's controllers, wired to a program: what each listens to."""

from paddock.base.backoff import Backoff
from paddock.client.target import Key
from paddock.controllers.virtrigaud.context import MANAGER, VirtrigaudParts
from paddock.controllers.virtrigaud.hooks import HttpExchange, exchange
from paddock.controllers.virtrigaud.images import VirtrigaudImageReconciler
from paddock.controllers.virtrigaud.machines import VirtrigaudMachineReconciler
from paddock.controllers.virtrigaud.providers import VirtrigaudProviderReconciler
from paddock.controllers.virtrigaud.reader import VirtrigaudCaches
from paddock.controllers.virtrigaud.registry import Providers
from paddock.controllers.virtrigaud.settings import VirtrigaudSettings
from paddock.controllers.virtrigaud.usage import VirtrigaudClassReconciler, VirtrigaudNetworkReconciler
from paddock.runtime.controller import Controller, Reconcile
from paddock.runtime.controller import ControllerSettings as Pace
from paddock.runtime.informer import Informer
from paddock.runtime.program import ControllerManager

DIALECT = "virtrigaud"
_AGAIN = Backoff(first=1.0, longest=60.0)


def wire(
    program: ControllerManager,
    providers: Providers,
    settings: VirtrigaudSettings = VirtrigaudSettings(),  # noqa: B008 - frozen
    http: HttpExchange = exchange,
) -> Controller:
    """Add the controllers to the program; the one of machines is returned."""
    caches = VirtrigaudCaches(program.informers)
    parts = VirtrigaudParts(program.client, caches, providers, program.machinery, program.recorder.voice(MANAGER), settings)

    def control(name: str, informer: Informer, reconcile: Reconcile, workers: int) -> Controller:
        pace = Pace(workers=workers, backoff=_AGAIN, sweep_seconds=settings.resync_seconds, about=lambda key: {"dialect": DIALECT})
        made = Controller(f"{DIALECT}-{name}", informer, reconcile, machinery=program.machinery, settings=pace)
        program.add(made)
        return made

    machines = control("machines", caches.machines, VirtrigaudMachineReconciler(parts, http).reconcile, settings.workers)
    for informer, keys in caches.watched:
        machines.watch(informer, keys)
    images = control("images", caches.images, VirtrigaudImageReconciler(parts).reconcile, 2)
    images.watch(caches.machines, caches.referred("VMImage"))
    images.watch(caches.providers, caches.images_of_provider)
    classes = control("classes", caches.classes, VirtrigaudClassReconciler(parts).reconcile, 1)
    classes.watch(caches.machines, caches.referred("VMClass"))
    networks = control("networks", caches.networks, VirtrigaudNetworkReconciler(parts).reconcile, 1)
    networks.watch(caches.machines, caches.referred("VMNetworkAttachment"))
    of_providers = control("providers", caches.providers, VirtrigaudProviderReconciler(parts).reconcile, settings.provider_workers)
    of_providers.watch(caches.machines, caches.referred("Provider"))

    def changed(key: Key) -> None:
        of_providers.offer(key)
        for machine in caches.users("Provider", key):
            machines.offer(machine)

    providers.listen(changed)
    return machines
