"""Reading objects: one by name, lists by selector, pages of a list, the state of an earlier revision (docs/spec/kube-api.md 2.9)."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure, fieldpath
from paddock.kubernetes.meta.matching import FieldQuery, LabelQuery
from paddock.kubernetes.schema import finding
from paddock.server.objects.encoding import decode, envelope
from paddock.server.objects.index import ObjectIndex
from paddock.server.objects.views import ViewedStore
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import Compacted, StoredValue, StoreKey


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a list."""

    namespace: str = ""
    labels: LabelQuery = LabelQuery()
    fields: FieldQuery = FieldQuery()
    limit: int = 0
    token: str = ""
    revision: str = ""
    match: str = ""


class ListPage(msgspec.Struct, frozen=True):
    """A list, or a part of one. `token` continues it; `remaining` is known only without selectors."""

    records: tuple[StoredValue, ...]
    revision: int
    token: str = ""
    remaining: int | None = None


class FutureRevision(PaddockError):
    """A revision was asked for that does not exist yet; whoever can wait may wait for it."""

    def __init__(self, asked: int, current: int) -> None:
        super().__init__(f"revision {asked} does not exist yet", why=f"the newest is {current}")
        self.asked = asked
        self.current = current


# Python reads no more than 4300 digits, but digits of every script.
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")
_REVISION = re.compile(r"[0-9]{1,20}")


def read_number(name: str, text: str, form: re.Pattern[str] = _NUMBER) -> int:
    """Return the value of a parameter that is a whole number of 64 bits; raises a `Failure`."""
    if form.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    raise failure.bad_request(f'{name}: Invalid value: "{shown}": must be a whole number')


def read_revision(text: str) -> int:
    """Return the value of the parameter `resourceVersion`, 0 when it is empty; raises a `Failure`."""
    return read_number("resourceVersion", text or "0", _REVISION)


class ObjectReader:
    """Reads the committed objects and the views of them."""

    def __init__(self, store: ViewedStore, index: ObjectIndex) -> None:
        self.store = store
        self.index = index

    def key(self, resource: ServedResource, namespace: str, name: str) -> StoreKey:
        """Return the key of an object."""
        return StoreKey(resource.collection, namespace if resource.namespaced else "", name)

    def get(self, resource: ServedResource, namespace: str, name: str, revision: str = "") -> StoredValue:
        """The committed object; raises a `Failure` when it is absent."""
        self._not_before(revision, self.store.revision)
        record = self.store.get(self.key(resource, namespace, name))
        if record is None:
            raise failure.not_found(resource.about(name))
        return record

    def list(self, resource: ServedResource, query: Query) -> ListPage:
        """A list or a page of one; raises `Failure`, or `FutureRevision`."""
        if query.token:
            return self._continue(resource, query)
        revision = self._list_revision(query)
        if revision is None:
            return self._page(resource, query, self._latest(resource, query), self.store.revision)
        try:
            records = self._narrow(query, self.store.snapshot(resource.collection, revision))
        except Compacted:
            raise failure.expired(f"The resourceVersion for the provided list is too old: {revision} ({self.store.compacted})") from None
        return self._page(resource, query, records, revision)

    def _list_revision(self, query: Query) -> int | None:
        """The exact revision that is asked for, or None for the newest state."""
        if query.match and query.revision == "":
            raise _bad_match("resourceVersionMatch is forbidden unless resourceVersion is provided")
        if query.match not in ("", "Exact", "NotOlderThan"):
            known = ("Exact", "NotOlderThan")
            raise failure.invalid(_OPTIONS, [finding.unsupported(("resourceVersionMatch",), query.match, known, "list/match")])
        if query.match == "Exact" and query.revision == "0":
            raise _bad_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
        self._not_before(query.revision, self.store.revision)
        exact = query.match == "Exact" or (query.match == "" and query.limit and query.revision not in ("", "0"))
        return int(query.revision) if exact else None

    def _not_before(self, revision: str, current: int) -> None:
        if revision in ("", "0"):
            return
        asked = read_revision(revision)
        if asked > current:
            raise FutureRevision(asked, current)

    def _latest(self, resource: ServedResource, query: Query) -> Iterable[StoredValue]:
        name = query.fields.exact("metadata.name")
        if name is not None and (query.namespace or not resource.namespaced):
            record = self.store.get(self.key(resource, query.namespace, name))
            return self._narrow(query, () if record is None else (record,))
        keys = self.index.candidates(resource.collection, query.labels) if query.labels.requirements else None
        if keys is None:
            return self._narrow(query, self.store.scan(resource.collection, query.namespace))
        found = (record for key in keys if (record := self.store.get(key)) is not None)
        return self._narrow(query, self.store.with_views(resource.collection, found, query.namespace))

    def _narrow(self, query: Query, records: Iterable[StoredValue]) -> Iterable[StoredValue]:
        """The records that the query asks for."""
        namespace = query.namespace
        if namespace:
            records = (record for record in records if record.key.namespace == namespace)
        if not query.labels.requirements and not query.fields.conditions:
            return records
        return self._selected(query, records)

    def _selected(self, query: Query, records: Iterable[StoredValue]) -> Iterator[StoredValue]:
        """The records that match the selectors of the query."""
        for record in records:
            if query.labels.requirements and not query.labels.matches(envelope(record.value).labels):
                continue
            if query.fields.conditions and not query.fields.matches(Fields(record).value):
                continue
            yield record

    def _page(
        self, resource: ServedResource, query: Query, records: Iterable[StoredValue], revision: int, after: StoreKey | None = None
    ) -> ListPage:
        rest = iter(records) if after is None else (record for record in records if record.key > after)
        if not query.limit:
            return ListPage(tuple(rest), revision)
        page = [record for _, record in zip(range(query.limit), rest, strict=False)]
        following = sum(1 for _ in rest)
        if not following:
            return ListPage(tuple(page), revision)
        selecting = query.labels.requirements or query.fields.conditions
        return ListPage(tuple(page), revision, _token(revision, page[-1].key), None if selecting else following)

    def _continue(self, resource: ServedResource, query: Query) -> ListPage:
        if query.match:
            raise _bad_match("resourceVersionMatch is forbidden when continue is provided")
        if query.revision not in ("", "0"):
            raise failure.bad_request("specifying resource version is not allowed when using continue")
        revision, after = _read_token(query.token, resource.collection)
        if revision < 0:
            return self._page(resource, query, self._latest(resource, query), self.store.revision, after)
        if revision > self.store.revision:
            # The store was restored from a backup, and the token is of what came after it.
            raise _expired(f"is of resource version {revision}, which does not exist", after)
        try:
            records = self._at(resource, query, revision)
        except Compacted:
            raise _expired("is too old to display a consistent list result", after) from None
        return self._page(resource, query, records, revision, after)

    def _at(self, resource: ServedResource, query: Query, revision: int) -> Iterable[StoredValue]:
        """The collection at a revision; the newest state is as good when nothing in it has changed since."""
        if not self.store.has_changed(resource.collection, revision):
            return self._latest(resource, query)
        return self._narrow(query, self.store.snapshot(resource.collection, revision))


_OPTIONS = failure.FailureTarget(group="meta.k8s.io", kind="ListOptions")


def _bad_match(why: str) -> failure.Failure:
    return failure.invalid(_OPTIONS, [finding.forbidden(("resourceVersionMatch",), why, "list/match")])


def _expired(why: str, after: StoreKey) -> failure.Failure:
    said = failure.expired(
        f"The provided continue parameter {why}. You can start a new list without the "
        "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
        "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
        "time the first chunk was returned and now may show up in the list."
    )
    said.continue_token = _token(-1, after)
    return said


class _Token(msgspec.Struct, frozen=True):
    """The content of a continue token: the start of the next page of a list, and the revision of all its pages, -1 for the newest."""

    v: Literal["meta.k8s.io/v1"]
    rv: int
    start: str


def _token(revision: int, after: StoreKey) -> str:
    said = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, f"{after.namespace}/{after.name}"))
    return base64.urlsafe_b64encode(said).decode().rstrip("=")


def _read_token(token: str, collection: str) -> tuple[int, StoreKey]:
    try:
        said = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise failure.bad_request(f"continue key is not valid: {error}") from None
    namespace, slash, name = said.start.partition("/")
    if not slash:
        raise failure.bad_request("continue key is not valid: it names no place")
    if not said.rv:
        raise failure.bad_request("continue key is not valid: incorrect encoded start resourceVersion")
    return said.rv, StoreKey(collection, namespace, name)


class Fields:
    """The fields of one object that field selectors ask for, decoded when first needed."""

    def __init__(self, record: StoredValue) -> None:
        self._record = record
        self._data: Data | None = None

    def value(self, path: str) -> str:
        """A field as text; the empty text when it is absent."""
        if path == "metadata.name":
            return self._record.key.name
        if path == "metadata.namespace":
            return self._record.key.namespace
        if self._data is None:
            self._data = decode(self._record.value)
        return fieldpath.text_at(self._data, path)
