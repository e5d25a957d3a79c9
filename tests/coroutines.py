"""Tests that are coroutines.

`@run_by(asyncio.run)`, which is `@scripted`, runs one in a loop, and `@timeless` does so in virtual time. Where a test needs something
that lives in the loop, such as a server, `play` makes it and calls the test with it: `@played` takes the fixture `play` of the folder, and
`@played_by(play)` a function. What else `play` takes stands behind it: `@played_by(play, "tmp_path", seconds=60)` calls
`play(tmp_path, test, seconds=60)`. What `play` gives stands before the slash in the parameters of the test, and fixtures after it.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from functools import partial, wraps
from inspect import Parameter
from typing import Any

from tests import virtualtime

Test = Callable[..., Coroutine[Any, Any, None]]


def run_by(run: Callable[..., Any] | str) -> Callable[[Test], Callable[..., None]]:
    """Let a function run a test to its end. A text is the fixture of that name."""

    def decorate(test: Test) -> Callable[..., None]:
        return _decorated(test, (run,), lambda play, whole: play(whole()))

    return decorate


def played_by(play: Callable[..., Any] | str, *given: Any, **options: Any) -> Callable[[Test], Callable[..., None]]:
    """Let a function call a test with what it makes. A text, here and in `given`, is the fixture of that name."""

    def decorate(test: Test) -> Callable[..., None]:
        return _decorated(test, (play, *given), lambda play, *more: play(*more, **options))

    return decorate


def _decorated(test: Test, given: Sequence[Any], do: Callable[..., Any]) -> Callable[..., None]:
    """Return a test that gives a function its values, fixtures among them, and last the coroutine function with the test's own fixtures."""
    own = {name: each for name, each in inspect.signature(test).parameters.items() if each.kind is not Parameter.POSITIONAL_ONLY}
    names = {each: Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in given if isinstance(each, str)}
    signature = inspect.Signature(list((names | own).values()))

    @wraps(test)
    def whole(*arguments: Any, **named: Any) -> None:
        fixtures = signature.bind(*arguments, **named).arguments
        values = (fixtures[each] if isinstance(each, str) else each for each in given)
        do(*values, partial(test, **{name: fixtures[name] for name in own}))

    # What pytest reads the fixtures from.
    whole.__signature__ = signature  # type: ignore[attr-defined]
    return whole


played = played_by("play")
scripted = run_by(asyncio.run)
timeless = run_by(virtualtime.run)
