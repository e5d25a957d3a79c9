"""Rules about one place say whether they warn: the server asks only those about a place that an update leaves as it was."""

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.kind import CrossFieldRule

RULES = {f"{kind.kind} {rule.id} {rule.text}": rule for kind in catalog.every() for rule in kind.rules if rule.judge is not None}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_warns_exactly_if_it_says_so(rule: CrossFieldRule) -> None:
    assert rule.judge is not None
    assert rule.warns == any(each in (finding.warning, finding.note) for each in _reached(rule.judge, set()))


def _reached(function: Callable[..., Any], seen: set[int]) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a function can call by name or holds, and those that they can."""
    if id(function) in seen:
        return
    seen.add(id(function))
    yield function
    if isinstance(function, FunctionType) and function.__module__ != finding.__name__:
        held = [cell.cell_contents for cell in function.__closure__ or ()]
        held = [each.check if isinstance(each, CrossFieldRule) else each for each in held]
        named = [found for name in _names(function.__code__) for found in _found(name, function.__globals__)]
        for each in (*held, *named):
            if callable(each):
                yield from _reached(each, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _found(name: str, known: dict[str, Any]) -> Iterator[Any]:
    """A function of the module, or one of `finding`, by which every rule makes its findings."""
    yield known.get(name)
    if known.get("finding") is finding:
        yield getattr(finding, name, None)
