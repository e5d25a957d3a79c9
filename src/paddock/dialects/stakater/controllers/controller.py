"""The controller of Stakater's machines, wired to a program: what it listens to and what it counts.

A cluster where Crossplane serves the kind is refused before any controller starts, by whoever puts the program together.
"""

from collections.abc import Callable

import orjson

from paddock.base.backoff import Backoff
from paddock.dialects.stakater.controllers.actions import MANAGER
from paddock.dialects.stakater.controllers.machines import StakaterMachineReconciler
from paddock.dialects.stakater.controllers.reader import StakaterCaches
from paddock.dialects.stakater.controllers.settings import StakaterSettings
from paddock.dialects.stakater.plan.conditions import READY
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import Controller
from paddock.kubernetes.runtime.controller import ControllerSettings as Pace
from paddock.kubernetes.runtime.program import ControllerManager

DIALECT = "stakater"
_AGAIN = Backoff(first=1.0, longest=60.0)
# Disks that are made are dozens of changes in a moment. What a machine is called is never gathered: people watch it.
_GATHER_SECONDS = 0.05
_READINESS = "whether stakater's machines are ready"


def wire(program: ControllerManager, settings: StakaterSettings = StakaterSettings()) -> Controller:  # noqa: B008 - frozen
    """Add the controller to the program."""
    caches = StakaterCaches(program.informers)
    voice = program.recorder.voice(MANAGER)
    machines = StakaterMachineReconciler(program.client, caches, program.machinery, voice, settings)
    pace = Pace(
        workers=settings.workers,
        backoff=_AGAIN,
        sweep_seconds=settings.resync_seconds,
        about=lambda key: {"dialect": DIALECT, "generation": str(_generation(caches, key))},
    )
    controller = Controller(DIALECT, caches.fronts, machines.reconcile, machinery=program.machinery, recorder=voice, settings=pace)
    flurry = (caches.disks, caches.claims)
    for informer, keys in caches.watched:
        controller.watch(informer, keys, gather=_GATHER_SECONDS if informer in flurry else 0.0)
    _measure(program, caches, controller)
    program.add(controller)
    return controller


def _measure(program: ControllerManager, caches: StakaterCaches, controller: Controller) -> None:
    metrics = program.machinery.metrics
    results = metrics.counter("paddock_front_reconcile_total", "Reconciles of a dialect's objects, by their result.", ("dialect", "result"))
    durations = metrics.histogram(
        "paddock_front_reconcile_duration_seconds", "Duration of reconciles of a dialect's objects.", ("dialect",)
    )
    objects = metrics.gauge("paddock_front_objects", "Objects of a dialect, by whether they are ready.", ("dialect", "ready"))
    cache = caches.fronts.cache
    cache.index(_READINESS, lambda seen: (_readiness(seen),))

    def observe(name: str, result: str, seconds: float) -> None:
        results.inc(DIALECT, result)
        durations.observe(seconds, DIALECT)

    def count(status: str) -> Callable[[], float]:
        return lambda: len(cache.by(_READINESS, status))

    controller.observers.append(observe)
    for status in ("True", "False", "Unknown"):
        objects.ask(count(status), DIALECT, status)


def _generation(caches: StakaterCaches, key: Key) -> int:
    seen = caches.fronts.cache.get(key)
    return (seen.meta.generation or 0) if seen is not None else 0


def _readiness(seen: CachedObject) -> str:
    conditions = (orjson.loads(seen.raw).get("status") or {}).get("conditions") or ()
    return next((each.get("status", "Unknown") for each in conditions if each.get("type") == READY), "Unknown")
