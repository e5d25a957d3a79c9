"""Namespaces in; the weights by which the engine shares processors among them out."""

from collections.abc import Mapping
from typing import Protocol

from paddock.base import cpushares
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, Outcome
from paddock.kubernetes.runtime.kindreconciler import WholeKindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.targets import kind_target

NAMESPACES = kind_target("", "Namespace")


class SharingEngine(Protocol):
    """The part of the engine that shares processors."""

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Take the weights of namespaces; the others have the default."""


class CpuShareReconciler(WholeKindReconciler):
    """Reconciles the weights of all namespaces at once."""

    def __init__(self, program: ControllerManager, shares: SharingEngine) -> None:
        self._namespaces = program.informers.of(NAMESPACES)
        self._shares = shares

    async def work(self) -> Outcome:
        """Have the engine share by what all namespaces say now."""
        self._shares.weigh({each.meta.name: weight for each in self._namespaces.cache if (weight := _weight(each)) is not None})
        return DONE


def _weight(seen: CachedObject) -> int | None:
    return cpushares.weight_of(seen.read(NAMESPACES)["metadata"].get("annotations") or {})


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
    program.add(controller)
    return controller
