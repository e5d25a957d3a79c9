"""Patterns as Kubernetes means them: RE2, so that no text can make matching slow.

RE2 itself judges what a pattern may be. Matching through it costs some 9 us a text, Python's own engine 0.4 us, so a pattern
whose every repetition is plainly harmless in a backtracking engine, and which both read the same, is given to Python.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from paddock.base.errors import Terminal

Matcher = Callable[[str], bool]
LONGEST = 16 * 1024
# One repeatable thing: a character, a class without POSIX names, an escape that both engines read the same.
_ATOM = r"(?:[^\\\[\](){}*+?|^$.]|\.|\\[dDwW]|\\[-.\\/+*?()\[\]{}|^$_@:]|\[\^?(?:[^\\\[\]]|\\[-dwW.\\/+*?()\[\]{}|^$tnr])+\])"
_TIMES = r"(?:\?|\{\d{1,3}(?:,\d{0,3})?\}|[*+])?"
_ONCE = rf"(?:{_ATOM}{_TIMES})"
# A group that stands once or not at all; one that repeats could multiply what is inside it.
_GROUP = rf"(?:\((?:\?:)?{_ONCE}*(?:\|{_ONCE}*)*\)\??)"
_HARMLESS = re.compile(rf"\^(?:{_ONCE}|{_GROUP})*\$\Z")
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d+,\d*\})")
_OPTIONAL = re.compile(r"(?<!\\)\?(?!:)")
_MOST_OPTIONAL = 4


class BadPattern(Terminal):
    """The pattern is not one of RE2."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"{text!r} is not a pattern", why=why, fix="write it in RE2's syntax: no look-around, no references back")
        self.why = why


def _re2() -> Any:
    # Deliberately late: most servers never meet a pattern that needs it, and it costs 30 ms and 3 MB.
    import re2  # type: ignore[import-untyped]  # noqa: PLC0415

    return re2


def check(text: str) -> None:
    """Raise `BadPattern` unless RE2 accepts the pattern."""
    if len(text) > LONGEST:
        raise BadPattern(text[:40], f"it is longer than {LONGEST} characters")
    _compiled(text)


@lru_cache(maxsize=4096)
def matcher(text: str) -> Matcher:
    """Return a function that tests whether a text holds a match of the pattern; raises `BadPattern`."""
    if _is_harmless(text):
        native = re.compile(text[:-1] + r"\Z", re.ASCII).search
        return lambda value: native(value) is not None
    compiled = _compiled(text)
    return lambda value: compiled.search(value) is not None


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Any:
    """The pattern as RE2 has it."""
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        raise BadPattern(text, error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)) from None


def _is_harmless(text: str) -> bool:
    """One open repetition at most, few optional things: the work is the length of the text times a small number."""
    if len(text) > 200 or len(_UNBOUNDED.findall(text)) > 1 or len(_OPTIONAL.findall(text)) > _MOST_OPTIONAL:
        return False
    return _HARMLESS.match(text) is not None


def compiled(text: str) -> Any:
    """The pattern as an object of RE2, for finding and replacing; raises `BadPattern`."""
    return _compiled(text)
