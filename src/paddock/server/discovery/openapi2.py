"""The OpenAPI document of version 2: everything that is served, in one (docs/spec/kube-api.md section 1.5).

It is made of the documents of version 3, one for each group version, and only of those again that have changed.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.schema.generate import gnostic

_ENVELOPE = {"swagger": "2.0", "info": {"title": "Paddock", "version": "v1"}}
# What version 2 has no word for.
_NOT_IN_TWO = ("x-kubernetes-validations", "nullable", "oneOf", "anyOf", "not")


class _Part(msgspec.Struct, frozen=True):
    """The entries of one group version, by name, in the form of the answer."""

    paths: dict[str, bytes]
    definitions: dict[str, bytes]


class Swagger:
    """Makes the document from others."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, bool], _Part] = {}

    def body(self, documents: Sequence[tuple[bytes, str]], *, binary: bool) -> tuple[bytes, str]:
        """The document and its digest, from documents of version 3 with theirs."""
        digests = [digest for _, digest in documents]
        kept = {place: part for place, part in self._parts.items() if place[0] in digests}
        parts = []
        for body, digest in documents:
            if (digest, binary) not in kept:
                kept[digest, binary] = _part(orjson.loads(body), binary=binary)
            parts.append(kept[digest, binary])
        self._parts = kept
        paths = {name: entry for part in parts for name, entry in part.paths.items()}
        definitions = {name: entry for part in parts for name, entry in part.definitions.items()}
        made = gnostic.document(_ENVELOPE, paths.values(), definitions.values()) if binary else _json(paths, definitions)
        return made, hashlib.sha256(" ".join([*digests, str(binary)]).encode()).hexdigest().upper()


def _json(paths: dict[str, bytes], definitions: dict[str, bytes]) -> bytes:
    begin = orjson.dumps(_ENVELOPE)[:-1]
    return b"".join((begin, b',"paths":{', b",".join(paths.values()), b'},"definitions":{', b",".join(definitions.values()), b"}}"))


def _part(document: Data, *, binary: bool) -> _Part:
    paths = {path: _path(item) for path, item in document["paths"].items()}
    definitions = {name: _old_words(_open(schema)) for name, schema in document["components"]["schemas"].items()}
    if binary:
        return _Part(
            {path: gnostic.path(path, item) for path, item in paths.items()},
            {name: gnostic.definition(name, schema) for name, schema in definitions.items()},
        )
    return _Part(
        {path: _entry(path, item) for path, item in paths.items()}, {name: _entry(name, each) for name, each in definitions.items()}
    )


def _entry(name: str, value: Data) -> bytes:
    return orjson.dumps(name) + b":" + orjson.dumps(value)


def _path(item: Data) -> Data:
    return {verb: _old_operation(operation) for verb, operation in item.items() if isinstance(operation, dict)}


def _open(schema: Data) -> Data:
    """Clients that read version 2 refuse members that are not listed, so a kind that takes any has to list none."""
    if not schema.get("x-kubernetes-preserve-unknown-fields"):
        return schema
    return {key: schema[key] for key in ("description", "type", "x-kubernetes-group-version-kind") if key in schema}


def _old_words(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_old_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace("#/components/schemas/", "#/definitions/")}
    return {key: _old_words(value) for key, value in schema.items() if key not in _NOT_IN_TWO}


def _old_operation(operation: Data) -> Data:
    kept = {key: value for key, value in operation.items() if key.startswith("x-") or key in ("description", "operationId", "tags")}
    return {**kept, "responses": {"200": {"description": "OK"}}}
