"""Finds the places of machines that are to be made: by their VMPlacementPolicy, and in their storage pod.

Two machines of a Provider are never placed at the same time, and the second one counts the first, which may not be made yet. The decision
and the policy's numbers are one write of the machine's status, before its create.
"""

import asyncio
from collections.abc import Iterator

import msgspec

from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import MachinePass, VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.statuswriter import MachineStatusWriter
from paddock.dialects.virtrigaud.kinds.machine import ProviderPlacement
from paddock.dialects.virtrigaud.kinds.provider import ProviderDefaults
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.plan import hardware, reasons, references, resizing
from paddock.dialects.virtrigaud.plan.conditions import PLACEMENT, false, true
from paddock.dialects.virtrigaud.plan.placement import choice, counts, decision, inventory
from paddock.dialects.virtrigaud.plan.placement.checks import PlacementSubject
from paddock.dialects.virtrigaud.plan.placement.choice import PlacementOutcome, PlacementRequest
from paddock.dialects.virtrigaud.plan.placement.counts import PlacementCounts
from paddock.dialects.virtrigaud.plan.placement.decision import PlacementDecision
from paddock.dialects.virtrigaud.plan.placement.inventory import PlacementInventory
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.statuses import StatusWriter

_GIB = 1 << 30


class MachinePlacement:
    def __init__(self, parts: VirtrigaudParts, statuses: MachineStatusWriter, namespaces: Informer) -> None:
        self._parts = parts
        self._statuses = statuses
        self._namespaces = namespaces
        self._policies = StatusWriter(parts.client, targets.POLICIES, parts.caches.policies.expectations)
        self._placing: dict[Key, asyncio.Lock] = {}
        self._counting = asyncio.Lock()

    async def place(self, machine_pass: MachinePass) -> str:
        """Record a place for a machine; return why there is none, or an empty text."""
        request = self._request(machine_pass)
        if not choice.is_needed(request):
            return ""
        reference = references.provider_of(machine_pass.vm)
        if (
            machine_pass.found.provider is None
            or (status := machine_pass.found.provider.status) is None
            or status.reportedCapabilities is None
        ):
            return f"{reference} has not reported its capabilities yet"
        async with self._placing.setdefault(Key(reference.namespace, reference.name), asyncio.Lock()):
            outcome = choice.choose(request, await self._inventory(machine_pass, request))
            async with self._counting:
                return await self._record(machine_pass, request, outcome)

    # --- what there is ----------------------------------------------------------------------------------------------------

    def _request(self, machine_pass: MachinePass) -> PlacementRequest:
        vm, found = machine_pass.vm, machine_pass.found
        networks = []
        for each in vm.spec.networks or ():
            name = each.networkRef.name if each.networkRef is not None else each.name
            networks.append((name, each.name))
        return PlacementRequest(
            machine=self._facts(vm),
            own=vm.spec.placement or ProviderPlacement(),
            defaults=(found.provider.spec.defaults if found.provider is not None else None) or ProviderDefaults(),
            policy=found.policy,
            networks=tuple(networks),
            before=decision.of_status(machine_pass.status),
        )

    def _facts(self, vm: VirtrigaudVirtualMachine) -> PlacementSubject:
        cpu, memory, disk = self._sizes(vm)
        return PlacementSubject(vm.metadata.name, namespace_of(vm), vm.metadata.labels or {}, cpu, memory, disk)

    def _sizes(self, vm: VirtrigaudVirtualMachine) -> tuple[int, int, int]:
        """Processors, MiB of memory and bytes of all disks."""
        ref = vm.spec.classRef
        seen = self._parts.caches.classes.cache.get(Key(ref.namespace or namespace_of(vm), ref.name))
        vmclass = seen.read(targets.CLASSES) if seen is not None else VMClass()
        sizes = resizing.wanted(vm, vmclass)
        defaults = vmclass.spec.diskDefaults
        root = hardware.gibibytes(defaults.size) if defaults is not None else 0
        return sizes.cpu, sizes.memory_mib, (root + sum((sizes.disks or {}).values())) * _GIB

    def _machines(self, machine_pass: MachinePass) -> Iterator[VirtrigaudVirtualMachine]:
        """Yield the machines of the Provider, as they were written last."""
        place = references.provider_of(machine_pass.vm)
        for key in self._parts.caches.users("Provider", Key(place.namespace, place.name)):
            seen = self._parts.caches.machines.expectations.latest(key)
            if seen is not None:
                yield seen.read(targets.MACHINES)

    async def _inventory(self, machine_pass: MachinePass, request: PlacementRequest) -> PlacementInventory:
        stores = await self._datastores(machine_pass, request)
        if request.policy is None:
            listed: tuple[m.VMInfo, ...] = ()
            hosts = None
        else:
            hosts, listed = await _hosts(machine_pass.provider), await _listed(machine_pass.provider)
        own = [(each, *self._sizes(each)) for each in self._machines(machine_pass)]
        machines = inventory.machines(own, listed, machine_pass.vm)
        return PlacementInventory(
            hosts=tuple(inventory.host(each, machines) for each in hosts) if hosts is not None else None,
            datastores=tuple(inventory.datastore(each, machines) for each in stores) if stores is not None else None,
            machines=machines,
            namespaces={each.meta.name: each.meta.labels or {} for each in self._namespaces.cache},
        )

    async def _datastores(self, machine_pass: MachinePass, request: PlacementRequest) -> tuple[x.DatastoreInfo, ...] | None:
        if not features.has(machine_pass.capabilities.features, features.DATASTORES):
            return None
        try:
            return (await extensions(machine_pass.provider).list_datastores(x.ListDatastoresRequest(pod=request.pod))).datastores
        except ProviderError as error:
            if error.kind is ErrorKind.NOT_SUPPORTED:
                return None
            raise

    # --- recording --------------------------------------------------------------------------------------------------------

    async def _record(self, machine_pass: MachinePass, request: PlacementRequest, outcome: PlacementOutcome) -> str:
        """Write what came out, with the policy's numbers; the reason to wait, if there is one."""
        message = self._message(machine_pass, request, outcome)
        placed = outcome.decision or PlacementDecision()
        if features.has(machine_pass.capabilities.features, features.CLUSTERING):
            placed = msgspec.structs.replace(placed, target_host=placed.host)
        numbers = self._counts(machine_pass, request, outcome)
        machine_pass.status = decision.recorded(machine_pass.status, placed)
        if numbers is not None:
            machine_pass.status = counts.recorded(machine_pass.status, numbers)
        if outcome.decision is None:
            machine_pass.say(false(PLACEMENT, reasons.PLACEMENT_VIOLATED, message))
        else:
            machine_pass.say(true(PLACEMENT, reasons.PLACED, message))
        await self._statuses.write(machine_pass)
        machine_pass.place(machine_pass.status)
        if numbers is not None:
            kind = "Warning" if outcome.decision is None else "Normal"
            self._parts.recorder.tell(machine_pass.about, kind, reasons.PLACED if outcome.decision else reasons.PLACEMENT_VIOLATED, message)
        return "" if outcome.decision is not None else message

    def _message(self, machine_pass: MachinePass, request: PlacementRequest, outcome: PlacementOutcome) -> str:
        if outcome.decision is None:
            policy = request.policy.metadata.name if request.policy is not None else ""
            who = f"VMPlacementPolicy {machine_pass.key.namespace}/{policy}" if policy else str(references.provider_of(machine_pass.vm))
            return f"{who} leaves no place for the machine: {'; '.join(outcome.violations)}"
        text = f"the machine goes to {outcome.decision}"
        if outcome.unmet:
            text += f"; preferences that do not hold: {'; '.join(outcome.unmet)}"
        if outcome.unchecked:
            text += f"; preferences that the Provider cannot check: {'; '.join(outcome.unchecked)}"
        return text

    def _counts(self, machine_pass: MachinePass, request: PlacementRequest, outcome: PlacementOutcome) -> PlacementCounts | None:
        """The policy's numbers after this event; None when nothing is to be counted."""
        if request.policy is None:
            return None
        uid = request.policy.metadata.uid or ""
        mine = counts.of_status(machine_pass.status, uid)
        if outcome.decision is None and mine.waiting:
            return None
        if outcome.decision is not None and request.before.policy_uid == uid and not mine.waiting:
            # A create that is tried again.
            return None
        now = self._parts.timestamp()
        highest = self._highest(Key(machine_pass.key.namespace, request.policy.metadata.name), uid).joined(mine)
        if outcome.decision is None:
            return highest.refused(now, len(outcome.violations))
        since = ages.seconds_of(machine_pass.vm.metadata.creationTimestamp or "") or self._parts.now()
        return highest.succeeded(now, max(0, round((self._parts.now() - since) * 1000)))

    def _highest(self, policy: Key, uid: str) -> PlacementCounts:
        seen = self._parts.caches.policies.expectations.latest(policy)
        found = PlacementCounts(uid)
        if seen is not None and seen.meta.uid == uid:
            status = seen.read(targets.POLICIES).status
            found = counts.of_stats(status.placementStats if status is not None else None, uid)
        for key in self._parts.caches.users("VMPlacementPolicy", policy):
            each = self._parts.caches.machines.expectations.latest(key)
            if each is not None:
                found = found.joined(counts.of_status(each.read(targets.MACHINES).status, uid))
        return found

    async def settle(self, machine_pass: MachinePass) -> None:
        """See that the policy has the numbers that a machine takes with it; before the machine goes."""
        name = machine_pass.vm.spec.placementRef.name if machine_pass.vm.spec.placementRef is not None else ""
        key = Key(machine_pass.key.namespace, name)
        seen = self._parts.caches.policies.expectations.latest(key) if name else None
        if seen is None:
            return
        mine = counts.of_status(machine_pass.status, seen.meta.uid)
        status = seen.read(targets.POLICIES).status
        before = status.placementStats if status is not None else None
        known = counts.of_stats(before, seen.meta.uid)
        if mine.successful <= known.successful and mine.failed <= known.failed:
            return
        async with self._counting:
            highest = self._highest(key, seen.meta.uid)
            made = counts.stats(highest, dict((before.placementDistribution if before is not None else None) or {}))
            if made is not None:
                await self._policies.change(seen, {"placementStats": to_data(made)})


async def _hosts(provider: Driver) -> tuple[m.HostInfo, ...] | None:
    """The hosts of a provider; None when it lists none."""
    try:
        return (await provider.list_hosts(m.ListHostsRequest())).hosts
    except ProviderError as error:
        if error.kind is ErrorKind.NOT_SUPPORTED:
            return None
        raise


async def _listed(provider: Driver) -> tuple[m.VMInfo, ...]:
    """The machines that a provider has, also those of others."""
    try:
        return (await provider.list_vms(m.ListVMsRequest())).vms
    except ProviderError as error:
        if error.kind is ErrorKind.NOT_SUPPORTED:
            return ()
        raise
