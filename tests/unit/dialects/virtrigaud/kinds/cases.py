"""One way to break a rule across fields, and the nearest form that keeps it."""

from typing import Any, NamedTuple


class Rule(NamedTuple):
    """A change of a good object that breaks a rule, and where and how that is told. `good` is the nearest form that keeps it."""

    id: str
    items: tuple[int, ...]
    kind: str
    bad: dict[str, Any]
    good: dict[str, Any]
    field: str
    words: str
    warns: bool = False


def rule(id: str, items: tuple[int, ...] = (), *, kind: str = "VirtualMachine", **rest: Any) -> Rule:
    """A case of a rule of the dialect."""
    return Rule(f"virtrigaud/{id}", items, kind, **rest)
