"""The errors of an expression."""

from paddock.base.errors import Terminal


class BadExpression(Terminal):
    """The text is no expression, or one that cannot be: found before it ever runs."""

    def __init__(self, why: str, at: int = 0) -> None:
        super().__init__("the expression cannot be compiled", why=why)
        self.why = why
        self.at = at


class EvaluationError(Exception):
    """The expression has no value for this input."""


class OutOfBudget(Exception):
    """The expression costs more than it may."""
