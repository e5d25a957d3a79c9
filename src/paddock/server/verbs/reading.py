import asyncio
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.matching import FieldQuery
from paddock.kubernetes.schema import finding
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge import frames
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, StreamSink
from paddock.server.objects.encoding import encode
from paddock.server.objects.reading import Fields, FutureRevision, ListPage, Query, read_number, read_revision
from paddock.server.objects.watches import ADDED, ERROR, OpenWatch, line
from paddock.server.representation import Renderer, answer, form_of
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import Compacted, StoredValue
from paddock.server.verbs.options import STANDARD_FIELDS, list_query

T = TypeVar("T")
# How long a request waits for a revision that does not exist yet, and how long a watch lives that names no time.
_FUTURE_SECONDS = 3.0
_WATCH_SECONDS = (1800.0, 3600.0)
# Initial events are written in pieces of this size, so that a large collection does not fill the memory for one slow reader.
_INITIAL_BYTES = 128 * 1024


async def get(parts: ServerParts, call: RequestContext) -> HttpResponse:
    form = form_of(call.request)
    resource, route = call.resource, call.route
    wanted = call.request.parameter("resourceVersion")
    if wanted:
        record = await _waiting(lambda: parts.reader.get(resource, route.namespace, route.name, wanted))
    else:
        record = parts.reader.get(resource, route.namespace, route.name)
    return answer(form, parts.renderer(resource, form).one(await parts.served(resource, record.value)))


async def list_(parts: ServerParts, call: RequestContext) -> HttpResponse:
    """A list or a page of one."""
    form = form_of(call.request)
    query = list_query(call)
    page = await _waiting(lambda: parts.reader.list(call.resource, stored_query(call.resource, query)))
    records = selected(query, await parts.prepared(call.resource, page.records)) if call.resource.conversion else page.records
    return answer(form, parts.renderer(call.resource, form).many(records, list_meta(page)))


def stored_query(resource: ServedResource, query: Query) -> Query:
    """The part of a query that the stored form answers. Fields of another version are only known when it has been asked for."""
    if resource.conversion is None or not any(each.path not in STANDARD_FIELDS for each in query.fields.conditions):
        return query
    kept = tuple(each for each in query.fields.conditions if each.path in STANDARD_FIELDS)
    return msgspec.structs.replace(query, fields=FieldQuery(kept), limit=0)


def selected(query: Query, records: Sequence[StoredValue]) -> Sequence[StoredValue]:
    """The converted records that the fields of a query name."""
    if not query.fields.conditions:
        return records
    return [record for record in records if query.fields.matches(Fields(record).value)]


def list_meta(page: ListPage) -> Data:
    """The metadata of a list."""
    meta: Data = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    return meta


async def _waiting(read: Callable[[], T]) -> T:
    """Read; when a revision is asked for that is about to come, wait a little for it."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _FUTURE_SECONDS
    while True:
        try:
            return read()
        except FutureRevision as future:
            if loop.time() >= end:
                raise failure.future_revision(future.asked, future.current) from None
        await asyncio.sleep(0.02)


async def watch(parts: ServerParts, call: RequestContext) -> Answer:
    form = form_of(call.request)
    query = list_query(call)
    start = _start(call.request, query)
    renderer = parts.renderer(call.resource, form)
    seconds = _seconds(call.request)
    bookmarks = call.request.flag("allowWatchBookmarks")

    async def run(sink: StreamSink) -> None:
        await _Watch(parts, call, query, renderer, sink, bookmarks=bookmarks).run(start, seconds)

    headers = (("cache-control", "no-cache, private"), ("content-type", "application/json"))
    stream = StreamResponse(200, run, headers)
    return frames.upgrade(call.request, stream) if frames.asked(call.request) else stream


class _Start:
    """The start of a watch: with all existing objects, or after a revision."""

    def __init__(self, *, initial: bool, announced: bool, revision: int) -> None:
        self.initial = initial
        self.announced = announced
        self.revision = revision


_ABOUT = failure.FailureTarget(group="meta.k8s.io", kind="ListOptions")


def _refuse(field: str, why: str) -> failure.Failure:
    return failure.invalid(_ABOUT, [finding.forbidden((field,), why, "watch/options")])


def _start(request: HttpRequest, query: Query) -> _Start:
    """The combination of parameters of docs/spec/kube-api.md section 3.2; raises a `Failure` for those that mean nothing."""
    sends = request.query.get("sendInitialEvents")
    revision = read_revision(query.revision)
    if sends is None:
        if query.match:
            raise _refuse("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        return _Start(initial=revision == 0, announced=False, revision=revision)
    if query.match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        if query.match:
            wrong = finding.unsupported(("resourceVersionMatch",), query.match, ("NotOlderThan",), "watch/options")
            raise failure.invalid(_ABOUT, [wrong])
        raise _refuse("resourceVersionMatch", why)
    if query.token:
        raise _refuse("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
    initial = request.flag("sendInitialEvents")
    return _Start(initial=initial, announced=initial, revision=revision)


def _seconds(request: HttpRequest) -> float:
    given = read_number("timeoutSeconds", request.parameter("timeoutSeconds") or "0")
    if given > 0:
        return float(given)
    return random.uniform(*_WATCH_SECONDS)


class _Watch:
    """One watch from its first event to its end."""

    def __init__(
        self, parts: ServerParts, call: RequestContext, query: Query, renderer: Renderer, sink: StreamSink, *, bookmarks: bool
    ) -> None:
        self.parts = parts
        self.call = call
        self.query = query
        self.renderer = renderer
        self.sink = sink
        self.bookmarks = bookmarks

    async def run(self, start: _Start, seconds: float) -> None:
        try:
            cursor = await self._begin(start)
            await self._follow(cursor, seconds)
        except failure.Failure as said:
            self.sink.write(line(ERROR, encode(said.to_status())))
        except Compacted as gone:
            expired = failure.expired(f"too old resource version: {gone.asked} ({gone.oldest})")
            self.sink.write(line(ERROR, encode(expired.to_status())))

    async def _begin(self, start: _Start) -> int:
        """Send what is there, if that is asked for; returns the revision from which changes are to follow."""
        store = self.parts.store
        if start.revision > store.revision:
            if not start.announced:
                raise failure.expired(f"too old resource version: {start.revision} ({store.revision}): the server has never been there")
            await _waiting(lambda: self._not_before(start.revision))
        if not start.initial:
            return start.revision or store.revision
        revision = store.revision
        everything = Query(namespace=self.query.namespace, labels=self.query.labels, fields=self.query.fields)
        resource = self.call.resource
        page = self.parts.reader.list(resource, stored_query(resource, everything))
        await self._send_all(
            selected(everything, await self.parts.prepared(resource, page.records)) if resource.conversion else page.records
        )
        if start.announced and self.bookmarks:
            self.sink.write(self.renderer.bookmark(revision, initial=True))
        return revision

    def _not_before(self, revision: int) -> None:
        if revision > self.parts.store.revision:
            raise FutureRevision(revision, self.parts.store.revision)

    async def _send_all(self, records: Sequence[StoredValue]) -> None:
        lines, size = [], 0
        for record in records:
            lines.append(self.renderer.frame(ADDED, record.value))
            size += len(lines[-1])
            if size >= _INITIAL_BYTES:
                self.sink.write(b"".join(lines))
                lines, size = [], 0
                await self.sink.drained()
                if self.sink.closed:
                    return
        self.sink.write(b"".join(lines))

    async def _follow(self, cursor: int, seconds: float) -> None:
        following, resource = self.parts.following, self.call.resource
        if self.parts.registry.find(resource.group, resource.version, resource.plural) is not resource:
            # The kind has changed since the request arrived. That ended all open watches, and this one would miss it.
            return
        watcher = OpenWatch(resource.collection, self.query, self.renderer, self.sink, cursor=cursor, bookmarks=self.bookmarks)
        following.add(watcher)
        gone = asyncio.ensure_future(self.sink.gone())
        gone.add_done_callback(lambda _: watcher.end())
        try:
            async with asyncio.timeout(seconds):
                await watcher.ended
        except TimeoutError:
            if self.bookmarks:
                following.bookmark(watcher)
        finally:
            following.remove(watcher)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        if watcher.failure:
            self.sink.write(watcher.failure)
