"""Runs a command in this process."""

import io
from typing import NamedTuple

from paddock.cli.console import Console
from paddock.cli.main import run


class Answer(NamedTuple):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


def paddock(*arguments: str) -> Answer:
    """`paddock ARGUMENTS`."""
    out, err = io.BytesIO(), io.BytesIO()
    code = run(arguments, Console(out, err))
    return Answer(code, out.getvalue().decode(), err.getvalue().decode())
