"""A Service: its endpoints follow the machines that it selects and their readiness; the engine listens for it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.core import service
from paddock.kubernetes.core.service import Service, ServiceSpec
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.memo import StateMemo
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.recorder import Recorder
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.controllers.services.published import PublishedServices, ServiceNetworks
from paddock.kubevirt.kinds import instance
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.network import endpoints
from paddock.kubevirt.plan.network.endpoints import MachineBackend

SERVICES: Target[Service] = declared(service.KINDS[0], Service)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
ENDPOINTS = kind_target("", "Endpoints")
SLICES = kind_target("discovery.k8s.io", "EndpointSlice")


# A port that another program has may be free by then.
_AGAIN_SECONDS = 15.0


class Backends:
    """Machines as backends, read once for each revision."""

    def __init__(self, informers: Informers) -> None:
        self._informer = informers.of(INSTANCES)
        self._known: StateMemo[str, tuple[Mapping[str, str], MachineBackend | None]] = StateMemo(self._informer)

    def of(self, service: Service) -> list[MachineBackend]:
        """Those that a Service selects."""
        spec = service.spec or ServiceSpec()
        found = (self._read(seen) for seen in self._informer.cache.by("namespace", service.metadata.namespace or ""))
        return [backend for labels, backend in found if backend is not None and endpoints.is_selected(spec, labels)]

    def _read(self, seen: CachedObject) -> tuple[Mapping[str, str], MachineBackend | None]:
        revision = seen.meta.resourceVersion
        known = self._known.get(seen.key, revision)
        if known is None:
            instance = seen.read(INSTANCES)
            known = self._known.put(seen.key, revision, (endpoints.labels_of(instance), endpoints.backend_of(instance)))
        return known


class ServiceReconciler(KindReconciler):
    def __init__(self, client: Client, informers: Informers, recorder: Recorder, networks: ServiceNetworks, domain: str) -> None:
        super().__init__(informers.of(SERVICES))
        self._recorder = recorder
        self._publishing = PublishedServices(networks, self._is_complete)
        # those that were reconciled
        self._begun: set[Key] = set()
        self._domain = domain
        self._statuses = StatusWriter(client, SERVICES, self._informer.expectations)
        self._backends = Backends(informers)
        self._desired = DesiredSet(client, (informers.of(ENDPOINTS), informers.of(SLICES)), manager="paddock-services")

    async def forget(self, key: Key) -> None:
        """Listen for the Service no longer."""
        self._begun.discard(key)
        await self._publishing.remove(key)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Listen no longer for a Service that is being deleted."""
        self._begun.add(seen.key)
        await self._publishing.remove(seen.key)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Write where the Service leads, have it listened for, and say what came of it."""
        key = seen.key
        self._begun.add(key)
        service = seen.read(SERVICES)
        spec = service.spec or ServiceSpec()
        own = reference(SERVICES, seen.meta)
        if not spec.selector or spec.type == "ExternalName":
            # Where it leads is somebody else's to say.
            await self._desired.reach(own, ())
            await self._publishing.remove(key)
            await self._report(seen, service, ())
            return DONE
        backends = self._backends.of(service)
        written = [DesiredObject(ENDPOINTS, endpoints.endpoints(service, backends), adopt=True)]
        written += [DesiredObject(SLICES, each) for each in endpoints.slices(service, backends)]
        await self._desired.reach(own, written)
        known = self._publishing.outside_addresses if endpoints.is_balanced(spec) else ()
        outside = tuple(each for each in known if endpoints.family_of(each) in endpoints.families(spec))
        published = endpoints.published(service, backends, outside)
        problems = await self._publishing.put(key, published, endpoints.names(service, backends, self._domain))
        # An address at which nothing listens is none.
        places = [f"[{address}]:" if ":" in address else f"{address}:" for address in outside]
        lacking = any(place in problem for place in places for problem in problems)
        await self._report(seen, service, () if lacking else outside)
        return self._tell(own, problems)

    def _is_complete(self) -> bool:
        """Return whether every Service has been reconciled since the start."""
        return all(seen.key in self._begun for seen in self._informer.cache)

    def _tell(self, own: InvolvedObject, problems: Iterable[str]) -> Outcome:
        said = "; ".join(problems)
        if not said:
            return DONE
        self._recorder.tell(own, "Warning", "PortUnavailable", f"cannot listen at {said}; it is tried again")
        return again(_AGAIN_SECONDS)

    async def _report(self, seen: CachedObject, service: Service, outside: Iterable[str]) -> None:
        """The addresses of the load balancer."""
        spec = service.spec or ServiceSpec()
        if spec.loadBalancerClass:
            return
        known = service.status.loadBalancer.ingress or () if service.status is not None and service.status.loadBalancer is not None else ()
        wanted = [{"ip": address, "ipMode": "VIP"} for address in outside]
        if [each.ip for each in known] == [each["ip"] for each in wanted]:
            return
        await self._statuses.change(seen, {"loadBalancer": {"ingress": wanted or None}})

    def concerned(self, change: CacheChange) -> Iterator[Key]:
        """The Services that a change of a machine may concern: those that select it, before or after, as far as labels tell."""
        namespace = change.seen.meta.namespace or ""
        for seen in self._informer.cache.by("namespace", namespace):
            spec = seen.read(SERVICES).spec or ServiceSpec()
            if spec.selector and any(_may_select(spec, each) for each in (change.old, change.new) if each is not None):
                yield seen.key


def _may_select(spec: ServiceSpec, seen: CachedObject) -> bool:
    """Labels that upstream implies are not known without reading the machine: they are taken for granted."""
    labels = seen.meta.labels or {}
    return all(labels.get(key, value if "kubevirt.io" in key else None) == value for key, value in (spec.selector or {}).items())


def _slice(change: CacheChange) -> Iterable[Key]:
    """Return the key of the Service of a changed slice."""
    labels = change.seen.meta.labels or {}
    name = labels.get("kubernetes.io/service-name", "")
    return (Key(change.seen.meta.namespace or "", name),) if name else ()


def add(program: ControllerManager, networks: Any, domain: str) -> Controller:
    """Add the controller to a program."""
    informers = program.informers
    services = ServiceReconciler(program.client, informers, program.recorder, networks, domain)
    controller = Controller("services", informers.of(SERVICES), services.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(informers.of(INSTANCES), services.concerned)
    controller.watch(informers.of(SLICES), _slice)
    program.add(controller)
    return controller
