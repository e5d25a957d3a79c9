"""The target of a request: a served kind, and the key of an object."""

from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec
import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.client.errors import BadAnswer
from paddock.kubernetes.schema.kind import Kind

T = TypeVar("T")


class Key(NamedTuple):
    """The place of an object among those of its kind; `namespace` is empty for kinds of cluster scope."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def of(cls, text: str) -> "Key":
        """The key that is written `namespace/name`, or `name`."""
        namespace, _, name = text.rpartition("/")
        return cls(namespace, name)


class Target(msgspec.Struct, Generic[T], frozen=True):
    """A kind as the API serves it, and the Python type its objects are read into: a declared class, or dict."""

    group: str
    version: str
    plural: str
    kind: str
    cls: type[T]
    namespaced: bool = True
    # the status is a subresource of its own
    has_status: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`virtualmachines.kubevirt.io`, or `secrets` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of all objects, of those in a namespace, of one, or of a part of one."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)

    def read(self, raw: bytes) -> T:
        """An object from its JSON. Members of lists may lack what the list says for all of them: kind and apiVersion."""
        try:
            if self.cls is dict:
                return cast(T, self._named(orjson.loads(raw)))
            value: Any = _decoder(self.cls).decode(raw)
        except (msgspec.MsgspecError, orjson.JSONDecodeError) as error:
            raise BadAnswer(f"cannot read the {self.kind} that the server sent", why=str(error)) from error
        if not getattr(value, "kind", "-"):
            value = msgspec.structs.replace(value, apiVersion=self.api_version, kind=self.kind)
        return cast(T, value)

    def _named(self, data: Data) -> Data:
        return data if data.get("kind") else {"apiVersion": self.api_version, "kind": self.kind, **data}

    def write(self, value: T) -> bytes:
        """The JSON of an object. Of a declared class, only what the class knows is written."""
        return orjson.dumps(value) if isinstance(value, dict) else msgspec.json.encode(value)


_DECODERS: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def _decoder(cls: type[Any]) -> msgspec.json.Decoder[Any]:
    found = _DECODERS.get(cls)
    if found is None:
        found = _DECODERS[cls] = msgspec.json.Decoder(cls)
    return found


def plain(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Target[Data]:
    """A kind whose objects are read as plain data."""
    return Target(group, version, plural, kind, dict, namespaced)


def declared(kind: Kind, cls: type[T]) -> Target[T]:
    """A declared kind in its stored version; `cls` is its class (or dict, for plain data)."""
    return Target(kind.group, kind.storage_version, kind.plural, kind.kind, cls, kind.namespaced, kind.status)


LEASES = plain("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = plain("", "v1", "events", "Event")
