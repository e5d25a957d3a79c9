"""The table of Kubernetes' built-in kinds, read from `kubernetes.json` (docs/design/0013-table-of-kinds.md).

`python -m tests.reference.kindtable` writes the file from a real kube-apiserver and the Go types; nobody edits it. A field is
`NUMBER TYPE WORD...`: the protobuf number, the type, and what JSON, patches, apply and validation make of it. A type is a scalar
(string, bool, int32, int64, float64, bytes, Time, MicroTime, Quantity, IntOrString, FieldsV1, Raw, Json), the name of a
message, `[]TYPE` or `map:TYPE`. `defaults.json` says which value a field gets when a client leaves it out, `limits.json` which
values a field takes besides those of its type.
"""

from functools import cache, cached_property
from pathlib import Path
from typing import Any

import msgspec
import orjson

from paddock.base.jsondata import Data

ExactClass = type[str] | type[bool]
# The value of a scalar that Go writes even when nobody has set it.
_ZEROS: Data = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0, "IntOrString": 0, "Quantity": "0"}
_EXACT: dict[str, ExactClass] = {"string": str, "bool": bool}
_OPAQUE = frozenset(("Raw", "Json", "FieldsV1"))
_NULLS = _OPAQUE | {"Time", "MicroTime", "bytes"}


class MessageField(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A field of a message."""

    name: str
    number: int
    # without the list or map around it
    type: str
    repeated: bool = False
    mapped: bool = False
    # nothing and zero are two values
    pointer: bool = False
    # JSON holds the field whatever its value is
    always: bool = False
    required: bool = False
    # the members stand among those of the message that holds it
    inline: bool = False
    atomic: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    patch_strategy: str = ""
    patch_key: str = ""
    enum: tuple[str, ...] = ()
    # the default that clients see in the schema
    default: str = ""

    @cached_property
    def plain(self) -> bool:
        """One value, not a list or a map of values."""
        return not self.repeated and not self.mapped

    @cached_property
    def exact(self) -> ExactClass | None:
        """The class of which any value is right as it is."""
        return _EXACT.get(self.type) if self.plain else None

    @cached_property
    def message(self) -> "MessageType":
        """The message that the type is."""
        return message(self.type)

    @cached_property
    def is_struct(self) -> bool:
        """One message that is there even if nobody has set it."""
        return self.is_message and self.plain and not self.pointer

    @cached_property
    def is_kept(self) -> bool:
        """A zero is a value."""
        return self.pointer or self.is_message or self.type in _OPAQUE

    @cached_property
    def zero(self) -> Any:
        """The value in JSON of a field that is always shown and has no value."""
        return None if not self.plain or self.pointer or self.type in _NULLS else _ZEROS.get(self.type)

    @cached_property
    def is_message(self) -> bool:
        """The type is a message with fields of its own."""
        return self.type in load()["messages"]


class MessageType(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A message: its fields by their names in JSON, those of inlined messages among them."""

    name: str
    fields: dict[str, MessageField]
    # by their numbers in protobuf, inlined messages as such
    wire: dict[int, MessageField]
    # apply replaces it as one value
    atomic: bool = False

    @cached_property
    def defaults(self) -> Data:
        """The values of fields that a client leaves out."""
        return self._facts("defaults.json")

    @cached_property
    def limits(self) -> dict[str, Data]:
        """The bounds of fields, in the words of JSON schema."""
        return self._facts("limits.json")

    @cached_property
    def shown(self) -> "tuple[tuple[str, MessageType | None, Any], ...]":
        """The fields that JSON always holds: name, the message of which an empty one stands there, or the value."""
        shown = (field for field in self.fields.values() if field.always)
        return tuple((field.name, field.message if field.is_struct else None, field.zero) for field in shown)

    def _facts(self, file: str) -> Data:
        """Return what a file written by hand says of the fields, those of inlined messages included."""
        made: Data = {}
        for field in self.wire.values():
            if field.inline:
                made |= message(field.type)._facts(file)
        return made | _written(file).get(self.name, {})


class KindRow(msgspec.Struct, frozen=True, kw_only=True, rename={"short_names": "short"}):
    """A kind of the table. `messages` names the message of each served version, the preferred version first."""

    group: str
    kind: str
    plural: str
    messages: dict[str, str]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    cluster: bool = False
    # name, kind of the body, verbs
    subresources: tuple[tuple[str, str, str], ...] = ()
    # `NAME`, `NAME:TYPE`; a plus sign behind it shows the column in wide tables only
    columns: tuple[str, ...] = ()


@cache
def load() -> Data:
    found: Data = orjson.loads(Path(__file__).with_name("kubernetes.json").read_bytes())
    return found


@cache
def _written(file: str) -> dict[str, Data]:
    found: dict[str, Data] = orjson.loads(Path(__file__).with_name(file).read_bytes())
    return found


@cache
def kinds() -> dict[tuple[str, str], KindRow]:
    """The kinds by group and kind."""
    rows = msgspec.convert(load()["kinds"], list[KindRow])
    return {(row.group, row.kind): row for row in rows}


def message_of(api_version: str, kind: str) -> MessageType | None:
    """The message of a body; every group version has its own DeleteOptions, and they are all the same."""
    name = load()["bodies"].get("v1.DeleteOptions" if kind == "DeleteOptions" else f"{api_version}.{kind}")
    return message(name) if name else None


@cache
def message(name: str) -> MessageType:
    """A message by its name, such as `core/v1.PodSpec`."""
    entries = load()["messages"][name]
    fields: dict[str, MessageField] = {}
    wire: dict[int, MessageField] = {}
    for key, text in entries.items():
        if not key:
            continue
        field = _field(key, text)
        if field.number:
            wire[field.number] = field
        if field.inline:
            fields.update(message(field.type).fields)
        else:
            fields[key] = field
    return MessageType(name=name, fields=fields, wire=wire, atomic=entries.get("") == "atomic")


def _field(name: str, text: str) -> MessageField:
    number, kind, *words = text.split(" ")
    repeated, mapped = kind.startswith("[]"), kind.startswith("map:")
    said = dict(word.split("=", 1) for word in words if "=" in word)
    list_type, _, keys = said.get("list", "").partition(":")
    strategy, _, patch_key = said.get("patch", "").partition(":")
    return MessageField(
        name=name,
        number=int(number),
        type=kind.removeprefix("[]").removeprefix("map:"),
        repeated=repeated,
        mapped=mapped,
        pointer="pointer" in words,
        always="always" in words,
        required="required" in words,
        inline="inline" in words,
        atomic="atomic" in words,
        list_type=list_type,
        list_keys=tuple(keys.split(",")) if keys else (),
        patch_strategy=strategy,
        patch_key=patch_key,
        enum=tuple(said["enum"].split("|")) if "enum" in said else (),
        default=said.get("default", ""),
    )
