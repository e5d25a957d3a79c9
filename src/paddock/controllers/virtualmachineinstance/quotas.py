"""The quotas and limits of a namespace, asked before anything is made for an instance.

The server decides, with the write that says that the instance is Scheduling: from there on KubeVirt has a Pod for it. Where a namespace has
neither quotas nor LimitRanges, nothing is asked and that write is spared. An instance that was refused waits until a quota changes, and
looks first whether the quota says that there is room, so that a thousand that wait do not all ask at once.
"""

from collections.abc import Iterator

import msgspec
import orjson

from paddock.base.clock import Clock
from paddock.client.errors import Forbidden, MissingRight
from paddock.client.target import Data, Key
from paddock.controllers.virtualmachineinstance.targets import INSTANCES, LIMIT_RANGES, QUOTAS
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import VirtualMachineInstanceStatus
from paddock.meta import ages
from paddock.plan.instance import prerequisites
from paddock.plan.instance.phases import PENDING, SCHEDULING, transitions
from paddock.plan.quotas import measuring, quota, usage
from paddock.plan.quotas.measuring import Amounts, Measured
from paddock.plan.views import launchers
from paddock.runtime.cache import CacheChange, CachedObject
from paddock.runtime.controller import Keys
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers
from paddock.runtime.statuses import StatusWriter

_REASON = "FailedCreate"
# A change of a quota that this program missed must not hold a machine for ever.
_AGAIN_SECONDS = 300.0
# An answer of the server is in the status of the quota by then.
_ASKED_SECONDS = 5.0


class _Asked(msgspec.Struct, frozen=True):
    """What an instance asked of a quota: at which revision of the quota, and when."""

    revision: str
    since: float
    amounts: Amounts


class NamespaceBounds:
    """Holds instances back that their namespace has no room for."""

    def __init__(self, informers: Informers) -> None:
        self._quotas = informers.of(QUOTAS)
        self._ranges = informers.of(LIMIT_RANGES)
        # refused instances: a change of the bounds of their namespace concerns them
        self._waiting: dict[Key, None] = {}
        # what was asked for since a quota was last written, by the quota and the instance
        self._asked: dict[Key, dict[Key, _Asked]] = {}

    @property
    def watched(self) -> Iterator[tuple[Informer, Keys]]:
        """The kinds to watch, and the instances that a change concerns."""
        yield self._quotas, self._concerned
        yield self._ranges, self._concerned

    def bounds(self, namespace: str) -> bool:
        """Return whether a namespace has quotas or limits."""
        return any(each.cache.by("namespace", namespace) for each in (self._quotas, self._ranges))

    def is_waiting(self, instance: Key) -> bool:
        """Return whether an instance was refused."""
        return instance in self._waiting

    def check(self, seen: CachedObject, now: float) -> None:
        """Raise `MissingPrerequisite` if a quota says that it has no room for an instance."""
        instance: Data = orjson.loads(seen.raw)
        taken = Measured(usage.of_new_instance(instance), usage.instance_traits(instance))
        wanted: list[tuple[CachedObject, Amounts]] = []
        for each in self._quotas.cache.by("namespace", seen.meta.namespace or ""):
            data = orjson.loads(each.raw)
            bound = quota.read(data)
            more, known = quota.growth(bound, taken), quota.used_of(data)
            used = known
            for others in self._others(each, seen.key, now):
                used = {name: used.get(name, 0) + others.get(name, 0) for name in used.keys() | others.keys()}
            if names := quota.exceeded(bound, used, more):
                # Whether the others got what they asked for is known soon.
                pause = _AGAIN_SECONDS if quota.exceeded(bound, known, more) else _ASKED_SECONDS
                raise self._refused(seen, _about(instance, quota.refusal(bound, names, used, more)), bound.name, pause)
            wanted.append((each, more))
        for each, more in wanted:
            self._asked.setdefault(each.key, {})[seen.key] = _Asked(each.meta.resourceVersion, now, more)

    def _others(self, bound: CachedObject, instance: Key, now: float) -> list[Amounts]:
        """Return what other instances have just asked for, and the status of a quota does not have yet."""
        known = self._asked.get(bound.key, {})
        fresh = {
            key: each
            for key, each in known.items()
            if each.revision == bound.meta.resourceVersion and now - each.since < _ASKED_SECONDS and key != instance
        }
        self._asked[bound.key] = fresh
        return [each.amounts for each in fresh.values()]

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
        self._waiting[seen.key] = None
        for asked in self._asked.values():
            asked.pop(seen.key, None)
        said = _said(seen)
        # Of one quota that has no room the first refusal stays: what others use changes all the time.
        again = said if bound and f"exceeded quota: {bound}," in said else ""
        return prerequisites.failed(_REASON, again or f"failed to create virtual machine pod: {why}", pause)

    def _concerned(self, change: CacheChange) -> tuple[Key, ...]:
        return tuple(each for each in self._waiting if each.namespace == change.seen.key.namespace)


class PlaceRequest:
    """The request of one reconcile for the place of an instance. `seen` is the instance as it is afterwards."""

    def __init__(self, bounds: NamespaceBounds, statuses: StatusWriter, clock: Clock, seen: CachedObject) -> None:
        self.seen = seen
        self._bounds = bounds
        self._statuses = statuses
        self._clock = clock

    async def ask(self) -> None:
        """Have the server admit the instance, if its namespace has bounds. Raises `MissingPrerequisite`."""
        seen = self.seen
        if not self._bounds.bounds(seen.meta.namespace or ""):
            return
        instance: VirtualMachineInstance = seen.read(INSTANCES)
        status = instance.status or VirtualMachineInstanceStatus()
        if (status.phase or PENDING) != PENDING:
            return
        if not self._bounds.is_waiting(seen.key):
            self._bounds.check(seen, self._clock.seconds())
        now = ages.timestamp(self._clock.seconds())
        phases = transitions(status.phaseTransitionTimestamps, SCHEDULING, now)
        try:
            written = await self._statuses.write(seen, msgspec.structs.replace(status, phase=SCHEDULING, phaseTransitionTimestamps=phases))
        except Forbidden as error:
            raise self._bounds.refused(seen, error) from None
        self._bounds.admitted(seen.key)
        self.seen = written or seen


def _about(instance: Data, why: str) -> str:
    """Return a refusal in the words of the server, which refuses the Pod."""
    meta = instance["metadata"]
    return f'{measuring.PODS} "{launchers.name_of(meta["name"], meta.get("uid") or "")}" is forbidden: {why}'


def _said(seen: CachedObject) -> str:
    """Return what the condition of a refused instance says."""
    conditions = (orjson.loads(seen.raw).get("status") or {}).get("conditions") or ()
    return next(
        (each.get("message") or "" for each in conditions if each.get("type") == "Synchronized" and each.get("reason") == _REASON), ""
    )
