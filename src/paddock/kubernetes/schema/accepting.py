"""The fast check, for documents in which nothing is wrong, as in most. It reports nothing, so it does not keep track of paths.

It accepts a value by returning that same value without findings. Otherwise the full check goes over the whole document (`check`).
"""

from collections.abc import Callable
from typing import Any

from paddock.base.jsondata import copied
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.messages import may_be_anything

Findings = list[Finding]
# Takes a value, its place (a chain of outer place and key) and the list of findings; returns the value to store.
Check = Callable[[Any, Any, Findings], Any]
# Returns the full check of a shape.
CheckOf = Callable[[shape.Shape], Check]
_REFUSED = object()
_SCALARS = frozenset((str, int, float, bool, type(None)))


def accept_of(field_shape: shape.Shape, check_of: CheckOf) -> Check:
    """Return the fast check of a shape, made once. It fills in defaults in place."""
    made: Check | None = field_shape.__dict__.get("accept")
    if made is None:
        made = field_shape.__dict__["accept"] = _make(field_shape, check_of)
    return made


def plain_class(field_shape: shape.Shape) -> type | None:
    """Return the class whose values are all valid in a place: bool, or str if any text is; None where values have to be checked."""
    if type(field_shape) is shape.BooleanShape:
        return bool
    if type(field_shape) is shape.StringShape and may_be_anything(field_shape.field):
        return str
    return None


def are_different(field: Field, entries: list[Any]) -> bool:
    """Return True if all entries of a list with keys, or of a set, certainly differ, as nearly all do."""
    try:
        if field.unique:
            return len(set(entries)) == len(entries)
        return len(field.keys) == 1 and len({entry.get(field.keys[0]) for entry in entries}) == len(entries)
    except (AttributeError, TypeError):
        # Entries that are not objects, or keys that are not scalars.
        return False


def _make(field_shape: shape.Shape, check_of: CheckOf) -> Check:
    if isinstance(field_shape, shape.ObjectShape):
        return _make_object(field_shape, check_of)
    if isinstance(field_shape, shape.ListShape):
        return _make_list(field_shape, accept_of(field_shape.item, check_of))
    if isinstance(field_shape, shape.MapShape):
        return _make_map(field_shape, accept_of(field_shape.value, check_of))
    if isinstance(field_shape, shape.AnyShape):
        # To the full check, a null is an absent value.
        return (
            _accept_object
            if field_shape.json_type == "object"
            else lambda raw, trail, out: _REFUSED if raw is None else _accept_data(raw, trail, out)
        )
    return check_of(field_shape)


def _is_data(raw: Any) -> bool:
    """Return whether a value is plain JSON, which a place without a declaration keeps as it is."""
    if type(raw) is dict:
        return all(map(_is_data, raw.values()))
    return all(map(_is_data, raw)) if type(raw) is list else type(raw) in _SCALARS


def _make_list(field_shape: shape.ListShape, item: Check) -> Check:
    field, plain = field_shape.field, plain_class(field_shape.item)
    least, most = field.min_items or 0, field.max_items
    is_distinct = bool(field.keys or field.unique)

    def accept_list(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is not list or len(raw) < least or (most is not None and len(raw) > most):
            return _REFUSED
        for entry in raw:
            if type(entry) is not plain and item(entry, None, out) is not entry:
                return _REFUSED
        return _REFUSED if is_distinct and not are_different(field, raw) else raw

    return accept_list


def _make_map(field_shape: shape.MapShape, member: Check) -> Check:
    field, plain = field_shape.field, plain_class(field_shape.value)
    least, most = field.min_items or 0, field.max_items
    form = FORMATS[field.key_format].accepts if field.key_format else None

    def accept_map(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is not dict or len(raw) < least or (most is not None and len(raw) > most):
            return _REFUSED
        for key, entry in raw.items():
            if form is not None and not form(key):
                return _REFUSED
            if type(entry) is not plain and (entry is None or member(entry, None, out) is not entry):
                return _REFUSED
        return raw

    return accept_map


def _make_object(field_shape: shape.ObjectShape, check_of: CheckOf) -> Check:
    """The check of one class. That of a member is made when a document first has it: most of a large kind is never visited."""
    # by name, the class of which any value is right as it is; None until a document comes here
    plain: dict[str, type] | None = None
    checks: dict[str, Check] = {}
    required: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()
    empty_is_unset = field_shape.field.empty_is_unset

    def complete() -> dict[str, type]:
        nonlocal plain, required, defaults
        members = field_shape.properties
        required = tuple(name for name, prop in members.items() if prop.field.required)
        left_out = ((name, prop) for name, prop in members.items() if prop.default is not shape.ABSENT and not prop.field.required)
        defaults = tuple((name, _default(prop, check_of)) for name, prop in left_out)
        classes = ((name, plain_class(prop.shape)) for name, prop in members.items() if not _is_noted(prop))
        plain = {name: cls for name, cls in classes if cls is not None}
        return plain

    def check_of_member(name: str) -> Check:
        """Return the check of a member that is not plain. An open object keeps undeclared members as they are."""
        prop = field_shape.properties.get(name)
        if prop is None:
            return _accept_data if field_shape.open and name not in field_shape.aliases else _refuse
        checks[name] = made = _refuse if _is_noted(prop) else accept_of(prop.shape, check_of)
        return made

    def accept_object(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is not dict or (empty_is_unset and not raw):
            return _REFUSED
        classes = plain if plain is not None else complete()
        for name, entry in raw.items():
            if classes.get(name) is not type(entry) and (checks.get(name) or check_of_member(name))(entry, None, out) is not entry:
                return _REFUSED
        for name in required:
            if name not in raw:
                return _REFUSED
        for name, default in defaults:
            if name not in raw:
                raw[name] = copied(default)
        return raw

    return accept_object


def _default(prop: shape.Property, check_of: CheckOf) -> Any:
    """The value of a member that is left out, with the defaults in it."""
    value = copied(prop.default)
    found: Findings = []
    accepted = accept_of(prop.shape, check_of)(value, None, found) is value and not found
    assert accepted, f"the default of {prop.name} is not right"
    return value


def _is_noted(prop: shape.Property) -> bool:
    """Return whether each use of a member is a finding: it is deprecated, or has no effect."""
    return bool(prop.field.not_honoured or prop.field.deprecated)


def _accept_data(raw: Any, trail: Any, out: Findings) -> Any:
    return raw if _is_data(raw) else _REFUSED


def _accept_object(raw: Any, trail: Any, out: Findings) -> Any:
    return raw if type(raw) is dict and _is_data(raw) else _REFUSED


def _refuse(raw: Any, trail: Any, out: Findings) -> Any:
    return _REFUSED
