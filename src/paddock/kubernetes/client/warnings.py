"""The server's warnings about what one task sends, for programs that show them to whoever sent it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# 299 - "the text", "another" may follow
_WARNING = re.compile(r'\b\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_MOST = 100
_COLLECTED: ContextVar[list[str] | None] = ContextVar("warnings of a task", default=None)


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the warnings about the requests of this task, each once."""
    found: list[str] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def note(header: str) -> None:
    """Take in the warnings of an answer."""
    found = _COLLECTED.get()
    for text in _texts(header) if found is not None else ():
        if found is not None and text not in found and len(found) < _MOST:
            found.append(text)


def _texts(header: str) -> list[str]:
    texts = [re.sub(r"\\(.)", r"\1", each) for each in _WARNING.findall(header)]
    return texts or [header]
