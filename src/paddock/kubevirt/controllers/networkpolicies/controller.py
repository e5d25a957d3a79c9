"""Policies, machines and namespaces in; what the engine holds cards to out.

What one policy means depends on all machines, so everything is computed anew at each change, once however many came together. There is
one key.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from paddock.engine.networks.nics import NicPolicy
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, Outcome
from paddock.kubernetes.runtime.kindreconciler import WholeKindReconciler
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import instance
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance.identity import owner_of
from paddock.kubevirt.plan.network.endpoints import labels_of, primary_card
from paddock.kubevirt.plan.network.policies import ClusterView, PolicySubject, policies

POLICIES = kind_target("networking.k8s.io", "NetworkPolicy")
NAMESPACES = kind_target("", "Namespace")
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
_ALL = Key("", "all")


class PolicyEngine(Protocol):
    """The part of the engine that applies policies."""

    async def police(self, policies: list[NicPolicy]) -> None:
        """Hold cards to exactly these."""


class NetworkPolicyReconciler(WholeKindReconciler):
    """Reconciles all policies at once."""

    def __init__(self, program: ControllerManager, networks: PolicyEngine) -> None:
        self._networks = networks
        self._policies = program.informers.of(POLICIES)
        self._instances = program.informers.of(INSTANCES)
        self._namespaces = program.informers.of(NAMESPACES)
        # what policies see of a machine, by its revision
        self._known: StateMemo[str, PolicySubject] = StateMemo(self._instances)
        self._last: list[NicPolicy] | None = None

    async def work(self) -> Outcome:
        """Have the engine hold cards to what all policies say now."""
        # Machines start and end often, and most hosts have no policy at all: then it is of no interest who is there.
        wanted = policies((seen.read(POLICIES) for seen in self._policies.cache), self._cluster_view()) if len(self._policies.cache) else []
        if wanted != self._last:
            self._last = None
            await self._networks.police(wanted)
            self._last = wanted
        return DONE

    def _cluster_view(self) -> ClusterView:
        subjects = tuple(self._subject(seen) for seen in self._instances.cache)
        return ClusterView(subjects, {seen.meta.name: _labels(seen) for seen in self._namespaces.cache})

    def _subject(self, seen: CachedObject) -> PolicySubject:
        known = self._known.get(seen.key, seen.meta.resourceVersion)
        if known is None:
            instance = seen.read(INSTANCES)
            interface = primary_card(instance)
            ports = interface.ports or () if interface is not None else ()
            named = {(port.name, (port.protocol or "TCP").upper()): port.port for port in ports if port.name}
            subject = PolicySubject(owner_of(instance), seen.meta.namespace or "", labels_of(instance), named)
            known = self._known.put(seen.key, seen.meta.resourceVersion, subject)
        return known


def _labels(seen: CachedObject) -> Mapping[str, str]:
    return {"kubernetes.io/metadata.name": seen.meta.name, **(seen.meta.labels or {})}


def _everything(change: CacheChange) -> Iterable[Key]:
    return (_ALL,)


def _instance(change: CacheChange) -> Iterable[Key]:
    """A machine's status changes often, and says nothing to policies."""
    old, new = change.old, change.new
    if old is not None and new is not None and (old.meta.labels, old.meta.generation) == (new.meta.labels, new.meta.generation):
        return ()
    return (_ALL,)


def add(program: ControllerManager, networks: Any) -> Controller:
    """Add the controller to a program."""
    policing = NetworkPolicyReconciler(program, networks)
    # The primary kind's own keys become the one key, too: the work is the same, and the queue makes one of many.
    controller = Controller(
        "networkpolicies",
        program.informers.of(POLICIES),
        policing.reconcile,
        machinery=program.machinery,
        settings=ControllerSettings(workers=1),
    )
    controller.watch(program.informers.of(INSTANCES), _instance)
    controller.watch(program.informers.of(NAMESPACES), _everything)
    controller.offer(_ALL)
    program.add(controller)
    return controller
