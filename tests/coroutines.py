"""Tests that are coroutines.

`@run_by(asyncio.run)` runs one in a loop. Where a test needs something that lives in the loop, such as a server, `play` makes it and calls
the test with it: `@played` takes the fixture `play` of the folder, and `@played_by(play)` a function. What `play` gives stands before the
slash in the parameters of the test, and fixtures after it.
"""

import inspect
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from inspect import Parameter
from typing import Any

Test = Callable[..., Coroutine[Any, Any, None]]


def run_by(run: Callable[..., Any]) -> Callable[[Test], Callable[..., None]]:
    """Let a function run a test to its end."""

    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def whole(**fixtures: Any) -> None:
            run(test(**fixtures))

        return _with_fixtures(whole, test)

    return decorate


def played_by(play: Callable[..., Any]) -> Callable[[Test], Callable[..., None]]:
    """Let a function call a test with what it makes."""

    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def whole(**fixtures: Any) -> None:
            play(partial(test, **fixtures))

        return _with_fixtures(whole, test)

    return decorate


def played(test: Test) -> Callable[..., None]:
    """Let the fixture `play` call a test with what it makes."""

    @wraps(test)
    def whole(play: Callable[..., Any], **fixtures: Any) -> None:
        play(partial(test, **fixtures))

    return _with_fixtures(whole, test, Parameter("play", Parameter.POSITIONAL_OR_KEYWORD))


def _with_fixtures(whole: Callable[..., None], test: Test, *more: Parameter) -> Callable[..., None]:
    """Tell pytest the fixtures of a test: what is not before the slash."""
    fixtures = [each for each in inspect.signature(test).parameters.values() if each.kind is not Parameter.POSITIONAL_ONLY]
    whole.__signature__ = inspect.Signature([*more, *fixtures])  # type: ignore[attr-defined]
    return whole
