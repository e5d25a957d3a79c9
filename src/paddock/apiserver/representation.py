"""The form an answer takes: JSON, YAML, a Table or metadata only, as the Accept header asks (docs/spec/kube-api.md 2.1, 2.2)."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import msgspec
import orjson
import yaml

from paddock.apiserver.edge.http import Request, Response
from paddock.apiserver.objects.encoding import Data, Encoder, decode, head
from paddock.apiserver.objects.following import BOOKMARK, line
from paddock.apiserver.resources.conversion import Conversion
from paddock.apiserver.resources.resource import Resource
from paddock.meta import failure
from paddock.meta.tables import TableForm
from paddock.store.contract import Record

JSON, YAML = "application/json", "application/yaml"
_TYPES = {
    "application/json": JSON,
    "*/*": JSON,
    "application/*": JSON,
    "application/yaml": YAML,
    "text/yaml": YAML,
    "application/x-yaml": YAML,
}
_INCLUDES = ("None", "Metadata", "Object")
_BROWSERS = ("curl/", "Wget/", "Mozilla/5.0")


class Form(msgspec.Struct, frozen=True):
    """What a client wants. `transform` is empty, Table, PartialObjectMetadata or PartialObjectMetadataList."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    include: str = "Metadata"
    pretty: bool = False


def form_of(request: Request, *, transforms: Iterable[str] = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")) -> Form:
    """The first form of the Accept header that can be made; raises a `Failure` when there is none."""
    accept = request.headers.get("accept", "")
    include = request.parameter("includeObject") or "Metadata"
    pretty = request.flag("pretty") if "pretty" in request.query else request.headers.get("user-agent", "").startswith(_BROWSERS)
    if not accept:
        return Form(pretty=pretty)
    for _, media, options in sorted(_clauses(accept), key=lambda clause: -clause[0]):
        kind = options.get("as", "")
        if media not in _TYPES or (kind and not _is_known(kind, options, tuple(transforms))):
            continue
        if kind == "Table" and include not in _INCLUDES:
            raise failure.bad_request(f'includeObject: Unsupported value: "{include}": supported values: "Metadata", "None", "Object"')
        return Form(_TYPES[media], kind, options.get("v", "v1"), include, pretty)
    raise failure.not_acceptable([JSON, YAML])


def _is_known(kind: str, options: dict[str, str], transforms: tuple[str, ...]) -> bool:
    return kind in transforms and options.get("g") == "meta.k8s.io" and options.get("v", "v1") in ("v1", "v1beta1")


def _clauses(accept: str) -> Iterable[tuple[float, str, dict[str, str]]]:
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(options.get("q", "1"))
        except ValueError:
            quality = 1.0
        if quality > 0:
            yield quality, media.lower(), options


def answer(form: Form, body: bytes, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A JSON body in the media type that the client wants."""
    common = (("cache-control", "no-cache, private"), ("content-type", form.media), *headers)
    if form.media == YAML:
        return Response(status, yaml.safe_dump(orjson.loads(body), sort_keys=False, allow_unicode=True).encode(), common)
    if form.pretty:
        body = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2) + b"\n"
    return Response(status, body, common)


class Renderer:
    """Makes the bytes of one form of one resource."""

    def __init__(self, form: Form, encoder: Encoder, table: Callable[[Resource], TableForm], now: Callable[[], float]) -> None:
        self.form = form
        self._encoder = encoder
        self._resource = encoder.resource
        self._table = table(self._resource) if form.transform == "Table" else None
        self._now = now
        self._columns_told = False

    # --- complete answers -------------------------------------------------------------------------------------------------

    def one(self, value: bytes) -> bytes:
        """One object, from bytes of the served version."""
        if self.form.transform == "Table":
            return self._table_of([value], {"resourceVersion": decode(value)["metadata"].get("resourceVersion", "")})
        if self.form.transform.startswith("Partial"):
            return self._partial(value)
        return value

    def many(self, records: Iterable[Record], meta: Data) -> bytes:
        """A list, from stored records."""
        values = (self._encoder.serve(record.value) for record in records)
        if self.form.transform == "Table":
            return self._table_of(values, meta)
        if self.form.transform.startswith("Partial"):
            begin = self._list_head(f"meta.k8s.io/{self.form.version}", "PartialObjectMetadataList", meta)
            return begin + b",".join(self._partial(value) for value in values) + b"]}"
        return self._list_head(self._resource.api_version, self._resource.list_kind, meta) + b",".join(values) + b"]}"

    def _list_head(self, api_version: str, kind: str, meta: Data) -> bytes:
        return head(api_version, kind) + b',"metadata":' + orjson.dumps(meta) + b',"items":['

    def _partial(self, value: bytes) -> bytes:
        said = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{self.form.version}",
            "metadata": decode(value)["metadata"],
        }
        return orjson.dumps(said)

    def _table_of(self, values: Iterable[bytes], meta: Data) -> bytes:
        assert self._table is not None
        said = {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self.form.version}",
            "metadata": meta,
            "columnDefinitions": self._table.definitions,
            "rows": [self._row(value) for value in values],
        }
        return orjson.dumps(said)

    def _row(self, value: bytes) -> Data:
        assert self._table is not None
        data = decode(value)
        row: Data = {"cells": self._table.cells(data, self._now())}
        if self.form.include == "Object":
            row["object"] = data
        elif self.form.include == "Metadata":
            version = f"meta.k8s.io/{self.form.version}"
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": data["metadata"]}
        return row

    # --- lines of a watch -------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> Hashable:
        """Frames are shared by the watchers of one form and version; a table's first frame differs, so tables are not shared."""
        if self.form.transform == "Table":
            return id(self)
        return (self._resource.group, self._resource.version, self.form.transform, self.form.version, self._resource.conversion)

    @property
    def conversion(self) -> Conversion | None:
        """Who has to be asked for this version."""
        return self._resource.conversion

    def frame(self, event: str, value: bytes) -> bytes:
        """One line of a watch, from stored bytes."""
        served = self._encoder.serve(value)
        if self.form.transform == "Table":
            return line(event, self._table_event([self._row(served)], decode(served)["metadata"].get("resourceVersion", "")))
        return line(event, self.one(served))

    def bookmark(self, revision: int, *, initial: bool) -> bytes:
        """A line that says how far the stream is complete."""
        meta: Data = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self.form.transform == "Table":
            return line(BOOKMARK, self._table_event([], str(revision)))
        kind, version = self._resource.kind, self._resource.api_version
        if self.form.transform.startswith("Partial"):
            kind, version = "PartialObjectMetadata", f"meta.k8s.io/{self.form.version}"
        return line(BOOKMARK, head(version, kind) + b',"metadata":' + orjson.dumps(meta) + b"}")

    def _table_event(self, rows: list[Any], revision: str) -> bytes:
        assert self._table is not None
        columns = None if self._columns_told else self._table.definitions
        self._columns_told = self._columns_told or bool(rows)
        said = {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self.form.version}",
            "metadata": {"resourceVersion": revision},
            "columnDefinitions": columns,
            "rows": rows,
        }
        return orjson.dumps(said)
