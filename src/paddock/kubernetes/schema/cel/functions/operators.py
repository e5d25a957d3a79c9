"""The operators that are functions: arithmetic, order, equality, membership."""

import math
import operator
from collections.abc import Callable
from typing import Any

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function
from paddock.kubernetes.schema.cel.values import (
    Duration,
    Timestamp,
    UInt,
    UnorderedList,
    checked,
    checked_unsigned,
    equal,
    has_key,
    is_number,
    no_overload,
)

METHODS: dict[str, Function] = {}
_ORDERED = (str, bytes, Duration, Timestamp)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 0


def _equal(budget: CostBudget, one: Any, other: Any) -> bool:
    budget.spend(min(_size(one), _size(other)) // 10)
    return equal(budget.spend, one, other)


def _unequal(budget: CostBudget, one: Any, other: Any) -> bool:
    return not _equal(budget, one, other)


def _compare(sign: str, holds: Callable[[Any, Any], bool]) -> Function:
    def compare(budget: CostBudget, one: Any, other: Any) -> bool:
        if is_number(one) and is_number(other):
            return bool(holds(one, other))
        if type(one) is type(other) and isinstance(one, (*_ORDERED, bool)):
            budget.spend(min(_size(one), _size(other)) // 10)
            return bool(holds(one, other))
        raise no_overload(f"_{sign}_", one, other)

    return Function(compare, 2, 2, "bool")


def _add(budget: CostBudget, one: Any, other: Any) -> Any:
    if isinstance(one, list) and isinstance(other, list):
        budget.spend((len(one) + len(other)) // 10)
        return one.merged(budget.spend, other) if isinstance(one, UnorderedList) else [*one, *other]
    if isinstance(one, str | bytes) and type(one) is type(other):
        budget.spend((len(one) + len(other)) // 10)
        joined: Any = one
        return joined + other
    if isinstance(one, Timestamp | Duration) and isinstance(other, Timestamp | Duration):
        if isinstance(one, Timestamp) and isinstance(other, Timestamp):
            raise no_overload("_+_", one, other)
        both = checked(one.ns + other.ns)
        return Timestamp(both) if isinstance(one, Timestamp) or isinstance(other, Timestamp) else Duration(both)
    return _arithmetic("+", operator.add, one, other)


def _subtract(budget: CostBudget, one: Any, other: Any) -> Any:
    if isinstance(one, Timestamp):
        if isinstance(other, Timestamp):
            return Duration(checked(one.ns - other.ns))
        if isinstance(other, Duration):
            return Timestamp(checked(one.ns - other.ns))
    if isinstance(one, Duration) and isinstance(other, Duration):
        return Duration(checked(one.ns - other.ns))
    return _arithmetic("-", operator.sub, one, other)


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    if type(one) is not type(other) or not is_number(one):
        raise no_overload(f"_{sign}_", one, other)
    if isinstance(one, float):
        return compute(one, other)
    value = compute(int(one), int(other))
    return checked_unsigned(value) if isinstance(one, UInt) else checked(value)


def _multiply(budget: CostBudget, one: Any, other: Any) -> Any:
    return _arithmetic("*", operator.mul, one, other)


def _divide(budget: CostBudget, one: Any, other: Any) -> Any:
    if isinstance(one, float) and isinstance(other, float):
        if other == 0:
            return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    return _arithmetic("/", _quotient, one, other)


def _quotient(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("division by zero")
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def _modulo(budget: CostBudget, one: Any, other: Any) -> Any:
    if isinstance(one, float):
        raise no_overload("_%_", one, other)
    return _arithmetic("%", _remainder, one, other)


def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise EvaluationError("modulus by zero")
    return one - other * _quotient(one, other)


def _negate(budget: CostBudget, one: Any) -> Any:
    if isinstance(one, Duration):
        return Duration(-one.ns)
    if not is_number(one) or isinstance(one, UInt):
        raise no_overload("-_", one)
    return -one if isinstance(one, float) else checked(-one)


def _in(budget: CostBudget, one: Any, other: Any) -> bool:
    if isinstance(other, dict):
        return has_key(other, one)
    if isinstance(other, list):
        budget.spend(len(other))
        return any(equal(budget.spend, one, each) for each in other)
    raise no_overload("@in", one, other)


GLOBAL: dict[str, Function] = {
    "==": Function(_equal, 2, 2, "bool"),
    "!=": Function(_unequal, 2, 2, "bool"),
    "<": _compare("<", operator.lt),
    "<=": _compare("<=", operator.le),
    ">": _compare(">", operator.gt),
    ">=": _compare(">=", operator.ge),
    "+": Function(_add, 2, 2),
    "-": Function(_subtract, 2, 2),
    "*": Function(_multiply, 2, 2),
    "/": Function(_divide, 2, 2),
    "%": Function(_modulo, 2, 2),
    "neg": Function(_negate, 1, 1),
    "in": Function(_in, 2, 2, "bool"),
}
