"""Objects of one kind as they were last seen: bytes, with what files them decoded."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key, Target

T = TypeVar("T")


class CachedOwner(msgspec.Struct, frozen=True):
    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    @property
    def group(self) -> str:
        return self.apiVersion.rpartition("/")[0]


class Meta(msgspec.Struct, frozen=True):
    """The metadata that decide something before anybody looks at the object."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resourceVersion: str = ""
    generation: int | None = None
    deletionTimestamp: str | None = None
    labels: dict[str, str] | None = None
    ownerReferences: tuple[CachedOwner, ...] | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        """The place of the object."""
        return Key(self.namespace or "", self.name)

    @property
    def deleting(self) -> bool:
        """True if it is being deleted."""
        return self.deletionTimestamp is not None

    @property
    def owner(self) -> CachedOwner | None:
        """The owner that controls it."""
        return next((owner for owner in self.ownerReferences or () if owner.controller), None)


class _Object(msgspec.Struct):
    metadata: Meta


_OBJECTS = msgspec.json.Decoder(_Object)


class CachedObject:
    """One object at one revision. Reading makes a new value each time, so nobody can spoil it for others."""

    __slots__ = ("meta", "raw")

    def __init__(self, meta: Meta, raw: bytes) -> None:
        self.meta = meta
        self.raw = raw

    @classmethod
    def of(cls, raw: bytes) -> "CachedObject":
        """From an object's JSON."""
        return cls(_OBJECTS.decode(raw).metadata, raw)

    @classmethod
    def from_data(cls, data: Data) -> "CachedObject":
        """From an object as plain data."""
        return cls.of(orjson.dumps(data))

    @property
    def key(self) -> Key:
        """The place of the object."""
        return self.meta.key

    def read(self, target: Target[T]) -> T:
        return target.read(self.raw)


class CacheChange(msgspec.Struct, frozen=True):
    """A change of an object: it came (`old` is None), changed, or went (`new` is None, and `old` is its last form)."""

    old: CachedObject | None
    new: CachedObject | None

    @property
    def seen(self) -> CachedObject:
        """The newest there is of it."""
        found = self.new or self.old
        if found is None:
            raise ValueError("a change of no object")
        return found


Index = Callable[[CachedObject], Iterable[str]]


def by_namespace(seen: CachedObject) -> Iterable[str]:
    return (seen.meta.namespace or "",)


def by_owner(seen: CachedObject) -> Iterable[str]:
    """Objects by the UIDs of their owners."""
    return (owner.uid for owner in seen.meta.ownerReferences or ())


def by_label(name: str) -> Index:
    """Objects by the value of a label; those without it are not found."""

    def index(seen: CachedObject) -> Iterable[str]:
        labels = seen.meta.labels or {}
        return (labels[name],) if name in labels else ()

    return index


class Cache:
    """The objects of a kind. Written by its informer alone."""

    def __init__(self) -> None:
        self._objects: dict[Key, CachedObject] = {}
        self._indexes: dict[str, tuple[Index, dict[str, dict[Key, None]]]] = {}
        # what each object is filed under, so that taking it out asks no function about an old object
        self._filed: dict[str, dict[Key, tuple[str, ...]]] = {}
        self.index("namespace", by_namespace)
        self.index("owner", by_owner)

    def index(self, name: str, function: Index) -> None:
        """File all objects under what the function says of them. The same name again changes nothing."""
        if name in self._indexes:
            return
        self._indexes[name] = (function, {})
        self._filed[name] = {}
        for key, seen in self._objects.items():
            self._file(name, key, seen)

    def get(self, key: Key) -> CachedObject | None:
        return self._objects.get(key)

    def by(self, name: str, value: str) -> list[CachedObject]:
        """The objects filed under a value, in the order they came."""
        _, values = self._indexes[name]
        return [self._objects[key] for key in values.get(value, ())]

    def keys(self) -> Iterable[Key]:
        """The places of all objects."""
        return self._objects.keys()

    def __iter__(self) -> Iterator[CachedObject]:
        return iter(tuple(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, seen: CachedObject) -> CachedObject | None:
        """Keep an object; returns what it replaces."""
        key = seen.key
        old = self._objects.get(key)
        self._objects[key] = seen
        for name in self._indexes:
            self._file(name, key, seen)
        return old

    def remove(self, key: Key) -> CachedObject | None:
        """Forget an object; returns what was known."""
        old = self._objects.pop(key, None)
        if old is not None:
            for name in self._indexes:
                self._unfile(name, key)
        return old

    def _file(self, name: str, key: Key, seen: CachedObject) -> None:
        function, values = self._indexes[name]
        wanted = tuple(function(seen))
        if self._filed[name].get(key) == wanted:
            return
        self._unfile(name, key)
        for value in wanted:
            values.setdefault(value, {})[key] = None
        if wanted:
            self._filed[name][key] = wanted

    def _unfile(self, name: str, key: Key) -> None:
        _, values = self._indexes[name]
        for value in self._filed[name].pop(key, ()):
            keys = values.get(value)
            if keys is not None:
                keys.pop(key, None)
                if not keys:
                    del values[value]
