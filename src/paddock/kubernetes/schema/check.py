"""A raw document held against a declaration: every failure in one pass, and the value as it would be stored.

The value returned is pruned, defaulted and has aliases renamed. Where something was wrong it is repaired just enough to
convert to its class (a value of the wrong type becomes absent, a wrong list entry becomes an empty one), so that the rules
across fields can still look at everything else and all failures come in one answer. Indices never shift.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from paddock.base import quantity
from paddock.base.jsondata import copied
from paddock.base.nearest import nearest
from paddock.kubernetes.schema import finding, shape
from paddock.kubernetes.schema.accepting import Check, Findings, accept_of, are_different, plain_class
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.formats import FORMATS, compiled
from paddock.kubernetes.schema.messages import (
    ALIAS,
    BARE_WORD,
    BOUNDS,
    DEPRECATED,
    DUPLICATE,
    ENUM,
    FORMAT,
    FRACTION,
    NOT_HONOURED,
    REQUIRED,
    TYPE,
    UNKNOWN_FIELD,
    bad,
    bare_word,
    bounds_text,
    example,
    path_of,
    wrong_type,
)
from paddock.kubernetes.schema.scalars import BareWord

# A place is a chain of (outer place, key), so that nothing is built for the many places where nothing is wrong.
_DROP = object()
_MOST_HINTS = 500


class Checked(NamedTuple):
    """The value as it would be stored, and everything found on the way."""

    value: dict[str, Any]
    findings: list[Finding]


def check(cls: type[Object], raw: Any) -> Checked:
    """Hold a document against the class of its kind."""
    return take(cls, copied(raw))


def take(cls: type[Object], raw: Any) -> Checked:
    """Check a document in place: the value may be the document itself, with defaults filled in."""
    place = shape.shape_of(cls)
    findings: Findings = []
    if accept_of(place, _checker)(raw, None, findings) is raw and not findings:
        return Checked(raw, [])
    findings.clear()
    value = _checker(place)(raw, None, findings)
    return Checked({} if value is _DROP else value, findings)


def settle(value: Any) -> Any:
    """Bare words in a place without a declaration become what kubectl reads: booleans."""
    if isinstance(value, BareWord):
        return value.as_bool()
    if isinstance(value, dict):
        return {key: settle(member) for key, member in value.items()}
    if isinstance(value, list):
        return [settle(member) for member in value]
    return value


def _checker(field_shape: shape.Shape) -> Check:
    made: Check | None = field_shape.__dict__.get("checker")
    if made is None:
        made = field_shape.__dict__["checker"] = _MAKERS[type(field_shape)](field_shape)
    return made


def drop_unread(findings: Iterable[Finding], read: Iterable[Finding]) -> Iterable[Finding]:
    """Drop what rules miss only because it could not be read; `read` has told that already."""
    unread = {found.path for found in read if found.rule in (TYPE, FORMAT)}
    if not unread:
        return findings
    # Each place is looked up, as both kinds of findings may be thousands.
    above = {path[:end] for path in unread for end in range(len(path) + 1)}
    return (each for each in findings if each.cause is not CauseType.REQUIRED or not (each.place in above or _is_below(each.place, unread)))


def drop_restated(judged: Iterable[Finding], ruled: Iterable[Finding]) -> Iterable[Finding]:
    """Drop what the schema finds where the rules of the kind find the same, in words that say more."""
    places = {each.path for each in ruled}
    if not places:
        return judged
    return (each for each in judged if each.path not in places or each.cause not in (CauseType.REQUIRED, CauseType.NOT_SUPPORTED))


def _is_below(path: Path, places: set[Path]) -> bool:
    """Return True if a place is one of some places, or in one of them."""
    return any(path[:end] in places for end in range(len(path) + 1))


def _make_string(field_shape: shape.Shape) -> Check:
    field = field_shape.field
    pattern = compiled(field.pattern) if field.pattern else None
    named = field.format or ("date-time" if isinstance(field_shape, shape.TimeShape) else "")
    form = FORMATS[named] if named else None

    switches = {True: "On", False: "Off"} if {"On", "Off"} <= set(field.enum) else {}

    def check_string(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is bool and switches:
            # What kubectl made of a bare On.
            raw = BareWord(switches[raw])
        if not isinstance(raw, str) or (isinstance(raw, BareWord) and raw not in field.enum):
            out.append(wrong_type(trail, raw, "a string", field))
            return _DROP
        if isinstance(raw, BareWord):
            out.append(finding.warning(path_of(trail), bare_word(raw), BARE_WORD))
            raw = str(raw)
        if raw == "" and field.empty_is_unset:
            return _DROP
        if field.enum and raw not in field.enum:
            hint = field.hints.get(raw) or field.message.replace("{}", raw[:100])
            out.append(finding.unsupported(path_of(trail), raw, field.enum, ENUM, hint))
        if field.max_length is not None and len(raw) > field.max_length:
            out.append(finding.too_long(path_of(trail), field.max_length, BOUNDS))
        if field.min_length is not None and len(raw) < field.min_length:
            why = "must not be empty" if field.min_length == 1 else f"must be at least {field.min_length} characters"
            out.append(bad(trail, raw, why, BOUNDS, field))
        elif pattern is not None and pattern.search(raw) is None:
            out.append(bad(trail, raw, field.message or f"must match {field.pattern}", FORMAT, field))
        elif form is not None and not form.accepts(raw):
            out.append(bad(trail, raw, field.message or form.message, FORMAT, field))
        return raw

    if field.empty_is_unset or field.min_length is not None or field.max_length is not None or pattern is not None or form is not None:
        return check_string
    return _quick_string(field, check_string)


def _quick_string(field: Field, careful: Check) -> Check:
    """Most texts are any text, or one of a few: what is right is seen at once, and everything else looked at with care."""
    known = frozenset(field.enum)

    def check_any_string(raw: Any, trail: Any, out: Findings) -> Any:
        return raw if type(raw) is str else careful(raw, trail, out)

    def check_known_string(raw: Any, trail: Any, out: Findings) -> Any:
        return raw if type(raw) is str and raw in known else careful(raw, trail, out)

    return check_known_string if known else check_any_string


def _make_integer(field_shape: shape.Shape) -> Check:
    field = field_shape.field
    widest = 2 ** (field.bits - 1)

    def check_integer(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is float and raw.is_integer() and abs(raw) < 2**53:
            raw = int(raw)
        if type(raw) is not int:
            out.append(wrong_type(trail, raw, "an integer", field))
            return _DROP
        if (field.ge is not None and raw < field.ge) or (field.le is not None and raw > field.le):
            out.append(bad(trail, raw, field.message or bounds_text(field), BOUNDS, field))
        if not -widest <= raw < widest:
            out.append(bad(trail, raw, f"must fit into {field.bits} bits", BOUNDS, field))
            return _DROP
        return raw

    return check_integer


def _make_number(field_shape: shape.Shape) -> Check:
    field = field_shape.field

    def check_number(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) not in (int, float) or raw != raw or raw in (float("inf"), float("-inf")):
            out.append(wrong_type(trail, str(raw) if type(raw) is float else raw, "a number", field))
            return _DROP
        if (field.ge is not None and raw < field.ge) or (field.le is not None and raw > field.le):
            out.append(bad(trail, raw, field.message or bounds_text(field), BOUNDS, field))
        return raw

    return check_number


def _make_boolean(field_shape: shape.Shape) -> Check:
    def check_boolean(raw: Any, trail: Any, out: Findings) -> Any:
        if isinstance(raw, BareWord):
            return raw.as_bool()
        if type(raw) is not bool:
            out.append(wrong_type(trail, raw, "a boolean", field_shape.field))
            return _DROP
        return raw

    return check_boolean


_A_QUANTITY = "a quantity: a whole number or a string such as 10Gi"


def _make_quantity(field_shape: shape.Shape) -> Check:
    field = field_shape.field
    least = quantity.parse(field.at_least) if field.at_least else None

    def check_quantity(raw: Any, trail: Any, out: Findings) -> Any:
        if type(raw) is float and quantity.is_quantity(repr(raw)):
            # Some kinds take it (`KindFacts.takes_fractions`), so it goes on as the text that they make of it.
            before = len(out)
            value = check_quantity(quantity.respelled(repr(raw)), trail, out)
            if len(out) == before:
                out.append(replace(wrong_type(trail, raw, _A_QUANTITY, field), rule=FRACTION))
            return value
        if type(raw) is not int and (not isinstance(raw, str) or isinstance(raw, BareWord)):
            out.append(wrong_type(trail, raw, _A_QUANTITY, field))
            return _DROP
        if raw == "" and field.empty_is_unset:
            return _DROP
        if type(raw) is int and not -(2**63) <= raw < 2**63:
            # A server reads such a number as a floating one, and that is no quantity.
            out.append(bad(trail, raw, "a number must fit into 64 bits; a string may say more", BOUNDS, field))
            return _DROP
        try:
            value = quantity.parse(raw)
        except quantity.NotAQuantity:
            meant = " or ".join(quantity.meant(raw))
            hint = f"; did you mean {meant}?" if meant else ""
            out.append(bad(trail, raw, f"not a Kubernetes quantity{hint}", FORMAT, field))
            return _DROP
        if field.positive and value <= 0:
            out.append(bad(trail, raw, "must be greater than 0", BOUNDS, field))
        elif least is not None and value < least:
            out.append(bad(trail, raw, f"must be at least {field.at_least}", BOUNDS, field))
        if field.whole and value % quantity.UNIT:
            out.append(bad(trail, raw, "must be a whole number of bytes", BOUNDS, field))
        return raw

    return check_quantity


def _make_int_or_string(field_shape: shape.Shape) -> Check:
    text = _make_string(field_shape)
    number = _make_integer(field_shape)

    def check_int_or_string(raw: Any, trail: Any, out: Findings) -> Any:
        if isinstance(raw, str) and not isinstance(raw, BareWord):
            return text(raw, trail, out)
        if type(raw) is int:
            return number(raw, trail, out)
        out.append(wrong_type(trail, raw, "an integer or a string", field_shape.field))
        return _DROP

    return check_int_or_string


def _make_any(field_shape: shape.Shape) -> Check:
    def check_any(raw: Any, trail: Any, out: Findings) -> Any:
        if field_shape.json_type == "object" and not isinstance(raw, dict):
            out.append(wrong_type(trail, raw, "an object", field_shape.field))
            return _DROP
        return settle(raw)

    return check_any


_EMPTY = {"object": dict, "array": list, "string": str, "integer": int, "number": int, "boolean": bool}


def _empty_of(field_shape: shape.Shape) -> Any:
    """Return the replacement for a list entry of the wrong type, so that the others keep their index."""
    return _EMPTY[field_shape.json_type]() if field_shape.json_type else "0"


def _make_list(field_shape: shape.Shape) -> Check:
    assert isinstance(field_shape, shape.ListShape)
    field, item = field_shape.field, _checker(field_shape.item)

    def check_list(raw: Any, trail: Any, out: Findings) -> Any:
        if not isinstance(raw, list):
            out.append(wrong_type(trail, raw, "a list", field))
            return _DROP
        if field.max_items is not None and len(raw) > field.max_items:
            out.append(finding.too_many(path_of(trail), len(raw), field.max_items, BOUNDS))
        if field.min_items is not None and len(raw) < field.min_items:
            items = "item" if field.min_items == 1 else "items"
            out.append(finding.invalid(path_of(trail), raw, f"must have at least {field.min_items} {items}", BOUNDS))
        made = []
        for index, entry in enumerate(raw):
            value = item(entry, (trail, index), out)
            made.append(_empty_of(field_shape.item) if value is _DROP else value)
        if (field.keys or field.unique) and not are_different(field, made):
            _find_duplicates(field, made, trail, out)
        return made

    return check_list


def _find_duplicates(field: Field, made: list[Any], trail: Any, out: Findings) -> None:
    """Entries of a set, or of a list with keys, that stand twice. Missing keys are somebody else's finding."""
    seen = set()
    for index, entry in enumerate(made):
        keys = tuple(entry.get(key) for key in field.keys) if field.keys and isinstance(entry, dict) else entry
        if isinstance(keys, dict | list) or (field.keys and not any(keys)):
            continue
        if keys in seen:
            place = ((trail, index), field.keys[0]) if len(field.keys) == 1 else (trail, index)
            value = keys[0] if len(field.keys) == 1 else dict(zip(field.keys, keys, strict=True)) if field.keys else entry
            out.append(finding.duplicate(path_of(place), value, DUPLICATE, field.message))
        seen.add(keys)


def _make_map(field_shape: shape.Shape) -> Check:
    assert isinstance(field_shape, shape.MapShape)
    field, member = field_shape.field, _checker(field_shape.value)
    form = FORMATS[field.key_format] if field.key_format else None

    def check_map(raw: Any, trail: Any, out: Findings) -> Any:
        if not isinstance(raw, dict):
            out.append(wrong_type(trail, raw, "an object", field))
            return _DROP
        if field.max_items is not None and len(raw) > field.max_items:
            out.append(finding.too_many(path_of(trail), len(raw), field.max_items, BOUNDS))
        if field.min_items is not None and len(raw) < field.min_items:
            entries = "entry" if field.min_items == 1 else "entries"
            out.append(finding.invalid(path_of(trail), raw, f"must have at least {field.min_items} {entries}", BOUNDS))
        made = {}
        for key, entry in raw.items():
            if form is not None and not form.accepts(key):
                out.append(finding.invalid(path_of((trail, key)), key, form.message, FORMAT))
            if entry is None:
                out.append(wrong_type((trail, key), None, _MAP_VALUES.get(field_shape.value.json_type, "given"), field))
                continue
            value = member(entry, (trail, key), out)
            if value is not _DROP:
                made[key] = value
        return made

    return check_map


_MAP_VALUES = {
    "string": "a string",
    "integer": "an integer",
    "object": "an object",
    "array": "a list",
    "boolean": "a boolean",
}


class _Member:
    """A declared member of an object. Its check is made when a document first has it: most of a large kind is never visited."""

    __slots__ = ("checker", "field", "noted", "nullable", "plain", "shape")

    def __init__(self, prop: shape.Property) -> None:
        self.shape = prop.shape
        self.field = prop.field
        self.nullable = prop.field.nullable
        # whether there is something to say of it wherever it stands
        self.noted = bool(prop.field.not_honoured or prop.field.deprecated)
        self.checker: Check = self._first
        # a value of exactly this class is right as it is
        self.plain = None if self.noted else plain_class(prop.shape)

    def _first(self, raw: Any, trail: Any, out: Findings) -> Any:
        self.checker = _checker(self.shape)
        return self.checker(raw, trail, out)


class _ObjectCheck:
    """The compiled check of one class."""

    def __init__(self, field_shape: shape.ObjectShape) -> None:
        self.place = field_shape
        self.index: dict[str, _Member] = {}
        # members that need a check when they are absent: required ones, and ones with a default
        self.missed: tuple[shape.Property, ...] = ()

    def _compile(self) -> None:
        self.index = {name: _Member(prop) for name, prop in self.place.properties.items()}
        self.missed = tuple(prop for prop in self.place.properties.values() if prop.field.required or prop.default is not shape.ABSENT)

    def __call__(self, raw: Any, trail: Any, out: Findings) -> Any:
        if not isinstance(raw, dict):
            out.append(wrong_type(trail, raw, "an object", self.place.field, example(self.place, raw)))
            return _DROP
        if not raw and self.place.field.empty_is_unset:
            return _DROP
        if not self.index:
            self._compile()
        made: dict[str, Any] = {}
        index = self.index
        for name, entry in raw.items():
            member = index.get(name)
            if member is not None and type(entry) is member.plain:
                made[name] = entry
            elif member is None:
                self._stranger(name, raw, made, trail, out)
            elif entry is None or member.noted:
                if entry is not None or member.nullable:
                    self._member(name, entry, made, (trail, name), out)
            else:
                value = member.checker(entry, (trail, name), out)
                if value is not _DROP:
                    made[name] = value
        for prop in self.missed:
            if prop.name not in made:
                self._absent(prop, raw, made, trail, out)
        return made

    def _member(self, name: str, entry: Any, made: dict[str, Any], place: Any, out: Findings) -> None:
        """A declared member; `place` ends in the name that the document uses, which may be an alias."""
        member = self.index[name]
        field = member.field
        value = None if entry is None else member.checker(entry, place, out)
        if value is _DROP:
            return
        if field.not_honoured:
            out.append(finding.note(path_of(place), f"accepted and kept, not honoured: {field.not_honoured}", NOT_HONOURED))
        if field.deprecated:
            out.append(finding.warning(path_of(place), f"deprecated: {field.deprecated}", DEPRECATED))
        made[name] = value

    def _alias(self, name: str, canonical: str, raw: dict[str, Any], made: dict[str, Any], trail: Any, out: Findings) -> None:
        """A member under another of its names. Which of two values would count nobody could guess."""
        if raw[name] is None:
            return
        if raw.get(canonical) is not None or canonical in made:
            why = f'it is another name of "{canonical}", which is given, too'
            out.append(finding.forbidden(path_of((trail, name)), why, ALIAS))
            return
        self._member(canonical, raw[name], made, (trail, name), out)

    def _stranger(self, name: Any, raw: dict[str, Any], made: dict[str, Any], trail: Any, out: Findings) -> None:
        """A member that is not declared: another name of one that is, kept in an open object, or unknown."""
        canonical = self.place.aliases.get(name)
        if canonical is not None:
            self._alias(name, canonical, raw, made, trail, out)
            return
        if self.place.open:
            made[name] = settle(raw[name])
            return
        # YAML has keys that are no texts; JSON, and so every API, has none.
        name = str(name)
        path = path_of((trail, name))
        hint = self.place.cls.STRANGERS.get(name, "")
        if not hint:
            # Looking for what is meant is slow, and nobody reads the five-hundredth hint.
            meant = nearest(name, self.index) if len(out) < _MOST_HINTS else None
            hint = f'did you mean "{meant}"?' if meant else ""
        text = f'unknown field "{finding.format_path(path)}"'
        out.append(Finding(path=path, message=f"{text}; {hint}" if hint else text, rule=UNKNOWN_FIELD))

    def _absent(self, prop: shape.Property, raw: dict[str, Any], made: dict[str, Any], trail: Any, out: Findings) -> None:
        """Handle a member that a document leaves out: a required one, or one with a default."""
        name, field = prop.name, prop.field
        if field.required:
            given = raw.get(name) is not None or any(raw.get(alias) is not None for alias in field.aliases)
            if not given or field.empty_is_unset:
                out.append(finding.required(path_of((trail, name)), REQUIRED, field.needed))
            return
        value = self.index[name].checker(prop.default, (trail, name), out)
        if value is not _DROP:
            made[name] = value


def _make_object(field_shape: shape.Shape) -> Check:
    assert isinstance(field_shape, shape.ObjectShape)
    return _ObjectCheck(field_shape)


_MAKERS: dict[type[shape.Shape], Callable[[shape.Shape], Check]] = {
    shape.StringShape: _make_string,
    shape.TimeShape: _make_string,
    shape.IntegerShape: _make_integer,
    shape.NumberShape: _make_number,
    shape.BooleanShape: _make_boolean,
    shape.QuantityShape: _make_quantity,
    shape.IntOrStringShape: _make_int_or_string,
    shape.AnyShape: _make_any,
    shape.ListShape: _make_list,
    shape.MapShape: _make_map,
    shape.ObjectShape: _make_object,
}
