"""Quantities, versions and named formats."""

import re
from typing import Any

from paddock.base import names, quantity
from paddock.kubernetes.schema import wireformats as formats
from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function, NotMine, pure
from paddock.kubernetes.schema.cel.values import NONE, NamedFormat, Optional, Quantity, Semver, no_overload

_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?\Z",
    re.ASCII,
)
_LOOSE = re.compile(r"v?0*(\d+)(?:\.0*(\d+))?(?:\.0*(\d+))?(.*)\Z", re.ASCII | re.DOTALL)


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text))
    except quantity.NotAQuantity:
        why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise EvaluationError(why) from None


def _as_integer(value: Quantity) -> int:
    whole, rest = divmod(value.value, quantity.UNIT)
    if rest or not -(2**63) <= whole < 2**63:
        raise EvaluationError("cannot convert value to integer")
    return whole


def _is_integer(value: Quantity) -> bool:
    return value.value % quantity.UNIT == 0 and -(2**63) <= value.value // quantity.UNIT < 2**63


def _amount(other: Any) -> int:
    if isinstance(other, Quantity):
        return other.value
    if type(other) is int:
        return other * quantity.UNIT
    raise no_overload("quantity", other)


def _order(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def _semver(budget: CostBudget, text: Any, normalize: Any = False) -> Semver:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("semver", text)
    found = _read_semver(text, normalize)
    if found is None:
        raise EvaluationError("No Major.Minor.Patch elements found")
    return found


def _is_semver(budget: CostBudget, text: Any, normalize: Any = False) -> bool:
    if not isinstance(text, str) or not isinstance(normalize, bool):
        raise no_overload("isSemver", text)
    return _read_semver(text, normalize) is not None


def _read_semver(text: str, normalize: bool) -> Semver | None:
    if len(text) > 256:
        return None
    if normalize and (loose := _LOOSE.match(text)) is not None:
        text = f"{loose[1]}.{loose[2] or 0}.{loose[3] or 0}{loose[4]}"
    match = _SEMVER.match(text)
    if match is None:
        return None
    return Semver(int(match[1]), int(match[2]), int(match[3]), tuple(match[4].split(".")) if match[4] else (), text)


def _rank(value: Semver) -> tuple[Any, ...]:
    parts = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in value.before)
    return (value.major, value.minor, value.patch, not value.before, parts)


def _label_prefix(accepts: Any) -> Any:
    return lambda text: accepts(text.removesuffix("-"))


_WHY_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_FORMATS = {
    each.name: each
    for each in (
        NamedFormat("dns1123Label", names.is_label, _WHY_LABEL),
        NamedFormat("dns1123Subdomain", names.is_subdomain, "a lowercase RFC 1123 subdomain must consist of labels joined by dots"),
        NamedFormat("dns1035Label", lambda text: names.is_label(text) and text[:1].isalpha(), "a DNS-1035 label begins with a letter"),
        NamedFormat("qualifiedName", names.is_qualified, "name part must consist of alphanumeric characters, '-', '_' or '.'"),
        NamedFormat("dns1123LabelPrefix", _label_prefix(names.is_label), _WHY_LABEL),
        NamedFormat("dns1123SubdomainPrefix", _label_prefix(names.is_subdomain), "not the beginning of an RFC 1123 subdomain"),
        NamedFormat("dns1035LabelPrefix", _label_prefix(names.is_label), "not the beginning of a DNS-1035 label"),
        NamedFormat("labelValue", names.is_label_value, "a valid label must be an empty string or consist of alphanumeric characters"),
        NamedFormat("uri", formats.FORMATS["uri"], "not a URI"),
        NamedFormat("uuid", formats.FORMATS["uuid"], "does not match the UUID format"),
        NamedFormat("byte", formats.FORMATS["byte"], "invalid base64"),
        NamedFormat("date", formats.FORMATS["date"], "invalid date"),
        NamedFormat("datetime", formats.FORMATS["datetime"], "invalid datetime"),
    )
}


def _named(name: str) -> Optional:
    return Optional(_FORMATS[name], True) if name in _FORMATS else NONE


def _validate(form: NamedFormat, text: str) -> Optional:
    return NONE if form.accepts(text) else Optional([form.why], True)


def _format(form: NamedFormat) -> Function:
    return Function(lambda budget: form, 0, 0, "format")


def _ordering(name: str, holds: Any, result: str) -> Function:
    def compare(budget: CostBudget, one: Any, other: Any) -> Any:
        if isinstance(one, Quantity) and isinstance(other, Quantity):
            return holds(_order(one.value, other.value))
        if isinstance(one, Semver) and isinstance(other, Semver):
            return holds(_order(_rank(one), _rank(other)))
        raise NotMine(str(no_overload(name, one, other)))

    return Function(compare, 2, 2, result)


GLOBAL: dict[str, Function] = {
    "quantity": pure("quantity", (str,), _quantity, "quantity"),
    "isQuantity": pure("isQuantity", (str,), quantity.is_quantity, "bool"),
    "semver": Function(_semver, 1, 2, "semver"),
    "isSemver": Function(_is_semver, 1, 2, "bool"),
    "format.named": pure("format.named", (str,), _named, "optional"),
    **{f"format.{name}": _format(form) for name, form in _FORMATS.items()},
}
METHODS: dict[str, Function] = {
    "sign": pure("sign", (Quantity,), lambda value: _order(value.value, 0), "int"),
    "isInteger": pure("isInteger", (Quantity,), _is_integer, "bool"),
    "asInteger": pure("asInteger", (Quantity,), _as_integer, "int"),
    "asApproximateFloat": pure("asApproximateFloat", (Quantity,), lambda value: value.value / quantity.UNIT, "double"),
    "add": pure("add", (Quantity, object), lambda one, other: Quantity(one.value + _amount(other)), "quantity"),
    "sub": pure("sub", (Quantity, object), lambda one, other: Quantity(one.value - _amount(other)), "quantity"),
    "isGreaterThan": _ordering("isGreaterThan", lambda order: order > 0, "bool"),
    "isLessThan": _ordering("isLessThan", lambda order: order < 0, "bool"),
    "compareTo": _ordering("compareTo", lambda order: order, "int"),
    "major": pure("major", (Semver,), lambda value: value.major, "int"),
    "minor": pure("minor", (Semver,), lambda value: value.minor, "int"),
    "patch": pure("patch", (Semver,), lambda value: value.patch, "int"),
    "validate": pure("validate", (NamedFormat, str), _validate, "optional"),
}
