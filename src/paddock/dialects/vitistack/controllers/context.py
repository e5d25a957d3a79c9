"""One look at a machine: what is read at its beginning, and what is found and done on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.metrics import VitistackMetrics
from paddock.dialects.vitistack.controllers.reader import VitistackCaches, references
from paddock.dialects.vitistack.controllers.settings import VitistackSettings
from paddock.dialects.vitistack.kinds import ownform
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.plan.claims import ExistingClaim
from paddock.dialects.vitistack.plan.observed import (
    Instance,
    MachineProblem,
    ObservedClaim,
    ObservedDataVolume,
    ObservedMachine,
    ObservedNetwork,
    Vm,
)
from paddock.dialects.vitistack.translate import keys
from paddock.dialects.vitistack.translate.cloudinit import secret_name
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.reference import InvolvedObject, reference

_VOLUME = msgspec.json.Decoder(ObservedDataVolume)


@dataclass(frozen=True)
class ControllerParts:
    """The shared parts of the controller."""

    client: Client
    caches: VitistackCaches
    clock: Clock
    metrics: VitistackMetrics
    recorder: EventRecorder
    settings: VitistackSettings


class MachineContext(msgspec.Struct):
    seen: CachedObject
    machine: Machine
    vm_seen: CachedObject | None
    vm: Vm | None
    instance: Instance | None
    # its claims by name, those of disks that it has no longer, too
    found: Mapping[str, ExistingClaim]
    # None: nothing has been asked for yet
    claims: list[ObservedClaim] | None = None
    # networks that it was attached to a moment ago
    attached: set[str] = msgspec.field(default_factory=set)
    # its VirtualMachine was made a moment ago
    made: bool = False
    # something was written, so what is cached is not all there is
    wrote: bool = False
    # the server has what the caches lack, so there is nothing to report yet
    behind: bool = False
    problem: MachineProblem | None = None
    error: PaddockError | None = None

    @property
    def key(self) -> Key:
        return self.seen.key

    @property
    def owner(self) -> InvolvedObject:
        """The machine, as an owner and in events."""
        return reference(targets.MACHINES, self.seen.meta)


def look_at(caches: VitistackCaches, seen: CachedObject) -> MachineContext:
    """A machine and everything that was made for it."""
    vm, instance = caches.vm_of(seen), caches.instance_of(seen.key)
    found = {each.meta.name: each.read(targets.CLAIMS) for each in caches.claims_of(seen.key, seen.meta.uid)}
    used = [ObservedClaim(name, each.status.phase) for name, each in found.items()]
    return MachineContext(
        seen,
        seen.read(targets.MACHINES),
        vm,
        vm.read(targets.VMS) if vm is not None else None,
        instance.read(targets.INSTANCES) if instance is not None else None,
        found,
        used or None,
    )


def observed_machine(caches: VitistackCaches, machine_context: MachineContext, settings: VitistackSettings) -> ObservedMachine:
    """Return the observed state for the status."""
    return ObservedMachine(
        machine=machine_context.machine,
        vm=machine_context.vm,
        made=machine_context.made,
        instance=machine_context.instance,
        claims=tuple(machine_context.claims) if machine_context.claims is not None else None,
        volumes=tuple(_VOLUME.decode(each.raw) for each in caches.volumes_of(machine_context.key, machine_context.seen.meta.uid)),
        networks=tuple(_networks(caches, machine_context)),
        problem=machine_context.problem,
        start_failure_limit=settings.start_failure_limit,
    )


def _networks(caches: VitistackCaches, machine_context: MachineContext) -> list[ObservedNetwork]:
    names = dict.fromkeys(each.networkName for each in ownform.networks(machine_context.machine.spec))
    return [_network(caches, Key(machine_context.key.namespace, name), attached=name in machine_context.attached) for name in names]


def _network(caches: VitistackCaches, key: Key, *, attached: bool) -> ObservedNetwork:
    there = attached or caches.attachments.cache.get(key) is not None
    return ObservedNetwork(key.name, found=caches.networks.cache.get(key) is not None, attached=there)


def revisions(caches: VitistackCaches, seen: CachedObject) -> tuple[Any, ...]:
    """The revisions of all that a look reads. When they are the same, so is what comes of it."""
    key = seen.key
    found: list[Any] = [seen.meta.resourceVersion]
    secrets = [(caches.secrets.cache, Key(key.namespace, name(key.name))) for name in (secret_name, keys.secret_name)]
    for cache, place in ((caches.vms.cache, key), (caches.instances.cache, key), *secrets):
        one = cache.get(place)
        found.append(one.meta.resourceVersion if one is not None else None)
    found += [each.meta.resourceVersion for each in caches.claims_of(key, seen.meta.uid)]
    found += [each.meta.resourceVersion for each in caches.volumes_of(key, seen.meta.uid)]
    found += [_revision_of(caches, text) for text in references(seen)]
    found.append(caches.classes_revision)
    return tuple(found)


def _revision_of(caches: VitistackCaches, text: str) -> str | None:
    plural, _, place = text.partition("/")
    one = caches.by_plural[plural].cache.get(Key.of(place))
    return one.meta.resourceVersion if one is not None else None
