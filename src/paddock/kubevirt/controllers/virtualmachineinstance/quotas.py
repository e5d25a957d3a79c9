"""The quotas and limits of a namespace, asked before anything is made for an instance.

The server decides, with the write that says that the instance is Scheduling: from there on KubeVirt has a Pod for it. Where a namespace has
neither quotas nor LimitRanges, nothing is asked and that write is spared. An instance that was refused waits until a quota changes, and
looks first whether the quota says that there is room, so that a thousand that wait do not all ask at once.
"""

from collections.abc import Iterator

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.base.jsondata import Data
from paddock.kubernetes.client.errors import Forbidden, MissingRight
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.quotas import launcher, measuring, quota, usage
from paddock.kubernetes.quotas.measuring import Amounts, ObjectUsage
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubevirt.controllers.virtualmachineinstance.targets import INSTANCES, LIMIT_RANGES, QUOTAS
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.status import VirtualMachineInstanceStatus
from paddock.kubevirt.plan.instance import prerequisites
from paddock.kubevirt.plan.instance.phases import PENDING, SCHEDULING, transitions
from paddock.kubevirt.plan.instance.prerequisites import REFUSAL, REFUSED

# A change of a quota that this program missed must not hold a machine for ever.
_AGAIN_SECONDS = 60.0
# An answer of the server is in the status of the quota by then.
_ASKED_SECONDS = 5.0


class _PlaceAmounts(msgspec.Struct, frozen=True):
    """The amounts that an instance asked of a quota, with the revision of the quota and the time."""

    revision: str
    since: float
    amounts: Amounts


class _ReadQuota(msgspec.Struct, frozen=True):
    """A quota at one revision."""

    revision: str
    bound: quota.Quota
    used: Amounts


class NamespaceBounds:
    """Holds instances back that their namespace has no room for."""

    def __init__(self, informers: Informers) -> None:
        self._quotas = informers.of(QUOTAS)
        self._ranges = informers.of(LIMIT_RANGES)
        # refused instances, with what each takes: a change of the bounds of their namespace concerns them
        self._waiting: dict[Key, ObjectUsage] = {}
        # quotas as they were read last
        self._read: dict[Key, _ReadQuota] = {}
        # what was asked for since a quota was last written, by the quota and the instance
        self._asked: dict[Key, dict[Key, _PlaceAmounts]] = {}

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The kinds to watch, and the instances that a change concerns."""
        yield self._quotas, self._concerned
        yield self._ranges, lambda change: tuple(key for key in self._waiting if key.namespace == change.seen.key.namespace)

    def bounds(self, namespace: str) -> bool:
        """Return whether a namespace has quotas or limits."""
        return any(each.cache.by("namespace", namespace) for each in (self._quotas, self._ranges))

    def is_waiting(self, instance: Key) -> bool:
        """Return whether an instance was refused."""
        return instance in self._waiting

    def check(self, seen: CachedObject, now: float) -> None:
        """Raise `MissingPrerequisite` if a quota says that it has no room for an instance."""
        taken = self._waiting.get(seen.key) or _taken(seen)
        wanted: list[tuple[Key, _ReadQuota, Amounts]] = []
        for key, each in self._of(seen.meta.namespace or ""):
            more, used = quota.growth(each.bound, taken), each.used
            for others in self._others(key, each.revision, seen.key, now):
                used = _sum(used, others)
            if names := quota.exceeded(each.bound, used, more):
                # Whether the others got what they asked for is known soon.
                pause = _AGAIN_SECONDS if quota.exceeded(each.bound, each.used, more) else _ASKED_SECONDS
                raise self._refused(seen, _about(seen, quota.refusal(each.bound, names, used, more)), each.bound.name, pause)
            wanted.append((key, each, more))
        for key, each, more in wanted:
            self._asked.setdefault(key, {})[seen.key] = _PlaceAmounts(each.revision, now, more)

    def _of(self, namespace: str) -> Iterator[tuple[Key, _ReadQuota]]:
        """Yield the quotas of a namespace."""
        for seen in self._quotas.cache.by("namespace", namespace):
            known = self._read.get(seen.key)
            if known is None or known.revision != seen.meta.resourceVersion:
                data: Data = orjson.loads(seen.raw)
                known = self._read[seen.key] = _ReadQuota(seen.meta.resourceVersion, quota.read(data), quota.used_of(data))
            yield seen.key, known

    def _others(self, bound: Key, revision: str, instance: Key, now: float) -> list[Amounts]:
        """Return what other instances have just asked for, and the status of a quota does not have yet."""
        known = self._asked.get(bound, {})
        fresh = {key: each for key, each in known.items() if each.revision == revision and now - each.since < _ASKED_SECONDS}
        self._asked[bound] = fresh
        return [each.amounts for key, each in fresh.items() if key != instance]

    def refused(self, seen: CachedObject, error: Forbidden) -> prerequisites.MissingPrerequisite:
        """Return why an instance waits that the server refused; a right that is missing is no bound."""
        if isinstance(error, MissingRight):
            raise error
        return self._refused(seen, str(error))

    def admitted(self, instance: Key) -> None:
        """The instance has its place."""
        self._waiting.pop(instance, None)

    forget = admitted

    def _refused(self, seen: CachedObject, why: str, bound: str = "", pause: float = _AGAIN_SECONDS) -> prerequisites.MissingPrerequisite:
        if seen.key not in self._waiting:
            self._waiting[seen.key] = _taken(seen)
        for asked in self._asked.values():
            asked.pop(seen.key, None)
        said = _said(seen)
        # Of one quota that has no room the first refusal stays: what others use changes all the time.
        again = said if bound and f"exceeded quota: {bound}," in said else ""
        return prerequisites.failed(REFUSED, again or f"{REFUSAL}{why}", pause)

    def _concerned(self, change: CacheChange) -> tuple[Key, ...]:
        """Return the refused instances that have room now, in the order in which they were refused."""
        namespace = change.seen.key.namespace
        if change.new is None:
            self._read.pop(change.seen.key, None)
            self._asked.pop(change.seen.key, None)
        waiting = [(key, taken) for key, taken in self._waiting.items() if key.namespace == namespace]
        if not waiting:
            return ()
        found: list[Key] = []
        bounds = [(each.bound, each.used) for _, each in self._of(namespace)]
        for key, taken in waiting:
            wanted = [quota.growth(bound, taken) for bound, _ in bounds]
            if not any(quota.exceeded(bound, used, more) for (bound, used), more in zip(bounds, wanted, strict=True)):
                found.append(key)
                bounds = [(bound, _sum(used, more)) for (bound, used), more in zip(bounds, wanted, strict=True)]
        return tuple(found)


class PlaceRequest:
    """The request of one reconcile for the place of an instance. `seen` is the instance as it is afterwards."""

    def __init__(self, bounds: NamespaceBounds, statuses: StatusWriter, clock: Clock, seen: CachedObject) -> None:
        self.seen = seen
        self._bounds = bounds
        self._statuses = statuses
        self._clock = clock

    def check(self) -> None:
        """Look whether there is room for an instance that was refused, before anything is done. Raises `MissingPrerequisite`."""
        if not self._bounds.is_waiting(self.seen.key):
            return
        if self._is_pending():
            self._bounds.check(self.seen, self._clock.seconds())
        else:
            self._bounds.admitted(self.seen.key)

    async def ask(self) -> None:
        """Have the server admit the instance, if its namespace has bounds. Raises `MissingPrerequisite`."""
        seen = self.seen
        if not self._bounds.bounds(seen.meta.namespace or "") or not self._is_pending():
            return
        if not self._bounds.is_waiting(seen.key):
            self._bounds.check(seen, self._clock.seconds())
        now = ages.timestamp(self._clock.seconds())
        status = self._status()
        phases = transitions(status.phaseTransitionTimestamps, SCHEDULING, now)
        try:
            written = await self._statuses.write(seen, msgspec.structs.replace(status, phase=SCHEDULING, phaseTransitionTimestamps=phases))
        except Forbidden as error:
            raise self._bounds.refused(seen, error) from None
        self._bounds.admitted(seen.key)
        self.seen = written or seen

    def _is_pending(self) -> bool:
        return (self._status().phase or PENDING) == PENDING

    def _status(self) -> VirtualMachineInstanceStatus:
        instance: VirtualMachineInstance = self.seen.read(INSTANCES)
        return instance.status or VirtualMachineInstanceStatus()


def _taken(seen: CachedObject) -> ObjectUsage:
    """Return what an instance takes when it starts."""
    instance: Data = orjson.loads(seen.raw)
    return ObjectUsage(usage.of_new_instance(instance), usage.instance_traits(instance))


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _about(seen: CachedObject, why: str) -> str:
    """Return a refusal in the words of the server, which refuses the Pod."""
    return f'{measuring.PODS} "{launcher.name_of(seen.meta.name, seen.meta.uid)}" is forbidden: {why}'


def _said(seen: CachedObject) -> str:
    """Return what the condition of a refused instance says."""
    conditions = (orjson.loads(seen.raw).get("status") or {}).get("conditions") or ()
    return next(
        (each.get("message") or "" for each in conditions if each.get("type") == "Synchronized" and each.get("reason") == REFUSED), ""
    )
