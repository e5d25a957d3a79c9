"""The revisions of VMSets: ControllerRevisions with the template, owned by the set.

The name of a revision is a sum of its template, so a template that comes back is the revision that it was; its number becomes the highest
one again. The revisions that machines have, and as many older ones as `revisionHistoryLimit` says, are kept.
"""

from collections.abc import Collection

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.kinds.vmset import SetTemplate, VMSet
from paddock.dialects.virtrigaud.plan import marks
from paddock.dialects.virtrigaud.plan.sets import templates
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, NotFound
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.reference import owner_reference, reference


class SetRevisions(msgspec.Struct, frozen=True):
    """The present revision of a set, and the templates that are known, by revision."""

    update: str
    known: dict[str, SetTemplate]
    # oldest first
    order: tuple[str, ...]


class SetRevisionKeeper:
    """Reads and writes the revisions of sets."""

    def __init__(self, client: Client, informer: Informer) -> None:
        self._client = client
        self._informer = informer

    async def current(self, vmset: VMSet, seen: CachedObject) -> SetRevisions:
        """The revisions of a set, with that of its present template, which is made if there is none."""
        update = templates.revision_of(vmset.spec.template)
        stored = self._stored(seen)
        highest = max((number for number, _ in stored.values()), default=0)
        if update not in stored:
            await self._make(vmset, seen, update, highest + 1)
        elif stored[update][0] < highest:
            await self._renumber(seen.key.namespace, f"{vmset.metadata.name}-{update}", highest + 1)
        known = {name: template for name, (_, template) in stored.items()} | {update: vmset.spec.template}
        order = sorted(stored.keys() - {update}, key=lambda each: stored[each][0])
        return SetRevisions(update, known, (*order, update))

    def _stored(self, seen: CachedObject) -> dict[str, tuple[int, SetTemplate]]:
        found = {}
        pending = self._informer.expectations.created_for(seen.meta.uid)
        for each in (*self._informer.cache.by("owner", seen.meta.uid), *pending):
            name = (each.meta.labels or {}).get(marks.SET_REVISION, "")
            data = orjson.loads(each.raw)
            try:
                template = msgspec.convert(((data.get("data") or {}).get("spec") or {}).get("template") or {}, SetTemplate)
            except msgspec.ValidationError:
                # Somebody else wrote it; the machines made from it are compared as they are.
                continue
            if name:
                found[name] = (int(data.get("revision") or 0), template)
        return found

    async def _make(self, vmset: VMSet, seen: CachedObject, revision: str, number: int) -> None:
        document: Data = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"{vmset.metadata.name}-{revision}",
                "namespace": seen.key.namespace,
                "labels": {marks.SET_REVISION: revision},
                "ownerReferences": [owner_reference(reference(targets.SETS, seen.meta))],
            },
            "data": {"spec": {"template": to_data(vmset.spec.template)}},
            "revision": number,
        }
        try:
            made = await self._client.create(targets.REVISIONS, document)
        except AlreadyExists:
            # Made a moment ago; the template of a name never changes.
            return
        self._informer.expectations.wrote(CachedObject.from_data(made))

    async def _renumber(self, namespace: str, name: str, number: int) -> None:
        try:
            await self._client.patch(targets.REVISIONS, Key(namespace, name), merge_patch({"revision": number}))
        except NotFound:
            return

    async def prune(self, seen: CachedObject, vmset: VMSet, revisions: SetRevisions, used: Collection[str]) -> None:
        """Delete the oldest revisions that no machine has, down to the limit."""
        idle = [each for each in revisions.order if each != revisions.update and each not in used]
        for each in idle[: max(0, len(idle) - vmset.spec.revisionHistoryLimit)]:
            try:
                await self._client.delete(targets.REVISIONS, Key(seen.key.namespace, f"{vmset.metadata.name}-{each}"))
            except NotFound:
                continue
