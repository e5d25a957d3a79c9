"""The declaration of a function."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.values import no_overload


class CostBudget(Protocol):
    """The rest of the budget."""

    def spend(self, cost: int) -> None: ...


class NotMine(EvaluationError):
    """These values are not for this function; another of the same name may take them."""


class Function(msgspec.Struct, frozen=True):
    """A function with the number of arguments it takes, the target of a method being the first. `result` is its type, if always one."""

    run: Callable[..., Any]
    least: int
    most: int
    result: str = ""

    def or_else(self, other: "Function") -> "Function":
        """Both in one: the other takes what this one does not."""
        first, second = self, other

        def run(budget: CostBudget, *args: Any) -> Any:
            if first.least <= len(args) <= first.most:
                try:
                    return first.run(budget, *args)
                except NotMine:
                    if not second.least <= len(args) <= second.most:
                        raise
            return second.run(budget, *args)

        result = first.result if first.result == second.result else ""
        return Function(run, min(first.least, second.least), max(first.most, second.most), result)


def pure(name: str, types: tuple[Any, ...], run: Callable[..., Any], result: str = "", least: int | None = None) -> Function:
    """A function of values of fixed types, priced by the length of the texts and lists it is given."""

    def guarded(budget: CostBudget, *args: Any) -> Any:
        cost = 0
        for value, wanted in zip(args, types, strict=False):
            if (not isinstance(value, wanted)) or (isinstance(value, bool) and wanted is not bool and wanted is not object):
                raise NotMine(str(no_overload(name, *args)))
            if isinstance(value, str | list | dict | bytes):
                cost += len(value)
        budget.spend(cost // 10)
        return run(*args)

    return Function(guarded, len(types) if least is None else least, len(types), result)
