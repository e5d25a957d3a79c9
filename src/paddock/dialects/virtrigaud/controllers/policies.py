"""Reports on VMPlacementPolicies: who uses them, how often they were used, what contradicts them, and which Provider can carry them out."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.specs import LocalObjectReference
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import PolicyValidation, VMPlacementPolicy, VMPlacementPolicyStatus
from paddock.dialects.virtrigaud.plan import references
from paddock.dialects.virtrigaud.plan.conditions import settled
from paddock.dialects.virtrigaud.plan.placement import counts, decision, policies
from paddock.dialects.virtrigaud.plan.placement.policies import ProviderLists
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.statuses import StatusWriter

_LISTS_SECONDS, _LISTS_AGAIN_SECONDS = 600.0, 60.0
_MOST_USERS = 1000


class _ListMemory(msgspec.Struct):
    """The lists of a Provider, and the time at which it is asked again."""

    lists: ProviderLists
    due: float


class VirtrigaudPolicyReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.policies)
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.POLICIES, parts.caches.policies.expectations)
        self._lists: dict[Key, _ListMemory] = {}

    def neighbors(self, change: CacheChange) -> Iterable[Key]:
        """A policy's rules concern the other policies of its namespace."""
        before, after = change.old, change.new
        if before is not None and after is not None and before.meta.generation == after.meta.generation:
            return ()
        return [each.key for each in self._parts.caches.policies.cache.by("namespace", change.seen.key.namespace)]

    async def work(self, seen: CachedObject) -> Outcome:
        """Write the status of one policy, if it differs."""
        policy = seen.read(targets.POLICIES)
        users = self._users(seen.key)
        wait, validations = await self._validate(policy, users)
        await self._statuses.write(seen, self._status(seen, policy, users, validations))
        return again(wait) if wait else DONE

    def _users(self, key: Key) -> list[VirtrigaudVirtualMachine]:
        machines = self._parts.caches.machines
        found = (machines.expectations.latest(each) for each in self._parts.caches.users("VMPlacementPolicy", key))
        return sorted((each.read(targets.MACHINES) for each in found if each is not None), key=lambda each: each.metadata.name)

    def _status(
        self,
        seen: CachedObject,
        policy: VMPlacementPolicy,
        users: list[VirtrigaudVirtualMachine],
        validations: dict[str, PolicyValidation],
    ) -> VMPlacementPolicyStatus:
        before = policy.status or VMPlacementPolicyStatus()
        numbers = counts.of_stats(before.placementStats, seen.meta.uid)
        places: Counter[str] = Counter()
        for each in users:
            numbers = numbers.joined(counts.of_status(each.status, seen.meta.uid))
            placed = decision.of(each)
            places.update([placed.place] if placed.policy_uid == seen.meta.uid else [])
        conflicts = policies.conflicts(policy, self._others(seen))
        values = policies.conditions(policy, validations, conflicts)
        return VMPlacementPolicyStatus(
            observedGeneration=seen.meta.generation,
            usedByVMs=[LocalObjectReference(name=each.metadata.name) for each in users[:_MOST_USERS]] or None,
            conditions=settled(before.conditions, values, self._parts.timestamp(), seen.meta.generation),
            validationResults=validations or None,
            placementStats=counts.stats(numbers, dict(places)),
            conflictingPolicies=conflicts or None,
        )

    def _others(self, seen: CachedObject) -> list[VMPlacementPolicy]:
        found = self._parts.caches.policies.cache.by("namespace", seen.key.namespace)
        return [each.read(targets.POLICIES) for each in found if each.meta.uid != seen.meta.uid]

    # --- Providers --------------------------------------------------------------------------------------------------------

    async def _validate(
        self, policy: VMPlacementPolicy, users: list[VirtrigaudVirtualMachine]
    ) -> tuple[float, dict[str, PolicyValidation]]:
        """Return the checks that each Provider of the policy's machines can make, and the seconds until it is asked again."""
        found, waits = {}, []
        before = (policy.status.validationResults if policy.status is not None else None) or {}
        for place in dict.fromkeys(map(references.provider_of, users)):
            memory = await self._lists_of(Key(place.namespace, place.name))
            if memory is None:
                continue
            waits.append(max(1.0, memory.due - self._parts.now()))
            name = f"{place.namespace}/{place.name}"
            result = policies.validation(policy, memory.lists)
            old = before.get(name)
            same = old is not None and msgspec.structs.replace(old, lastValidated=None) == result
            since = old.lastValidated if same and old is not None else self._parts.timestamp()
            found[name] = msgspec.structs.replace(result, lastValidated=since)
        return min(waits, default=0.0), found

    async def _lists_of(self, key: Key) -> _ListMemory | None:
        seen = self._parts.caches.providers.cache.get(key)
        driver = None
        if seen is not None:
            driver = self._parts.providers.find(key, seen.read(targets.PROVIDERS).spec.type).driver
        reported = self._parts.caches.capabilities(key)
        if driver is None or reported is None:
            return None
        memory = self._lists.get(key)
        stores = features.has(reported.features, features.DATASTORES)
        if memory is not None and memory.due > self._parts.now() and memory.lists.datastores is stores:
            return memory
        problem, hosts = "", True
        try:
            await driver.list_hosts(m.ListHostsRequest())
        except ProviderError as error:
            hosts = False
            problem = "" if error.kind is ErrorKind.NOT_SUPPORTED else str(error)
        pause = _LISTS_AGAIN_SECONDS if problem else _LISTS_SECONDS
        memory = self._lists[key] = _ListMemory(ProviderLists(str(key), hosts, stores, problem), self._parts.now() + pause)
        return memory
