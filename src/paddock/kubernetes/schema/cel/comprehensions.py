"""Macros over lists and maps. Each round pays for its body, which is the only way an expression can repeat."""

from collections.abc import Callable, Iterator
from typing import Any

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.values import has_key, name_of

Frame = list[Any]
Code = Callable[[Frame], Any]


def truth(value: Any) -> bool:
    """A bool; raises `EvaluationError` for anything else."""
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"no such overload: {name_of(value)} is not a bool")


# Sets the variables of each round, paying for it; gives the key (or index) and what a single variable stands for.
Rounds = Callable[[Frame], Iterator[tuple[Any, Any]]]
Macro = Callable[[Rounds, list[Code]], Code]


def rounds_over(source: Code, slots: list[int], cost: int) -> Rounds:
    one = len(slots) == 1

    def rounds(frame: Frame) -> Iterator[tuple[Any, Any]]:
        value = source(frame)
        if isinstance(value, dict):
            pairs: Any = value.items()
        elif isinstance(value, list):
            pairs = enumerate(value)
        else:
            raise EvaluationError(f"no such overload: a comprehension over {name_of(value)}")
        by_key = isinstance(value, dict)
        budget = frame[0]
        for key, member in pairs:
            budget.spend(cost)
            bound = key if by_key else member
            if one:
                frame[slots[0]] = bound
            else:
                frame[slots[0]], frame[slots[1]] = key, member
            yield key, bound

    return rounds


def _all(rounds: Rounds, codes: list[Code]) -> Code:
    return _quantified(rounds, codes[0], False)


def _exists(rounds: Rounds, codes: list[Code]) -> Code:
    return _quantified(rounds, codes[0], True)


def _quantified(rounds: Rounds, test: Code, deciding: bool) -> Code:
    def quantified(frame: Frame) -> bool:
        failed: EvaluationError | None = None
        for _ in rounds(frame):
            try:
                if truth(test(frame)) is deciding:
                    return deciding
            except EvaluationError as error:
                failed = error
        if failed is not None:
            raise failed
        return not deciding

    return quantified


def _exists_one(rounds: Rounds, codes: list[Code]) -> Code:
    test = codes[0]
    return lambda frame: sum(truth(test(frame)) for _ in rounds(frame)) == 1


def _filter(rounds: Rounds, codes: list[Code]) -> Code:
    test = codes[0]
    return lambda frame: [bound for _, bound in rounds(frame) if truth(test(frame))]


def _map(rounds: Rounds, codes: list[Code]) -> Code:
    *tests, change = codes

    def mapped(frame: Frame) -> list[Any]:
        return [change(frame) for _ in rounds(frame) if not tests or truth(tests[0](frame))]

    return mapped


def _transform_map(rounds: Rounds, codes: list[Code]) -> Code:
    *tests, change = codes
    return lambda frame: {key: change(frame) for key, _ in rounds(frame) if not tests or truth(tests[0](frame))}


def _transform_entry(rounds: Rounds, codes: list[Code]) -> Code:
    *tests, change = codes

    def transformed(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for _ in rounds(frame):
            if tests and not truth(tests[0](frame)):
                continue
            for key, value in change(frame).items():
                if has_key(made, key):
                    raise EvaluationError("insert failed: key already exists")
                made[key] = value
        return made

    return transformed


# (name, arguments) -> how many of them are variables, and what it does
MACROS: dict[tuple[str, int], tuple[int, Macro]] = {
    ("all", 2): (1, _all),
    ("all", 3): (2, _all),
    ("exists", 2): (1, _exists),
    ("exists", 3): (2, _exists),
    ("exists_one", 2): (1, _exists_one),
    ("existsOne", 2): (1, _exists_one),
    ("exists_one", 3): (2, _exists_one),
    ("existsOne", 3): (2, _exists_one),
    ("filter", 2): (1, _filter),
    ("map", 2): (1, _map),
    ("map", 3): (1, _map),
    ("transformList", 3): (2, _map),
    ("transformList", 4): (2, _map),
    ("transformMap", 3): (2, _transform_map),
    ("transformMap", 4): (2, _transform_map),
    ("transformMapEntry", 3): (2, _transform_entry),
    ("transformMapEntry", 4): (2, _transform_entry),
}
VARIABLES = {place: count for place, (count, _) in MACROS.items()}
