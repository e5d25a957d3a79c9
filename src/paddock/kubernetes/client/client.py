"""The client: every operation of the API on top of a transport.

async with Client(transport) as client:
    machine = await client.get(MACHINES, Key("default", "web"))
    await client.patch(MACHINES, key, merge_patch({"spec": {"running": True}}))
    async for event in client.watch(MACHINES): ...

All methods raise the errors of `paddock.kubernetes.client.errors`. Cancelling one ends its request.
"""

import asyncio
import builtins
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Generic, TypeVar

import msgspec
import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.client import declaredfields, warnings
from paddock.kubernetes.client.errors import ApiError, BadAnswer, Expired, MissingRight, NotFound, UndeclaredFields, error_of
from paddock.kubernetes.client.options import (
    DELETE,
    EVERYTHING,
    PLAIN,
    DeletionOptions,
    Patch,
    Query,
    Selection,
    WatchOptions,
    WriteOptions,
    target_of,
)
from paddock.kubernetes.client.retrying import Retries, pause
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse

T = TypeVar("T")
# An object, never None.
Found = TypeVar("Found", bound=msgspec.Struct | dict[str, Any])
ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
_LOG = logging.getLogger(__name__)
_PAGE = 500
# Each warning is passed on once, this many at most.
_MOST_WARNINGS = 1000
_APPLY = "application/apply-patch+yaml"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all requests of a client."""

    manager: str = "paddock"
    seconds: float = 30.0
    retries: Retries = Retries()
    # the server's warnings about requests go to the log
    warnings: bool = True


class ClientPage(msgspec.Struct, frozen=True):
    """A part of a list, each object as its JSON. `token` leads to the next."""

    revision: str
    items: list[bytes]
    token: str = ""


class ListResponse(msgspec.Struct, Generic[T], frozen=True):
    """A whole list, and the revision a watch of what follows begins at."""

    revision: str
    items: list[T]


class Frame(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


Frames = list[Frame]


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One change; the object of a bookmark holds a revision and nothing else."""

    type: str
    object: T


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_LISTS = msgspec.json.Decoder(_List)
_FRAMES = msgspec.json.Decoder(Frame)
# method, resource, code (0: no answer), seconds
Observer = Callable[[str, str, int, float], None]


class Client:
    """Sends requests and understands the answers."""

    def __init__(
        self,
        transport: Transport,
        settings: ClientSettings = ClientSettings(),  # noqa: B008 - frozen
        *,
        chance: random.Random | None = None,
        observe: Observer | None = None,
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._chance = chance or random.Random()
        self._observe = observe
        self._version: Data | None = None
        self._warned: set[str] = set()
        self._missing_right: Callable[[MissingRight], None] | None = None

    def on_missing_right(self, handler: Callable[[MissingRight], None]) -> None:
        """Call this with each refusal because of a right that the user lacks, beside raising it."""
        self._missing_right = handler

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._transport.close()

    # --- reading ----------------------------------------------------------------------------------------------------------

    async def get(self, target: Target[T], key: Key, subresource: str = "") -> T:
        """One object, or a part of it that is an object of the same kind."""
        reply = await self._send("GET", target.qualified, target.path(key.namespace, key.name, subresource))
        return target.read(reply.body)

    async def find(self, target: Target[Found], key: Key) -> Found | None:
        """One object; None if it is not there."""
        try:
            return await self.get(target, key)
        except NotFound:
            return None

    async def get_raw(self, target: Target[T], key: Key) -> bytes:
        """One object as its JSON."""
        return (await self._send("GET", target.qualified, target.path(key.namespace, key.name))).body

    async def list(self, target: Target[T], selection: Selection = EVERYTHING) -> ListResponse[T]:
        """All objects, as they were together at one revision."""
        page = await self.list_raw(target, selection)
        return ListResponse(page.revision, [target.read(raw) for raw in page.items])

    async def list_raw(self, target: Target[T], selection: Selection = EVERYTHING) -> ClientPage:
        """All objects as their JSON, read in pages; if the pages grow too old on the way, all at once."""
        items: builtins.list[bytes] = []
        page = ClientPage("", [])
        try:
            while True:
                page = await self.page(target, selection, limit=_PAGE, token=page.token)
                items += page.items
                if not page.token:
                    return ClientPage(page.revision, items)
        except Expired:
            if not page.token:
                raise
        return await self.page(target, selection)

    async def page(self, target: Target[T], selection: Selection = EVERYTHING, *, limit: int = 0, token: str = "") -> ClientPage:
        """One page; no limit means everything."""
        query = selection.query()
        if limit:
            query = (*query, ("limit", str(limit)))
        if token:
            query = (*query, ("continue", token))
        reply = await self._send("GET", target.qualified, target.path(selection.namespace), query)
        try:
            found = _LISTS.decode(reply.body)
        except msgspec.MsgspecError as error:
            raise BadAnswer(f"cannot read the list of {target.qualified} that the server sent", why=str(error)) from error
        return ClientPage(found.metadata.resourceVersion, [bytes(raw) for raw in found.items or ()], found.metadata.continue_)

    async def watch(
        self,
        target: Target[T],
        selection: Selection = EVERYTHING,
        watching: WatchOptions = WatchOptions(),  # noqa: B008 - frozen
    ) -> AsyncIterator[WatchEvent[T]]:
        """Every change, until the server ends the stream; raises what the server says on it (`Expired`, mostly)."""
        async for frames in self.frames(target, selection, watching):
            for frame in frames:
                yield WatchEvent(frame.type, target.read(bytes(frame.object)))

    async def frames(self, target: Target[T], selection: Selection, watching: WatchOptions) -> AsyncGenerator[Frames, None]:
        """The lines of a watch, as many at a time as have come; their objects are views of the bytes received.

        First none: the stream is open.
        """
        query = (*selection.query(), *watching.query())
        flow = await self._stream(target.qualified, target.path(selection.namespace), query)
        rest = b""
        try:
            yield []
            while chunk := await flow.read():
                data = rest + chunk if rest else chunk
                end = data.rfind(b"\n") + 1
                rest = data[end:]
                if end:
                    yield _frames(data[:end])
        finally:
            flow.close()

    # --- writing ----------------------------------------------------------------------------------------------------------

    async def create(self, target: Target[T], value: T, namespace: str = "", options: WriteOptions = PLAIN) -> T:
        """A new object; the namespace is that of its metadata unless it is given."""
        raw = target.write(value)
        path = target.path(namespace or key_of(raw).namespace)
        reply = await self._send("POST", target.qualified, path, options.query(self._settings.manager), body=raw)
        return target.read(reply.body)

    async def update(self, target: Target[T], value: T, options: WriteOptions = PLAIN) -> T:
        """The whole object, or with a subresource that part of it; its resourceVersion is what it must be at now."""
        raw = target.write(value)
        key = key_of(raw)
        path = target.path(key.namespace, key.name, options.subresource)
        reply = await self._send("PUT", target.qualified, path, options.query(self._settings.manager), body=raw)
        return target.read(reply.body)

    async def patch(self, target: Target[T], key: Key, patch: Patch, options: WriteOptions = PLAIN) -> T:
        """A change of an object, or of a part of it."""
        return target.read(await self.patch_raw(target, key, patch, options))

    async def patch_raw(self, target: Target[T], key: Key, patch: Patch, options: WriteOptions = PLAIN) -> bytes:
        """A change of an object, or of a part of it; the object's JSON."""
        path = target.path(key.namespace, key.name, options.subresource)
        query = options.query(self._settings.manager)
        return (await self._send("PATCH", target.qualified, path, query, body=orjson.dumps(patch.document), media=patch.media)).body

    async def apply(self, target: Target[T], value: T, options: WriteOptions = PLAIN) -> T:
        """Server-side apply: the object has what is given here, and no longer what this manager gave before and does not now."""
        raw = target.write(value)
        key = key_of(raw)
        path = target.path(key.namespace, key.name, options.subresource)
        try:
            reply = await self._send("PATCH", target.qualified, path, options.query(self._settings.manager), body=raw, media=_APPLY)
        except UndeclaredFields as error:
            raise await self._complete(error, target, raw) from error
        return target.read(reply.body)

    async def _complete(self, error: UndeclaredFields, target: Target[T], raw: bytes) -> UndeclaredFields:
        """Name every field that is not declared: the server names some, and others the next time."""
        place = f"apis/{target.group}" if target.group else "api"
        try:
            document = orjson.loads(await self.request("GET", f"/openapi/v3/{place}/{target.version}"))
        except (PaddockError, ValueError):
            return error
        fields = declaredfields.undeclared(document, target.version, orjson.loads(raw))
        return UndeclaredFields(error.code, error.kind, error.version, fields) if fields else error

    async def delete(self, target: Target[T], key: Key, deletion: DeletionOptions = DELETE) -> None:
        """Delete an object, or mark it as going when it has finalizers."""
        await self._send("DELETE", target.qualified, target.path(key.namespace, key.name), body=orjson.dumps(deletion.body()))

    async def delete_collection(self, target: Target[T], selection: Selection, deletion: DeletionOptions = DELETE) -> None:
        """Delete all objects of a selection."""
        path = target.path(selection.namespace)
        await self._send("DELETE", target.qualified, path, selection.query(), body=orjson.dumps(deletion.body()))

    # --- everything else --------------------------------------------------------------------------------------------------

    async def request(
        self, method: str, path: str, query: Query = (), body: bytes = b"", media: str = "application/json", *, seconds: float | None = None
    ) -> bytes:
        """Any path: a subresource with objects of its own, discovery, health. `seconds` are for one that takes its time."""
        patience = self._settings.seconds if seconds is None else seconds
        ask = TransportRequest(method=method, target=target_of(path, query), body=body, content_type=media, seconds=patience)
        return (await self._patiently(ask, path)).body

    async def metadata(self, target: Target[T], key: Key) -> Data:
        """The metadata of an object and nothing else of it, which of Secrets is all that most should see."""
        path = target.path(key.namespace, key.name)
        ask = TransportRequest(method="GET", target=target_of(path), accept=_METADATA, seconds=self._settings.seconds)
        found: Data = orjson.loads((await self._patiently(ask, target.qualified)).body)
        return {"metadata": found.get("metadata") or {}}

    async def table(self, target: Target[T], selection: Selection = EVERYTHING, name: str = "") -> Data:
        """Objects as rows with the server's columns, as `kubectl get` prints them; with `name`, of one object."""
        path = target.path(selection.namespace, name)
        ask = TransportRequest(method="GET", target=target_of(path, selection.query()), accept=_TABLE, seconds=self._settings.seconds)
        found: Data = orjson.loads((await self._patiently(ask, target.qualified)).body)
        return found

    async def version(self) -> Data:
        """Return the server's version; it is requested once."""
        if self._version is None:
            self._version = orjson.loads(await self.request("GET", "/version"))
        return self._version

    async def is_paddock(self) -> bool:
        """Return whether the server is Paddock's own, and no cluster."""
        return "paddock" in str((await self.version()).get("gitVersion", ""))

    async def _send(
        self, method: str, about: str, path: str, query: Query = (), *, body: bytes = b"", media: str = "application/json"
    ) -> TransportResponse:
        ask = TransportRequest(method=method, target=target_of(path, query), body=body, content_type=media, seconds=self._settings.seconds)
        return await self._patiently(ask, about)

    async def _patiently(self, ask: TransportRequest, about: str) -> TransportResponse:
        attempt = 1
        while True:
            try:
                return await self._once(ask, about)
            except PaddockError as error:
                wait = pause(error, reads=ask.method == "GET", attempt=attempt, retries=self._settings.retries, chance=self._chance)
                if wait is None:
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    async def _once(self, ask: TransportRequest, about: str) -> TransportResponse:
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            reply = await self._transport.send(ask)
            status = reply.status
        finally:
            self._tell(ask.method, about, status, started)
        if reply.status >= 400:
            raise self._error(reply.status, reply.body, reply.headers.get("retry-after", ""))
        if "warning" in reply.headers:
            warnings.note(reply.headers["warning"])
            self._warn(reply.headers["warning"], about)
        return reply

    async def _stream(self, about: str, path: str, query: Query) -> ResponseStream:
        """Open a stream. It is not repeated here: whoever watches knows from where to go on."""
        ask = TransportRequest(method="GET", target=target_of(path, query), seconds=self._settings.seconds)
        started = asyncio.get_running_loop().time()
        status = 0
        try:
            flow = await self._transport.stream(ask)
            status = flow.status
        finally:
            self._tell("WATCH", about, status, started)
        if flow.status < 400:
            return flow
        try:
            body = b""
            while chunk := await flow.read():
                body += chunk
        finally:
            flow.close()
        raise self._error(flow.status, body, flow.headers.get("retry-after", ""))

    def _error(self, status: int, body: bytes, retry_after: str) -> ApiError:
        error = error_of(status, body, retry_after)
        if self._missing_right is not None and isinstance(error, MissingRight):
            self._missing_right(error)
        return error

    def _warn(self, text: str, about: str) -> None:
        if self._settings.warnings and text not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(text)
            _LOG.warning("server returned a warning", extra={"warning": text, "resource": about})

    def _tell(self, method: str, about: str, status: int, started: float) -> None:
        if self._observe is not None:
            self._observe(method, about, status, asyncio.get_running_loop().time() - started)


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str | None = None


class _Object(msgspec.Struct):
    metadata: _Named


_OBJECTS = msgspec.json.Decoder(_Object)


def key_of(raw: bytes) -> Key:
    """The place that an object's own metadata name."""
    metadata = _OBJECTS.decode(raw).metadata
    return Key(metadata.namespace or "", metadata.name)


def _frames(lines: bytes) -> Frames:
    try:
        frames = _FRAMES.decode_lines(lines)
    except msgspec.MsgspecError as error:
        raise BadAnswer("cannot read a watch", why=str(error)) from error
    for frame in frames:
        if frame.type == ERROR:
            raise error_of(0, bytes(frame.object))
    return frames
