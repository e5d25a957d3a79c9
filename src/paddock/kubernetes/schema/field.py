"""The declaration of a field: a typed attribute of an `Object`, with a `Field` in its `Annotated` type. Nowhere else.

    class CPU(Object):
        cores: Annotated[int, Field("vCPUs the guest sees.", ge=1)] = 1

Attribute names are the names on the wire, so a path in a manifest is a path in the code. The Python default *is* the default
of the schema, with two exceptions: `None` means "absent", and a field that is required (or marked `zero`) has its type's zero
value, which never reaches a schema. Zero values keep rules simple: an object with errors still converts to its class, and every
rule can look at the rest.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, dataclass_transform

import msgspec


class Field(msgspec.Struct, frozen=True, eq=False):
    """The text of a field and what is allowed in it. Bounds on a list or a map stand beside those of its items' own `Annotated`.

    Compared by identity: `typing` hashes what stands in `Annotated`, thousands of times at start.
    """

    text: str = ""
    required: bool = False
    # what follows "Required value: " when it is missing
    needed: str = ""
    nullable: bool = False
    # the Python default is only the type's zero value, not a default of the schema
    zero: bool = False
    # numbers
    ge: int | None = None
    le: int | None = None
    bits: int = 64
    # quantities: bounds as quantities, and whether half a byte is refused
    at_least: str | None = None
    positive: bool = False
    whole: bool = False
    # strings
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    # replaces the plain sentence of a pattern or bounds, and after that of an enum (where {} is the value)
    # or of a duplicate entry
    message: str = ""
    enum: tuple[str, ...] = ()
    hints: dict[str, str] = {}
    # lists and maps; `keys` makes a list a map by these members, `unique` a set
    min_items: int | None = None
    max_items: int | None = None
    keys: tuple[str, ...] = ()
    unique: bool = False
    key_format: str | None = None
    # names that are read as this one and stored under it
    aliases: tuple[str, ...] = ()
    # why the field is stored and shown but has no effect; the empty text means it has
    not_honoured: str = ""
    # the value is never repeated in a message, an event or a log
    secret: bool = False
    # an empty text or object means the same as none
    empty_is_unset: bool = False
    deprecated: str = ""


def _is_required(annotation: Any) -> bool:
    return any(isinstance(extra, Field) and extra.required for extra in getattr(annotation, "__metadata__", ()))


def _always(zero: Any) -> Callable[[], Any]:
    """A factory, which keeps a required member from being left out when it is written with the value it would have anyway."""
    return lambda: zero if not isinstance(zero, list | dict) else zero.copy()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _Declared(msgspec.StructMeta):
    """Makes every declared object frozen and keyword-only, and its required members written, without each class having to say so."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "_Declared":
        for field, annotation in namespace.get("__annotations__", {}).items():
            if field in namespace and _is_required(annotation):
                namespace[field] = msgspec.field(default_factory=_always(namespace[field]))
        return super().__new__(mcls, name, bases, namespace, frozen=True, kw_only=True, omit_defaults=True, **options)


class Object(msgspec.Struct, metaclass=_Declared):
    """Base of every declared object. Values are frozen; members that are not required and equal to their default are not written."""

    # Unknown members are kept and not reported: for objects that are somebody else's.
    OPEN: ClassVar[bool] = False
    # Members that other tools know and this object does not have, with what to tell the user.
    STRANGERS: ClassVar[Mapping[str, str]] = {}


class ScalarConstraint(msgspec.Struct, frozen=True):
    """A constraint of a scalar that its Python type cannot express."""

    name: str


Quantity = Annotated[int | str, ScalarConstraint("quantity")]
IntOrString = Annotated[int | str, ScalarConstraint("int-or-string")]
Time = Annotated[str, ScalarConstraint("time")]
# Any JSON object, kept whole: `x-kubernetes-preserve-unknown-fields`.
Freeform = dict[str, Any]


class Empty(Object):
    """An object whose being there is all it says."""
