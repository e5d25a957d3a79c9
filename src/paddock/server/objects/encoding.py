"""Objects as bytes: how they are stored, and how each served version is made of that.

An object is encoded once, `apiVersion` and `kind` first, so that another version of it (where the versions differ in name only)
is another beginning of the same bytes.
"""

from collections.abc import Iterable, Sequence

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.server.edge.http import LongBody
from paddock.server.resources.resource import ServedResource

_FIRST = ("apiVersion", "kind", "metadata")


def encode(data: Data) -> bytes:
    """An object as JSON, its envelope first."""
    ordered = {key: data[key] for key in _FIRST if key in data}
    ordered.update(data)
    return orjson.dumps(ordered)


def decode(value: bytes) -> Data:
    """Bytes that this server has encoded."""
    data: Data = orjson.loads(value)
    return data


def stamp(data: Data, revision: int) -> bytes:
    """Encode an object as the write of a revision."""
    data["metadata"]["resourceVersion"] = str(revision)
    # An exact copy, because the store keeps these bytes. The encoder's buffer is larger than its content, and is freed here, before other
    # allocations. Freed only when the answer is sent, it would leave a hole that no other object fits.
    return bytes(memoryview(encode(data)))


def head(api_version: str, kind: str) -> bytes:
    """Return the first bytes of an object of this version and kind."""
    return b'{"apiVersion":' + orjson.dumps(api_version) + b',"kind":' + orjson.dumps(kind)


def joined(begin: bytes, items: list[bytes], opening: bytes = b"") -> LongBody:
    """A list in brackets that end an object; each item lacks its `opening`. The bytes of a long list are copied once."""
    if not items:
        return LongBody((begin + b"]}",), b"")
    items[0] = begin + opening + items[0]
    items[-1] += b"]}"
    return LongBody(items, b"," + opening)


class Encoder:
    """Makes the bytes of one served version from the stored ones."""

    def __init__(self, resource: ServedResource) -> None:
        self.resource = resource
        self._stored_head = head(resource.stored_version, resource.kind)
        self._head = head(resource.api_version, resource.kind)
        # where the metadata begins in what is served
        self.metadata_start = len(self._head) + len(b',"metadata":')

    def serve(self, value: bytes) -> bytes:
        """The bytes a client of this version gets."""
        if self.resource.conversion is not None:
            return self._converted(value)
        if self.resource.from_stored is None or self._is_settled(value):
            if value.startswith(self._head):
                return value
            if value.startswith(self._stored_head):
                return self._head + value[len(self._stored_head) :]
        return encode(self.read(value))

    def served(self, values: Iterable[bytes]) -> Iterable[bytes]:
        """The bytes of prepared objects, as `serve` gives them. Where most are as stored, that is seen without a call for each."""
        if self.resource.conversion is not None or self.resource.from_stored is not None:
            return map(self.serve, values)
        start = self._head
        return (value if value.startswith(start) else self.serve(value) for value in values)

    def listed(self, begin: bytes, values: Iterable[bytes]) -> LongBody:
        """The bytes of a list of prepared objects; `begin` ends where the first of them goes.

        The list says version and kind for all items of a built-in kind; items of other kinds say it themselves.
        """
        serve = self.serve
        if not self.resource.strategic:
            return joined(begin, list(self.served(values)))
        own = len(self._head) + 1
        if self.resource.from_stored is not None:
            return joined(begin, [serve(value)[own:] for value in values], b"{")
        # A list is long, and mostly as stored: bytes without the prefix come back as they are.
        stored = self._stored_head + b","
        tails = [serve(value)[own:] if (tail := value.removeprefix(stored)) is value else tail for value in values]
        return joined(begin, tails, b"{")

    async def prepare(self, values: Sequence[bytes]) -> Sequence[bytes]:
        """Stored bytes so that `serve` can take them: where somebody has to be asked for this version, that is done here."""
        return values if self.resource.conversion is None else await self.resource.conversion.serve(values)

    def _converted(self, value: bytes) -> bytes:
        if not value.startswith(self._head):
            raise AssertionError(f"an object of {self.resource.api_version} was not prepared")
        return value

    def _is_settled(self, value: bytes) -> bool:
        """Return whether an object was written under the present schema, so that no defaults are missing."""
        settled_from = self.resource.settled_from
        return settled_from > 0 and int(_revisions.decode(value).metadata.resourceVersion or 0) >= settled_from

    def read(self, value: bytes) -> Data:
        """The object in this version."""
        if self.resource.conversion is not None:
            return decode(self._converted(value))
        data = decode(value)
        if self.resource.from_stored is not None:
            data = self.resource.from_stored(data)
        data["apiVersion"] = self.resource.api_version
        data["kind"] = self.resource.kind
        return data

    def store(self, data: Data) -> Data:
        """An object of this version in the form that is stored. The object given may be changed."""
        if self.resource.to_stored is not None:
            data = self.resource.to_stored(data)
        data["apiVersion"] = self.resource.stored_version
        return data


class OwnerRef(msgspec.Struct, frozen=True):
    """An owner, as far as the collector needs it."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    apiVersion: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


class Envelope(msgspec.Struct, frozen=True):
    """The metadata that selectors and housekeeping look at, decoded without the rest of the object."""

    uid: str = ""
    labels: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    ownerReferences: tuple[OwnerRef, ...] = ()
    deletionTimestamp: str | None = None


class _Wrapped(msgspec.Struct, frozen=True):
    metadata: Envelope = Envelope()


class _Revision(msgspec.Struct, frozen=True):
    resourceVersion: str = ""


class _Revised(msgspec.Struct, frozen=True):
    metadata: _Revision = _Revision()


class _Cut(msgspec.Struct, frozen=True):
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_cuts = msgspec.json.Decoder(_Cut)
_envelopes = msgspec.json.Decoder(_Wrapped)
_revisions = msgspec.json.Decoder(_Revised)


def metadata_end(value: bytes) -> int:
    """Return the end of the metadata in the bytes of an object; it stands third, behind apiVersion and kind."""
    found = bytes(_cuts.decode(value).metadata)
    return value.index(found) + len(found)


def envelope(value: bytes) -> Envelope:
    """The metadata of stored bytes."""
    return _envelopes.decode(value).metadata
