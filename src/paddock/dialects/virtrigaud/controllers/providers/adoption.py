"""Adopts the machines of Providers that ask for it (docs/spec/virtrigaud.md 2.4): finds them by ListVMs, and makes their objects.

An object is made with the adopted label, so that its controller waits for the id, which is written next. A pass that ends in between is
made up for by a later one. The machines themselves are only listed.
"""

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.binding import MachineBinding
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.provider import AdoptionStatus, Provider, ProviderStatus
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import adoption, marks, status
from paddock.dialects.virtrigaud.plan.adoption import AdoptionFilter, BadFilter, KnownMachines
from paddock.dialects.virtrigaud.plan.conditions import holds
from paddock.dialects.virtrigaud.plan.health import AVAILABLE
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubernetes.runtime.statuses import StatusWriter

_ATTEMPTS = 10


class _AdoptionMemory(msgspec.Struct):
    """The memory of a Provider between passes."""

    uid: str
    # the annotations of the last discovery that succeeded
    wanted: tuple[str, ...] = ()


class VirtrigaudAdoptionReconciler(KindReconciler):
    """Reconciles the adoption of Providers' machines."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.providers)
        self._parts = parts
        self._binding = MachineBinding(parts.client, parts.caches.machines)
        self._statuses = StatusWriter(parts.client, targets.PROVIDERS, parts.caches.providers.expectations)
        self._memories: dict[Key, _AdoptionMemory] = {}

    async def forget(self, key: Key) -> None:
        """Drop the memory of a Provider that is gone."""
        self._memories.pop(key, None)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """A Provider that goes adopts no more machines."""
        await self.forget(seen.key)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Adopt the machines of one Provider, when that is due."""
        key = seen.key
        provider = seen.read(targets.PROVIDERS)
        before = (provider.status or ProviderStatus()).adoption
        if not adoption.is_wanted(provider):
            self._memories.pop(key, None)
            if before is not None:
                await self._write(seen, None)
            return DONE
        try:
            wanted = adoption.read_filter(provider)
        except BadFilter as problem:
            await self._write(seen, msgspec.structs.replace(before or AdoptionStatus(), message=str(problem)))
            return DONE
        if not holds((provider.status or ProviderStatus()).conditions, AVAILABLE):
            # Its status changes when it is.
            return DONE
        return await self._discover(key, seen, provider, wanted)

    async def _discover(self, key: Key, seen: CachedObject, provider: Provider, adoption_filter: AdoptionFilter) -> Outcome:
        wait = self._wait(key, seen, provider)
        if wait > 0:
            return again(wait)
        driver = self._parts.providers.find(key, provider.spec.type).driver
        if driver is None:
            return DONE
        try:
            listed = await driver.list_vms(m.ListVMsRequest())
        except ProviderError as error:
            before = (provider.status or ProviderStatus()).adoption or AdoptionStatus()
            text = f"the machines cannot be listed: {error}"[:1024]
            await self._write(seen, msgspec.structs.replace(before, lastDiscoveryTime=self._parts.timestamp(), message=text))
            return again(adoption.THROTTLE_SECONDS)
        await self._write(seen, await self._adopt(key, provider, listed.vms, adoption_filter))
        self._memories[key] = _AdoptionMemory(seen.meta.uid, _annotations(provider))
        return again(adoption.PERIOD_SECONDS)

    def _wait(self, key: Key, seen: CachedObject, provider: Provider) -> float:
        """Seconds until the next discovery is due: at once when something calls for it, but not too often."""
        before = (provider.status or ProviderStatus()).adoption
        last = ages.seconds_of((before.lastDiscoveryTime if before is not None else None) or "")
        if last is None:
            return 0.0
        memory = self._memories.get(key)
        same = memory is not None and memory.uid == seen.meta.uid and memory.wanted == _annotations(provider)
        period = adoption.PERIOD_SECONDS if same and not self._known(key).unbound else adoption.THROTTLE_SECONDS
        return last + period - self._parts.now()

    # --- machines ---------------------------------------------------------------------------------------------------------

    def _known(self, key: Key) -> KnownMachines:
        caches = self._parts.caches
        ids, names, unbound = set(), set(), set()
        for place in caches.users("Provider", key):
            seen = caches.machines.expectations.latest(place)
            if seen is None:
                continue
            machine = seen.read(targets.MACHINES)
            found = status.of(machine).id
            ids.add(found or "")
            names.add(place.name)
            labels, notes = machine.metadata.labels or {}, machine.metadata.annotations or {}
            mine = labels.get(marks.ADOPTED_LABEL) == marks.TRUE and marks.CLONE_UID not in notes
            if mine and not found and place.namespace == key.namespace and not seen.meta.deleting:
                unbound.add(place.name)
        reserved, cloned = caches.names_of_clones()
        return KnownMachines(frozenset((ids - {""}) | cloned), frozenset(names), frozenset(unbound), frozenset(reserved))

    def _adopted(self, key: Key) -> frozenset[str]:
        """The ids of the machines that were adopted and have them."""
        found = set()
        for place in self._parts.caches.users("Provider", key):
            seen = self._parts.caches.machines.cache.get(place)
            machine = seen.read(targets.MACHINES) if seen is not None else None
            if machine is None or marks.CLONE_UID in (machine.metadata.annotations or {}):
                continue
            if (machine.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE:
                found.add(status.of(machine).id or "")
        return frozenset(found - {""})

    async def _adopt(self, key: Key, provider: Provider, listed: tuple[m.VMInfo, ...], adoption_filter: AdoptionFilter) -> AdoptionStatus:
        plan = adoption.decide(listed, adoption_filter, self._known(key), self._adopted(key))
        failed, done = [], 0
        for name, machine in plan.machines.items():
            try:
                problem = await self._adopt_one(provider, name, machine)
            except Terminal as error:
                # The server refuses the object; others may be adopted all the same.
                problem = str(error)
            if problem:
                failed.append(f"{machine.name[:63]}: {problem}")
            else:
                done += 1
        return adoption.status(plan, failed, done, self._parts.timestamp())

    async def _adopt_one(self, provider: Provider, name: str, machine: m.VMInfo) -> str:
        """Make the object of a machine, and give it its id; returns the problem, if there is one."""
        wanted = adoption.virtual_machine(machine, name, provider)
        key = Key(wanted.metadata.namespace or "", name)
        await self._make_class(machine, key.namespace)
        made = await self._binding.make(wanted)
        found = made or await self._binding.find(key)
        if found is None:
            return f"VirtualMachine {key} was deleted in these moments"
        if made is None and not self._is_unbound(found, provider):
            return f"VirtualMachine {key} exists and is another one; rename one of them"
        await self._binding.give_id(key, found.metadata.uid or "", machine.id, adoption.sizes(machine))
        text = f"the machine {machine.id} of Provider {provider.metadata.namespace}/{provider.metadata.name} is adopted"
        about = InvolvedObject(targets.MACHINES.api_version, targets.MACHINES.kind, key.namespace, name, found.metadata.uid or "")
        self._parts.recorder.tell(about, "Normal", "Adopted", text)
        return ""

    @staticmethod
    def _is_unbound(vm: VirtrigaudVirtualMachine, provider: Provider) -> bool:
        """Return whether an object was made by an earlier pass, which ended before it wrote the id."""
        ref, place = vm.spec.providerRef, vm.metadata.namespace
        mine = (ref.namespace or place, ref.name) == (provider.metadata.namespace, provider.metadata.name)
        labelled = (vm.metadata.labels or {}).get(marks.ADOPTED_LABEL) == marks.TRUE
        return mine and labelled and marks.CLONE_UID not in (vm.metadata.annotations or {}) and not status.of(vm).id

    async def _make_class(self, machine: m.VMInfo, namespace: str) -> None:
        wanted = adoption.machine_class(machine, namespace)
        if self._parts.caches.classes.cache.get(Key(namespace, wanted.metadata.name)) is not None:
            return
        try:
            await self._parts.client.create(targets.CLASSES, wanted)
        except AlreadyExists:
            return

    # --- the status -------------------------------------------------------------------------------------------------------

    async def _write(self, seen: CachedObject, status: AdoptionStatus | None) -> None:
        """Write this part of the Provider's status; the rest is another controller's."""
        change: Data = {"adoption": _members(status) if status is not None else None}
        for attempt in range(_ATTEMPTS):
            try:
                await self._statuses.change(seen, change)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return
            try:
                fresh = CachedObject.of(await self._parts.client.get_raw(targets.PROVIDERS, seen.key))
            except NotFound:
                return
            if fresh.meta.uid != seen.meta.uid:
                return
            seen = fresh


def _members(status: AdoptionStatus) -> Data:
    """All members: those that are not set are removed."""
    return {name: getattr(status, name) for name in status.__struct_fields__}


def _annotations(provider: Provider) -> tuple[str, ...]:
    return ((provider.metadata.annotations or {}).get(marks.ADOPT_FILTER, ""), str(provider.metadata.generation))
