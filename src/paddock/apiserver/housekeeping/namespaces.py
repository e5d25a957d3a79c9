"""Emptying namespaces that are being deleted, and what every namespace has from its beginning."""

from paddock.apiserver.builtin.namespaces import FINALIZER, with_finalizers
from paddock.apiserver.housekeeping.chores import Chores
from paddock.apiserver.objects.asked import DeleteOptions, Options, Proposal
from paddock.apiserver.objects.encoding import Data, decode
from paddock.apiserver.parts import Parts
from paddock.apiserver.resources.resource import Resource
from paddock.meta import failure
from paddock.store.contract import Change, Key

NAMESPACES = "namespaces"
ROOT_CA = "kube-root-ca.crt"
_WHO = Options(user="system:serviceaccount:kube-system:namespace-controller", manager="namespace-controller", subresource="finalize")
_SETUP = Options(user="system:apiserver", manager="paddock")
# Reasons of the five conditions that tell how far a deletion is; the first three never fail here.
_CALM = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
)


class Namespaces:
    """Looks after namespaces."""

    def __init__(self, parts: Parts, authority: str) -> None:
        self._parts = parts
        self._authority = authority
        self.chores: Chores[str] = Chores("namespaces", self._look)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(NAMESPACES):
            self.chores.offer(record.key.name)
        self.chores.start()

    def _changed(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            if change.key.collection == NAMESPACES:
                self.chores.offer(change.key.name)
            elif change.key.namespace and (change.deleted or change.key.name in (ROOT_CA, "default")):
                self.chores.offer(change.key.namespace)

    async def _look(self, name: str) -> None:
        record = self._parts.store.get(Key(NAMESPACES, "", name))
        if record is None:
            return
        namespace = decode(record.value)
        if namespace["metadata"].get("deletionTimestamp"):
            await self._empty(name, namespace)
        else:
            await self._furnish(name)

    # --- the beginning ----------------------------------------------------------------------------------------------------

    async def _furnish(self, name: str) -> None:
        """A default ServiceAccount, and the authority that clients inside trust."""
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
        record = self._parts.store.decided(Key(plural, namespace, wanted["metadata"]["name"]))
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

    def _namespaced(self) -> list[Resource]:
        found = {each.collection: each for each in self._parts.registry if each.namespaced and each.api_version == each.stored_version}
        return [found[collection] for collection in sorted(found)]

    def _resource(self) -> Resource:
        found = self._parts.registry.find("", "v1", NAMESPACES)
        assert found is not None
        return found

    async def _delete(self, resource: Resource, key: Key) -> None:
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
        told = [
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
        for kind, holds, reason, text in told:
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
