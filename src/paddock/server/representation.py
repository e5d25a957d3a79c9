"""The form an answer takes: JSON, YAML, a Table or metadata only, as the Accept header asks (docs/spec/kube-api.md 2.1, 2.2)."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.tables import Ages
from paddock.server.edge.http import HttpRequest, HttpResponse, LongBody
from paddock.server.objects.encoding import Encoder, decode, head, joined, metadata_end
from paddock.server.objects.tables import ResourceTables, TableLayout
from paddock.server.objects.watches import BOOKMARK, line
from paddock.server.resources.conversion import Conversion
from paddock.server.store.contract import StoredValue

JSON, YAML = "application/json", "application/yaml"
_TYPES = {
    "application/json": JSON,
    "*/*": JSON,
    "application/*": JSON,
    "application/yaml": YAML,
    "text/yaml": YAML,
    "application/x-yaml": YAML,
}
# Quality, media type, parameters.
Clause = tuple[float, str, dict[str, str]]
_LONGEST_KEPT = 500
_INCLUDES = ("None", "Metadata", "Object")
_BROWSERS = ("curl/", "Wget/", "Mozilla/5.0")


class RepresentationForm(msgspec.Struct, frozen=True):
    """The representation that a client wants. `transform` is empty, Table, PartialObjectMetadata or PartialObjectMetadataList."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    include: str = "Metadata"
    pretty: bool = False


def form_of(
    request: HttpRequest, *, transforms: Iterable[str] = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
) -> RepresentationForm:
    """The first form of the Accept header that can be made; raises a `Failure` when there is none."""
    accept = request.headers.get("accept", "")
    include = request.parameter("includeObject") or "Metadata"
    pretty = request.flag("pretty") if "pretty" in request.query else request.headers.get("user-agent", "").startswith(_BROWSERS)
    if not accept:
        return RepresentationForm(pretty=pretty)
    for _, media, options in _preferred(accept) if len(accept) <= _LONGEST_KEPT else _sorted_clauses(accept):
        kind = options.get("as", "")
        if media not in _TYPES or (kind and not _is_known(kind, options, tuple(transforms))):
            continue
        if kind == "Table" and include not in _INCLUDES:
            raise failure.bad_request(f'includeObject: Unsupported value: "{include}": supported values: "Metadata", "None", "Object"')
        return RepresentationForm(_TYPES[media], kind, options.get("v", "v1"), include, pretty)
    raise failure.not_acceptable([JSON, YAML])


def media_of(request: HttpRequest, offered: Sequence[str]) -> str:
    """The offered media type that the Accept header prefers; the first where it takes any, empty where it takes none."""
    accept = request.headers.get("accept", "")
    for _, media, _ in _sorted_clauses(accept) if accept else ():
        if media in offered:
            return media
        if media in ("*/*", "application/*"):
            return offered[0]
    return "" if accept else offered[0]


def _is_known(kind: str, options: dict[str, str], transforms: tuple[str, ...]) -> bool:
    return kind in transforms and options.get("g") == "meta.k8s.io" and options.get("v", "v1") in ("v1", "v1beta1")


def _sorted_clauses(accept: str) -> Sequence[Clause]:
    """The clauses of an Accept header, the most wanted first."""
    return tuple(sorted(_clauses(accept), key=lambda clause: -clause[0]))


# A client sends the same header with every request.
_preferred = lru_cache(maxsize=128)(_sorted_clauses)


def _clauses(accept: str) -> Iterable[Clause]:
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        options = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(options.get("q", "1"))
        except ValueError:
            quality = 1.0
        if quality > 0:
            yield quality, media.lower(), options


def answer(form: RepresentationForm, body: bytes | LongBody, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    """A JSON body in the media type that the client wants."""
    common = (("cache-control", "no-cache, private"), ("content-type", form.media), *headers)
    if form.media == YAML:
        import yaml  # noqa: PLC0415 - few clients want it

        return HttpResponse(status, yaml.safe_dump(orjson.loads(bytes(body)), sort_keys=False, allow_unicode=True).encode(), common)
    if form.pretty:
        body = orjson.dumps(orjson.loads(bytes(body)), option=orjson.OPT_INDENT_2) + b"\n"
    return HttpResponse(status, body, common)


class Renderer:
    """Makes the bytes of one form of one resource."""

    def __init__(self, form: RepresentationForm, encoder: Encoder, rows: ResourceTables, now: Callable[[], float]) -> None:
        self.form = form
        self._encoder = encoder
        self._resource = encoder.resource
        self._shown = rows.of(self._resource) if form.transform == "Table" else None
        if form.transform:
            self._partial_head = head(f"meta.k8s.io/{form.version}", "PartialObjectMetadata") + b',"metadata":'
        self._now = now
        self._columns_told = False

    # --- complete answers -------------------------------------------------------------------------------------------------

    def one(self, value: bytes) -> bytes:
        """One object, from bytes of the served version."""
        if not self.form.transform:
            return value
        if self._shown is not None:
            meta = {"resourceVersion": decode(value)["metadata"].get("resourceVersion", "")}
            return bytes(self._table_of(self._shown, self._rows(self._shown, [(value, None)]), meta))
        return self._partial(value)

    def many(self, records: Iterable[StoredValue], meta: Data) -> LongBody:
        """A list, from stored records."""
        if self._shown is not None:
            records = tuple(records)
            values = self._encoder.served(record.value for record in records)
            return self._table_of(self._shown, self._rows(self._shown, zip(values, records, strict=True)), meta)
        if self.form.transform.startswith("Partial"):
            values = [self._encoder.serve(record.value) for record in records]
            kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{self.form.version}"
            return joined(list_head(version, kind, meta), [self._partial(value) for value in values])
        begin = list_head(self._resource.api_version, self._resource.list_kind, meta)
        return self._encoder.listed(begin, [record.value for record in records])

    def _partial(self, value: bytes) -> bytes:
        return self._partial_head + value[self._encoder.metadata_start : metadata_end(value)] + b"}"

    def _table_of(self, shown: TableLayout, rows: list[bytes], meta: Data, *, columns: bool = True) -> LongBody:
        said = {"metadata": meta, "columnDefinitions": shown.form.definitions if columns else None}
        begin = head(f"meta.k8s.io/{self.form.version}", "Table") + b"," + orjson.dumps(said)[1:-1] + b',"rows":['
        return joined(begin, rows)

    def _rows(self, shown: TableLayout, objects: Iterable[tuple[bytes, StoredValue | None]]) -> list[bytes]:
        """The rows of objects, each given as bytes of the served version and the record they come from."""
        now, include, start = self._now(), self.form.include, self._encoder.metadata_start
        row_of, fill = shown.row, Ages(now).fill
        begin, partial = b'{"cells":', b',"object":' + self._partial_head
        made = []
        for served, record in objects:
            _, row, end = row_of(served, now, record)
            if include == "Metadata":
                made.append(b"".join((begin, fill(row), partial, served[start:end], b"}}")))
            elif include == "Object":
                made.append(b"".join((begin, fill(row), b',"object":', served, b"}")))
            else:
                made.append(b"".join((begin, fill(row), b"}")))
        return made

    # --- lines of a watch -------------------------------------------------------------------------------------------------

    @property
    def identity(self) -> Hashable:
        """Frames are shared by the watchers of one form and version; a table's first frame differs, so tables are not shared."""
        if self.form.transform == "Table":
            return id(self)
        return (self._resource.group, self._resource.version, self.form.transform, self.form.version, self._resource.conversion)

    @property
    def conversion(self) -> Conversion | None:
        """The conversion that this version needs."""
        return self._resource.conversion

    def frame(self, event: str, value: bytes) -> bytes:
        """One line of a watch, from stored bytes."""
        served = self._encoder.serve(value)
        if self._shown is not None:
            rows = self._rows(self._shown, [(served, None)])
            return line(event, self._table_event(self._shown, rows, decode(served)["metadata"].get("resourceVersion", "")))
        return line(event, self.one(served))

    def bookmark(self, revision: int, *, initial: bool) -> bytes:
        """A line that says how far the stream is complete."""
        meta: Data = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        if self._shown is not None:
            # The mark of the end stands in an object, and tables hold objects in rows.
            row = [self._marking_row(self._shown, meta)] if initial else []
            return line(BOOKMARK, self._table_event(self._shown, row, str(revision)))
        kind, version = self._resource.kind, self._resource.api_version
        if self.form.transform.startswith("Partial"):
            kind, version = "PartialObjectMetadata", f"meta.k8s.io/{self.form.version}"
        return line(BOOKMARK, head(version, kind) + b',"metadata":' + orjson.dumps(meta) + b"}")

    def _marking_row(self, shown: TableLayout, meta: Data) -> bytes:
        return (
            orjson.dumps({"cells": [None] * len(shown.form.definitions), "object": None})[:-5]
            + self._partial_head
            + orjson.dumps(meta)
            + b"}}"
        )

    def _table_event(self, shown: TableLayout, rows: list[bytes], revision: str) -> bytes:
        columns = not self._columns_told
        self._columns_told = self._columns_told or bool(rows)
        return bytes(self._table_of(shown, rows, {"resourceVersion": revision}, columns=columns))


def list_head(api_version: str, kind: str, meta: Data) -> bytes:
    """Return the first bytes of a list, up to its items."""
    return head(api_version, kind) + b',"metadata":' + orjson.dumps(meta) + b',"items":['
