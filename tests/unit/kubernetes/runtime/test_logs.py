"""Log lines with fields."""

import json
import logging
import sys

from paddock.kubernetes.runtime import logs


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "paddock.x", "levelname": "WARNING", "msg": message, "created": 0.5})
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_lines_for_programs_and_for_people() -> None:
    with logs.about(controller="maps", namespace="default"), logs.about(name="a"):
        said = record("it failed", step="read it", count=3)
        assert json.loads(logs.JsonLines().format(said)) == {
            "timestamp": "1970-01-01T00:00:00.500000Z",
            "level": "warning",
            "logger": "paddock.x",
            "message": "it failed",
            "controller": "maps",
            "namespace": "default",
            "name": "a",
            "step": "read it",
            "count": 3,
        }
        assert logs.TextLines().format(said) == (
            '1970-01-01T00:00:00Z WARNING paddock.x: it failed controller=maps namespace=default name=a step="read it" count=3'
        )
    assert logs.TextLines().format(record("hello")) == "1970-01-01T00:00:00Z WARNING paddock.x: hello"


def test_tracebacks() -> None:
    try:
        raise KeyError("x")
    except KeyError:
        said = record("broken", exc_info=sys.exc_info())
    assert "KeyError: 'x'" in json.loads(logs.JsonLines().format(said))["traceback"]
    assert logs.TextLines().format(said).endswith("KeyError: 'x'")
