"""Log records with fields: what a line is about stands beside its message, for programs and for people.

Inside `about(...)` every record of the task, whoever writes it, carries these fields.
"""

import contextlib
import contextvars
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from paddock.kubernetes.meta import ages

_FIELDS: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar("fields", default={})  # noqa: B039 - never changed in place
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextlib.contextmanager
def about(**fields: str) -> Iterator[None]:
    """Put these fields on every record until the block ends."""
    token = _FIELDS.set({**_FIELDS.get(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(token)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record: its task's, then its own."""
    own = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {**_FIELDS.get(), **own}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": ages.micro_timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields_of(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextLines(logging.Formatter):
    """For people: the message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and below it a traceback if there is one."""
        fields = " ".join(f"{name}={_quoted(str(value))}" for name, value in fields_of(record).items())
        said = f"{ages.timestamp(record.created)} {record.levelname} {record.name}: {record.getMessage()}"
        line = f"{said} {fields}" if fields else said
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if not text or any(c in ' "=' or not c.isprintable() for c in text) else text
