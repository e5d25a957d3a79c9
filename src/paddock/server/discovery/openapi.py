"""The OpenAPI documents of what is served (docs/spec/kube-api.md sections 1.4 and 1.5): an index, and one document per group version."""

import asyncio
import hashlib
from collections.abc import Iterator, Sequence

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.schema.generate import metaschemas, openapi
from paddock.server.discovery.openapi2 import Swagger
from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.server.representation import media_of
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import ServedResource

_JSON = "application/json"
_PREFIX = "/openapi/v3/"
_GNOSTIC = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
# The answer always has the second name: the first is no media type by the RFC, and newer clients refuse to read it.
_GNOSTIC_ANSWER = _GNOSTIC[1]
_FAR_FUTURE = "Fri, 31 Dec 2027 23:59:59 GMT"


class _Edition(msgspec.Struct):
    """The resources served at one time, by the path of their document, and the documents made of them: text and digest."""

    number: int = -1
    sources: dict[str, tuple[ServedResource, ...]] = {}
    made: dict[str, tuple[bytes, str]] = {}


class OpenApi:
    """The documents of a registry, made when first asked for after a change.

    A second of work is in them, so a thread makes them, one at a time. The event loop goes on, and answers others.
    """

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._edition = _Edition()
        self._making = asyncio.Lock()
        self._swagger = Swagger()
        self._metadata = metaschemas.object_meta(ObjectMeta)

    async def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to an OpenAPI path, or None when it is none."""
        if request.path == "/openapi/v3":
            return await self._index(request)
        if request.path.startswith(_PREFIX):
            return await self._document(request, request.path[len(_PREFIX) :])
        return await self._second(request) if request.path == "/openapi/v2" else None

    def _now(self) -> _Edition:
        """Return the edition of the registry as it is, with the documents of the last one that are still true."""
        last = self._edition
        if last.number != self._registry.edition:
            sources = {
                openapi.path_of(group, version): tuple(self._registry.of_version(group, version))
                for group, versions in self._registry.groups().items()
                for version in versions
            }
            kept = {path: made for path, made in last.made.items() if last.sources[path] == sources.get(path)}
            self._edition = _Edition(self._registry.edition, sources, kept)
        return self._edition

    async def _made(self, *paths: str) -> list[tuple[bytes, str]]:
        edition = self._now()
        if not edition.sources.keys() >= set(paths):
            raise failure.no_such_path()
        for path in paths:
            if path not in edition.made:
                async with self._making:
                    if path not in edition.made:
                        edition.made[path] = await asyncio.to_thread(_make, edition.sources[path], self._metadata)
        return [edition.made[path] for path in paths]

    async def _index(self, request: HttpRequest) -> HttpResponse:
        sources = self._now().sources
        documents = zip(sources, await self._made(*sources), strict=True)
        paths = {path: {"serverRelativeURL": f"{_PREFIX}{path}?hash={digest}"} for path, (_, digest) in documents}
        body = orjson.dumps({"paths": paths})
        return _tagged(request, body, hashlib.sha256(body).hexdigest().upper(), _JSON)

    async def _document(self, request: HttpRequest, path: str) -> HttpResponse:
        if not media_of(request, (_JSON,)):
            return HttpResponse(406, b"", (("vary", "Accept"),))
        ((body, digest),) = await self._made(path)
        asked = request.parameter("hash")
        if asked and asked != digest:
            return HttpResponse(301, b"", (("location", f"{_PREFIX}{path}?hash={digest}"),))
        extra = (("cache-control", "public, immutable"), ("expires", _FAR_FUTURE)) if asked else ()
        return _tagged(request, body, digest, _JSON, extra)

    async def _second(self, request: HttpRequest) -> HttpResponse:
        """Version 2, as JSON or in the binary form of gnostic."""
        media = media_of(request, (_JSON, *_GNOSTIC))
        if not media:
            return HttpResponse(406, b"", (("vary", "Accept"),))
        binary = media in _GNOSTIC
        documents = await self._made(*self._now().sources)
        async with self._making:
            body, digest = await asyncio.to_thread(self._swagger.body, documents, binary=binary)
        return _tagged(request, body, digest, _GNOSTIC_ANSWER if binary else _JSON)


def _make(served: Sequence[ServedResource], metadata: Data) -> tuple[bytes, str]:
    kinds = [_described(each) for each in served if each.kind]
    body = orjson.dumps(openapi.document(kinds, metadata, [path for each in served if not each.kind for path in _paths(each)]))
    return body, hashlib.sha256(body).hexdigest().upper()


def _paths(resource: ServedResource) -> Iterator[openapi.OpenApiPath]:
    """Yield the paths of what has no kind."""
    collection = f"namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else resource.plural
    if resource.verbs:
        yield openapi.OpenApiPath(resource.group, resource.version, collection, resource.verbs)
    for each in resource.subresources:
        path = f"{collection}/{{name}}/{each.name}" + ("/{path}" if each.below else "")
        yield openapi.OpenApiPath(resource.group, resource.version, path, each.verbs)


def _tagged(request: HttpRequest, body: bytes, digest: str, media: str, extra: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    etag = f'"{digest}"'
    headers = (("etag", etag), ("vary", "Accept"), *extra)
    if request.headers.get("if-none-match") == etag:
        return HttpResponse(304, b"", headers)
    return HttpResponse(200, body, (*headers, ("content-type", media)))


def _described(resource: ServedResource) -> openapi.OpenApiResource:
    return openapi.OpenApiResource(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        schema=resource.pipeline.schema,
        list_kind=resource.list_kind,
        namespaced=resource.namespaced,
        status=resource.status,
        scale=resource.scale is not None,
        stored="list" in resource.verbs,
        builtin=resource.strategic,
    )
