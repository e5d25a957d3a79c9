"""The effect of a schema on a new object before any check: prune, drop nulls, fill in defaults; in one walk.

The value given is not changed. Undeclared members are dropped and noted. A null in a declared member that may not be null counts
as absent, so its default comes in its place. Defaults are filled into what is there: the members of an absent object get none,
unless the object has a default of its own.
"""

from typing import Any

from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural import embedded
from paddock.kubernetes.schema.structural.node import SchemaNode, Trail, clone, steps

UNKNOWN_FIELD = "structural/unknown-field"


class ShapeNotes:
    """The observations on the way: undeclared members, and unreadable ones."""

    __slots__ = ("broken", "unknown")

    def __init__(self) -> None:
        self.unknown: list[Finding] = []
        self.broken: list[Finding] = []

    def stranger(self, trail: Trail) -> None:
        """A member that nobody declared."""
        path = steps(trail)
        self.unknown.append(Finding(path=path, message="unknown field", rule=UNKNOWN_FIELD))

    def misplaced(self, trail: Trail) -> None:
        """A member that the metadata of no object has."""
        self.stranger(trail)


def shape(node: SchemaNode, value: Any, noted: ShapeNotes) -> Any:
    """An object as it would be stored."""
    return _shape(node, value, None, noted)


def _shape(node: SchemaNode, value: Any, trail: Trail, noted: ShapeNotes) -> Any:
    kind = type(value)
    if kind is dict:
        return _object(node, value, trail, noted) if _reads_objects(node) else value
    if kind is list:
        items = node.items
        if items is None or not (items.shapes or items.has_default):
            return value
        return [_entry(items, entry, (trail, index), noted) for index, entry in enumerate(value)]
    if kind is float and node.whole and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def _reads_objects(node: SchemaNode) -> bool:
    return "object" in node.types or bool(node.schema.get("properties")) or node.root or node.embedded


def _entry(items: SchemaNode, entry: Any, trail: Trail, noted: ShapeNotes) -> Any:
    if entry is None and not items.nullable and items.has_default:
        entry = clone(items.schema["default"])
    return _shape(items, entry, trail, noted)


def _object(node: SchemaNode, value: dict[str, Any], trail: Trail, noted: ShapeNotes) -> dict[str, Any]:
    made: dict[str, Any] = {}
    kept, others = node.kept, node.others
    properties = node.properties
    for key, member in value.items():
        if key in kept:
            made[key] = member if node.root else _enveloped(properties.get(key), key, member, (trail, key), noted)
            continue
        below = properties.get(key) or others
        if below is None:
            if node.open:
                made[key] = member
            else:
                noted.stranger((trail, key))
        elif member is None and not below.nullable:
            if below.has_default and key not in properties:
                made[key] = _shape(below, clone(below.schema["default"]), (trail, key), noted)
        elif below.shapes:
            made[key] = _shape(below, member, (trail, key), noted)
        else:
            made[key] = member
    for key, below in node.filled:
        if key not in made:
            default = clone(below.schema["default"])
            in_envelope = key in kept and not node.root
            # What a default holds is nothing that a client has sent.
            made[key] = (
                embedded.coerce(key, default, trail, ShapeNotes()) if in_envelope else _shape(below, default, (trail, key), ShapeNotes())
            )
    return made


def _enveloped(declared: SchemaNode | None, key: str, member: Any, trail: Trail, noted: ShapeNotes) -> Any:
    """A member of the envelope of an embedded object: what all objects have, and the defaults that the schema gives it."""
    made = embedded.coerce(key, member, trail, noted)
    if declared is None or not declared.filled:
        return made
    return embedded.filled(made, {name: clone(below.schema["default"]) for name, below in declared.filled})
