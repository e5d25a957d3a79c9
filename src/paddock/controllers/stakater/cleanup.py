"""A machine that is deleted: everything of it goes in its order, and what does not go is named (docs/spec/stakater.md 4.4)."""

from collections.abc import Iterable, Iterator

from paddock.base.clock import Clock
from paddock.client.client import Client
from paddock.client.target import Data, Target
from paddock.controllers.stakater import kinds
from paddock.controllers.stakater.actions import StakaterActions
from paddock.controllers.stakater.caches import MACHINE, StakaterCaches
from paddock.controllers.stakater.reader import ReconcilePass
from paddock.meta import ages
from paddock.plan.stakater import clearing
from paddock.plan.stakater.clearing import ClearStep, RemainingKinds
from paddock.plan.stakater.conditions import no
from paddock.plan.stakater.status import PassOutcome
from paddock.runtime.cache import CachedObject
from paddock.runtime.controller import EventRecorder
from paddock.runtime.deleting import delete_seen
from paddock.runtime.informer import Informer

_ORPHAN = "orphan"


class MachineCleanup:
    """Clears away what a machine leaves."""

    def __init__(self, client: Client, caches: StakaterCaches, acts: StakaterActions, teller: EventRecorder, clock: Clock) -> None:
        self._client = client
        self._caches = caches
        self._acts = acts
        self._teller = teller
        self._clock = clock
        # UIDs of machines whose deletion was called stalled
        self._told: set[str] = set()

    async def step(self, look: ReconcilePass) -> bool:
        """Do what comes next; whether nothing is left."""
        if _ORPHAN in (look.seen.meta.finalizers or ()):
            # Everything is to be left where it is.
            await self._acts.release_roots(look.key)
            return True
        left = self._left(look)
        match clearing.step(left):
            case ClearStep.LET_GO:
                return True
            case ClearStep.DELETE_SERVICE:
                await self._delete(kinds.SERVICE_DATA, self._owned(self._caches.services, look))
            case ClearStep.DELETE_MACHINE:
                # The disks follow their owner, and nothing is to hold them.
                await self._acts.release_roots(look.key)
                await self._delete(kinds.MACHINE_DATA, self._owned(self._caches.machines, look))
            case ClearStep.DELETE_DISKS:
                await self._delete(kinds.DISK_DATA, self._disks(look))
            case ClearStep.DELETE_SECRETS:
                await self._delete(kinds.SECRETS, self._owned(self._caches.secrets, look))
            case ClearStep.WAIT:
                await self._acts.release_roots(look.key)
        look.came = PassOutcome(ready=no("Deleting", f"waiting until {self._left(look).named() or left.named()} is gone"))
        return False

    def stalled_in(self, look: ReconcilePass) -> float:
        """Seconds until the deletion has taken too long; when they are over it is told, once."""
        deleted = ages.seconds_of(look.seen.meta.deletionTimestamp or "") or self._clock.seconds()
        due = clearing.stalls_at(deleted, look.vm.spec.parameters.terminationGracePeriodSeconds)
        rest = due - self._clock.seconds()
        if rest <= 0 and look.seen.meta.uid not in self._told:
            self._told.add(look.seen.meta.uid)
            note = f"the deletion takes longer than it should; there is still {self._left(look).named()}. Nothing is removed by force"
            self._teller.tell(look.about, "Warning", "DeletionStalled", note)
        return max(rest, 0.0)

    def forget(self, uid: str) -> None:
        """The machine is gone."""
        self._told.discard(uid)

    async def _delete(self, target: Target[Data], objects: Iterable[CachedObject]) -> None:
        for seen in objects:
            await delete_seen(self._client, target, seen)

    def _left(self, look: ReconcilePass) -> RemainingKinds:
        services, machines = self._owned(self._caches.services, look), self._owned(self._caches.machines, look)
        secrets, volumes = self._owned(self._caches.secrets, look), list(self._disks(look))
        instance = self._caches.instances.cache.get(look.key)
        # An instance that somebody else made is nothing that is waited for.
        instances = [instance] if instance is not None and _made_by_machine(instance) else []
        claims = [each for each in self._caches.claims.cache.by(MACHINE, str(look.key)) if _has_owner(each, "DataVolume")]
        kinds_of = {"services": services, "machines": machines, "volumes": volumes, "secrets": secrets}
        return RemainingKinds(
            services=_names(services),
            machines=_names(machines),
            instances=_names(instances),
            volumes=_names(volumes),
            claims=_names(claims),
            secrets=_names(secrets),
            standing=frozenset(kind for kind, found in kinds_of.items() if any(not each.meta.going for each in found)),
        )

    def _owned(self, informer: Informer, look: ReconcilePass) -> list[CachedObject]:
        """What the machine controls."""
        found = informer.cache.by("owner", look.seen.meta.uid)
        return [each for each in found if each.meta.owner is not None and each.meta.owner.uid == look.seen.meta.uid]

    def _disks(self, look: ReconcilePass) -> Iterator[CachedObject]:
        """The DataVolumes of the generated machine, and those that lost their owner."""
        for seen in self._caches.disks.cache.by(MACHINE, str(look.key)):
            owner = seen.meta.owner
            if owner is None or (owner.kind, owner.name) == (kinds.MACHINES.kind, look.key.name):
                yield seen


def _made_by_machine(seen: CachedObject) -> bool:
    return seen.meta.owner is not None and (seen.meta.owner.group, seen.meta.owner.kind) == (kinds.MACHINES.group, kinds.MACHINES.kind)


def _has_owner(seen: CachedObject, kind: str) -> bool:
    return seen.meta.owner is not None and seen.meta.owner.kind == kind


def _names(objects: Iterable[CachedObject]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.key.name for each in objects))
