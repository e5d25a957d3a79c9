"""The revisions of a pool: ControllerRevisions with its template, as long as a machine is made from it."""

from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.base.jsonequality import identical
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.reference import owner_reference, reference
from paddock.kubevirt.controllers.pool import targets
from paddock.kubevirt.kinds import poolform
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.plan.pool import machines


class Revisions(msgspec.Struct, frozen=True):
    """The revision of now, those whose disks are the same, and those whose instances have the same labels and annotations."""

    name: str
    same_disks: frozenset[str]
    same_labels: frozenset[str]
    known: tuple[str, ...] = ()


class RevisionKeeper:
    """Reads and writes the revisions of pools."""

    def __init__(self, client: Client, informer: Informer) -> None:
        self._client = client
        self._informer = informer

    async def current(self, pool: VirtualMachinePool, seen: CachedObject) -> Revisions:
        """The revision of the pool's template, made if there is none. One whose template is the same is the same revision."""
        template = to_data(poolform.fold(pool).spec.virtualMachineTemplate)
        known = {each.meta.name: orjson.loads(each.raw) for each in self._informer.cache.by("owner", seen.meta.uid)}
        name = next((name for name, each in known.items() if identical(_template(each), template)), "")
        if not name:
            name = machines.revision_name(pool)
            await self._make(pool, seen, name, template)
        templates = {name: template} | {old: _template(each) for old, each in known.items()}
        disks, labels = ({old for old, each in templates.items() if identical(part(each), part(template))} for part in (_disks, _labels))
        return Revisions(name, frozenset(disks), frozenset(labels), tuple(known))

    async def _make(self, pool: VirtualMachinePool, seen: CachedObject, name: str, template: Data) -> None:
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "namespace": seen.meta.namespace,
                "ownerReferences": [owner_reference(reference(targets.POOLS, seen.meta))],
            },
            "data": {"spec": {"virtualMachineTemplate": template}},
            "revision": pool.metadata.generation or 1,
        }
        try:
            await self._client.create(targets.REVISIONS, revision)
        except AlreadyExists:
            # What is kept does not change, and its name says of which generation it is.
            return

    async def prune(self, namespace: str, revisions: Revisions, used: frozenset[str]) -> None:
        """Forget the revisions that no machine is made from."""
        for name in revisions.known:
            if name != revisions.name and name not in used:
                try:
                    await self._client.delete(targets.REVISIONS, Key(namespace, name))
                except NotFound:
                    continue


def _template(revision: Data) -> Any:
    return ((revision.get("data") or {}).get("spec") or {}).get("virtualMachineTemplate") or {}


def _disks(template: Any) -> Any:
    return (template.get("spec") or {}).get("dataVolumeTemplates") or []


def _labels(template: Any) -> Any:
    return ((template.get("spec") or {}).get("template") or {}).get("metadata") or {}
