"""The parts of the server that every verb works with, made once by whoever puts the server together."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from os import urandom
from typing import Any, TypeVar

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import ages
from paddock.server.admission.gate import AdmissionGate
from paddock.server.admission.world import AdmissionContext, Judge
from paddock.server.edge.http import HttpRequest
from paddock.server.objects.encoding import decode
from paddock.server.objects.holders import ValueHolders, ValuesOf
from paddock.server.objects.index import ObjectIndex
from paddock.server.objects.reading import ObjectReader
from paddock.server.objects.tables import ResourceTables
from paddock.server.objects.views import View, ViewedStore
from paddock.server.objects.watches import WatchHub
from paddock.server.objects.writing import ObjectWriter
from paddock.server.representation import Renderer, RepresentationForm
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource
from paddock.server.routing import RequestRoute
from paddock.server.store.contract import Store, StoredValue, StoreKey
from paddock.server.webhooks import Caller


def running_time() -> float:
    """Seconds by the event loop's clock, which nobody sets: for everything that waits."""
    return asyncio.get_running_loop().time()


T = TypeVar("T")


class ServerClock:
    """Time and identity from the operating system."""

    def seconds(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def now(self) -> str:
        """RFC 3339, UTC, whole seconds."""
        return ages.timestamp(self.seconds())

    def uid(self) -> str:
        text = self.random(16).hex()
        # version 4 of RFC 9562: four bits say so, two more are fixed
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"

    def random(self, count: int) -> bytes:
        return urandom(count)


class StoreView:
    """The newest decided objects, for strategies. Resources are named by collection."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # What was noted last of each object, by collection and function.
        self._notes: dict[tuple[str, Callable[[Data], Any]], dict[StoreKey, tuple[bytes, Any]]] = {}
        self._holders: dict[tuple[str, ValuesOf], ValueHolders] = {}

    def get(self, resource: str, namespace: str, name: str) -> Data | None:
        """An object, or None."""
        record = self._store.decided(StoreKey(resource, namespace, name))
        return None if record is None else decode(record.value)

    def list(self, resource: str, namespace: str = "") -> Iterator[Data]:
        """All objects of a collection, or those of one namespace; of those that are being written the newest form."""
        for record in self._newest(resource):
            if namespace in ("", record.key.namespace):
                yield decode(record.value)

    def noted(self, resource: str, note: Callable[[Data], T]) -> Iterator[tuple[tuple[str, str], T]]:
        """Yield the result of a pure function for each object, by namespace and name. It runs once for each form of an object."""
        before = self._notes.get((resource, note), {})
        after = self._notes[resource, note] = {}
        for record in self._newest(resource):
            # Known by its bytes: a revision that could not be committed is given out again.
            value, said = before.get(record.key, (b"", None))
            if value is not record.value:
                said = note(decode(record.value))
            after[record.key] = (record.value, said)
            yield (record.key.namespace, record.key.name), said

    def holders(self, resource: str, values_of: ValuesOf, value: Hashable, part: Any = dict) -> Iterator[tuple[str, str]]:
        """Yield the namespace and name of each object that holds a value; `values_of` reads each form of an object once."""
        known = self._holders.get((resource, values_of))
        if known is None:
            known = self._holders[resource, values_of] = ValueHolders(self._store, resource, values_of, part)
        return ((key.namespace, key.name) for key in known.of(value))

    def _newest(self, resource: str) -> Iterator[StoredValue]:
        moving = self._store.deciding(resource)
        for record in self._store.scan(resource):
            if record.key not in moving:
                yield record
        for key in moving:
            found = self._store.decided(key)
            if found is not None:
                yield found


class ServerParts:
    """Store, memory and rules, wired."""

    def __init__(
        self,
        store: Store,
        registry: ResourceRegistry,
        *,
        clock: Any = None,
        judge: Judge | None = None,
        off: Iterable[str] = (),
        views: Sequence[View] = (),
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock or ServerClock()
        self.index = ObjectIndex(store)
        self.view = StoreView(store)
        self.viewed = ViewedStore(store, views)
        self.reader = ObjectReader(self.viewed, self.index)
        self.gate = AdmissionGate(AdmissionContext(store, registry, self.view, self.clock, judge, self.viewed.has_views("pods")), off)
        self.writer = ObjectWriter(store, self.index, self.view, self.clock, self.gate, self.viewed)
        self.rows = ResourceTables(store, self.viewed)
        self.following = WatchHub(store, self.viewed, running_time)
        self.caller = Caller()

    async def served(self, resource: ServedResource, value: bytes) -> bytes:
        """Stored bytes in the version of a resource."""
        encoder = self.writer.encoder(resource)
        if resource.conversion is not None:
            (value,) = await encoder.prepare((value,))
        return encoder.serve(value)

    async def prepared(self, resource: ServedResource, records: Sequence[StoredValue]) -> Sequence[StoredValue]:
        """Records whose bytes the encoder of a resource can serve."""
        if resource.conversion is None:
            return records
        values = await self.writer.encoder(resource).prepare([record.value for record in records])
        return [record._replace(value=value) for record, value in zip(records, values, strict=True)]

    def renderer(self, resource: ServedResource, form: RepresentationForm) -> Renderer:
        """The renderer of a resource in a form."""
        return Renderer(form, self.writer.encoder(resource), self.rows, self.clock.seconds)


class User:
    """The user of a request."""

    __slots__ = ("by", "extra", "groups", "name", "uid")

    def __init__(self, name: str, groups: tuple[str, ...] = (), uid: str = "", extra: dict[str, tuple[str, ...]] | None = None) -> None:
        # who it really is, when they act for somebody
        self.by: User | None = None
        self.name = name
        self.groups = groups
        self.uid = uid
        self.extra = extra or {}


class RequestContext:
    """One request on its way: what it is about and who asks. Verbs add warnings to it."""

    __slots__ = ("made", "notes", "request", "resource", "route", "user", "warnings")

    def __init__(self, request: HttpRequest, route: RequestRoute, resource: ServedResource, user: User) -> None:
        self.request = request
        self.route = route
        self.resource = resource
        self.user = user
        self.warnings: list[str] = []
        # what the audit log shall hold besides
        self.notes: dict[str, str] = {}
        # the name of the object, when it is not in the path
        self.made = ""


Subhandler = Callable[[RequestContext], Any]
