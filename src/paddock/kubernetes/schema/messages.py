"""The sentences about values that a declaration does not allow, and the rules they stand for."""

from typing import Any

from paddock.base import quantity
from paddock.kubernetes.schema import finding, shape
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.scalars import BareWord

UNKNOWN_FIELD = "schema/unknown-field"
TYPE = "schema/type"
REQUIRED = "schema/required"
BOUNDS = "schema/bounds"
ENUM = "schema/enum"
FORMAT = "schema/format"
FRACTION = "schema/fraction"
DUPLICATE = "schema/duplicate"
BARE_WORD = "yaml/bare-word"
ALIAS = "schema/alias"
NOT_HONOURED = "schema/not-honoured"
DEPRECATED = "schema/deprecated"


def path_of(trail: Any) -> Path:
    """A chain as a path."""
    parts: list[str | int] = []
    while trail is not None:
        trail, key = trail
        parts.append(key)
    return tuple(reversed(parts))


def wrong_type(trail: Any, raw: Any, wanted: str, field: Field, shown: str = "") -> Finding:
    """A value of another type. `shown` is an example of the right one."""
    if field.secret:
        return Finding(path=path_of(trail), message=f"Invalid value: must be {wanted}", rule=TYPE, cause=CauseType.TYPE_INVALID)
    hint = f", such as {shown}" if shown else ""
    if isinstance(raw, BareWord):
        hint = f'; kubectl reads a bare {raw} as a boolean, quote it: "{raw}"'
    elif wanted == "a string" and isinstance(raw, int | float) and (not field.enum or finding.show(raw) in field.enum):
        hint = f'; quote it: "{finding.show(raw)}"'
    elif wanted == "a string" and field.enum:
        hint = "; write one of " + ", ".join(f'"{word}"' for word in field.enum if word)
    message = f"Invalid value: {finding.show(raw)}: must be {wanted}{hint}"
    return Finding(path=path_of(trail), message=message, rule=TYPE, cause=CauseType.TYPE_INVALID)


def bad(trail: Any, raw: Any, why: str, rule: str, field: Field) -> Finding:
    """A value that breaks a rule, which is not repeated where it is secret."""
    path = path_of(trail)
    return finding.secret_invalid(path, why, rule) if field.secret else finding.invalid(path, raw, why, rule)


def bare_word(word: str) -> str:
    """The warning about an unquoted word that is a boolean to others."""
    return f'a bare {word} is a boolean to kubectl; write "{word}" so that every tool reads the same'


def bounds_text(field: Field) -> str:
    """The sentence for a number outside its bounds."""
    if field.ge is not None and field.le is not None:
        return f"must be between {field.ge} and {field.le}, inclusive"
    if field.ge is not None:
        return f"must be greater than or equal to {field.ge}"
    return f"must be less than or equal to {field.le}"


def may_be_anything(field: Field) -> bool:
    bounded = field.min_length is not None or field.max_length is not None
    return not (bounded or field.enum or field.empty_is_unset or field.pattern or field.format)


def example(field_shape: shape.ObjectShape, raw: Any) -> str:
    """An object of one member, with the value that stands in place of it where that fits."""
    for name, prop in field_shape.properties.items():
        if isinstance(prop.shape, shape.QuantityShape):
            amount = raw if isinstance(raw, int | str) and quantity.is_quantity(raw) else next(iter(quantity.meant(raw)), "10Gi")
            return f"{{{name}: {amount}}}"
    for name, prop in field_shape.properties.items():
        if type(prop.shape) is shape.StringShape and not prop.field.secret:
            fits = isinstance(raw, str) and may_be_anything(prop.field)
            return f"{{{name}: {raw[:40] if fits else next(iter(prop.field.enum), '...')}}}"
    return ""
