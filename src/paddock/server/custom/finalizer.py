"""Work on definitions after their write: deletion of the objects of a deleted one, then release of its names.

Level-triggered: every round visits all definitions with open work, so nothing depends on having seen an event.
"""

import asyncio
import logging
from typing import Any

from paddock.base.jsondata import Data
from paddock.kubernetes.meta.failure import Failure
from paddock.server.context import ServerParts
from paddock.server.custom import naming, resources
from paddock.server.custom.definition import COLLECTION, FINALIZER
from paddock.server.custom.owndefinitions import OwnKinds
from paddock.server.custom.resources import DefinitionServer
from paddock.server.custom.strategy import DefinitionStrategy
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, StoreKey

_LOG = logging.getLogger(__name__)
_USER = "system:apiserver"
_RETRY_SECONDS = 1.0


class DefinitionFinalizer:
    """Finishes the deletion of definitions."""

    def __init__(self, parts: ServerParts, definitions: DefinitionServer, resource: ServedResource, own: OwnKinds) -> None:
        self._parts = parts
        self._definitions = definitions
        self._resource = resource
        self._own = own
        self._awake = asyncio.Event()
        self._awake.set()
        # collections of definitions that wait for their objects
        self._waiting: set[str] = set()
        parts.store.follow(self._changed)

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection == COLLECTION or change.key.collection in self._waiting for change in changes):
            self._awake.set()

    async def begin(self) -> None:
        """List the server's own kinds; when this returns, every client sees them."""
        await self._own.ensure(self._parts)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._awake.wait()
            self._awake.clear()
            try:
                await self.round()
            except Failure:
                _LOG.exception("deletion of a CustomResourceDefinition failed; retrying")
                await asyncio.sleep(_RETRY_SECONDS)
                self._awake.set()

    async def round(self) -> None:
        """Do what can be done now."""
        for name in self._definitions.names():
            crd = self._parts.view.get(COLLECTION, "", name)
            if crd is None:
                continue
            if resources.is_ending(crd) and FINALIZER in (crd["metadata"].get("finalizers") or ()):
                await self._end(name)
            elif not naming.holds(crd.get("status") or {}, "NamesAccepted"):
                await self._rename(name, crd)

    async def _end(self, name: str) -> None:
        made = self._definitions.made(name)
        if made is not None and made.any_resource is not None:
            for record in tuple(self._parts.store.scan(name)):
                await self._delete(made.any_resource, record.key)
        if any(True for _ in self._parts.store.scan(name)):
            self._waiting.add(name)
            return
        self._waiting.discard(name)
        await self._write(name, _released, "")

    async def _delete(self, resource: ServedResource, key: StoreKey) -> None:
        try:
            await self._parts.writer.delete(resource, key.namespace, key.name, DeleteOptions(user=_USER))
        except Failure as said:
            if said.code not in (404, 409):
                raise

    async def _rename(self, name: str, crd: Data) -> None:
        """A definition whose names were taken gets them when they are free."""
        strategy = self._resource.strategy
        assert isinstance(strategy, DefinitionStrategy)
        spec, status = crd["spec"], crd.get("status") or {}
        settled = naming.settle(spec, status, strategy.others(crd, self._parts.view), self._parts.clock.now())
        if settled["conditions"] != status.get("conditions"):
            await self._write(name, lambda old: {**old, "status": settled}, "status")

    async def _write(self, name: str, change: Any, subresource: str) -> None:
        try:
            options = Options(user=_USER, manager="kube-apiserver", subresource=subresource)
            await self._parts.writer.replace(self._resource, "", name, lambda old: Proposal(change(old)), options)
        except Failure as said:
            if said.code not in (404, 409):
                raise
            self._awake.set()


def _released(old: Data) -> Data:
    meta = dict(old["metadata"])
    meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != FINALIZER]
    return {**old, "metadata": meta}
