"""The standard library: sizes, conversions, types, optionals."""

import base64
import math
from typing import Any

from paddock.base import base64data, duration
from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions import times
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function
from paddock.kubernetes.schema.cel.values import (
    NONE,
    CelType,
    Duration,
    Optional,
    Timestamp,
    UInt,
    checked,
    checked_unsigned,
    is_number,
    name_of,
    no_overload,
)


def _size(budget: CostBudget, value: Any) -> int:
    if not isinstance(value, str | bytes | list | dict):
        raise no_overload("size", value)
    return len(value)


def _int(budget: CostBudget, value: Any) -> int:
    if isinstance(value, Timestamp):
        return value.ns // 10**9
    if isinstance(value, str):
        return checked(_whole(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise EvaluationError("integer overflow")
        return checked(int(value))
    if is_number(value):
        return checked(int(value))
    raise no_overload("int", value)


def _whole(text: str) -> int:
    if len(text) > 40 or not text.isascii() or not text.removeprefix("-").removeprefix("+").isdigit():
        raise EvaluationError(f"type conversion error from 'string' to 'int': {text[:40]}")
    return int(text)


def _uint(budget: CostBudget, value: Any) -> UInt:
    if isinstance(value, str):
        return checked_unsigned(_whole(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError("unsigned integer overflow")
    if is_number(value):
        return checked_unsigned(int(value))
    raise no_overload("uint", value)


def _double(budget: CostBudget, value: Any) -> float:
    if isinstance(value, str):
        try:
            return float(value.replace("_", "?"))
        except ValueError:
            raise EvaluationError(f"type conversion error from 'string' to 'double': {value[:40]}") from None
    if is_number(value):
        return float(value)
    raise no_overload("double", value)


def _bool(budget: CostBudget, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    words |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if isinstance(value, str):
        if value not in words:
            raise EvaluationError(f"type conversion error from 'string' to 'bool': {value[:40]}")
        return words[value]
    raise no_overload("bool", value)


def _string(budget: CostBudget, value: Any) -> str:
    if isinstance(value, bytes):
        budget.spend(len(value) // 10)
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, str | bool | int | float | Timestamp | Duration):
        return text_of(value)
    return times.own_text(value)


def text_of(value: Any) -> str:
    """A plain value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "+Inf" if value > 0 else "-Inf"
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, Timestamp):
        return times.show_timestamp(value)
    if isinstance(value, Duration):
        return times.show_duration(value)
    return str(value)


def _bytes(budget: CostBudget, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise no_overload("bytes", value)
    budget.spend(len(value) // 10)
    return value.encode()


def _type(budget: CostBudget, value: Any) -> CelType:
    return CelType(name_of(value))


def _dyn(budget: CostBudget, value: Any) -> Any:
    return value


def _timestamp(budget: CostBudget, value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Timestamp(value * 10**9)
    if not isinstance(value, str):
        raise no_overload("timestamp", value)
    return times.read_timestamp(value)


def _duration(budget: CostBudget, value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Duration(value * 10**9)
    if not isinstance(value, str):
        raise no_overload("duration", value)
    try:
        return Duration(duration.parse(value))
    except duration.NotADuration:
        raise EvaluationError(f"type conversion error from 'string' to 'google.protobuf.Duration': {value[:40]}") from None


def _of(budget: CostBudget, value: Any) -> Optional:
    return Optional(value, True)


def _none(budget: CostBudget) -> Optional:
    return NONE


def _of_non_zero(budget: CostBudget, value: Any) -> Optional:
    zero = value is None or value is False or (is_number(value) and value == 0) or value in ("", b"", [], {})
    return NONE if zero else Optional(value, True)


def _optional(name: str, value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise no_overload(name, value)
    return value


def _has_value(budget: CostBudget, value: Any) -> bool:
    return _optional("hasValue", value).there


def _value(budget: CostBudget, value: Any) -> Any:
    if not _optional("value", value).there:
        raise EvaluationError("optional.none() dereference")
    return value.value


def _or_value(budget: CostBudget, value: Any, other: Any) -> Any:
    found = _optional("orValue", value)
    return found.value if found.there else other


def _or(budget: CostBudget, value: Any, other: Any) -> Any:
    return value if _optional("or", value).there else other


def _encode(budget: CostBudget, value: Any) -> str:
    if not isinstance(value, bytes):
        raise no_overload("base64.encode", value)
    budget.spend(len(value) // 10)
    return base64.b64encode(value).decode()


def _decode(budget: CostBudget, value: Any) -> bytes:
    if not isinstance(value, str):
        raise no_overload("base64.decode", value)
    budget.spend(len(value) // 10)
    text = base64data.unfolded(value)
    try:
        return base64data.decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise EvaluationError("illegal base64 data") from None


GLOBAL: dict[str, Function] = {
    "size": Function(_size, 1, 1, "int"),
    "int": Function(_int, 1, 1, "int"),
    "uint": Function(_uint, 1, 1, "uint"),
    "double": Function(_double, 1, 1, "double"),
    "bool": Function(_bool, 1, 1, "bool"),
    "string": Function(_string, 1, 1, "string"),
    "bytes": Function(_bytes, 1, 1, "bytes"),
    "type": Function(_type, 1, 1, "type"),
    "dyn": Function(_dyn, 1, 1),
    "timestamp": Function(_timestamp, 1, 1, "timestamp"),
    "duration": Function(_duration, 1, 1, "duration"),
    "optional.of": Function(_of, 1, 1, "optional"),
    "optional.none": Function(_none, 0, 0, "optional"),
    "optional.ofNonZeroValue": Function(_of_non_zero, 1, 1, "optional"),
    "base64.encode": Function(_encode, 1, 1, "string"),
    "base64.decode": Function(_decode, 1, 1, "bytes"),
}
METHODS: dict[str, Function] = {
    "size": Function(_size, 1, 1, "int"),
    "hasValue": Function(_has_value, 1, 1, "bool"),
    "value": Function(_value, 1, 1),
    "orValue": Function(_or_value, 2, 2),
    "or": Function(_or, 2, 2, "optional"),
}
