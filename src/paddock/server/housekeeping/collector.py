"""Garbage collection by owner references (docs/spec/kube-api.md section 5.2).

A dependent is checked when one of its owners goes, and when it appears; an owner that is being deleted is checked when it is
marked and whenever one of its dependents goes. Both are checked once more at every start.

What is deleted, or loses an owner, is the object that was judged: its revision is the precondition. An adoption that its owner never
confirmed ends with the owner, not with the object (docs/design/0011-hand-over-of-disks.md).
"""

from enum import Enum

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import adoption, failure
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.deletion import FOREGROUND, ORPHAN
from paddock.server.objects.encoding import Envelope, OwnerRef, decode
from paddock.server.objects.requests import Compute, DeleteOptions, Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, StoredValue, StoreKey

_WHO = Options(user="system:serviceaccount:kube-system:generic-garbage-collector", manager="garbage-collector")
# How long an owner of an unknown kind is waited for before it is looked for again.
_UNKNOWN_SECONDS = 30.0


class OwnerTarget(Enum):
    """The state of the owner that a reference names."""

    SOLID = 1
    DANGLING = 2
    WAITING = 3
    UNKNOWN = 4


class GarbageCollector:
    """Deletes what nobody owns any more."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.chores: KeyQueue[StoreKey] = KeyQueue("garbage collection", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at everything that has an owner or waits for its dependents, then at what changes."""
        for collection in self._parts.store.collections():
            for record in self._parts.store.scan(collection):
                found = self._parts.index.envelope(record.key)
                if found is not None and (found.ownerReferences or found.deletionTimestamp):
                    self.chores.offer(record.key)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.deleted:
                self._after_deletion(change)
                continue
            found = self._parts.index.envelope(change.key)
            if found is not None and (found.ownerReferences or found.deletionTimestamp):
                self.chores.offer(change.key)

    def _after_deletion(self, change: CommittedWrite) -> None:
        metadata = decode(change.value)["metadata"]
        for dependent in self._parts.index.dependents(metadata.get("uid", "")):
            self.chores.offer(dependent)
        for owner in metadata.get("ownerReferences") or ():
            key = self._parts.index.by_uid(owner.get("uid", ""))
            if key is not None:
                self.chores.offer(key)

    async def _reconcile(self, key: StoreKey) -> None:
        found = self._parts.index.envelope(key)
        resource = self._resource(key)
        if found is None or resource is None:
            return
        if found.deletionTimestamp and ORPHAN in found.finalizers:
            await self._let_go(resource, key, found)
        elif found.deletionTimestamp and FOREGROUND in found.finalizers:
            await self._wait_for_dependents(resource, key, found)
        # It may have got other owners while others were written.
        found = self._parts.index.envelope(key)
        if found is not None and found.ownerReferences:
            await self._look_at_owners(resource, key, found)

    def _resource(self, key: StoreKey) -> ServedResource | None:
        """The resource in which the collector handles a collection: the one that is stored."""
        served = self._parts.registry.of_collection(key.collection)
        return next((each for each in served if each.api_version == each.stored_version), served[0] if served else None)

    # --- owners -----------------------------------------------------------------------------------------------------------

    async def _let_go(self, resource: ServedResource, key: StoreKey, envelope: Envelope) -> None:
        """Orphan: dependents lose the reference, then the owner goes."""
        for dependent in self._parts.index.dependents(envelope.uid):
            await self._drop_references(dependent, {envelope.uid})
        await self._drop_finalizer(resource, key, ORPHAN)

    async def _wait_for_dependents(self, resource: ServedResource, key: StoreKey, envelope: Envelope) -> None:
        """Foreground: the owner goes when no dependent that blocks it is left."""
        blocking = False
        for dependent in self._parts.index.dependents(envelope.uid):
            below = self._parts.index.envelope(dependent)
            if below is None:
                continue
            blocking = blocking or any(each.uid == envelope.uid and each.blockOwnerDeletion for each in below.ownerReferences)
            self.chores.offer(dependent)
        if not blocking:
            await self._drop_finalizer(resource, key, FOREGROUND)

    async def _drop_finalizer(self, resource: ServedResource, key: StoreKey, finalizer: str) -> None:
        def without(old: Data) -> Proposal:
            kept = [each for each in old["metadata"].get("finalizers") or () if each != finalizer]
            return Proposal({**old, "metadata": {**old["metadata"], "finalizers": kept}})

        await self._replace(resource, key, without)

    # --- dependents -------------------------------------------------------------------------------------------------------

    async def _look_at_owners(self, resource: ServedResource, key: StoreKey, envelope: Envelope) -> None:
        record = self._parts.store.get(key)
        if record is None:
            return
        judged = [(owner, self._judge(owner, key)) for owner in envelope.ownerReferences]
        verdicts = {verdict for _, verdict in judged}
        gone = {owner.uid for owner, verdict in judged if verdict in (OwnerTarget.DANGLING, OwnerTarget.WAITING)}
        if unconfirmed := {uid for uid in gone if adoption.is_unconfirmed(envelope.labels, uid)}:
            # The write brings us here again.
            await self._drop_references(key, unconfirmed, record.revision)
            return
        if OwnerTarget.UNKNOWN in verdicts:
            self.chores.offer_later(key, _UNKNOWN_SECONDS)
        if verdicts & {OwnerTarget.SOLID, OwnerTarget.UNKNOWN}:
            if gone and OwnerTarget.SOLID in verdicts:
                await self._drop_references(key, gone, record.revision)
            return
        if OwnerTarget.WAITING in verdicts and self._parts.index.dependents(envelope.uid):
            if self._waits_for_itself(envelope):
                await self._unblock(resource, key)
            await self._delete(resource, record, envelope, "Foreground")
        else:
            await self._delete(resource, record, envelope, "")

    def _judge(self, owner: OwnerRef, key: StoreKey) -> OwnerTarget:
        group = owner.apiVersion.rpartition("/")[0]
        kind = self._parts.registry.find_kind(group, owner.kind)
        if kind is None:
            return OwnerTarget.UNKNOWN
        place = self._parts.index.by_uid(owner.uid)
        if place is None or place.name != owner.name or place.collection != kind.collection:
            return OwnerTarget.DANGLING
        if place.namespace not in ("", key.namespace) or (kind.namespaced and not key.namespace):
            # A cluster-wide object cannot belong to a namespaced one; it is kept, since nobody can say what was meant.
            return OwnerTarget.UNKNOWN if not key.namespace else OwnerTarget.DANGLING
        above = self._parts.index.envelope(place)
        if above is not None and above.deletionTimestamp and FOREGROUND in above.finalizers:
            return OwnerTarget.WAITING
        return OwnerTarget.SOLID

    def _waits_for_itself(self, envelope: Envelope) -> bool:
        """Return whether an object is, through its dependents, its own owner."""
        seen: set[str] = set()
        waiting = [envelope.uid]
        while waiting:
            uid = waiting.pop()
            for dependent in self._parts.index.dependents(uid):
                below = self._parts.index.envelope(dependent)
                if below is None or below.uid in seen:
                    continue
                if below.uid == envelope.uid:
                    return True
                seen.add(below.uid)
                waiting.append(below.uid)
        return False

    async def _unblock(self, resource: ServedResource, key: StoreKey) -> None:
        def unblocked(old: Data) -> Proposal:
            owners = [{**owner, "blockOwnerDeletion": False} for owner in old["metadata"].get("ownerReferences") or ()]
            return Proposal({**old, "metadata": {**old["metadata"], "ownerReferences": owners}})

        await self._replace(resource, key, unblocked)

    async def _drop_references(self, key: StoreKey, lost: set[str], judged: int | None = None) -> None:
        """Take owners off an object: as it was `judged`, at that revision, or whatever it has become."""
        resource = self._resource(key)

        def without(old: Data) -> Proposal:
            metadata = old["metadata"]
            for uid in lost:
                metadata = adoption.without_owner(metadata, uid)
            if judged is not None:
                # A change may be decided and not committed: the verdict does not know of it.
                metadata = {**metadata, "resourceVersion": str(judged)}
            return Proposal({**old, "metadata": metadata})

        if resource is not None:
            await self._replace(resource, key, without)

    async def _replace(self, resource: ServedResource, key: StoreKey, compute: Compute) -> None:
        try:
            await self._parts.writer.replace(resource, key.namespace, key.name, compute, _WHO)
        except failure.Failure as said:
            if said.code != 404:
                raise

    async def _delete(self, resource: ServedResource, record: StoredValue, envelope: Envelope, policy: str) -> None:
        """Delete the object that was judged, and none that it has become since."""
        if envelope.deletionTimestamp and (policy != "Foreground" or FOREGROUND in envelope.finalizers):
            return
        # An object that was asked to be deleted in another way before keeps that way.
        policy = policy or (
            "Orphan" if ORPHAN in envelope.finalizers else "Foreground" if FOREGROUND in envelope.finalizers else "Background"
        )
        options = DeleteOptions(user=_WHO.user, propagation=policy, uid=envelope.uid, revision=str(record.revision))
        try:
            await self._parts.writer.delete(resource, record.key.namespace, record.key.name, options)
        except failure.Failure as said:
            if said.code != 404:
                raise
