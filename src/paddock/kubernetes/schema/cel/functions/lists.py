from functools import reduce
from itertools import pairwise
from typing import Any

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions import operators
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function, NotMine, pure
from paddock.kubernetes.schema.cel.values import Duration, equal, no_overload

_DEEPEST = 100


def _less(budget: CostBudget, one: Any, other: Any) -> bool:
    return bool(operators.GLOBAL["<"].run(budget, one, other))


def _walk(name: str, value: Any, budget: CostBudget) -> list[Any]:
    if not isinstance(value, list):
        raise NotMine(str(no_overload(name, value)))
    budget.spend(len(value))
    return value


def _is_sorted(budget: CostBudget, value: Any) -> bool:
    entries = _walk("isSorted", value, budget)
    return all(not _less(budget, after, before) for before, after in pairwise(entries))


def _sum(budget: CostBudget, value: Any) -> Any:
    entries = _walk("sum", value, budget)
    if not entries:
        return 0
    start = Duration(0) if isinstance(entries[0], Duration) else type(entries[0])(0)
    return reduce(lambda one, other: operators.GLOBAL["+"].run(budget, one, other), entries, start)


def _min(budget: CostBudget, value: Any) -> Any:
    return _extreme("min", value, budget, lambda found, each: _less(budget, each, found))


def _max(budget: CostBudget, value: Any) -> Any:
    return _extreme("max", value, budget, lambda found, each: _less(budget, found, each))


def _extreme(name: str, value: Any, budget: CostBudget, better: Any) -> Any:
    entries = _walk(name, value, budget)
    if not entries:
        raise EvaluationError(f"{name} called on empty list")
    return reduce(lambda found, each: each if better(found, each) else found, entries)


def _index_of(budget: CostBudget, value: Any, wanted: Any) -> int:
    entries = _walk("indexOf", value, budget)
    return next((index for index, each in enumerate(entries) if equal(budget.spend, each, wanted)), -1)


def _last_index_of(budget: CostBudget, value: Any, wanted: Any) -> int:
    entries = _walk("lastIndexOf", value, budget)
    return next((index for index in range(len(entries) - 1, -1, -1) if equal(budget.spend, entries[index], wanted)), -1)


def _distinct(budget: CostBudget, value: Any) -> list[Any]:
    found: list[Any] = []
    for each in _walk("distinct", value, budget):
        budget.spend(len(found))
        if not any(equal(budget.spend, each, other) for other in found):
            found.append(each)
    return found


def _flatten(budget: CostBudget, value: Any, depth: Any = 1) -> list[Any]:
    if type(depth) is not int or depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for each in _walk("flatten", value, budget):
        found.extend(_flatten(budget, each, min(depth, _DEEPEST) - 1) if isinstance(each, list) and depth > 0 else [each])
    return found


def _slice(budget: CostBudget, value: Any, start: Any, end: Any) -> list[Any]:
    entries = _walk("slice", value, budget)
    if type(start) is not int or type(end) is not int or not 0 <= start <= end <= len(entries):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(entries)}")
    return entries[start:end]


def _sort(budget: CostBudget, value: Any) -> list[Any]:
    entries = _walk("sort", value, budget)
    for before, after in pairwise(entries):
        _less(budget, before, after)
    budget.spend(len(entries) * max(1, len(entries).bit_length()))
    return sorted(entries)


def _range(budget: CostBudget, count: Any) -> list[int]:
    if type(count) is not int or count < 0:
        raise EvaluationError("lists.range: a non-negative number is needed")
    budget.spend(count)
    return list(range(count))


def _contains(budget: CostBudget, one: Any, other: Any) -> bool:
    entries, wanted = _walk("sets.contains", one, budget), _walk("sets.contains", other, budget)
    budget.spend(len(entries) * len(wanted))
    return all(any(equal(budget.spend, each, entry) for entry in entries) for each in wanted)


def _equivalent(budget: CostBudget, one: Any, other: Any) -> bool:
    return _contains(budget, one, other) and _contains(budget, other, one)


def _intersects(budget: CostBudget, one: Any, other: Any) -> bool:
    entries, wanted = _walk("sets.intersects", one, budget), _walk("sets.intersects", other, budget)
    budget.spend(len(entries) * len(wanted))
    return any(any(equal(budget.spend, each, entry) for entry in entries) for each in wanted)


def _end(entries: list[Any], index: int) -> Any:
    if not entries:
        raise EvaluationError("the list is empty")
    return entries[index]


GLOBAL: dict[str, Function] = {
    "sets.contains": Function(_contains, 2, 2, "bool"),
    "sets.equivalent": Function(_equivalent, 2, 2, "bool"),
    "sets.intersects": Function(_intersects, 2, 2, "bool"),
    "lists.range": Function(_range, 1, 1, "list"),
}
METHODS: dict[str, Function] = {
    "isSorted": Function(_is_sorted, 1, 1, "bool"),
    "sum": Function(_sum, 1, 1),
    "min": Function(_min, 1, 1),
    "max": Function(_max, 1, 1),
    "indexOf": Function(_index_of, 2, 2, "int"),
    "lastIndexOf": Function(_last_index_of, 2, 2, "int"),
    "distinct": Function(_distinct, 1, 1, "list"),
    "flatten": Function(_flatten, 1, 2, "list"),
    "slice": Function(_slice, 3, 3, "list"),
    "sort": Function(_sort, 1, 1, "list"),
    "first": pure("first", (list,), lambda entries: _end(entries, 0)),
    "last": pure("last", (list,), lambda entries: _end(entries, -1)),
}
