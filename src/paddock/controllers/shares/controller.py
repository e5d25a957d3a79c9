"""Namespaces in; the weights by which the engine shares processors among them out. There is one key: all weights go at once."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from paddock.client.target import Key, plain
from paddock.plan.quotas import cpushares
from paddock.runtime.cache import CacheChange
from paddock.runtime.controller import DONE, Controller, ControllerSettings, Outcome
from paddock.runtime.program import ControllerManager

NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
_ALL = Key("", "all")


class SharingEngine(Protocol):
    """The part of the engine that shares processors."""

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Take the weights of namespaces; the others have the default."""


class CpuShareReconciler:
    """Reconciles the weights of all namespaces at once."""

    def __init__(self, program: ControllerManager, shares: SharingEngine) -> None:
        self._namespaces = program.informers.of(NAMESPACES)
        self._shares = shares

    async def reconcile(self, key: Key) -> Outcome:
        """Have the engine share by what all namespaces say now."""
        weights = {seen.meta.name: cpushares.weight_of(seen.meta.annotations or {}) for seen in self._namespaces.cache}
        given = {name: weight for name, weight in weights.items() if weight is not None}
        # The kernel's lock of control groups may be held for long.
        await asyncio.to_thread(self._shares.weigh, given)
        return DONE


def _changed(change: CacheChange) -> Iterable[Key]:
    """Namespaces change when they end, which says nothing to shares."""
    old, new = (each.meta.annotations if each is not None else None for each in (change.old, change.new))
    return (_ALL,) if cpushares.weight_of(old or {}) != cpushares.weight_of(new or {}) else ()


def add(program: ControllerManager, shares: SharingEngine) -> Controller:
    """Add the controller to a program."""
    sharing = CpuShareReconciler(program, shares)
    controller = Controller(
        "cpushares",
        program.informers.of(NAMESPACES),
        sharing.reconcile,
        machinery=program.machinery,
        settings=ControllerSettings(workers=1),
    )
    controller.watch(program.informers.of(NAMESPACES), _changed)
    controller.offer(_ALL)
    program.add(controller)
    return controller
