"""The OpenAPI documents of what is served (docs/spec/kube-api.md sections 1.4 and 1.5): an index, and one document per group version."""

import hashlib
from typing import Any

import orjson

from paddock.apiserver.discovery.openapi2 import Swagger
from paddock.apiserver.representation import media_of
from paddock.apiserver.resources.registry import ResourceRegistry
from paddock.apiserver.resources.resource import ServedResource
from paddock.edge.http import HttpRequest, HttpResponse
from paddock.meta import failure
from paddock.meta.objects import ObjectMeta
from paddock.schema.generate import metaschemas, openapi

Data = dict[str, Any]
_JSON = "application/json"
_PREFIX = "/openapi/v3/"
_GNOSTIC = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
# The answer always has the second name: the first is no media type by the RFC, and newer clients refuse to read it.
_GNOSTIC_ANSWER = _GNOSTIC[1]
_FAR_FUTURE = "Fri, 31 Dec 2027 23:59:59 GMT"


class OpenApi:
    """The documents of a registry, made when first asked for after a change."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._registry = registry
        self._edition = -1
        self._documents: dict[str, tuple[bytes, str]] = {}
        self._swagger = Swagger()
        self._metadata = metaschemas.object_meta(ObjectMeta)

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to an OpenAPI path, or None when it is none."""
        if self._edition != self._registry.edition:
            self._documents.clear()
            self._edition = self._registry.edition
        if request.path == "/openapi/v3":
            return self._index(request)
        if request.path.startswith(_PREFIX):
            return self._document(request, request.path[len(_PREFIX) :])
        return self._second(request) if request.path == "/openapi/v2" else None

    def _paths(self) -> dict[str, tuple[str, str]]:
        return {
            openapi.path_of(group, version): (group, version)
            for group, versions in self._registry.groups().items()
            for version in versions
            if self._kinds(group, version)
        }

    def _kinds(self, group: str, version: str) -> list[ServedResource]:
        """Return the resources with a schema: all but the paths that belong to no kind."""
        return [each for each in self._registry.of_version(group, version) if each.kind]

    def _made(self, path: str) -> tuple[bytes, str]:
        """A document and its digest."""
        if path not in self._documents:
            place = self._paths().get(path)
            if place is None:
                raise failure.no_such_path()
            served = [_described(each) for each in self._kinds(*place)]
            body = orjson.dumps(openapi.document(served, self._metadata))
            self._documents[path] = (body, hashlib.sha256(body).hexdigest().upper())
        return self._documents[path]

    def _index(self, request: HttpRequest) -> HttpResponse:
        paths = {path: {"serverRelativeURL": f"{_PREFIX}{path}?hash={self._made(path)[1]}"} for path in self._paths()}
        body = orjson.dumps({"paths": paths})
        return _tagged(request, body, hashlib.sha256(body).hexdigest().upper(), _JSON)

    def _document(self, request: HttpRequest, path: str) -> HttpResponse:
        if not media_of(request, (_JSON,)):
            return HttpResponse(406, b"", (("vary", "Accept"),))
        body, digest = self._made(path)
        asked = request.parameter("hash")
        if asked and asked != digest:
            return HttpResponse(301, b"", (("location", f"{_PREFIX}{path}?hash={digest}"),))
        extra = (("cache-control", "public, immutable"), ("expires", _FAR_FUTURE)) if asked else ()
        return _tagged(request, body, digest, _JSON, extra)

    def _second(self, request: HttpRequest) -> HttpResponse:
        """Version 2, as JSON or in the binary form of gnostic."""
        media = media_of(request, (_JSON, *_GNOSTIC))
        if not media:
            return HttpResponse(406, b"", (("vary", "Accept"),))
        binary = media in _GNOSTIC
        body, digest = self._swagger.body([self._made(path) for path in self._paths()], binary=binary)
        return _tagged(request, body, digest, _GNOSTIC_ANSWER if binary else _JSON)


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
