"""The schema as apply needs it: the merge keys of lists and maps, and the values that are atomic.

Made once for each schema. A place without a schema is deduced from its value: objects are merged member by member, lists are one
value.
"""

from typing import Any

from paddock.base.jsondata import CONTAINERS
from paddock.kubernetes.meta.apply.places import Key, encoded

SCALAR, MAP, ATOMIC, SET, KEYED = "scalar", "map", "atomic", "set", "keyed"


class MergeType:
    """The way one place is merged."""

    # `present`: a struct that objects of its kind always have, so that nobody owns the fact that it is there
    # `steps`: the name of each field's step, and its type
    # `opening`: the beginning of the step to an entry that has one key
    __slots__ = ("defaults", "fields", "item", "keys", "kind", "opening", "present", "steps")

    def __init__(
        self,
        kind: str,
        *,
        fields: "dict[str, MergeType] | None" = None,
        item: "MergeType | None" = None,
        keys: tuple[str, ...] = (),
        defaults: dict[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.fields = fields or {}
        self.item = item
        self.keys = keys
        self.defaults = defaults or {}
        self.present = False
        self.opening = f"k:{{{encoded(keys[0])}:" if len(keys) == 1 else ""
        self.steps = {name: (f"f:{name}", below) for name, below in self.fields.items()}

    def member(self, name: str) -> "MergeType":
        """The type of a member of a map."""
        return self.fields.get(name) or self.item or DEDUCED

    def declares(self, name: str) -> bool:
        """Return whether the member is a field, not a free key."""
        return name in self.fields

    def key_of(self, entry: Any) -> Key | None:
        """Return the keys that identify an entry of a keyed list; None when it has none."""
        if not isinstance(entry, dict):
            return None
        found = []
        for key in self.keys:
            value = entry.get(key, self.defaults.get(key))
            if isinstance(value, CONTAINERS):
                return None
            if value is not None:
                found.append((key, value))
        return tuple(sorted(found)) or None


DEDUCED = MergeType("deduced")
_ATOMIC = MergeType(ATOMIC)
SCALAR_TYPE = MergeType(SCALAR)


def resolve(kind: MergeType, *values: Any) -> MergeType:
    """A deduced type, settled by the values that stand there."""
    if kind is not DEDUCED:
        return kind
    if any(isinstance(value, dict) for value in values):
        return _FREE_MAP
    return _ATOMIC if any(isinstance(value, list) for value in values) else SCALAR_TYPE


_FREE_MAP = MergeType(MAP, item=DEDUCED)
_METADATA = MergeType(
    MAP,
    fields={
        "labels": MergeType(MAP, item=SCALAR_TYPE),
        "annotations": MergeType(MAP, item=SCALAR_TYPE),
        "finalizers": MergeType(SET, item=SCALAR_TYPE),
        "ownerReferences": MergeType(KEYED, keys=("uid",), item=_ATOMIC),
        "managedFields": _ATOMIC,
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "selfLink"), SCALAR_TYPE),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"), SCALAR_TYPE),
    },
)


class MergeSchema(dict[str, Any]):
    """A schema that remembers how its objects are merged: definitions come and go, and what was made of them goes with them."""

    __slots__ = ("merged",)
    merged: MergeType


def of_schema(schema: dict[str, Any]) -> MergeType:
    """The type of the root of an object; a `MergeSchema` is read once."""
    known: MergeType | None = getattr(schema, "merged", None)
    if known is None:
        root = _read(schema)
        fields = {"apiVersion": SCALAR_TYPE, "kind": SCALAR_TYPE, **root.fields, "metadata": _METADATA}
        known = MergeType(MAP, fields=fields, item=DEDUCED)
        if isinstance(schema, MergeSchema):
            schema.merged = known
    return known


def _read(schema: dict[str, Any]) -> MergeType:
    if schema.get("x-kubernetes-int-or-string"):
        return SCALAR_TYPE
    kind = schema.get("type")
    if kind == "array":
        return _read_list(schema)
    if kind == "object" or "properties" in schema or "additionalProperties" in schema:
        return _read_map(schema)
    if kind is None or schema.get("x-kubernetes-preserve-unknown-fields"):
        return DEDUCED
    return SCALAR_TYPE


def _read_list(schema: dict[str, Any]) -> MergeType:
    items = schema.get("items") or {}
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            properties = items.get("properties") or {}
            defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
            return MergeType(KEYED, item=_read(items), keys=keys, defaults=defaults)
        case "set":
            return MergeType(SET, item=_read(items))
    return _ATOMIC


def _read_map(schema: dict[str, Any]) -> MergeType:
    if schema.get("x-kubernetes-map-type") == "atomic":
        return _ATOMIC
    if schema.get("x-kubernetes-embedded-resource"):
        fields = {"apiVersion": SCALAR_TYPE, "kind": SCALAR_TYPE, "metadata": _METADATA}
    else:
        fields = {}
    fields = {name: _read(member) for name, member in (schema.get("properties") or {}).items()} | fields
    extra = schema.get("additionalProperties")
    item = _read(extra) if isinstance(extra, dict) else DEDUCED
    if not fields and extra is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
        item = DEDUCED
    made = MergeType(MAP, fields=fields, item=item)
    made.present = bool(schema.get("x-paddock-present"))
    return made
