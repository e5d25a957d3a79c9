"""Emptying namespaces that are being deleted, and what every namespace has from its beginning."""

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.builtin.namespaces import FINALIZER, with_finalizers
from paddock.server.context import ServerParts, running_time
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, StoreKey

NAMESPACES = "namespaces"
ROOT_CA = "kube-root-ca.crt"
_SETTLING_SECONDS = 0.5
_WHO = Options(user="system:serviceaccount:kube-system:namespace-controller", manager="namespace-controller", subresource="finalize")
_SETUP = Options(user="system:apiserver", manager="paddock")
# Reasons of the five conditions that tell how far a deletion is; the first three never fail here.
_CALM = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
)


class NamespaceController:
    def __init__(self, parts: ServerParts, authority: str, *, bare: bool = False) -> None:
        """`bare`: namespaces begin without a ServiceAccount, and are emptied a moment after they are deleted."""
        self._parts = parts
        self._bare = bare
        # uid -> when a deleted namespace may be emptied
        self._due: dict[str, float] = {}
        self._authority = authority
        self.chores: KeyQueue[str] = KeyQueue("namespaces", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(NAMESPACES):
            self.chores.offer(record.key.name)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == NAMESPACES:
                self.chores.offer(change.key.name)
            elif change.key.namespace and (change.deleted or change.key.name in (ROOT_CA, "default")):
                self.chores.offer(change.key.namespace)

    async def _reconcile(self, name: str) -> None:
        record = self._parts.store.get(StoreKey(NAMESPACES, "", name))
        if record is None:
            return
        namespace = decode(record.value)
        if namespace["metadata"].get("deletionTimestamp"):
            if not self._bare or self._is_settled(name, namespace["metadata"]["uid"]):
                await self._empty(name, namespace)
        else:
            await self._furnish(name)

    def _is_settled(self, name: str, uid: str) -> bool:
        """Some time has passed since the deletion: suites finalize a namespace that they have deleted, and expect to find it."""
        now = running_time()
        due = self._due.get(uid)
        if due is None:
            self._due[uid] = now + _SETTLING_SECONDS
            self.chores.offer_later(name, _SETTLING_SECONDS)
        return due is not None and now >= due

    # --- the beginning ----------------------------------------------------------------------------------------------------

    async def _furnish(self, name: str) -> None:
        """A default ServiceAccount, and the authority that clients inside trust."""
        if not self._bare:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self._ensure("serviceaccounts", name, account)
        text = "Contains a CA bundle that can be used to verify the kube-apiserver."
        metadata = {"name": ROOT_CA, "annotations": {"kubernetes.io/description": text}}
        await self._ensure(
            "configmaps", name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": self._authority}}
        )

    async def _ensure(self, plural: str, namespace: str, wanted: Data) -> None:
        resource = self._parts.registry.find("", "v1", plural)
        if resource is None:
            return
        record = self._parts.store.decided(StoreKey(plural, namespace, wanted["metadata"]["name"]))
        if record is None:
            await self._parts.writer.create(resource, namespace, wanted, _SETUP)
        elif "data" in wanted and decode(record.value).get("data") != wanted["data"]:
            name = wanted["metadata"]["name"]
            await self._parts.writer.replace(
                resource, namespace, name, lambda old: Proposal({**old, "metadata": dict(old["metadata"]), "data": wanted["data"]}), _SETUP
            )

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _empty(self, name: str, namespace: Data) -> None:
        remaining: dict[str, int] = {}
        finalizers: dict[str, int] = {}
        for resource in self._namespaced():
            for record in tuple(self._parts.store.scan(resource.collection)):
                if record.key.namespace == name:
                    await self._delete(resource, record.key)
            left = [record for record in self._parts.store.scan(resource.collection) if record.key.namespace == name]
            if left:
                remaining[f"{resource.plural}.{resource.group}"] = len(left)
            for record in left:
                for each in decode(record.value)["metadata"].get("finalizers") or ():
                    finalizers[each] = finalizers.get(each, 0) + 1
        await self._report(name, namespace, remaining, finalizers)
        held = (namespace.get("spec") or {}).get("finalizers") or []
        if not remaining and FINALIZER in held:
            kept = [each for each in held if each != FINALIZER]
            await self._parts.writer.replace(self._resource(), "", name, lambda old: with_finalizers(old, kept), _WHO)

    def _namespaced(self) -> list[ServedResource]:
        found = {each.collection: each for each in self._parts.registry if each.namespaced and each.api_version == each.stored_version}
        return [found[collection] for collection in sorted(found)]

    def _resource(self) -> ServedResource:
        return self._parts.registry.get("", "v1", NAMESPACES)

    async def _delete(self, resource: ServedResource, key: StoreKey) -> None:
        known = self._parts.index.envelope(key)
        if known is not None and known.deletionTimestamp:
            return
        try:
            await self._parts.writer.delete(resource, key.namespace, key.name, DeleteOptions(user=_WHO.user, propagation="Background"))
        except failure.Failure as said:
            if said.code != 404:
                raise

    async def _report(self, name: str, namespace: Data, remaining: dict[str, int], finalizers: dict[str, int]) -> None:
        """Tell what is left; nothing is written when nothing changed."""
        content = ", ".join(f"{collection} has {count} resource instances" for collection, count in sorted(remaining.items()))
        waiting = ", ".join(f"{each} in {count} resource instances" for each, count in sorted(finalizers.items()))
        rows = [
            *((kind, False, reason, text) for kind, reason, text in _CALM),
            _condition("NamespaceContentRemaining", content, "SomeResourcesRemain", "Some resources are remaining: ", "ContentRemoved"),
            _condition(
                "NamespaceFinalizersRemaining",
                waiting,
                "SomeFinalizersRemain",
                "Some content in the namespace has finalizers remaining: ",
                "ContentHasNoFinalizers",
            ),
        ]
        before = {each["type"]: each for each in (namespace.get("status") or {}).get("conditions") or ()}
        now = self._parts.clock.now()
        conditions = []
        for kind, holds, reason, text in rows:
            status = "True" if holds else "False"
            since = before[kind]["lastTransitionTime"] if before.get(kind, {}).get("status") == status else now
            conditions.append({"type": kind, "status": status, "reason": reason, "message": text, "lastTransitionTime": since})
        wanted = {**(namespace.get("status") or {}), "phase": "Terminating", "conditions": conditions}
        if wanted != namespace.get("status"):
            options = Options(user=_WHO.user, manager=_WHO.manager, subresource="status")
            await self._parts.writer.replace(
                self._resource(), "", name, lambda old: Proposal({**old, "metadata": dict(old["metadata"]), "status": wanted}), options
            )


def _condition(kind: str, left: str, reason: str, begin: str, calm: str) -> tuple[str, bool, str, str]:
    if left:
        return kind, True, reason, begin + left
    text = "All content successfully removed" if calm == "ContentRemoved" else "All content-preserving finalizers finished"
    return kind, False, calm, text
